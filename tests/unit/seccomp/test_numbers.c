/* SPDX-License-Identifier: Apache-2.0 */
/* Unit tests: numbers of system calls, against the library that they were taken from. */
#include <seccomp.h>

#include "src/seccomp/internal.h"
#include "src/seccomp/numbers.h"
#include "tests/unit/test.h"

/* Those that it says are an architecture's own; what is multiplexed there it keeps for itself. */
TEST(all_are_libseccomps)
{
	size_t known = 0;

	for (size_t i = 0; i < LR_ARRAY_SIZE(numbers); i++) {
		for (size_t k = 0; k < LR_ARRAY_SIZE(numbers_archs); k++) {
			int nr = seccomp_syscall_resolve_name_arch(numbers_archs[k],
								   numbers[i].name);
			if (nr < 0)
				continue;
			known++;
			/* libseccomp numbers x32 with or without its bit, by version. */
			bool x32 = numbers_archs[k] == SCMP_ARCH_X32;
			CHECK_INT(lr_seccomp_number(numbers_archs[k], numbers[i].name),
				  x32 ? (int64_t)nr | LR_SECCOMP_X32_BIT : nr);
		}
	}
	CHECK(known > 5000);
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
