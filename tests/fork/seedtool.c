/* SPDX-License-Identifier: Apache-2.0 */
/*
 * seedtool: drives the rooms of the remote fork from the outside, for tests.
 *
 *	seedtool capture [-s] PID DIR      -s: DIR/sums, of every page at that moment, read by
 *	                                   another way than the seed's
 *	                                   SEEDTOOL_KILL: the twins of the processes are killed, or, `held`, the first process
 *	                                   before anything is copied from them ("late": when all is)
 *	seedtool look PID                  what can't be carried
 *	seedtool dump DIR
 *	seedtool forge DIR TABLE INDEX MEMBER VALUE     writes a number into the descriptor,
 *	                                   or each of several
 *	seedtool seal DIR                  the sum of a descriptor that others have written
 *	seedtool resume [-l] DIR           in a pid namespace of its own; compares with DIR/sums
 *	                                   before anything runs, says who it is, and waits.
 *	                                   -l: memory comes when it is touched
 */
#include <errno.h>
#include <fcntl.h>
#include <linux/sched.h>
#include <sched.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include "src/base/fd.h"
#include "src/base/str.h"
#include "src/capture/capture.h"
#include "src/resume/resume.h"
#include "src/seed/fields.h"
#include "src/seed/seed.h"
#include "src/sys/syscalls.h"
#include "tests/fork/server.h"
#include "tests/fork/sums.h"

static int fail(const struct lr_err *err)
{
	char line[1024];

	fprintf(stderr, "seedtool: %s\n", lr_err_format(err, line, sizeof(line)));
	return 1;
}

static int open_file(const char *dir, const char *name, int flags)
{
	char path[4096];

	snprintf(path, sizeof(path), "%s/%s", dir, name);
	return open(path, flags | O_CLOEXEC, 0600);
}

/* ---- capture --------------------------------------------------------------------------------- */

static int write_sums(void *arg, pid_t pid, struct lr_err *err)
{
	return sums_write(arg, pid) < 0 ? lr_err_set(err, EIO, "seedtool", false, "no sums") : 0;
}

/* As the kernel does for want of memory. It is the youngest child. */
static int kill_twin(void *arg, pid_t pid, struct lr_err *err)
{
	char path[64], text[4096] = "", *last = text, *end;

	(void)arg;
	snprintf(path, sizeof(path), "/proc/%d/task/%d/children", pid, pid);
	if (lr_read_file_at(AT_FDCWD, path, text, sizeof(text)) < 0)
		return lr_err_set(err, EIO, "seedtool", false, "no children");
	for (char *at = text; strtol(at, &end, 10) > 0; at = end)
		last = at;
	return kill((pid_t)strtol(last, NULL, 10), SIGKILL) < 0
		       ? lr_err_set(err, errno, "seedtool", false, "no twin")
		       : 0;
}

static int kill_held(void *arg, pid_t pid, struct lr_err *err)
{
	(void)arg;
	return kill(pid, SIGKILL) < 0 ? lr_err_set(err, errno, "seedtool", false, "not killed") : 0;
}

static int kill_late(void *arg, struct lr_err *err)
{
	return kill_twin(NULL, *(const pid_t *)arg, err);
}

static int do_capture(int argc, char **argv)
{
	const char *kills = getenv("SEEDTOOL_KILL");
	struct lr_capture_stats stats = {0};
	struct lr_err err = {0};
	char *refusals = NULL;
	bool sums = argc > 0 && lr_streq(argv[0], "-s");

	argv += sums;
	argc -= sums;
	if (argc != 2)
		return 2;
	mkdir(argv[1], 0700);
	struct lr_capture c = {
		.pid = atoi(argv[0]),
		.descriptor = open_file(argv[1], "descriptor", O_RDWR | O_CREAT | O_TRUNC),
		.pages = open_file(argv[1], "pages", O_RDWR | O_CREAT | O_TRUNC),
	};
	FILE *f = sums ? fdopen(open_file(argv[1], "sums", O_RDWR | O_CREAT | O_TRUNC), "w") : NULL;
	if (f) {
		c.held = write_sums;
		c.arg = f;
	}
	if (kills && lr_streq(kills, "late")) {
		c.written = kill_late;
		c.written_arg = &c.pid;
	} else if (kills) {
		c.held = lr_streq(kills, "held") ? kill_held : kill_twin;
	}
	int r = lr_capture(&c, &stats, &refusals, &err);
	if (f)
		fclose(f);
	if (refusals)
		fputs(refusals, stderr);
	free(refusals);
	if (r < 0)
		return fail(&err);
	printf("pause_us %llu pages %llu zero %llu\n", (unsigned long long)stats.pause_ns / 1000,
	       (unsigned long long)stats.pages, (unsigned long long)stats.zero_pages);
	return 0;
}

static int do_look(int argc, char **argv)
{
	struct lr_err err = {0};
	char *refusals = NULL;

	if (argc != 1)
		return 2;
	struct lr_capture c = {.pid = atoi(argv[0]), .refusals_only = true};
	int r = lr_capture(&c, NULL, &refusals, &err);
	if (refusals)
		fputs(refusals, stdout);
	free(refusals);
	return r < 0 ? fail(&err) : 0;
}

/* ---- what is in a directory ------------------------------------------------------------------ */

static int open_seed(const char *dir, struct lr_seed *s, int *pages, struct lr_err *err)
{
	LR_CLEANUP_FD int fd = open_file(dir, "descriptor", O_RDONLY);
	struct stat st, pst;

	*pages = open_file(dir, "pages", O_RDONLY);
	if (fd < 0 || *pages < 0 || fstat(fd, &st) < 0 || fstat(*pages, &pst) < 0)
		return lr_err_set(err, errno, "seedtool", true, "open the seed in %s", dir);
	void *at = mmap(NULL, (size_t)st.st_size, PROT_READ | PROT_WRITE, MAP_PRIVATE, fd, 0);
	if (at == MAP_FAILED)
		return lr_err_set(err, errno, "seedtool", true, "map the seed in %s", dir);
	return lr_seed_open(at, (size_t)st.st_size, (uint64_t)pst.st_size, s, err);
}

static int do_dump(int argc, char **argv)
{
	LR_CLEANUP_ARENA struct lr_arena *a = lr_arena_new();
	struct lr_err err = {0};
	struct lr_seed s;
	int pages;

	if (argc != 1)
		return 2;
	if (open_seed(argv[0], &s, &pages, &err) < 0)
		return fail(&err);
	char *text = lr_seed_dump(&s, a);
	puts(text ? text : "");
	return 0;
}

/* The size of a number of that kind. */
static size_t size_of(enum seed_field_kind kind)
{
	return kind == SEED_I64 || kind == SEED_X64 ? 8 : 4;
}

static void forge(const struct lr_seed *s, unsigned type, uint64_t index, const char *member,
		  uint64_t value)
{
	const struct seed_shape *shape = &lr_seed_shapes[type];

	for (uint32_t k = 0; k < shape->n; k++) {
		const struct seed_field *f = &shape->fields[k];
		const size_t size = size_of(f->kind);
		char *at = (char *)lr_seed_entry(s, type, index) + f->at;
		for (uint32_t i = 0; lr_streq(f->name, member) && i < f->n; i++)
			memcpy(at + i * size, &value, size);
	}
}

static int do_forge(int argc, char **argv)
{
	struct lr_err err = {0};
	struct lr_seed s;
	int pages;

	if (argc != 5)
		return 2;
	if (open_seed(argv[0], &s, &pages, &err) < 0)
		return fail(&err);
	for (unsigned type = 1; type < LR_SEED_TYPES; type++)
		if (lr_streq(lr_seed_shapes[type].name, argv[1]))
			forge(&s, type, strtoull(argv[2], NULL, 0), argv[3],
			      strtoull(argv[4], NULL, 0));
	const size_t size = s.header->length;
	lr_seed_seal((void *)s.header, size);
	LR_CLEANUP_FD int fd = open_file(argv[0], "descriptor", O_WRONLY);
	return write(fd, s.header, size) != (ssize_t)size;
}

static int do_seal(int argc, char **argv)
{
	struct stat st;

	if (argc != 1)
		return 2;
	LR_CLEANUP_FD int fd = open_file(argv[0], "descriptor", O_RDWR);
	if (fd < 0 || fstat(fd, &st) < 0)
		return 1;
	void *at = mmap(NULL, (size_t)st.st_size, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
	if (at == MAP_FAILED)
		return 1;
	lr_seed_seal(at, (size_t)st.st_size);
	return 0;
}

/* ---- resume ---------------------------------------------------------------------------------- */

struct comparing {
	const char *dir;
	pid_t init;
	bool lazy;
};

/* The first child of the namespace's init, or that itself. */
static pid_t first_child(pid_t init)
{
	char path[64], text[32] = "";

	snprintf(path, sizeof(path), "/proc/%d/task/%d/children", init, init);
	lr_read_file_at(AT_FDCWD, path, text, sizeof(text));
	return atoi(text) ? atoi(text) : init;
}

static int compare(void *arg)
{
	const struct comparing *c = arg;
	int fd = open_file(c->dir, "sums", O_RDONLY);
	FILE *f = fd < 0 ? NULL : fdopen(fd, "r");
	long all, differ;

	/* To look at memory makes it come. */
	if (getenv("SEEDTOOL_UNSEEN"))
		return 0;

	if (!f)
		return 0;
	differ = sums_compare(f, first_child(c->init), c->lazy, &all);
	fclose(f);
	printf("compared %ld pages, %ld differ\n", all, differ);
	fflush(stdout);
	return differ || !all ? -1 : 0;
}

/* The first process of the new namespace: it makes the seed's, and waits for all. */
static int be_init(struct lr_resume *r, const struct lr_seed *s, struct lr_err *err)
{
	const pid_t want = (pid_t)lr_seed_process(s, 0)->pid;
	struct clone_args c = {
		.exit_signal = SIGCHLD, .set_tid = (uint64_t)(uintptr_t)&want, .set_tid_size = 1};
	int status, last = 0;

	prctl(PR_SET_PDEATHSIG, SIGKILL);
	if (want == 1)
		return lr_resume_become(r, err);
	pid_t pid = lr_clone3(&c, sizeof(c)), got;
	if (pid < 0)
		return pid;
	if (pid == 0)
		_exit(lr_resume_become(r, err) < 0);
	while ((got = waitpid(-1, &status, 0)) > 0 || errno == EINTR)
		if (got == pid) {
			last = WIFSIGNALED(status) ? 128 + WTERMSIG(status) : WEXITSTATUS(status);
			break;
		}
	_exit(last);
}

static int wait_and_clean(const struct lr_seed *s, int report, struct comparing *c,
			  struct lr_err *err)
{
	struct lr_resume_left *left = calloc(lr_seed_count(s, LR_SEED_PROCESS), sizeof(*left));

	int r = left ? lr_resume_wait(s, c->init, report, compare, c, left, err) : -ENOMEM;
	if (r >= 0)
		r = lr_resume_clean_all(s, c->init, left, err);
	free(left);
	return r;
}

/* Ours are the copies that keep what has not come yet from turning into zeros: they wait in the
 * queue of the socket that the server sends them to. */
struct serving {
	pid_t server;
	int lazy, keeper;
};

static int start_server(const struct lr_seed *s, int pages, struct serving *ret)
{
	int lazy[2], keep[2];

	if (socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, lazy) < 0 ||
	    socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, keep) < 0)
		return -1;
	pid_t pid = fork();
	if (pid == 0) {
		prctl(PR_SET_PDEATHSIG, SIGKILL);
		close(lazy[1]);
		close(keep[0]);
		_exit(serve_pages(s, pages, lazy[0], keep[1]) < 0);
	}
	close(lazy[0]);
	close(keep[1]);
	*ret = (struct serving){pid, lazy[1], keep[0]};
	printf("server %d\n", pid);
	fflush(stdout);
	return pid < 0 ? -1 : 0;
}

/* Until the namespace ends, or the server does: then what depends on it ends before the last copy
 * of its descriptors goes. */
static int attend(const struct serving *serving, pid_t init)
{
	int status;

	for (;;) {
		pid_t pid = waitpid(-1, &status, 0);
		if (pid == init)
			break;
		if (pid == serving->server) {
			fprintf(stderr, "seedtool: the page server died\n");
			kill(init, SIGKILL);
		}
	}
	if (serving->server > 0)
		kill(serving->server, SIGKILL);
	return WIFSIGNALED(status) ? 128 + WTERMSIG(status) : WEXITSTATUS(status);
}

#define NOBODY 65534

/* What a runtime's last stage would do. */
static int confine(void *arg, const struct lr_seed_thread *t, struct lr_resume_ops *ops,
		   struct lr_err *err)
{
	(void)arg;
	(void)t;
	int r = lr_resume_add(ops, SYS_setresgid, NOBODY, NOBODY, NOBODY, 0, 0, 0);
	if (r >= 0)
		r = lr_resume_add(ops, SYS_setresuid, NOBODY, NOBODY, NOBODY, 0, 0, 0);
	if (r >= 0)
		r = lr_resume_add(ops, SYS_prctl, PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0, 0);
	return r < 0 ? lr_err_set(err, -r, "seedtool", true, "confine a thread") : 0;
}

static int do_resume(int argc, char **argv)
{
	struct serving serving = {0, LR_NOFD, LR_NOFD};
	bool lazy = argc > 0 && lr_streq(argv[0], "-l");
	LR_CLEANUP_ARENA struct lr_arena *a = lr_arena_new();
	struct lr_err err = {0};
	struct lr_resume *resume;
	struct lr_seed s;
	int pages, pair[2], status;

	argv += lazy;
	argc -= lazy;
	if (argc != 1)
		return 2;
	if (open_seed(argv[0], &s, &pages, &err) < 0)
		return fail(&err);
	if (lazy && start_server(&s, pages, &serving) < 0)
		return 1;
	if (socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, pair) < 0 ||
	    unshare(CLONE_NEWPID) < 0)
		return 1;
	struct lr_resume_opts o = {.seed = &s,
				   .pages = pages,
				   .report = pair[1],
				   .lazy = serving.lazy,
				   .stdio = {0, 1, 2},
				   .terminal = LR_NOFD,
				   .proc = LR_NOFD};
	if (getenv("SEEDTOOL_CONFINE"))
		o.confine = confine, o.confine_room = LR_RESUME_ROOM(3, 0);
	if (lr_resume_open(&o, a, &resume, &err) < 0)
		return fail(&err);
	struct comparing c = {argv[0], fork(), lazy};
	if (c.init == 0) {
		be_init(resume, &s, &err);
		_exit(fail(&err));
	}
	close(pair[1]);
	/* The init has it open, too: what it held must not keep us waiting. */
	if (wait_and_clean(&s, pair[0], &c, &err) < 0) {
		kill(c.init, SIGKILL);
		waitpid(c.init, &status, 0);
		return fail(&err);
	}
	printf("resumed %d\n", first_child(c.init));
	fflush(stdout);
	return attend(&serving, c.init);
}

static const struct {
	const char *name;
	int (*run)(int argc, char **argv);
} verbs[] = {
	{"capture", do_capture}, {"look", do_look}, {"dump", do_dump},
	{"forge", do_forge},     {"seal", do_seal}, {"resume", do_resume},
};

int main(int argc, char **argv)
{
	int r = 2;

	for (size_t i = 0; argc > 1 && i < LR_ARRAY_SIZE(verbs); i++)
		if (lr_streq(argv[1], verbs[i].name))
			r = verbs[i].run(argc - 2, argv + 2);
	if (r == 2)
		fprintf(stderr, "usage: seedtool capture [-s] PID DIR | look PID | dump DIR | "
				"forge DIR TABLE INDEX MEMBER VALUE | seal DIR | resume DIR\n");
	return r;
}
