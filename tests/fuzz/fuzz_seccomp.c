/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The linux.seccomp of any config.json: a plan that is accepted must compile to a program that the
 * kernel's checker takes, or be refused with a reason; and the program must survive its file.
 */
#include <sys/mman.h>
#include <unistd.h>

#include "libocispec/ocispec.h"
#include "src/base/fd.h"
#include "src/seccomp/seccomp.h"
#include "src/sys/syscalls.h"
#include "tests/fuzz/fuzz.h"

static void through_a_file(const struct lr_seccomp_prog *p, struct lr_arena *a)
{
	struct lr_seccomp_prog q;
	struct lr_err err = {0};
	LR_CLEANUP_FD int fd = lr_memfd_create("program", MFD_CLOEXEC);

	FUZZ_CHECK(fd >= 0 && lr_seccomp_save(p, fd, &err) == 0);
	FUZZ_CHECK(lseek(fd, 0, SEEK_SET) == 0 && lr_seccomp_restore(fd, a, &q, &err) == 0);
	FUZZ_CHECK(q.n == p->n && memcmp(q.v, p->v, q.n * sizeof(*q.v)) == 0);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	LR_CLEANUP_ARENA struct lr_arena *a = lr_arena_new();
	const struct oci_config *c;
	struct lr_seccomp_plan plan;
	struct lr_seccomp_prog p;
	struct lr_err err = {0};

	if (oci_config_decode((const char *)data, size, a, &c, &err) < 0)
		return 0;
	err = (struct lr_err){0};
	int r = lr_seccomp_plan(c->linux_ ? c->linux_->seccomp : NULL, &c->annotations, a, &plan,
				&err);
	if (r == 0 && plan.given)
		r = lr_seccomp_compile(&plan, a, &p, &err);
	FUZZ_CHECK(r == 0 || (r < 0 && err.code == -r && err.msg[0] && err.path[0]));
	if (r == 0 && plan.given) {
		FUZZ_CHECK(lr_seccomp_valid(p.v, p.n));
		through_a_file(&p, a);
	}
	return 0;
}
