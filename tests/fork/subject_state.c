/* SPDX-License-Identifier: Apache-2.0 */
/* What a process or a thread has set of itself, and what it has of a file or of memory beyond that. */
#include <dirent.h>
#include <linux/membarrier.h>
#include <poll.h>
#include <pthread.h>
#include <sched.h>
#include <signal.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/wait.h>

#include "tests/fork/subject.h"

#define PAGE 4096

#ifndef MFD_NOEXEC_SEAL
#define MFD_NOEXEC_SEAL 8U
#endif
#ifndef F_SEAL_FUTURE_WRITE
#define F_SEAL_FUTURE_WRITE 0x10
#endif
#ifndef PR_SET_MDWE
#define PR_SET_MDWE 65
#define PR_GET_MDWE 66
#endif
#ifndef PR_SET_MEMORY_MERGE
#define PR_SET_MEMORY_MERGE 67
#define PR_GET_MEMORY_MERGE 68
#endif
#ifndef MLOCK_ONFAULT
#define MLOCK_ONFAULT 1
#endif
#ifndef SCHED_IDLE
#define SCHED_IDLE 5
#endif

static char *map_of(int fd, int prot, int flags)
{
	char *p = mmap(NULL, PAGE, prot, flags, fd, 0);

	EXPECT(p != MAP_FAILED);
	return p;
}

/* ---- seals ----------------------------------------------------------------------------------- */

static int memory(unsigned flags, char c)
{
	char page[PAGE];
	int fd = (int)syscall(SYS_memfd_create, "sealed", MFD_CLOEXEC | flags);

	memset(page, c, PAGE);
	EXPECT(fd >= 0 && write(fd, page, PAGE) == PAGE);
	return fd;
}

static void check_no_new_writer(int fd)
{
	EXPECT(pwrite(fd, "x", 1, 0) == -1 && errno == EPERM);
	EXPECT(mmap(NULL, PAGE, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0) == MAP_FAILED);
}

void subject_sealed(void)
{
	int whole = memory(MFD_ALLOW_SEALING, 'w'), later = memory(MFD_ALLOW_SEALING, 'l');
	int none = memory(0, 'n'), noexec = memory(MFD_NOEXEC_SEAL, 'x');
	int shown = memory(MFD_ALLOW_SEALING, 's'), go[2], status;
	char *anon = map_of(-1, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS), c;

	EXPECT(fcntl(whole, F_ADD_SEALS,
		     F_SEAL_SHRINK | F_SEAL_GROW | F_SEAL_WRITE | F_SEAL_SEAL) == 0);
	char *read_only = map_of(whole, PROT_READ, MAP_SHARED);
	char *writable = map_of(later, PROT_READ | PROT_WRITE, MAP_SHARED);
	EXPECT(pipe(go) == 0);
	pid_t pid = fork();
	if (pid == 0) {
		EXPECT(read(go[0], &c, 1) == 1);
		writable[1] = 'c';
		check_no_new_writer(later);
		_exit(writable[0] == 'p' ? 31 : 32);
	}
	EXPECT(fcntl(later, F_ADD_SEALS, F_SEAL_FUTURE_WRITE) == 0);
	EXPECT(fcntl(shown, F_ADD_SEALS, F_SEAL_FUTURE_WRITE | F_SEAL_SEAL) == 0);
	char *seen = map_of(shown, PROT_READ, MAP_SHARED);
	anon[0] = 'a';
	subject_ready();
	EXPECT(fcntl(whole, F_GET_SEALS) ==
	       (F_SEAL_SHRINK | F_SEAL_GROW | F_SEAL_WRITE | F_SEAL_SEAL));
	EXPECT(read_only[0] == 'w' && mprotect(read_only, PAGE, PROT_READ | PROT_WRITE) == -1);
	check_no_new_writer(whole);
	EXPECT(ftruncate(whole, 0) == -1 && ftruncate(whole, 2 * PAGE) == -1 && errno == EPERM);
	EXPECT(fcntl(later, F_GET_SEALS) == F_SEAL_FUTURE_WRITE);
	check_no_new_writer(later);
	writable[0] = 'p';
	EXPECT(write(go[1], "!", 1) == 1 && waitpid(pid, &status, 0) == pid);
	EXPECT(WIFEXITED(status) && WEXITSTATUS(status) == 31 && writable[1] == 'c');
	EXPECT(fcntl(later, F_ADD_SEALS, F_SEAL_GROW) == 0);
	EXPECT(fcntl(none, F_GET_SEALS) == F_SEAL_SEAL && pwrite(none, "y", 1, 0) == 1);
	EXPECT(fcntl(shown, F_GET_SEALS) == (F_SEAL_FUTURE_WRITE | F_SEAL_SEAL));
	EXPECT(seen[0] == 's' && mprotect(seen, PAGE, PROT_READ | PROT_WRITE) == -1);
	struct stat st;
	/* F_SEAL_EXEC, of Linux 6.3, alone. */
	EXPECT(fcntl(noexec, F_GET_SEALS) == 0x20 && fstat(noexec, &st) == 0);
	EXPECT(!(st.st_mode & 0111) && pwrite(noexec, "y", 1, 0) == 1);
	EXPECT(anon[0] == 'a');
}

/* ---- owners ---------------------------------------------------------------------------------- */

static volatile int told_by, told_at = -1;
static int answers[2];

static void tell(int sig, siginfo_t *info, void *context)
{
	(void)context;
	told_by = sig;
	told_at = info->si_fd;
}

static void answer(int sig)
{
	(void)sig;
	(void)!write(answers[1], "!", 1);
}

static void own(int fd, int sig, int kind, pid_t who)
{
	const struct f_owner_ex o = {kind, who};

	EXPECT(fcntl(fd, F_SETSIG, sig) == 0 && fcntl(fd, F_SETOWN_EX, &o) == 0);
	EXPECT(fcntl(fd, F_SETFL, fcntl(fd, F_GETFL) | O_ASYNC | O_NONBLOCK) == 0);
}

static void check_owner(int fd, int sig, int kind, pid_t who)
{
	struct f_owner_ex o;

	EXPECT(fcntl(fd, F_GETSIG) == sig && fcntl(fd, F_GETOWN_EX, &o) == 0);
	EXPECT((int)o.type == kind && o.pid == who);
	EXPECT((fcntl(fd, F_GETFL) & (O_ASYNC | O_NONBLOCK)) == (O_ASYNC | O_NONBLOCK));
}

void subject_owners(void)
{
	struct sigaction sa = {.sa_sigaction = tell, .sa_flags = SA_SIGINFO | SA_RESTART};
	const int sig = SIGRTMIN + 5;
	int mine[2], theirs[2], threads[2], silent[2], status;
	pid_t me = getpid(), tid = (pid_t)syscall(SYS_gettid);
	char c;

	EXPECT(pipe(answers) == 0 && pipe(mine) == 0 && pipe(silent) == 0 && pipe(threads) == 0);
	EXPECT(socketpair(AF_UNIX, SOCK_STREAM, 0, theirs) == 0);
	EXPECT(sigaction(sig, &sa, NULL) == 0 && sigaction(SIGIO, &sa, NULL) == 0);
	pid_t pid = fork();
	if (pid == 0) {
		setpgid(0, 0);
		signal(SIGUSR1, answer);
		close(theirs[0]); /* the owner has not got the file */
		for (;;)
			pause();
	}
	EXPECT(setpgid(pid, pid) == 0);
	const struct timespec soon = {.tv_nsec = 100000000};
	nanosleep(&soon, NULL);
	own(mine[0], sig, F_OWNER_PID, me);
	own(theirs[0], SIGUSR1, F_OWNER_PGRP, pid);
	own(threads[0], 0, F_OWNER_TID, tid);
	EXPECT(fcntl(silent[0], F_SETSIG, SIGUSR2) == 0);
	subject_ready();
	check_owner(mine[0], sig, F_OWNER_PID, me);
	check_owner(theirs[0], SIGUSR1, F_OWNER_PGRP, pid);
	check_owner(threads[0], 0, F_OWNER_TID, tid);
	EXPECT(fcntl(silent[0], F_GETSIG) == SIGUSR2 && fcntl(silent[0], F_GETOWN) == 0);
	EXPECT(!(fcntl(silent[0], F_GETFL) & O_ASYNC));
	EXPECT(write(mine[1], "x", 1) == 1 && told_by == sig && told_at == mine[0]);
	EXPECT(write(threads[1], "x", 1) == 1 && told_by == SIGIO);
	EXPECT(write(theirs[1], "x", 1) == 1);
	struct pollfd p = {.fd = answers[0], .events = POLLIN};
	EXPECT(poll(&p, 1, 10000) == 1 && read(answers[0], &c, 1) == 1);
	kill(pid, SIGKILL);
	EXPECT(waitpid(pid, &status, 0) == pid);
}

/* ---- memory that is locked, or has advice ----------------------------------------------------- */

/* The line of flags that smaps has of that address. */
static bool has_flag(const char *at, const char *flag)
{
	char line[512], padded[8];
	bool here = false;
	FILE *f = fopen("/proc/self/smaps", "re");

	EXPECT(f);
	snprintf(padded, sizeof(padded), " %s ", flag);
	while (fgets(line, sizeof(line), f)) {
		unsigned long start, end;
		if (sscanf(line, "%lx-%lx ", &start, &end) == 2)
			here = (unsigned long)at >= start && (unsigned long)at < end;
		else if (here && strncmp(line, "VmFlags:", 8) == 0)
			break;
	}
	fclose(f);
	return here && strstr(line, padded);
}

/* Apart from its neighbours. */
static char *alone(size_t pages, int flags)
{
	char *p = mmap(NULL, (pages + 2) * PAGE, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);

	EXPECT(p != MAP_FAILED);
	p = mmap(p + PAGE, pages * PAGE, PROT_READ | PROT_WRITE,
		 MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED | flags, -1, 0);
	EXPECT(p != MAP_FAILED);
	return p;
}

void subject_locked(void)
{
	char *now = alone(4, 0), *touched = alone(4, 0), *untouchable = alone(2, 0);
	char *not = alone(2, 0);

	now[0] = 'n';
	touched[PAGE] = 't';
	not [0] = '-';
	EXPECT(mlock(now, 4 * PAGE) == 0);
	EXPECT(syscall(SYS_mlock2, touched, 4 * PAGE, MLOCK_ONFAULT) == 0);
	/* The flag stays, whatever is said of the pages. */
	EXPECT(mlock(untouchable, 2 * PAGE) == 0 &&
	       mprotect(untouchable, 2 * PAGE, PROT_NONE) == 0);
	subject_ready();
	EXPECT(has_flag(now, "lo") && has_flag(touched, "lo") && has_flag(untouchable, "lo"));
	EXPECT(!has_flag(not, "lo") && !has_flag(alone(1, 0), "lo"));
	EXPECT(now[0] == 'n' && now[3 * PAGE] == 0 && touched[PAGE] == 't' && not [0] == '-');
	EXPECT(munlock(now, 4 * PAGE) == 0 && !has_flag(now, "lo"));
}

void subject_lockedall(void)
{
	EXPECT(mlockall(MCL_CURRENT | MCL_FUTURE) == 0);
	char *before = alone(2, 0);
	before[0] = 'b';
	subject_ready();
	EXPECT(has_flag(before, "lo") && before[0] == 'b');
	EXPECT(has_flag(alone(2, 0), "lo"));
	EXPECT(munlockall() == 0 && !has_flag(before, "lo") && !has_flag(alone(2, 0), "lo"));
}

void subject_advice(void)
{
	static const struct {
		int advice;
		const char *flag;
	} all[] = {{MADV_DONTDUMP, "dd"},
		   {MADV_MERGEABLE, "mg"},
		   {MADV_HUGEPAGE, "hg"},
		   {MADV_NOHUGEPAGE, "nh"}};
	const int n = sizeof(all) / sizeof(all[0]);
	char *at[sizeof(all) / sizeof(all[0])], *unreserved = alone(512, MAP_NORESERVE);
	bool there[sizeof(all) / sizeof(all[0])];

	for (int i = 0; i < n; i++) {
		at[i] = alone(2, 0);
		at[i][0] = (char)('0' + i);
		/* A kernel without huge pages, or KSM, knows nothing of them. */
		there[i] = madvise(at[i], 2 * PAGE, all[i].advice) == 0;
	}
	unreserved[7] = 'u';
	EXPECT(there[0] && has_flag(unreserved, "nr"));
	subject_ready();
	for (int i = 0; i < n; i++) {
		EXPECT(at[i][0] == '0' + i);
		for (int k = 0; k < n; k++)
			EXPECT(has_flag(at[i], all[k].flag) == (i == k && there[i]));
	}
	EXPECT(has_flag(unreserved, "nr") && unreserved[7] == 'u' && !has_flag(at[0], "nr"));
}

/* ---- what threads and processes have set ------------------------------------------------------ */

static volatile bool looks, all_is_well;

static bool is_scheduled(int policy, int priority)
{
	struct sched_param p;

	return syscall(SYS_sched_getparam, 0, &p) == 0 && p.sched_priority == priority &&
	       syscall(SYS_sched_getscheduler, 0) == policy;
}

static void *other(void *arg)
{
	const struct sched_param batch = {0}, first = {.sched_priority = 3};
	const struct timespec soon = {.tv_nsec = 2000000};

	EXPECT(prctl(PR_SET_TIMERSLACK, 34567) == 0);
	const bool real =
		syscall(SYS_sched_setscheduler, 0, SCHED_FIFO | SCHED_RESET_ON_FORK, &first) == 0;
	if (!real) /* its cgroup may not */
		EXPECT(syscall(SYS_sched_setscheduler, 0, SCHED_BATCH | SCHED_RESET_ON_FORK,
			       &batch) == 0);
	EXPECT(prctl(PR_MCE_KILL, PR_MCE_KILL_SET, PR_MCE_KILL_EARLY, 0, 0) == 0);
	all_is_well = true;
	while (!looks)
		nanosleep(&soon, NULL);
	all_is_well = is_scheduled((real ? SCHED_FIFO : SCHED_BATCH) | SCHED_RESET_ON_FORK,
				   real ? 3 : 0) &&
		      prctl(PR_MCE_KILL_GET, 0, 0, 0, 0) == PR_MCE_KILL_EARLY;
	/* A thread of real time has no slack, while it is that. */
	EXPECT(syscall(SYS_sched_setscheduler, 0, SCHED_OTHER | SCHED_RESET_ON_FORK, &batch) == 0);
	all_is_well = all_is_well && (real || prctl(PR_GET_TIMERSLACK) == 34567);
	return arg;
}

#define GET_REGISTRATIONS (1 << 9) /* MEMBARRIER_CMD_GET_REGISTRATIONS, Linux 6.3 */

static long barrier(int command)
{
	return syscall(SYS_membarrier, command, 0, 0);
}

static int speculation(void)
{
	return prctl(PR_GET_SPECULATION_CTRL, PR_SPEC_STORE_BYPASS, 0, 0, 0);
}

void subject_settings(void)
{
	const struct sched_param none = {0};
	const bool merges = prctl(PR_SET_MEMORY_MERGE, 1, 0, 0, 0) == 0;
	int go[2], status, death = 0;
	pthread_t t;
	char c;

	/* Whatever the tests are run with. */
	EXPECT(syscall(SYS_sched_setscheduler, 0, SCHED_OTHER, &none) == 0);
	EXPECT(setpriority(PRIO_PROCESS, 0, -3) == 0 && pipe(go) == 0);
	EXPECT(pthread_create(&t, NULL, other, NULL) == 0);
	EXPECT(prctl(PR_SET_TIMERSLACK, 12345) == 0);
	EXPECT(prctl(PR_SET_THP_DISABLE, 1, 0, 0, 0) == 0);
	if (speculation() > 0 && speculation() & PR_SPEC_PRCTL)
		EXPECT(prctl(PR_SET_SPECULATION_CTRL, PR_SPEC_STORE_BYPASS, PR_SPEC_DISABLE, 0,
			     0) == 0);
	const int bypass = speculation();
	/* But not for RSEQ. */
	EXPECT(barrier(MEMBARRIER_CMD_REGISTER_GLOBAL_EXPEDITED) == 0);
	EXPECT(barrier(MEMBARRIER_CMD_REGISTER_PRIVATE_EXPEDITED) == 0);
	EXPECT(barrier(MEMBARRIER_CMD_REGISTER_PRIVATE_EXPEDITED_SYNC_CORE) == 0);
	const long registered = barrier(GET_REGISTRATIONS);
	while (!all_is_well)
		sched_yield();
	pid_t pid = fork();
	if (pid == 0) {
		const bool strict = prctl(PR_SET_MDWE, 1, 0, 0, 0) == 0;
		EXPECT(prctl(PR_SET_PDEATHSIG, SIGUSR2) == 0);
		EXPECT(syscall(SYS_sched_setscheduler, 0, SCHED_IDLE, &none) == 0);
		EXPECT(read(go[0], &c, 1) == 1);
		EXPECT(prctl(PR_GET_PDEATHSIG, &death) == 0 && death == SIGUSR2);
		EXPECT(is_scheduled(SCHED_IDLE, 0));
		EXPECT(!strict || prctl(PR_GET_MDWE, 0, 0, 0, 0) == 1);
		_exit(41);
	}
	subject_ready();
	EXPECT(getpriority(PRIO_PROCESS, 0) == -3 && is_scheduled(SCHED_OTHER, 0));
	EXPECT(prctl(PR_GET_TIMERSLACK) == 12345);
	EXPECT(prctl(PR_GET_THP_DISABLE, 0, 0, 0, 0) == 1);
	EXPECT(prctl(PR_GET_MEMORY_MERGE, 0, 0, 0, 0) == 1 || !merges);
	EXPECT(prctl(PR_GET_MDWE, 0, 0, 0, 0) <= 0);
	EXPECT(prctl(PR_MCE_KILL_GET, 0, 0, 0, 0) == PR_MCE_KILL_DEFAULT);
	EXPECT(speculation() == bypass);
	EXPECT(barrier(MEMBARRIER_CMD_PRIVATE_EXPEDITED) == 0);
	EXPECT(barrier(MEMBARRIER_CMD_PRIVATE_EXPEDITED_SYNC_CORE) == 0);
	EXPECT(barrier(GET_REGISTRATIONS) == registered);
	looks = true;
	EXPECT(pthread_join(t, NULL) == 0 && all_is_well);
	EXPECT(write(go[1], "!", 1) == 1 && waitpid(pid, &status, 0) == pid);
	EXPECT(WIFEXITED(status) && WEXITSTATUS(status) == 41);
}

/* ---- a place in a directory, and a root of its own --------------------------------------------- */

static bool is_there(int dir, const char *name)
{
	return faccessat(dir, name, F_OK, 0) == 0;
}

static int names_left(DIR *d)
{
	int n = 0;

	while (readdir(d))
		n++;
	return n;
}

void subject_places(void)
{
	EXPECT(mkdir("place", 0700) == 0 || errno == EEXIST);
	close(open("place/file", O_WRONLY | O_CREAT, 0600));
	EXPECT(symlink("file", "place/link") == 0 || errno == EEXIST);
	int dir = open("place", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	int read_already = open("place", O_RDONLY | O_DIRECTORY);
	DIR *d = fdopendir(read_already);
	EXPECT(d && names_left(d) == 4);
	EXPECT(dir >= 0);
	subject_ready();
	EXPECT(is_there(dir, "file") && fcntl(dir, F_GETFD) == FD_CLOEXEC);
	EXPECT(names_left(d) == 0);
	rewinddir(d);
	int left = names_left(d);
	if (left != 4)
		subject_wrong("%d names, and not 4 (errno %d)", left, errno);
}

/* In it, and out of it by its working directory. */
static void be_jailed(int go, bool outside)
{
	char c;

	EXPECT(chdir(outside ? "." : "jail") == 0 && chroot(outside ? "jail" : ".") == 0);
	int file = open("/inside", O_RDONLY);
	EXPECT(file >= 0);
	EXPECT(read(go, &c, 1) == 1);
	EXPECT(access("/inside", F_OK) == 0 && access("/proc/self", F_OK) == -1);
	EXPECT(access(outside ? "jail/inside" : "inside", F_OK) == 0);
	EXPECT(access("../../../../../../../../etc/passwd", F_OK) == (outside ? 0 : -1));
	EXPECT(read(file, &c, 1) == 1 && c == '1');
	_exit(51);
}

void subject_jail(void)
{
	int go[2], status;
	pid_t pids[2];

	EXPECT(mkdir("jail", 0700) == 0 || errno == EEXIST);
	int fd = open("jail/inside", O_WRONLY | O_CREAT, 0600);
	EXPECT(write(fd, "1", 1) == 1 && pipe(go) == 0);
	close(fd);
	for (int i = 0; i < 2; i++) {
		pids[i] = fork();
		if (pids[i] == 0)
			be_jailed(go[0], i);
	}
	const struct timespec soon = {.tv_nsec = 200000000};
	nanosleep(&soon, NULL);
	subject_ready();
	EXPECT(access("/proc/self", F_OK) == 0 && write(go[1], "!!", 2) == 2);
	for (int i = 0; i < 2; i++)
		EXPECT(waitpid(pids[i], &status, 0) == pids[i] && WIFEXITED(status) &&
		       WEXITSTATUS(status) == 51);
}
