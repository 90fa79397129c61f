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

.PHONY: all help deps demo check check-lean check-denied unit sanitize vm pristine format install clean

all: $(BUILD)/build.ninja $(LIB_BUILD:=/build.ninja) ## build into $(BUILD)
	@$(NINJA)
	@$(if $(LIB_BUILD),ninja -C $(LIB_BUILD))

help: ## show this list
	@sed -n 's/^\([a-z-]*\):.*## /\1\t/p' $(MAKEFILE_LIST) | expand -t 16

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

check: ## install what is missing, build, and run every test
	@tools/install-deps test
	@$(MAKE) --no-print-directory all
	@tests/run-all $(BUILD)

check-denied: all ## run the whole suite with each system call denied that there is a fallback for (most of an hour)
	@LEAN_RUNTIME=$(BUILD)/src/cli/lean-runtime tests/denied/run -w $(BUILD)/tests/denied/deny

unit: all ## run the unit tests and house rules only
	@meson test -C $(BUILD) --no-rebuild --print-errorlogs

check-lean: all ## run the suite of the command line with the lean profile on
	@tests/run-all $(BUILD) lean

sanitize: ## build with ASan and UBSan into $(BUILD)-sanitize, and run every suite with that
	@tests/sanitize $(abspath $(BUILD)-sanitize) unit bats docker podman buildah containerd

vm: all ## test on a host with systemd and cgroup v2, which is a virtual machine (qemu, mmdebstrap)
	@LEAN_RUNTIME=$(BUILD)/src/cli/lean-runtime tests/vm/run $(VM_TESTS)

pristine: ## prove that a fresh Debian needs nothing but make (mmdebstrap; PRISTINE_TARGETS=check for more than demo)
	@tests/pristine $(PRISTINE_TARGETS)

format: ## lay out the C files
	@tools/check-format --fix

install: all ## install below $(DESTDIR)$(PREFIX)
	@DESTDIR=$(DESTDIR) meson install -C $(BUILD) --no-rebuild
	@$(if $(LIB_BUILD),DESTDIR=$(DESTDIR) meson install -C $(LIB_BUILD) --no-rebuild)

clean: ## remove what was built
	@rm -rf $(BUILD) $(BUILD)-lib $(BUILD)-sanitize demo
