# SPDX-License-Identifier: Apache-2.0
# A short way to what meson and the tools do; `make help` lists it.

BUILD ?= build
PREFIX ?= /usr/local
DESTDIR ?=
MESON_OPTIONS ?=
# musl starts half a millisecond sooner than glibc; meson.build says why. LIBC_CC=cc for glibc.
LIBC_CC ?= $(or $(shell command -v musl-gcc),cc)

# liblean is for programs of this system and its libc, so it has a compiler and a directory of its own
# where the program is built by musl-gcc.
LIB_BUILD = $(if $(filter musl-gcc,$(notdir $(LIBC_CC))),$(BUILD)-lib)

NINJA = ninja -C $(BUILD)

.PHONY: all help deps demo demo-fork check check-lean check-denied faults mutate unit lint glibc coverage fuzz sanitize vm vm-shell module module-deb check-module check-module-kasan aarch64 pristine pristine-deb deb format install clean

all: $(BUILD)/build.ninja $(LIB_BUILD:=/build.ninja) ## build into $(BUILD)
	@$(NINJA)
	@$(if $(LIB_BUILD),ninja -C $(LIB_BUILD))

help: ## show this list
	@sed -n 's/^\([a-z0-9-]*\):.*## /\1\t/p' $(MAKEFILE_LIST) | expand -t 16

$(BUILD)/build.ninja:
	@command -v meson >/dev/null || { echo "no meson: run 'make deps' first" >&2; exit 1; }
	CC=$(LIBC_CC) meson setup --prefix $(PREFIX) $(MESON_OPTIONS) $(BUILD)

$(BUILD)-lib/build.ninja:
	CC=cc meson setup --prefix $(PREFIX) $(MESON_OPTIONS) -Dprogram=false $(BUILD)-lib

deps: ## install the packages that building needs (Debian; as root or by sudo)
	@tools/install-deps build

demo: deps ## install what is missing, build, and run a container
	@$(MAKE) --no-print-directory all
	@tools/demo $(BUILD)/src/cli/lean-runtime demo

demo-fork: deps ## the same for the remote fork: a container goes on, on a second host (root; docs/remote-fork.md)
	@$(MAKE) --no-print-directory all
	@tools/demo-fork $(BUILD)/src/cli/lean-runtime $(firstword $(LIB_BUILD) $(BUILD))/src/forkd/lean-forkd demo-fork

check: ## install what is missing, build, and run every test
	@tools/install-deps test
	@$(MAKE) --no-print-directory all
	@tests/run-all $(BUILD)

check-denied: all ## deny each system call that there is a fallback for to every test that makes it (an hour)
	@LEAN_RUNTIME=$(BUILD)/src/cli/lean-runtime tests/denied/run -w $(BUILD)/tests/denied/deny

faults: all ## make every system call fail once, and kill at each (hours; FAULTS='run exec' is a part of it)
	@tests/faults/run $(BUILD) $(FAULTS)

mutate: all ## take each defence of SECURITY.md out, and expect its test to fail (MUTANTS=... for some)
	@tests/mutants/run --build $(BUILD) $(MUTANTS)

unit: all ## run the unit tests and house rules only
	@meson test -C $(BUILD) --no-rebuild --print-errorlogs

check-lean: all ## run the suite of the command line with the lean profile on
	@tests/run-all $(BUILD) lean

sanitize: ## build with ASan and UBSan into $(BUILD)-sanitize, and run the unit tests, the command-line suite and the managers
	@tests/sanitize $(abspath $(BUILD)-sanitize) unit bats docker podman buildah containerd

lint: all ## look for faults with cppcheck, gcc's analyzer and codespell; tools/lint.off says what is off and why
	@tools/install-deps lint
	@tools/lint $(BUILD)

glibc: ## build the program with the system's libc into $(BUILD)-glibc, and run the unit and command-line suites
	@tools/install-deps test
	@$(MAKE) --no-print-directory LIBC_CC=cc BUILD=$(BUILD)-glibc all
	@tests/run-all $(BUILD)-glibc unit bats

coverage: ## which lines the unit tests and the command-line suite execute, by rooms; the others in $(BUILD)-coverage/uncovered
	@tools/install-deps test
	@tests/coverage/run $(abspath $(BUILD)-coverage) unit bats

FUZZ_SECONDS ?= 60
fuzz: ## run every fuzz target for FUZZ_SECONDS (clang); what is found stays in $(BUILD)-fuzz/found
	@tools/install-deps fuzz
	@tests/fuzz/run $(abspath $(BUILD)-fuzz) $(FUZZ_SECONDS)

# Of the oldest and of the newest kernel, systemd and managers that are there.
VM ?= trixie forky
vm: all ## test on hosts with systemd and cgroup v2, which are virtual machines (qemu, mmdebstrap; VM=forky, VM_TESTS=...)
	@tools/install-deps vm
	@code=0; for suite in $(VM); do \
		LEAN_RUNTIME=$(BUILD)/src/cli/lean-runtime tests/vm/run -s $$suite $(VM_TESTS) || code=1; \
	done; exit $$code

vm-shell: all ## a shell in such a machine (VM=forky)
	@tools/install-deps vm
	@LEAN_RUNTIME=$(BUILD)/src/cli/lean-runtime tests/vm/run -s $(firstword $(VM)) -i

# Debian's suites: Linux 6.1, 6.12 and the newest.
MODULE ?= bookworm trixie forky
module: ## build the kernel module of docs/module.md for three kernels, without a warning, and look at its style (root, mmdebstrap; MODULE=trixie)
	@tools/install-deps module
	@tests/module/style
	@tests/module/build $(BUILD)/module $(MODULE)

module-deb: ## its sources as a Debian package for DKMS, in $(BUILD)/module
	@tools/make-module-deb $(BUILD)/module

check-module: all ## build it, and test it in virtual machines with these kernels and soft-RoCE (root, qemu, mmdebstrap)
	@tools/install-deps module
	@tests/module/run $(BUILD) $(MODULE)

check-module-kasan: all ## test it in a kernel that looks for faults and lets allocations fail, built here (root, qemu, mmdebstrap; hours)
	@tools/install-deps module
	@tests/module/run $(BUILD) kasan

aarch64: ## build for arm64, and run the unit tests on Linux for arm64 (qemu, mmdebstrap; AARCH64_TESTS=... for some)
	@tools/install-deps aarch64
	@tests/aarch64/tree $(abspath $(BUILD)-aarch64-root)
	@[ -e $(BUILD)-aarch64/build.ninja ] || \
		meson setup --werror --cross-file $(BUILD)-aarch64-root/cross.ini $(BUILD)-aarch64
	@ninja -C $(BUILD)-aarch64
	@tests/aarch64/run $(BUILD)-aarch64 $(BUILD)-aarch64-root $(AARCH64_TESTS)

pristine: ## prove that a fresh Debian needs nothing but make (mmdebstrap; PRISTINE_TARGETS=check for more than demo)
	@tests/pristine $(PRISTINE_TARGETS)

deb: ## build Debian packages of what is committed, into $(BUILD)/deb
	@tools/install-deps deb
	@$(MAKE) --no-print-directory $(BUILD)/build.ninja
	@tools/make-deb $(BUILD)

pristine-deb: deb ## install those packages on a fresh Debian, and run containers from there (mmdebstrap)
	@tests/pristine --packages $(BUILD)/deb

format: ## lay out the C files
	@tools/check-format --fix

install: all ## install below $(DESTDIR)$(PREFIX)
	@DESTDIR=$(DESTDIR) meson install -C $(BUILD) --no-rebuild
	@$(if $(LIB_BUILD),DESTDIR=$(DESTDIR) meson install -C $(LIB_BUILD) --no-rebuild)

clean: ## remove what was built
	@rm -rf $(BUILD) $(BUILD)-lib $(BUILD)-sanitize $(BUILD)-glibc $(BUILD)-coverage $(BUILD)-fuzz $(BUILD)-aarch64 $(BUILD)-aarch64-root demo
