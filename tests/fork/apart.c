/* SPDX-License-Identifier: Apache-2.0 */
/*
 * apart KIND [late]: a program with two threads, of which one does something, at once or when there is a file
 * /go; then there is a file /done. Its first thread tells in /n how often it went round, and what went wrong in
 * /err; it is the only one, and does it itself, where a whole process has to. Static, for a container with nothing
 * else in it.
 *
 *	none		nothing
 *	filter		loads a filter of seccomp(2), for itself
 *	strict		goes into strict mode
 *	clock		may not read the processor's clock any more
 *	personality	has one of its own
 *	cpuid		may not ask what the processor is any more
 *	domain		its first thread is in a domain of Landlock, and so are the others
 *	net		goes into a network namespace of its own, and stays there
 *	gives-up	the same, and gives up all capabilities then
 *	user		a child of it goes into a user namespace of its own, and a network namespace there, and gives up
 *			all capabilities then
 *	seal		seals memory
 *	withhold	has memory that forks do not get
 *	queue, posix	makes a message queue of System V, or of POSIX
 *	name		sets the host name
 *	ipc		the whole process goes to an ipc namespace of its own, and makes a queue there
 *	empty		the same, and makes none
 *	root		has the directory of its descriptor 5 as its root
 *	flash		mounts something on /own, and unmounts it as soon as it has a frozen copy, and is not held any more
 *	mounts-then	mounts something on /own then
 *	leaves-then	goes into a user namespace of its own then
 *	link		has a file of a mount that is in no namespace mapped, whose path leads to the same file, and
 *			puts another one there
 */
#include <asm/prctl.h>
#include <errno.h>
#include <fcntl.h>
#include <linux/capability.h>
#include <linux/filter.h>
#include <linux/mount.h>
#include <linux/seccomp.h>
#include <pthread.h>
#include <sched.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/mount.h>
#include <sys/msg.h>
#include <sys/personality.h>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#ifndef SYS_mseal
#define SYS_mseal 462
#endif

static const char *kind;
static int never[2];
static volatile int result = -1; /* errno, or 0, when it has done so */

static void put(const char *path, const char *text)
{
	int fd = open(path, O_WRONLY | O_CREAT | O_TRUNC, 0666);

	if (fd >= 0 && write(fd, text, strlen(text)) < 0)
		_exit(3);
	close(fd);
}

static int load_filter(void)
{
	struct sock_filter allow = BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW);
	const struct sock_fprog prog = {1, &allow};

	prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0);
	return prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &prog);
}

static int give_up(void)
{
	struct __user_cap_header_struct head = {.version = _LINUX_CAPABILITY_VERSION_3};
	const struct __user_cap_data_struct none[2] = {0};

	for (unsigned cap = 0; prctl(PR_CAPBSET_READ, cap, 0, 0, 0) >= 0; cap++)
		if (prctl(PR_CAPBSET_DROP, cap, 0, 0, 0) < 0)
			return -1;
	return (int)syscall(SYS_capset, &head, none);
}

static int seal(void)
{
	void *p = mmap(NULL, 4096, PROT_READ, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);

	return (int)syscall(SYS_mseal, p, 4096, 0);
}

/* Its name stays, and a descriptor of it would be refused by itself. */
static int make_posix_queue(void)
{
	int fd = (int)syscall(SYS_mq_open, "queue", O_RDONLY | O_CREAT, 0600, NULL);

	return fd < 0 ? fd : close(fd);
}

/* Of the mount the kernel has it as /f/x. */
static int map_detached(void)
{
	if (mkdir("/a", 0755) < 0 || mkdir("/a/f", 0755) < 0 || mkdir("/f", 0755) < 0)
		return -1;
	put("/a/f/x", "mapped");
	put("/f/other", "another");
	int tree = (int)syscall(SYS_open_tree, AT_FDCWD, "/a", OPEN_TREE_CLONE);
	int fd = link("/a/f/x", "/f/x") < 0 ? -1 : openat(tree, "f/x", O_RDONLY);
	void *at = mmap(NULL, 4096, PROT_READ, MAP_PRIVATE, fd, 0);

	close(fd);
	close(tree);
	return at == MAP_FAILED ? -1 : 0;
}

/* Nothing is forbidden that it does. */
static int enter_domain(void)
{
	const struct {
		uint64_t handled;
	} executes = {1};
	int fd = (int)syscall(SYS_landlock_create_ruleset, &executes, sizeof(executes), 0);

	return fd < 0 ? fd : (int)syscall(SYS_landlock_restrict_self, fd, 0) < 0 ? -1 : close(fd);
}

static int withhold(void)
{
	void *p = mmap(NULL, 4096, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);

	return madvise(p, 4096, MADV_DONTFORK);
}

static int act(void)
{
	if (strcmp(kind, "filter") == 0)
		return load_filter();
	if (strcmp(kind, "strict") == 0)
		return prctl(PR_SET_SECCOMP, SECCOMP_MODE_STRICT);
	if (strcmp(kind, "clock") == 0)
		return prctl(PR_SET_TSC, PR_TSC_SIGSEGV);
	if (strcmp(kind, "personality") == 0)
		return personality(ADDR_NO_RANDOMIZE);
	if (strcmp(kind, "cpuid") == 0)
		return (int)syscall(SYS_arch_prctl, ARCH_SET_CPUID, 0);
	if (strcmp(kind, "net") == 0)
		return unshare(CLONE_NEWNET);
	if (strcmp(kind, "gives-up") == 0)
		return unshare(CLONE_NEWNET) < 0 ? -1 : give_up();
	if (strcmp(kind, "seal") == 0)
		return seal();
	if (strcmp(kind, "withhold") == 0)
		return withhold();
	if (strcmp(kind, "queue") == 0)
		return msgget(7, IPC_CREAT | 0600);
	if (strcmp(kind, "posix") == 0)
		return make_posix_queue();
	if (strcmp(kind, "name") == 0)
		return sethostname("changed", 7);
	if (strcmp(kind, "ipc") == 0)
		return unshare(CLONE_NEWIPC) < 0 ? -1 : msgget(7, IPC_CREAT | 0600);
	if (strcmp(kind, "empty") == 0)
		return unshare(CLONE_NEWIPC);
	if (strcmp(kind, "root") == 0)
		return fchdir(5) < 0 ? -1 : chroot(".");
	if (strcmp(kind, "link") == 0)
		return rename("/f/other", "/f/x");
	return 0;
}

static bool is_any_of(const char *const *kinds)
{
	for (; *kinds; kinds++)
		if (strcmp(kind, *kinds) == 0)
			return true;
	return false;
}

static const char *const then[] = {"flash", "mounts-then", "leaves-then", NULL};

static bool is_alone(void)
{
	static const char *const alone[] = {"ipc", "empty", "user", NULL};

	return is_any_of(alone) || is_any_of(then);
}

/* A child that nobody here has made. */
static bool has_twin(void)
{
	char path[64], c;

	snprintf(path, sizeof(path), "/proc/self/task/%d/children", getpid());
	int fd = open(path, O_RDONLY);
	const bool has = fd >= 0 && read(fd, &c, 1) == 1;
	close(fd);
	return has;
}

static int act_then(void)
{
	if (strcmp(kind, "flash") == 0)
		return umount("/own");
	if (strcmp(kind, "mounts-then") == 0)
		return mount("own", "/own", "tmpfs", 0, NULL);
	return unshare(CLONE_NEWUSER);
}

static void count_to(unsigned n)
{
	char text[16];

	snprintf(text, sizeof(text), "%u\n", n);
	put("/n", text);
}

static void wait_and_act(bool late)
{
	const bool first = strcmp(kind, "flash") == 0;

	count_to(1);
	while (late && access("/go", F_OK) < 0)
		usleep(5000);
	if (first && mount("own", "/own", "tmpfs", 0, NULL) < 0)
		put("/err", strerror(errno));
	put(first ? "/done" : "/ready", "");
	for (unsigned n = 1; !has_twin(); n++)
		if (n % 1000 == 0)
			count_to(n / 1000);
	if (act_then() < 0)
		put("/err", strerror(errno));
	result = 0;
}

static _Noreturn void go_away(bool late)
{
	while (late && access("/go", F_OK) < 0)
		usleep(5000);
	if (unshare(CLONE_NEWUSER | CLONE_NEWNET) < 0 || give_up() < 0)
		put("/err", strerror(errno));
	put("/done", "");
	for (;;)
		pause();
}

/* In strict mode nothing else is left to it than to read, and to write. */
static void *work(void *late)
{
	char c;

	while (late && access("/go", F_OK) < 0)
		usleep(5000);
	result = act() < 0 ? errno : 0;
	(void)!read(never[0], &c, 1);
	return NULL;
}

int main(int argc, char **argv)
{
	pthread_t t;

	kind = argc > 1 ? argv[1] : "none";
	if (strcmp(kind, "link") == 0 && map_detached() < 0)
		return 1;
	if (strcmp(kind, "domain") == 0 && enter_domain() < 0)
		put("/err", strerror(errno));
	const bool late = argc > 2, child = strcmp(kind, "user") == 0;
	if (child && fork() == 0)
		go_away(late);
	if (is_any_of(then))
		wait_and_act(late);
	if (pipe(never) < 0 ||
	    (!is_alone() && pthread_create(&t, NULL, work, late ? argv[2] : NULL) != 0))
		return 1;
	for (unsigned n = 1;; n++) {
		if (is_alone() && !child && result < 0 && (!late || access("/go", F_OK) == 0))
			result = act() < 0 ? errno : 0;
		if (result > 0)
			put("/err", strerror(result));
		if (result >= 0)
			put("/done", "");
		count_to(n);
		usleep(5000);
	}
}
