/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Runs commands and tells how long each took. lean-bench asks by standard input, so that no
 * interpreter is in the timed path:
 *
 *   request   COUNT GAP_US SECONDS LIMIT_S ARGC\n, then ARGC arguments, each ended by a NUL
 *   answer    one line a run: WALL_NS USER_US SYS_US MAXRSS_KB STATUS
 *             (STATUS as exited: 0..255; killed: 256 + signal), then an empty line.
 *             With SECONDS > 0 instead: runs until then, one line "RUNS OK WALL_NS" where OK
 *             counts the runs whose status was COUNT.
 *             A run that takes longer than LIMIT_S is killed (0: it may take for ever).
 *
 * WALL_NS is from before vfork until after wait4. The resources are those of the command and of
 * all it waited for. Orphans (a container's init) come to the runner, which reaps them.
 * Standard output goes to /dev/null, or to the file argv[2], which then holds that of the last run;
 * standard error to the file argv[1].
 */
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/time.h>

#include "spawn.h"

#define ARGS_MAX 64
#define TEXT_MAX 8192

struct sample {
	int64_t wall_ns;
	struct rusage use;
	int status;
};

static int null_fd, out_fd, err_fd;
static long limit_s;
static volatile sig_atomic_t limited; /* the command that mustn't take longer */

static void die(const char *what)
{
	fprintf(stderr, "runner: %s: %s\n", what, strerror(errno));
	exit(1);
}

static void nap_us(long us)
{
	struct timespec t = {us / 1000000, us % 1000000 * 1000};

	while (us > 0 && nanosleep(&t, &t) < 0 && errno == EINTR)
		;
}

static void too_long(int number)
{
	(void)number;
	if (limited > 0)
		kill(limited, SIGKILL);
}

/* Every second after that again: the first may come before the command has a pid. */
static void limit(long seconds)
{
	struct itimerval t = {.it_value.tv_sec = seconds, .it_interval.tv_sec = seconds ? 1 : 0};

	setitimer(ITIMER_REAL, &t, NULL);
}

static void run_once(char **argv, struct sample *s)
{
	int64_t start;

	if (out_fd != null_fd && ftruncate(out_fd, 0) < 0)
		die("truncate");
	if (limit_s > 0)
		limit(limit_s);
	start = now();
	s->status = spawn_to(argv, null_fd, out_fd, err_fd, &s->use, &limited);
	if (s->status < 0)
		die("vfork");
	s->wall_ns = now() - start;
	limited = 0;
	if (limit_s > 0)
		limit(0);
	while (waitpid(-1, NULL, WNOHANG) > 0)
		; /* orphans */
}

static void answer_each(char **argv, long count, long gap)
{
	for (long i = 0; i < count; i++) {
		struct sample s;
		nap_us(gap);
		run_once(argv, &s);
		printf("%lld %lld %lld %ld %d\n", (long long)s.wall_ns,
		       (long long)s.use.ru_utime.tv_sec * 1000000 + s.use.ru_utime.tv_usec,
		       (long long)s.use.ru_stime.tv_sec * 1000000 + s.use.ru_stime.tv_usec,
		       s.use.ru_maxrss, s.status);
	}
}

static void answer_sum(char **argv, long want, long seconds)
{
	int64_t start = now(), end = start + (int64_t)seconds * 1000000000;
	long runs = 0, ok = 0;

	while (now() < end) {
		struct sample s;
		run_once(argv, &s);
		runs++;
		ok += s.status == want;
	}
	printf("%ld %ld %lld\n", runs, ok, (long long)(now() - start));
}

static int read_request(long head[4], char *argv[ARGS_MAX + 1])
{
	static char text[TEXT_MAX];
	int argc, c, n = 0;
	size_t used = 0;

	if (scanf("%ld %ld %ld %ld %d", &head[0], &head[1], &head[2], &head[3], &argc) != 5)
		return 0;
	if (getchar() != '\n' || argc < 1 || argc > ARGS_MAX)
		die("bad request");
	argv[0] = text;
	while (n < argc) {
		c = getchar();
		if (c == EOF || used == sizeof text)
			die("bad request");
		text[used++] = (char)c;
		if (c == 0)
			argv[++n] = text + used;
	}
	argv[argc] = NULL;
	return 1;
}

int main(int argc, char **argv)
{
	char *args[ARGS_MAX + 1];
	long head[4];

	if (argc != 2 && argc != 3) {
		fprintf(stderr,
			"usage: runner STDERR-FILE [STDOUT-FILE] (then requests; lean-bench asks them)\n");
		return 2;
	}
	null_fd = open("/dev/null", O_RDWR | O_CLOEXEC);
	err_fd = open(argv[1], O_WRONLY | O_CREAT | O_TRUNC | O_APPEND | O_CLOEXEC, 0600);
	out_fd = null_fd;
	if (argc == 3)
		out_fd = open(argv[2], O_WRONLY | O_CREAT | O_TRUNC | O_APPEND | O_CLOEXEC, 0600);
	if (null_fd < 0 || err_fd < 0 || out_fd < 0)
		die(argv[1]);
	signal(SIGALRM, too_long); /* restarts calls */
	prctl(PR_SET_CHILD_SUBREAPER, 1);
	prctl(PR_SET_PDEATHSIG, SIGKILL);
	while (read_request(head, args)) {
		limit_s = head[3];
		if (head[2] > 0)
			answer_sum(args, head[0], head[2]);
		else
			answer_each(args, head[0], head[1]);
		putchar('\n');
		fflush(stdout);
	}
	return 0;
}
