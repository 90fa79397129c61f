/* SPDX-License-Identifier: Apache-2.0 */
/* Any bytes as a saved filter: refused, or a program that the kernel's checker takes. */
#include <sys/mman.h>
#include <unistd.h>

#include "src/base/fd.h"
#include "src/seccomp/seccomp.h"
#include "src/sys/syscalls.h"
#include "tests/fuzz/fuzz.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	LR_CLEANUP_ARENA struct lr_arena *a = lr_arena_new();
	struct lr_seccomp_prog p;
	struct lr_err err = {0};
	LR_CLEANUP_FD int fd = lr_memfd_create("program", MFD_CLOEXEC);

	FUZZ_CHECK(fd >= 0 && lr_write_full(fd, data, size) == (ssize_t)size);
	FUZZ_CHECK(lseek(fd, 0, SEEK_SET) == 0);
	int r = lr_seccomp_restore(fd, a, &p, &err);
	FUZZ_CHECK(r == 0 || (r == -EBADMSG && err.msg[0]));
	if (r == 0)
		FUZZ_CHECK(lr_seccomp_valid(p.v, p.n));

	/* The checker itself, without the sum in front of it. */
	size_t n = size / sizeof(struct sock_filter);
	struct sock_filter *v = lr_alloc(a, n * sizeof(*v) + 1);
	FUZZ_CHECK(v);
	memcpy(v, data, n * sizeof(*v));
	(void)lr_seccomp_valid(v, n);
	return 0;
}
