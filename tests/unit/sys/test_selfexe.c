/* SPDX-License-Identifier: Apache-2.0 */
/* Unit tests: running from a sealed copy (CVE-2019-5736). LR_TEST_SEALED names the helper. */
#include <fcntl.h>
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <stddef.h>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include "src/base/fd.h"
#include "src/sys/selfexe.h"
#include "src/sys/syscalls.h"
#include "tests/unit/test.h"

/* Fails memfd_create with `code`; flags: only when all of them are given (0: always). */
static bool no_memfd(int code, unsigned flags)
{
	struct sock_filter f[] = {
		BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, nr)),
		BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, SYS_memfd_create, 0, 4),
		BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, args[1])),
		BPF_STMT(BPF_ALU | BPF_AND | BPF_K, flags),
		BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, flags, 0, 1),
		BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ERRNO | (unsigned)code),
		BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW),
	};
	struct sock_fprog prog = {.len = 7, .filter = f};

	return prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) == 0 &&
	       prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &prog) == 0;
}

static const char *run(const char *arg, const char *last, int code, unsigned flags)
{
	static char text[1024];
	char *argv[] = {(char *)(size_t) "sealed", (char *)(size_t)arg, (char *)(size_t)last, NULL};
	char *envp[] = {(char *)(size_t) "MARK=1", NULL};
	int p[2], st;

	text[0] = '\0';
	if (pipe2(p, O_CLOEXEC) < 0)
		return text;
	fflush(stdout);
	pid_t pid = fork();
	if (pid == 0) {
		dup2(p[1], 1);
		lr_close_range(3, 255, 0); /* what the test's own caller left open */
		if (code && !no_memfd(code, flags))
			_exit(98);
		execve(getenv("LR_TEST_SEALED"), argv, envp);
		_exit(99);
	}
	close(p[1]);
	ssize_t n = lr_read_full(p[0], text, sizeof text - 1);
	text[n > 0 ? n : 0] = '\0';
	close(p[0]);
	waitpid(pid, &st, 0);
	return text;
}

TEST(the_copy_is_sealed_and_gets_everything)
{
	if (!getenv("LR_TEST_SEALED"))
		SKIP("LR_TEST_SEALED does not name the helper");
	const char *t = run("seal", "last", 0, 0);
	CHECK_HAS(t, "sealed=1 ");
	CHECK_HAS(t, "links=0 "); /* no file of the host */
	CHECK_HAS(t, "fds=0 ");
	CHECK_HAS(t, "argc=3 last=last env=MARK=1");
}

TEST(without_it_nothing_is_sealed)
{
	if (!getenv("LR_TEST_SEALED"))
		SKIP("LR_TEST_SEALED does not name the helper");
	CHECK_HAS(run("plain", "last", 0, 0), "sealed=0 links=1 ro=0 ");
	CHECK(!lr_selfexe_is_sealed());
}

TEST(kernels_before_mfd_exec)
{
	if (!getenv("LR_TEST_SEALED"))
		SKIP("LR_TEST_SEALED does not name the helper");
	CHECK_HAS(run("seal", "last", EINVAL, 0x10 /* MFD_EXEC */), "sealed=1 ");
}

TEST(without_memfd_a_file_without_a_name)
{
	if (!getenv("LR_TEST_SEALED"))
		SKIP("LR_TEST_SEALED does not name the helper");
	static const int codes[] = {ENOSYS, EPERM, EACCES};
	for (size_t i = 0; i < sizeof(codes) / sizeof(codes[0]); i++) {
		const char *t = run("seal", "last", codes[i], 0);
		CHECK_HAS(t, "sealed=1 links=0 ro=0 fds=0 ");
		CHECK_HAS(t, "argc=3 last=last env=MARK=1");
	}
	/* A copy that nobody runs any more may be written to; the file on the host is another. */
	struct stat before, after;
	CHECK(stat(getenv("LR_TEST_SEALED"), &before) == 0);
	CHECK_HAS(run("expose", getenv("LR_TEST_SEALED"), ENOSYS, 0), "wrote=");
	CHECK(stat(getenv("LR_TEST_SEALED"), &after) == 0);
	CHECK_INT(after.st_size, before.st_size);
	CHECK_INT(after.st_mtim.tv_nsec, before.st_mtim.tv_nsec);
}

TEST(other_failures_of_memfd_are_told)
{
	if (!getenv("LR_TEST_SEALED"))
		SKIP("LR_TEST_SEALED does not name the helper");
	const char *t = run("seal", "last", ENOMEM, 0);
	CHECK_HAS(t, "error: ");
	CHECK_HAS(t, "sealed copy");
}

TEST(a_container_cannot_overwrite_it)
{
	const char *helper = getenv("LR_TEST_SEALED");

	if (!helper)
		SKIP("LR_TEST_SEALED does not name the helper");
	CHECK_HAS(run("expose", helper, 0, 0), "wrote=0 cut=0");
}

TEST(the_mount_is_read_only_and_gets_everything)
{
	if (!getenv("LR_TEST_SEALED"))
		SKIP("LR_TEST_SEALED does not name the helper");
	if (geteuid() != 0)
		SKIP("needs root");
	const char *t = run("mounted", "last", 0, 0);
	CHECK_HAS(t, "sealed=0 links=1 ro=1 fds=0 ");
	CHECK_HAS(t, "argc=3 last=last env=MARK=1");
}

TEST(nobody_makes_the_mount_writable)
{
	const char *helper = getenv("LR_TEST_SEALED");

	if (!helper)
		SKIP("LR_TEST_SEALED does not name the helper");
	if (geteuid() != 0)
		SKIP("needs root");
	CHECK_HAS(run("show", helper, 0, 0),
		  "wrote=0 cut=0 writable=0 remounted=0 bound=0 cloned=0 picked=0");
}
