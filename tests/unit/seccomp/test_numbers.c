/* SPDX-License-Identifier: Apache-2.0 */
/* Unit tests: numbers of system calls, against the library that they were taken from. */
#include <seccomp.h>
#include <stdlib.h>

#include "src/seccomp/internal.h"
#include "src/seccomp/numbers.h"
#include "tests/unit/test.h"

/* What is multiplexed in an architecture libseccomp keeps for itself: then ours may be another. */
static void check_one(uint32_t arch, const char *name, size_t *known)
{
	int nr = seccomp_syscall_resolve_name_arch(arch, name);
	int64_t ours = lr_seccomp_number(arch, name);
	uint32_t by, call;

	if (nr >= 0) {
		++*known;
		/* It numbers x32 with or without its bit, by version. */
		CHECK_INT(ours, arch == SCMP_ARCH_X32 ? (int64_t)nr | LR_SECCOMP_X32_BIT : nr);
	} else {
		CHECK(ours == -1 || lr_seccomp_multiplexed(arch, name, &by, &call));
	}
}

TEST(all_are_libseccomps)
{
	size_t known = 0;

	for (size_t i = 0; i < LR_ARRAY_SIZE(numbers); i++)
		for (size_t k = 0; k < LR_ARRAY_SIZE(numbers_archs); k++)
			check_one(numbers_archs[k], numbers[i].name, &known);
	CHECK(known > 5000);
}

/* Found the other way round, by number. */
TEST(none_is_missing)
{
	for (int nr = 0; nr < 500; nr++) {
		char *name = seccomp_syscall_resolve_num_arch(SCMP_ARCH_NATIVE, nr);
		if (name)
			CHECK_INT(lr_seccomp_number(lr_seccomp_arch_native(), name), nr);
		free(name);
	}
}

/* An architecture that has a name, but no column, would lose its rules. */
TEST(every_architecture_has_its_numbers)
{
	for (size_t i = 0; lr_seccomp_archs[i]; i++)
		CHECK(lr_seccomp_number(lr_seccomp_arch_token(lr_seccomp_archs[i]), "read") >= 0);
}

TEST(names_are_sorted_and_found)
{
	for (size_t i = 0; i < LR_ARRAY_SIZE(numbers); i++) {
		CHECK(lr_seccomp_is_syscall(numbers[i].name));
		CHECK(i == 0 || strcmp(numbers[i - 1].name, numbers[i].name) < 0);
	}
	CHECK(!lr_seccomp_is_syscall("no_such_call"));
	CHECK(!lr_seccomp_is_syscall(""));
}

TEST(what_an_architecture_lacks_has_no_number)
{
	CHECK_INT(lr_seccomp_number(SCMP_ARCH_AARCH64, "open"), -1);
	CHECK_INT(lr_seccomp_number(SCMP_ARCH_X86_64, "breakpoint"), -1);
	CHECK_INT(lr_seccomp_number(SCMP_ARCH_ARM, "breakpoint"), 0x0f0001);
	CHECK_INT(lr_seccomp_number(0x12345678, "read"), -1);
}

TEST(the_native_architecture_is_the_compilers)
{
	CHECK_INT(lr_seccomp_arch_native(), seccomp_arch_native());
}
