/* SPDX-License-Identifier: Apache-2.0 */
/*
 * One warm container: over and over it is resumed, asked once over its Unix socket, and paused.
 * There is one process of this for each container; lean-bench tells them when, so that no
 * interpreter is in the timed path.
 *
 * By a runtime, ARGC words for each of both:
 *
 *   warm STDERR-FILE SOCKETS ANSWER command ARGC RESUME... PAUSE...
 *
 * By the control group, and nothing else:
 *
 *   warm STDERR-FILE SOCKETS ANSWER freezer
 *
 * By the library, which also starts it:
 *
 *   warm STDERR-FILE SOCKETS ANSWER liblean BUNDLE ROOT ID
 *
 * SOCKETS is the directory that the container has as /run/function, ANSWER the result that is right
 * (functions/server.py has the protocol). These lines come on standard input:
 *
 * "start", with liblean: starts the container; says "pid PID".
 *
 * "open DIR": that is the container's control group, by which is seen that it is paused, or by
 * which it is; says "ok".
 *
 * "first": one request, then the first pause; says "ok".
 *
 * "go START END", both in ns of CLOCK_MONOTONIC: rounds from the one to the other; one that began
 * goes on to its end. Says "RESUME_NS REQUEST_NS PAUSE_NS LATE" for each, and "end END_NS CPU_US",
 * the last one's end and the processor's time of all.
 *
 * Instead of any answer there may be "failed WHY". The end of the input ends it; liblean deletes
 * the container.
 *
 * After each pause the state of the control group is looked at, outside of the three times: a pause
 * that paused nothing is a failure, and one after which not all processes stood still yet is LATE.
 */
#include <fcntl.h>
#include <inttypes.h>
#include <limits.h>
#include <poll.h>
#include <signal.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/un.h>

#ifdef WITH_LIBLEAN
#include <lean/lean.h>
#endif

#include "cpu.h"
#include "spawn.h"

#define PATIENCE_S 120 /* for one answer, or one pause */
#define AT_ONCE    50  /* looks at what freezes before it is slept */
#define ARGS_MAX   16
#define ANSWER_MAX 8192

struct round {
	int64_t resume, request, pause;
	int late;
};

static int null_fd, err_fd, sockets_fd, state_fd = -1, events_fd = -1;
static const char *want;
static char why[1024];
static uint64_t number;
static bool v2;

static int fail(const char *format, ...) __attribute__((format(printf, 1, 2)));
static int fail(const char *format, ...)
{
	va_list args;

	va_start(args, format);
	vsnprintf(why, sizeof(why), format, args);
	va_end(args);
	for (char *c = why; *c; c++)
		if (*c == '\n')
			*c = ' ';
	return -1;
}

static int fail_errno(const char *what)
{
	return fail("%s: %s", what, strerror(errno));
}

/* ---- the control group ---- */

static int open_group(const char *dir)
{
	char path[PATH_MAX + 64];

	snprintf(path, sizeof(path), "%s/freezer.state", dir);
	state_fd = open(path, O_RDWR | O_CLOEXEC);
	if (state_fd >= 0)
		return 0;
	v2 = true;
	snprintf(path, sizeof(path), "%s/cgroup.freeze", dir);
	state_fd = open(path, O_RDWR | O_CLOEXEC);
	if (state_fd < 0)
		return fail_errno(path);
	snprintf(path, sizeof(path), "%s/cgroup.events", dir);
	events_fd = open(path, O_RDONLY | O_CLOEXEC);
	return events_fd < 0 ? fail_errno(path) : 0;
}

/* 2: all stand still, 1: they were told to, 0: they run */
static int group_state(void)
{
	char text[256];
	ssize_t n = pread(state_fd, text, sizeof(text) - 1, 0);

	if (n < 0)
		return fail_errno("state of the control group");
	text[n] = '\0';
	if (!v2)
		return strncmp(text, "FROZEN", 6) == 0 ? 2 : strncmp(text, "FREEZING", 8) == 0;
	if (text[0] != '1')
		return 0;
	n = pread(events_fd, text, sizeof(text) - 1, 0);
	if (n < 0)
		return fail_errno("state of the control group");
	text[n] = '\0';
	return strstr(text, "frozen 1") ? 2 : 1;
}

static int freezer_set(const char *value)
{
	ssize_t n = pwrite(state_fd, value, strlen(value), 0);

	return n < 0 ? fail_errno("writing the state of the control group") : 0;
}

static int freezer_resume(void)
{
	return freezer_set(v2 ? "0" : "THAWED");
}

static int freezer_pause(void)
{
	int64_t end = now() + PATIENCE_S * INT64_C(1000000000);
	int r = freezer_set(v2 ? "1" : "FROZEN");

	for (int looks = 0; r == 0; looks++) {
		r = group_state();
		if (r == 2 || r < 0)
			return r < 0 ? r : 0;
		if (now() > end)
			return fail("it does not freeze");
		r = 0;
		if (looks < AT_ONCE) {
			r = v2 ? 0 : freezer_set("FROZEN");
			continue;
		}
		if (v2) {
			poll(&(struct pollfd){.fd = events_fd, .events = POLLPRI}, 1, 10);
			continue;
		}
		/* Who runs has to get the processor before he stops; and the kernel looks for those
		 * it missed when it is told again. */
		nanosleep(&(struct timespec){.tv_nsec = 10000}, NULL);
		r = freezer_set("FROZEN");
	}
	return r;
}

/* ---- a runtime's command ---- */

static char *resume_argv[ARGS_MAX + 1], *pause_argv[ARGS_MAX + 1];

static int command(char **argv, const char *what)
{
	struct rusage use;
	int status = spawn(argv, null_fd, err_fd, &use);

	return status == 0 ? 0 : fail("%s: status %d", what, status);
}

static int command_resume(void)
{
	return command(resume_argv, "resume");
}

static int command_pause(void)
{
	return command(pause_argv, "pause");
}

/* ---- liblean ---- */

#ifdef WITH_LIBLEAN
static struct lean_container *container;

static int library_start(char **argv)
{
	struct lean_options o = {.size = sizeof(o), .bundle = argv[0], .root = argv[1]};
	struct lean_start_options s = {
		.size = sizeof(s), .id = argv[2], .fds = {LEAN_FD_NULL, LEAN_FD_NULL, err_fd}};
	struct lean_template *t;
	struct lean_error e = {0};

	if (lean_open(&o, &t, &e) < 0)
		return fail("%s", e.message);
	int r = lean_start(t, &s, &container, &e);
	lean_close(t);
	return r < 0 ? fail("%s", e.message) : 0;
}

static int library_resume(void)
{
	struct lean_error e = {0};

	return lean_resume(container, &e) < 0 ? fail("%s", e.message) : 0;
}

static int library_pause(void)
{
	struct lean_error e = {0};

	return lean_pause(container, &e) < 0 ? fail("%s", e.message) : 0;
}
#endif

static void library_delete(void)
{
#ifdef WITH_LIBLEAN
	struct lean_error e = {0};

	if (!container)
		return;
	(void)lean_resume(container, &e); /* SIGKILL does not reach it else */
	if (lean_delete(container, LEAN_FORCE, &e) < 0)
		fprintf(stderr, "lean-bench: %s\n", e.message);
#endif
}

/* ---- a request ---- */

static int answered(int fd)
{
	char line[64], got[ANSWER_MAX + 64], right[ANSWER_MAX + 64];
	size_t have = 0;

	int n = snprintf(line, sizeof(line), "{\"id\": %" PRIu64 "}\n", ++number);
	if (send(fd, line, (size_t)n, MSG_NOSIGNAL) != n)
		return fail_errno("request");
	while (have == 0 || got[have - 1] != '\n') {
		ssize_t r = recv(fd, got + have, sizeof(got) - 1 - have, 0);
		if (r < 0)
			return fail_errno("answer");
		if (r == 0)
			break;
		have += (size_t)r;
	}
	got[have] = '\0';
	snprintf(right, sizeof(right), "{\"id\":%" PRIu64 ",\"result\":%s}\n", number, want);
	return strcmp(got, right) == 0 ? 0 : fail("a wrong answer: %.300s", got);
}

static int ask(void)
{
	struct sockaddr_un a = {.sun_family = AF_UNIX};
	struct timeval patience = {PATIENCE_S, 0};
	int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);

	if (fd < 0)
		return fail_errno("socket");
	setsockopt(fd, SOL_SOCKET, SO_RCVTIMEO, &patience, sizeof(patience));
	/* Its own path may be longer than an address. */
	snprintf(a.sun_path, sizeof(a.sun_path), "/proc/self/fd/%d/socket", sockets_fd);
	int r = connect(fd, (struct sockaddr *)&a, sizeof(a)) < 0 ? fail_errno("connecting")
								  : answered(fd);
	close(fd);
	return r;
}

/* ---- rounds ---- */

static const struct way {
	const char *name;
	int (*resume)(void), (*pause)(void);
} ways[] = {
	{"command", command_resume, command_pause},
	{"freezer", freezer_resume, freezer_pause},
#ifdef WITH_LIBLEAN
	{"liblean", library_resume, library_pause},
#endif
};
static const struct way *way;

static int pause_checked(struct round *r)
{
	int64_t t = now();

	if (way->pause() < 0)
		return -1;
	r->pause = now() - t;
	int state = group_state();
	if (state < 0)
		return -1;
	if (state == 0)
		return fail("pause succeeded, but the container is not paused");
	r->late = state == 1;
	return 0;
}

static int one_round(struct round *r)
{
	int64_t t = now();

	if (way->resume() < 0)
		return -1;
	r->resume = now() - t;
	t += r->resume;
	if (ask() < 0)
		return -1;
	r->request = now() - t;
	return pause_checked(r);
}

static int go(int64_t start, int64_t end)
{
	static struct round *rounds;
	static size_t room;
	struct timespec t = {start / 1000000000, start % 1000000000};
	size_t n = 0;
	int r = 0;

	while (clock_nanosleep(CLOCK_MONOTONIC, TIMER_ABSTIME, &t, NULL) == EINTR)
		;
	int64_t cpu = cpu_us();
	while (r == 0 && now() < end) {
		if (n == room) {
			room = room ? 2 * room : 4096;
			rounds = realloc(rounds, room * sizeof(*rounds));
			if (!rounds)
				abort();
		}
		r = one_round(&rounds[n]);
		n += r == 0;
	}
	int64_t ended = now();
	cpu = cpu_us() - cpu;
	for (size_t i = 0; i < n; i++)
		printf("%" PRId64 " %" PRId64 " %" PRId64 " %d\n", rounds[i].resume,
		       rounds[i].request, rounds[i].pause, rounds[i].late);
	if (r == 0)
		printf("end %" PRId64 " %" PRId64 "\n", ended, cpu);
	return r;
}

/* ---- what lean-bench asks ---- */

static int obey(char *line, char **argv)
{
	struct round r;
	int64_t start, end;
	int done;

	line[strcspn(line, "\n")] = '\0';
	if (sscanf(line, "go %" SCNd64 " %" SCNd64, &start, &end) == 2)
		return go(start, end);
#ifdef WITH_LIBLEAN
	if (strcmp(line, "start") == 0) {
		done = library_start(argv);
		if (done == 0)
			printf("pid %d\n", (int)lean_pid(container));
		return done;
	}
#else
	(void)argv;
#endif
	if (strncmp(line, "open ", 5) == 0)
		done = open_group(line + 5);
	else if (strcmp(line, "first") == 0)
		done = ask() < 0 ? -1 : pause_checked(&r);
	else
		done = fail("%s: not understood", line);
	if (done == 0)
		puts("ok");
	return done;
}

static char *read_answer(const char *path)
{
	static char text[ANSWER_MAX];
	int fd = open(path, O_RDONLY | O_CLOEXEC);
	ssize_t n = fd < 0 ? -1 : read(fd, text, sizeof(text) - 1);

	if (n < 0 || n == sizeof(text) - 1)
		return NULL;
	text[n] = '\0';
	close(fd);
	return text;
}

static bool prepare(int argc, char **argv)
{
	for (size_t i = 0; i < sizeof(ways) / sizeof(*ways); i++)
		if (argc > 4 && strcmp(argv[4], ways[i].name) == 0)
			way = &ways[i];
	if (!way || (strcmp(way->name, "liblean") == 0 && argc != 8))
		return false;
	if (strcmp(way->name, "command") == 0) {
		int n = argc > 5 ? atoi(argv[5]) : 0;
		if (n < 1 || n > ARGS_MAX || argc != 6 + 2 * n)
			return false;
		memcpy(resume_argv, argv + 6, (size_t)n * sizeof(*argv));
		memcpy(pause_argv, argv + 6 + n, (size_t)n * sizeof(*argv));
	}
	/* A floor doesn't sleep longer than it says. Others start programs, which would inherit
	 * this. */
	if (strcmp(way->name, "freezer") == 0)
		prctl(PR_SET_TIMERSLACK, 1UL);
	null_fd = open("/dev/null", O_RDWR | O_CLOEXEC);
	err_fd = open(argv[1], O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC, 0600);
	sockets_fd = open(argv[2], O_PATH | O_DIRECTORY | O_CLOEXEC);
	want = read_answer(argv[3]);
	return null_fd >= 0 && err_fd >= 0 && sockets_fd >= 0 && want;
}

int main(int argc, char **argv)
{
	char line[PATH_MAX + 16];

#ifdef WITH_LIBLEAN
	(void)lean_protect(argv, NULL);
#endif
	if (!prepare(argc, argv)) {
		fprintf(stderr,
			"usage: warm STDERR-FILE SOCKETS ANSWER command|freezer|liblean ... "
			"(then requests; lean-bench asks them)\n");
		return 2;
	}
	prctl(PR_SET_PDEATHSIG, SIGKILL);
	while (fgets(line, sizeof(line), stdin)) {
		if (obey(line, argv + 5) < 0)
			printf("failed %s\n", why);
		fflush(stdout);
	}
	library_delete();
	return 0;
}
