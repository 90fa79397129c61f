/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Unit tests: the foreground session. Three processes: this one plays the user at the ends of two
 * pipes (or at the master of an outer terminal), a "runtime" runs the session, and its child runs
 * the case's function as the container would. Nothing is judged by time: where a case must not
 * spin, the turns of the loop are counted.
 */
#include <fcntl.h>
#include <poll.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <termios.h>
#include <time.h>
#include <unistd.h>

#include "src/sys/proc.h"
#include "src/sys/syscalls.h"
#include "src/tty/tty.h"
#include "tests/unit/test.h"

#define BIG (10u << 20)

/* Shared by the three processes. */
static struct shared {
	struct lr_tty_session s;
	int ret, status;
	volatile pid_t child;
	volatile int running; /* the child has come this far; cases count up */
	volatile bool left;   /* who was left behind may go */
} * sh;

struct run {
	bool terminal;
	bool no_pidfd;
	bool reap_others;
	int in, out;        /* what the runtime uses as its own */
	int outer;          /* slave that becomes its controlling terminal; -1: none */
	int (*child)(void); /* exit code */
};

static char slave_name[64];

static void nap(long ms)
{
	nanosleep(&(struct timespec){ms / 1000, ms % 1000 * 1000000}, NULL);
}

/* Waits until *counter reaches n; the test fails rather than hangs. */
static bool reaches(volatile int *counter, int n)
{
	for (int i = 0; i < 2000 && *counter < n; i++)
		nap(5);
	return *counter >= n;
}

/* Waits until who writes into the pipe of this reading end, by way of the session, has to wait. */
static bool is_stuck(int reader, pid_t writer)
{
	struct lr_proc_stat st;
	char path[32];

	snprintf(path, sizeof path, "/proc/self/fd/%d", reader);
	struct pollfd p = {.fd = open(path, O_WRONLY | O_CLOEXEC), .events = POLLOUT};
	bool full = false, waits = false;
	for (int i = 0; i < 2000 && !waits; i++, nap(5)) {
		full = full || poll(&p, 1, 0) == 0;
		waits = full && lr_proc_stat(writer, &st) == 0 && st.state == 'S';
	}
	close(p.fd);
	return waits;
}

static void container(const struct run *run, int slave, const sigset_t *mask)
{
	sigprocmask(SIG_SETMASK, mask, NULL);
	setsid();
	if (slave >= 0 && lr_tty_attach(slave, NULL) < 0)
		_exit(99);
	lr_close_range(3, 255, 0); /* as execve would */
	sh->running = 1;
	_exit(run->child());
}

static void runtime(const struct run *run)
{
	struct lr_tty_signals signals;
	struct lr_err err = {0};
	int master = LR_NOFD, slave = LR_NOFD;

	/* A shell's background job starts with these ignored, and then they stay so. */
	signal(SIGINT, SIG_DFL);
	signal(SIGQUIT, SIG_DFL);
	signal(SIGHUP, SIG_DFL);
	for (int fd = 3; fd < 256; fd++)
		if (fd != run->in && fd != run->out && fd != run->outer)
			close(fd);
	if (run->outer >= 0 && (setsid() < 0 || ioctl(run->outer, TIOCSCTTY, 0) < 0))
		_exit(98);
	if (run->reap_others)
		prctl(PR_SET_CHILD_SUBREAPER, 1);
	if (lr_tty_signals_open(&signals, true, &err) < 0)
		_exit(97);
	if (run->terminal) {
		master = posix_openpt(O_RDWR | O_NOCTTY | O_CLOEXEC);
		if (master < 0 || unlockpt(master) < 0 ||
		    ptsname_r(master, slave_name, sizeof slave_name))
			_exit(96);
		slave = open(slave_name, O_RDWR | O_NOCTTY | O_CLOEXEC);
	}
	pid_t pid = fork();
	if (pid == 0) {
		lr_close(master);
		container(run, slave, &signals.old);
	}
	lr_close(slave);
	sh->child = pid;
	sh->s = (struct lr_tty_session)LR_TTY_SESSION_INIT;
	sh->s.pid = pid;
	sh->s.pidfd = run->no_pidfd ? LR_NOFD : lr_pidfd_open(pid, 0);
	sh->s.master = master;
	sh->s.in = run->in;
	sh->s.out = run->out;
	sh->s.reap_others = run->reap_others;
	sh->s.signals = &signals;
	sh->ret = lr_tty_session_run(&sh->s, &sh->status, &err);
	lr_tty_signals_close(&signals);
	if (sh->ret < 0) {
		char text[1024];
		fprintf(stderr, "# session: %s\n", lr_err_format(&err, text, sizeof text));
	}
	_exit(0);
}

static pid_t start(const struct run *run)
{
	if (!sh)
		sh = mmap(NULL, sizeof *sh, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1,
			  0);
	memset(sh, 0, sizeof *sh);
	sh->ret = -1;
	sh->status = -1;
	fflush(stdout);
	pid_t pid = fork();
	if (pid == 0)
		runtime(run);
	return pid;
}

/* Waits for the runtime; kills what is left if it hangs. */
static void finish(pid_t runtime_pid)
{
	int st = -1;

	for (int i = 0; i < 4000; i++, nap(5))
		if (waitpid(runtime_pid, &st, WNOHANG) == runtime_pid) {
			CHECK_INT(st, 0);
			CHECK_INT(sh->ret, 0);
			return;
		}
	lr_check(false, __FILE__, __LINE__, "the session hangs");
	kill(sh->child, SIGKILL);
	kill(runtime_pid, SIGKILL);
	waitpid(runtime_pid, &st, 0);
}

#define CHECK_EXIT(code) CHECK_INT(sh->status, (code) << 8)

static void raw_slave(void)
{
	struct termios t;

	tcgetattr(0, &t);
	cfmakeraw(&t);
	tcsetattr(0, TCSANOW, &t);
}

static unsigned char pattern(size_t i)
{
	return (unsigned char)((i * 2654435761u >> 13) ^ i);
}

static int write_pattern(size_t total)
{
	static unsigned char buf[8000];

	raw_slave();
	for (size_t i = 0; i < total;) {
		size_t n = total - i < sizeof buf ? total - i : sizeof buf;
		for (size_t k = 0; k < n; k++)
			buf[k] = pattern(i + k);
		if (lr_write_full(1, buf, n) != (ssize_t)n)
			return 1;
		i += n;
	}
	return 0;
}

static int write_big(void)
{
	return write_pattern(BIG);
}

/* Reads to the end; counts bytes, compares each. pause_every: naps after so many bytes. */
static size_t read_pattern(int fd, size_t pause_every, bool *same)
{
	unsigned char buf[4096];
	size_t i = 0, next = pause_every;
	ssize_t n;

	*same = true;
	while ((n = read(fd, buf, sizeof buf)) > 0) {
		for (ssize_t k = 0; k < n; k++, i++)
			*same &= buf[k] == pattern(i);
		if (pause_every && i >= next) {
			next = i + pause_every;
			nap(2);
		}
	}
	return i;
}

/* The case's two pipes: the user's ends are to and from. */
struct pipes {
	int to, from;
};

static pid_t start_piped(struct run *run, struct pipes *user)
{
	int a[2], b[2];

	if (pipe2(a, O_CLOEXEC) < 0 || pipe2(b, O_CLOEXEC) < 0)
		abort();
	run->terminal = true;
	run->outer = -1;
	run->in = a[0];
	run->out = b[1];
	pid_t pid = start(run);
	close(a[0]), close(b[1]);
	*user = (struct pipes){.to = a[1], .from = b[0]};
	return pid;
}

static void end_piped(pid_t pid, const struct pipes *user)
{
	close(user->to);
	finish(pid);
	close(user->from);
}

static size_t read_all(int fd, char *buf, size_t size)
{
	ssize_t n = lr_read_full(fd, buf, size - 1);

	buf[n > 0 ? n : 0] = '\0';
	return n > 0 ? (size_t)n : 0;
}

/* ---- output ------------------------------------------------------------------------------ */

static void fast_writer(size_t pause_every)
{
	struct run run = {.child = write_big};
	struct pipes user;
	bool same;
	pid_t pid = start_piped(&run, &user);

	CHECK_INT(read_pattern(user.from, pause_every, &same), BIG);
	CHECK(same);
	end_piped(pid, &user);
	CHECK_EXIT(0);
	CHECK(sh->s.buffered_max <= 128u << 10);
	CHECK(sh->s.wakeups < BIG / 100);
}

TEST(ten_megabytes_to_a_fast_reader)
{
	fast_writer(0);
}

TEST(ten_megabytes_to_a_slow_reader)
{
	fast_writer(64u << 10);
}

TEST(ten_megabytes_without_nowait)
{
	lr_tty_no_nowait = true;
	fast_writer(256u << 10);
	lr_tty_no_nowait = false;
}

TEST(ten_megabytes_without_gptpeer)
{
	lr_tty_no_gptpeer = true;
	fast_writer(0);
	lr_tty_no_gptpeer = false;
}

TEST(ten_megabytes_to_a_socket)
{
	struct run run = {.terminal = true, .outer = -1, .in = LR_NOFD, .child = write_big};
	int sock[2];
	bool same;

	REQUIRE(socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, sock) == 0);
	run.out = sock[1];
	pid_t pid = start(&run);
	close(sock[1]);
	CHECK_INT(read_pattern(sock[0], 128u << 10, &same), BIG);
	CHECK(same);
	finish(pid);
	close(sock[0]);
}

TEST(ten_megabytes_to_a_file)
{
	char path[] = "/tmp/lr-tty-XXXXXX";
	struct run run = {.terminal = true, .outer = -1, .in = LR_NOFD, .child = write_big};
	bool same;

	run.out = mkostemp(path, O_CLOEXEC);
	REQUIRE(run.out >= 0);
	finish(start(&run));
	CHECK_INT(lseek(run.out, 0, SEEK_SET), 0);
	CHECK_INT(read_pattern(run.out, 0, &same), BIG);
	CHECK(same);
	close(run.out), unlink(path);
}

static int write_slowly(void)
{
	raw_slave();
	for (size_t i = 0; i < 40; i++) {
		unsigned char c = pattern(i);
		if (write(1, &c, 1) != 1)
			return 1;
		nap(3);
	}
	return 0;
}

TEST(a_slow_writer_costs_a_few_turns_a_byte)
{
	struct run run = {.child = write_slowly};
	struct pipes user;
	bool same;
	pid_t pid = start_piped(&run, &user);

	CHECK_INT(read_pattern(user.from, 0, &same), 40);
	CHECK(same);
	end_piped(pid, &user);
	CHECK(sh->s.wakeups <= 40 * 3 + 10);
}

static void stalled_reader(void)
{
	struct run run = {.child = write_big};
	struct pipes user;
	bool same;
	pid_t pid = start_piped(&run, &user);

	CHECK(reaches(&sh->running, 1));
	/* Until everything between is full, which a slow machine takes its time for. */
	size_t before = 0, last = 0;
	for (int i = 0; i < 30; i++) {
		nap(300);
		before = *(volatile size_t *)&sh->s.wakeups;
		if (before == last)
			break;
		last = before;
	}
	nap(1500);
	size_t turns = *(volatile size_t *)&sh->s.wakeups - before;
	CHECK(turns <= 2);
	CHECK(kill(pid, SIGWINCH) == 0); /* still alive to signals */
	nap(50);
	CHECK(*(volatile size_t *)&sh->s.wakeups > before + turns);
	CHECK_INT(read_pattern(user.from, 0, &same), BIG);
	CHECK(same);
	end_piped(pid, &user);
}

TEST(a_reader_that_stops_costs_nothing)
{
	stalled_reader();
}

TEST(a_reader_that_stops_costs_nothing_without_nowait)
{
	lr_tty_no_nowait = true;
	stalled_reader();
	lr_tty_no_nowait = false;
}

static int say_and_leave_a_child(void)
{
	raw_slave();
	if (fork() == 0) {
		signal(SIGHUP, SIG_IGN);
		int fd = open("/dev/tty", O_RDWR);
		sh->running = 2;
		while (fd >= 0 && !sh->left)
			nap(5);
		sh->running = 3;
		_exit(0);
	}
	reaches(&sh->running, 2);
	return write(1, "bye", 3) != 3;
}

TEST(a_process_left_behind_does_not_hold_the_session)
{
	struct run run = {.child = say_and_leave_a_child};
	struct pipes user;
	char text[64];
	pid_t pid = start_piped(&run, &user);

	read_all(user.from, text, sizeof text);
	CHECK_STR(text, "bye");
	end_piped(pid, &user);
	sh->left = true;
	CHECK(reaches(&sh->running, 3)); /* before the next case begins at 0 */
}

static int close_and_reopen(void)
{
	char name[64];

	raw_slave();
	if (ttyname_r(0, name, sizeof name))
		return 9;
	if (write(1, "a", 1) != 1)
		return 1;
	close(0), close(1), close(2);
	sh->running = 2;
	reaches(&sh->running, 3);
	int fd = open(name, O_RDWR);
	return fd < 0 || write(fd, "b", 1) != 1;
}

TEST(a_moment_without_users_is_not_the_end)
{
	struct run run = {.child = close_and_reopen};
	struct pipes user;
	char text[64];
	pid_t pid = start_piped(&run, &user);

	CHECK(reaches(&sh->running, 2));
	nap(50);
	size_t before = *(volatile size_t *)&sh->s.wakeups;
	nap(300);
	CHECK(*(volatile size_t *)&sh->s.wakeups - before <= 1);
	sh->running = 3;
	read_all(user.from, text, sizeof text);
	CHECK_STR(text, "ab");
	end_piped(pid, &user);
	CHECK_EXIT(0);
}

static int hang_up_and_reopen(void)
{
	char name[64];

	raw_slave();
	signal(SIGHUP, SIG_IGN);
	if (ttyname_r(0, name, sizeof name))
		return 9;
	if (write(1, "a", 1) != 1)
		return 1;
	nap(50);
	if (vhangup() < 0)
		return 2;
	sh->running = 2;
	nap(100);
	int fd = open(name, O_RDWR);
	return fd < 0 || write(fd, "b", 1) != 1;
}

TEST(a_hangup_by_getty_is_not_the_end)
{
	struct run run = {.child = hang_up_and_reopen};
	struct pipes user;
	char text[64];

	if (geteuid() != 0)
		SKIP("needs root");
	pid_t pid = start_piped(&run, &user);
	read_all(user.from, text, sizeof text);
	CHECK_INT(text[0], 'a');
	CHECK_HAS(text, "b");
	end_piped(pid, &user);
	CHECK_EXIT(0);
	CHECK(sh->s.wakeups < 50);
}

static int write_until_error(void)
{
	char block[4096];

	signal(SIGHUP, SIG_IGN);
	memset(block, 'y', sizeof block);
	while (write(1, block, sizeof block) > 0)
		;
	return errno == EIO ? 7 : 8;
}

TEST(broken_output_hangs_the_terminal_up)
{
	struct run run = {.child = write_until_error};
	struct pipes user;
	char byte;
	pid_t pid = start_piped(&run, &user);

	CHECK_INT(read(user.from, &byte, 1), 1);
	close(user.from);
	user.from = -1;
	end_piped(pid, &user);
	CHECK_EXIT(7);
}

TEST(a_signal_ends_the_wait_for_a_stuck_reader)
{
	struct run run = {.child = write_until_error};
	struct pipes user;
	pid_t pid = start_piped(&run, &user);

	CHECK(reaches(&sh->running, 1));
	CHECK(is_stuck(user.from, sh->child));
	CHECK(kill(sh->child, SIGKILL) == 0);
	nap(200);
	CHECK_INT(waitpid(pid, NULL, WNOHANG), 0); /* its output is still wanted */
	CHECK(kill(pid, SIGTERM) == 0);
	end_piped(pid, &user);
	CHECK_INT(sh->status, SIGKILL);
}

/* ---- input ------------------------------------------------------------------------------- */

/* Reads as cat would; exits with the number of bytes. */
static int count_input(void)
{
	char buf[256];
	ssize_t n, total = 0;

	while ((n = read(0, buf, sizeof buf)) > 0)
		total += n;
	return n < 0 ? 99 : (int)total;
}

static void typed(const char *text, int want)
{
	struct run run = {.child = count_input};
	struct pipes user;
	pid_t pid = start_piped(&run, &user);

	CHECK_INT(write(user.to, text, strlen(text)), strlen(text));
	end_piped(pid, &user);
	CHECK_EXIT(want);
}

TEST(the_end_of_input_is_typed)
{
	typed("", 0);
	typed("one line\n", 9);
	typed("half a line", 11);
	typed("one\nand a half", 14);
}

static void input_from(int fd, int want)
{
	struct run run = {.terminal = true, .outer = -1, .out = LR_NOFD, .child = count_input};

	run.in = fd;
	finish(start(&run));
	CHECK_EXIT(want);
	close(fd);
}

TEST(input_from_files_and_null)
{
	char path[] = "/tmp/lr-tty-XXXXXX";
	int fd = mkostemp(path, O_CLOEXEC);

	REQUIRE(fd >= 0);
	CHECK(write(fd, "file\nend", 8) == 8 && lseek(fd, 0, SEEK_SET) == 0);
	unlink(path);
	input_from(fd, 8);
	input_from(open("/dev/null", O_RDONLY | O_CLOEXEC), 0);
}

static int read_big_slowly(void)
{
	bool same;

	raw_slave();
	sh->running = 2;
	unsigned char buf[1000];
	size_t i = 0;
	same = true;
	while (i < 1u << 20) {
		ssize_t n = read(0, buf, sizeof buf);
		if (n <= 0)
			return 1;
		for (ssize_t k = 0; k < n; k++, i++)
			same &= buf[k] == pattern(i);
		if (i % 64 == 0)
			nap(1);
	}
	return same ? 0 : 2;
}

TEST(a_megabyte_typed_to_a_slow_program)
{
	struct run run = {.child = read_big_slowly};
	struct pipes user;
	unsigned char buf[4096];
	pid_t pid = start_piped(&run, &user);

	CHECK(reaches(&sh->running, 2));
	for (size_t i = 0; i < 1u << 20; i += sizeof buf) {
		for (size_t k = 0; k < sizeof buf; k++)
			buf[k] = pattern(i + k);
		if (lr_write_full(user.to, buf, sizeof buf) < 0)
			break;
	}
	end_piped(pid, &user);
	CHECK_EXIT(0);
	CHECK(sh->s.buffered_max <= 128u << 10);
	CHECK(sh->s.wakeups < 50000);
}

TEST(shared_descriptors_keep_their_flags)
{
	struct run run = {.child = count_input};
	int a[2], b[2];

	REQUIRE(pipe2(a, O_CLOEXEC) == 0 && pipe2(b, O_CLOEXEC) == 0);
	run.terminal = true;
	run.outer = -1;
	run.in = a[0];
	run.out = b[1];
	pid_t pid = start(&run);
	CHECK(reaches(&sh->running, 1));
	nap(50);
	CHECK(!(fcntl(a[0], F_GETFL) & O_NONBLOCK));
	CHECK(!(fcntl(b[1], F_GETFL) & O_NONBLOCK));
	close(a[1]);
	finish(pid);
	CHECK(!(fcntl(a[0], F_GETFL) & O_NONBLOCK));
	CHECK(!(fcntl(b[1], F_GETFL) & O_NONBLOCK));
	close(a[0]), close(b[0]), close(b[1]);
}

/* ---- the caller's terminal --------------------------------------------------------------- */

static int outer_master, outer_slave;

static bool open_outer(void)
{
	char name[64];

	outer_master = posix_openpt(O_RDWR | O_NOCTTY | O_CLOEXEC);
	if (outer_master < 0 || unlockpt(outer_master) < 0 ||
	    ptsname_r(outer_master, name, sizeof name))
		return false;
	outer_slave = open(name, O_RDWR | O_NOCTTY | O_CLOEXEC);
	return outer_slave >= 0 &&
	       ioctl(outer_master, TIOCSWINSZ, &(struct winsize){.ws_row = 10, .ws_col = 20}) == 0;
}

static pid_t start_outer(int (*child)(void))
{
	struct run run = {.terminal = true, .child = child};

	run.in = run.out = run.outer = outer_slave;
	return start(&run);
}

/* Reads from the outer terminal until the text has come. */
static bool sees(const char *text)
{
	static char buf[4096];
	size_t len = 0;

	for (int i = 0; i < 100; i++) {
		struct pollfd p = {.fd = outer_master, .events = POLLIN};
		if (poll(&p, 1, 100) > 0) {
			ssize_t n = read(outer_master, buf + len, sizeof buf - 1 - len);
			if (n <= 0)
				break;
			len += (size_t)n;
		}
		buf[len] = '\0';
		if (strstr(buf, text))
			return true;
	}
	printf("# saw: %s\n", buf);
	return false;
}

static volatile sig_atomic_t got_signal;

static void on_signal(int sig)
{
	got_signal = sig;
}

static void catch_signals(void)
{
	struct sigaction sa = {.sa_handler = on_signal};

	for (int sig = 1; sig <= SIGRTMAX; sig++)
		if (sig != SIGKILL && sig != SIGSTOP && sig != SIGSEGV && sig != SIGBUS)
			sigaction(sig, &sa, NULL);
}

static int print_size(void)
{
	struct winsize ws = {0};

	ioctl(1, TIOCGWINSZ, &ws);
	dprintf(1, "size %dx%d\n", ws.ws_row, ws.ws_col);
	return ws.ws_row;
}

/* One signal may come early: the session copies the size when it begins. */
static int show_sizes(void)
{
	catch_signals();
	for (int i = 0; i < 1000 && print_size() != 44; i++)
		nap(20);
	return got_signal != SIGWINCH;
}

TEST(the_size_follows)
{
	REQUIRE(open_outer());
	pid_t pid = start_outer(show_sizes);
	CHECK(sees("size 10x20"));
	CHECK(ioctl(outer_master, TIOCSWINSZ, &(struct winsize){.ws_row = 44, .ws_col = 132}) == 0);
	CHECK(sees("size 44x132"));
	finish(pid);
	CHECK_EXIT(0);
	close(outer_master), close(outer_slave);
}

static int wait_for_q(void)
{
	char c = 0;

	raw_slave();
	sh->running = 2;
	while (read(0, &c, 1) == 1 && c != 'q')
		;
	return c == 'q' ? 0 : 1;
}

static bool same_mode(const struct termios *a, const struct termios *b)
{
	return a->c_iflag == b->c_iflag && a->c_oflag == b->c_oflag && a->c_cflag == b->c_cflag &&
	       a->c_lflag == b->c_lflag && memcmp(a->c_cc, b->c_cc, sizeof a->c_cc) == 0;
}

/* end: how the session comes to its end. */
static void raw_and_back(void (*end)(pid_t runtime_pid), int status)
{
	struct termios before = {0}, during = {0}, after = {0}; /* the kernel fills only a part */

	REQUIRE(open_outer());
	CHECK(tcgetattr(outer_slave, &before) == 0);
	pid_t pid = start_outer(wait_for_q);
	CHECK(reaches(&sh->running, 2));
	for (int i = 0; i < 200; i++, nap(5))
		if (tcgetattr(outer_slave, &during) == 0 && !(during.c_lflag & ICANON))
			break;
	CHECK(!(during.c_lflag & (ICANON | ECHO | ISIG)));
	CHECK(during.c_oflag & OPOST); /* it ends the lines: see lr_tty_session_run */
	end(pid);
	finish(pid);
	CHECK_INT(sh->status, status);
	CHECK(tcgetattr(outer_slave, &after) == 0);
	CHECK(same_mode(&before, &after));
	close(outer_master), close(outer_slave);
}

static void type_q(pid_t pid)
{
	CHECK_INT(write(outer_master, "\x03\x1aq", 3), 3); /* ^C and ^Z pass as bytes */
}

static void send_term(pid_t pid)
{
	CHECK(kill(pid, SIGTERM) == 0);
}

static void kill_child(pid_t pid)
{
	CHECK(kill(sh->child, SIGKILL) == 0);
}

TEST(raw_mode_ends_with_the_program)
{
	raw_and_back(type_q, 0);
}

TEST(raw_mode_ends_with_a_signal_to_the_runtime)
{
	raw_and_back(send_term, SIGTERM);
}

TEST(raw_mode_ends_with_a_killed_program)
{
	raw_and_back(kill_child, SIGKILL);
}

/* ---- signals ----------------------------------------------------------------------------- */

static int wait_for_signal(void)
{
	catch_signals();
	sh->running = 2;
	while (!got_signal)
		nap(2);
	return got_signal;
}

static void signal_passes(int sig, bool terminal, bool no_pidfd)
{
	struct run run = {.terminal = terminal, .no_pidfd = no_pidfd, .outer = -1};
	pid_t pid;

	run.in = run.out = LR_NOFD;
	run.child = wait_for_signal;
	pid = start(&run);
	CHECK(reaches(&sh->running, 2));
	CHECK(kill(pid, sig) == 0);
	finish(pid);
	CHECK_EXIT(sig);
}

TEST(every_signal_that_can_be_forwarded_is)
{
	static const int sigs[] = {SIGHUP,  SIGINT,  SIGQUIT, SIGTERM,  SIGUSR1, SIGUSR2,
				   SIGALRM, SIGTSTP, SIGCONT, SIGPIPE,  SIGIO,   SIGPWR,
				   SIGPROF, SIGXCPU, SIGXFSZ, SIGVTALRM};

	for (size_t i = 0; i < sizeof sigs / sizeof *sigs; i++)
		signal_passes(sigs[i], i % 2, false);
	signal_passes(SIGRTMIN + 5, true, false);
	signal_passes(SIGTERM, true, true);
	signal_passes(SIGTERM, false, true);
}

TEST(signals_of_the_runtime_itself_stay)
{
	struct run run = {.outer = -1, .in = LR_NOFD, .out = LR_NOFD, .child = wait_for_signal};
	pid_t pid = start(&run);

	CHECK(reaches(&sh->running, 2));
	CHECK(kill(pid, SIGURG) == 0 && kill(pid, SIGWINCH) == 0 && kill(pid, SIGCHLD) == 0);
	nap(100);
	CHECK(kill(pid, SIGUSR1) == 0);
	finish(pid);
	CHECK_EXIT(SIGUSR1);
}

static void exit_by(int sig)
{
	_exit(sig);
}

/* Ends with the number of the first signal that it gets. */
static pid_t fork_catcher(void)
{
	struct sigaction sa = {.sa_handler = exit_by};

	sigfillset(&sa.sa_mask);
	sigaction(SIGHUP, &sa, NULL);
	sigaction(SIGTERM, &sa, NULL);
	pid_t pid = fork(); /* what comes before it unblocks stays pending */
	if (pid == 0) {
		sigset_t none;
		sigemptyset(&none);
		while (true)
			sigsuspend(&none);
	}
	return pid;
}

static int ignored_case(void)
{
	/* The session of a runtime that nohup started. */
	struct lr_tty_session session = LR_TTY_SESSION_INIT;
	struct lr_tty_signals s;
	sigset_t now;

	signal(SIGCHLD, SIG_IGN);
	if (lr_tty_signals_open(&s, true, NULL) < 0)
		return 1;
	sigprocmask(SIG_BLOCK, NULL, &now);
	if (!sigismember(&now, SIGTERM) || sigismember(&now, SIGSEGV))
		return 2;
	session.pid = fork_catcher();
	session.master = LR_NOFD;
	session.signals = &s;
	signal(SIGHUP, SIG_IGN);
	raise(SIGHUP); /* the lower number comes out first */
	raise(SIGTERM);
	int st = -1;
	if (lr_tty_session_run(&session, &st, NULL) < 0 || st != SIGTERM << 8)
		return 3;
	raise(SIGTERM); /* pending: dropped by close */
	lr_tty_signals_close(&s);
	lr_tty_signals_close(&s);
	sigprocmask(SIG_BLOCK, NULL, &now);
	return sigismember(&now, SIGTERM) ? 4 : 0;
}

TEST(ignored_signals_stay_ignored_and_children_are_kept)
{
	int st = -1;

	fflush(stdout);
	pid_t pid = fork();
	if (pid == 0)
		_exit(ignored_case());
	CHECK(waitpid(pid, &st, 0) == pid);
	CHECK_INT(st, 0);
}

/* ---- the end ----------------------------------------------------------------------------- */

static int exit_42(void)
{
	return 42;
}

static int crash(void)
{
	raise(SIGKILL);
	return 0;
}

TEST(the_wait_status_comes_back)
{
	struct run run = {.outer = -1, .in = LR_NOFD, .out = LR_NOFD};

	for (int i = 0; i < 4; i++) {
		run.terminal = i & 1;
		run.no_pidfd = i & 2;
		run.child = exit_42;
		finish(start(&run));
		CHECK_EXIT(42);
		run.child = crash;
		finish(start(&run));
		CHECK_INT(sh->status, SIGKILL);
	}
}

static int orphan_one(void)
{
	int p[2];
	pid_t orphan = 0;

	if (pipe(p) < 0)
		return 1;
	pid_t middle = fork();
	if (middle == 0) {
		orphan = fork();
		if (orphan == 0) {
			nap(50);
			_exit(0);
		}
		_exit(write(p[1], &orphan, sizeof orphan) != sizeof orphan);
	}
	waitpid(middle, NULL, 0);
	if (read(p[0], &orphan, sizeof orphan) != sizeof orphan)
		return 2;
	for (int i = 0; i < 1000; i++, nap(5))
		if (kill(orphan, 0) < 0 && errno == ESRCH)
			return 0;
	return 3; /* a zombie still */
}

TEST(a_subreaper_reaps)
{
	struct run run = {.outer = -1, .in = LR_NOFD, .out = LR_NOFD, .reap_others = true};

	run.child = orphan_one;
	finish(start(&run));
	CHECK_EXIT(0);
}

TEST(a_process_that_is_no_child_is_an_error)
{
	struct lr_tty_session s = LR_TTY_SESSION_INIT;
	struct lr_err err = {0};
	int status = -7;

	s.pid = getpid();
	CHECK_INT(lr_tty_session_run(&s, &status, &err), -ECHILD);
	CHECK_INT(status, -7);
}
