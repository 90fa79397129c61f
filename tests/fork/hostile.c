/* SPDX-License-Identifier: Apache-2.0 */
/*
 * hostile VERB [ARGUMENT...]: programs that mean harm to whoever makes a seed of them, or continues
 * it. Each tells in /n how often it went round; static, for a container with nothing else in it.
 *
 *	reads FILE	has it open, and writes what it says now to /out
 *	stays DIR	is there, and writes to /out where the kernel says that it is
 *	jailed DIR [FILE]
 *			has that as its root, and a file open
 *	detached WHAT	has a child with a tmpfs that is in no mount namespace: as its root or cwd, with
 *			the directory or a file of it open, or mapped; bind: a bind of "/" is its root;
 *			deleted: its root and cwd are a directory that is gone; self: the first process
 *			has the tmpfs as its root; program: it executes a memfd; moved: its root and
 *			cwd are /s/d, which is moved from /v/sub/d to /v/d, and a file of it is open,
 *			and mapped
 *	code		a thread overwrites what somebody puts at the end of its vDSO by a call that
 *			its filter refuses, and says in /fought that it does
 *	fifo		has a named pipe open whose name is that of shared memory
 *	flight		has sent itself a descriptor
 *	many N		has that many sockets open
 *	shares N M	has N children that have its table of descriptors, with M of them
 *	moves		has a child whose group gets the signals of a pipe, and that leaves its group
 *			and comes back, all the time
 *	forks		has a child for an instant, again and again, and waits for that one alone
 *	asks DIR	watches it, asks to be asked before anything there is opened (fanotify(7)), and
 *			answers nobody
 *	asked DIR	the same by a child; the first process gives up the right to do that
 *	serves		has a root directory, and a file open, that it serves itself (FUSE), and does
 *			not answer any more
 *	served HOW	the same, where the descriptor by which it serves is not in its table: waits (in a
 *			socket), thread (in the table of a thread), long (of a path that is longer than
 *			the kernel tells)
 *	prints WHERE	has as its standard output, to which it writes all the time: memory, of its own; or
 *			unmounted, a file of a tmpfs that it unmounts lazily; and the same as standard error
 *	leaderless	its first thread ends, and another one goes on
 *	executes	has a child that executes a program which never begins: it traces one of the child's
 *			threads, and does not let that end
 *	leaves		executes another program as soon as it has been forked by somebody else, and
 *			leaves its memory to a child
 */
#include <elf.h>
#include <errno.h>
#include <fcntl.h>
#include <linux/capability.h>
#include <linux/fuse.h>
#include <pthread.h>
#include <sched.h>
#include <signal.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/auxv.h>
#include <sys/fanotify.h>
#include <sys/inotify.h>
#include <sys/mman.h>
#include <sys/mount.h>
#include <sys/prctl.h>
#include <sys/ptrace.h>
#include <sys/sendfile.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/sysmacros.h>
#include <sys/wait.h>
#include <unistd.h>

static void put(const char *path, const char *text)
{
	int fd = open(path, O_WRONLY | O_CREAT | O_TRUNC, 0666);

	if (fd >= 0 && write(fd, text, strlen(text)) < 0)
		_exit(3);
	close(fd);
}

static void round_went(void)
{
	static unsigned n;
	char text[16];

	snprintf(text, sizeof(text), "%u\n", ++n);
	put("/n", text);
	usleep(10000);
}

_Noreturn static void reads(const char *path)
{
	int fd = open(path, O_RDONLY);
	char text[129];

	for (;;) {
		ssize_t n = fd < 0 ? -1 : pread(fd, text, sizeof(text) - 1, 0);
		text[n > 0 ? n : 0] = 0;
		put("/out", text);
		round_went();
	}
}

static int stays(const char *path)
{
	char text[4096];

	if (chdir(path) < 0)
		return 1;
	for (;;) {
		ssize_t n = readlink("/proc/self/cwd", text, sizeof(text) - 1);
		text[n > 0 ? n : 0] = 0;
		put("/out", text);
		round_went();
	}
}

static int jailed(const char *path, const char *file)
{
	if (file && open(file, O_RDONLY) < 0)
		return 1;
	if (chroot(path) < 0 || chdir("/") < 0)
		return 1;
	for (;;)
		round_went();
}

/* ---- detached -------------------------------------------------------------------------------- */

static bool is_in_deleted(void)
{
	return mkdir("/j", 0755) == 0 && chdir("/j") == 0 && rmdir("/j") == 0 && chroot(".") == 0;
}

/* /s is a bind of /v/sub. */
static bool is_moved_out(void)
{
	if (chdir("/s/d") < 0 || open("f", O_RDONLY) < 0 || rename("/v/sub/d", "/v/d") < 0)
		return false;
	return mmap(NULL, 4096, PROT_READ, MAP_SHARED, open("f", O_RDONLY), 0) != MAP_FAILED &&
	       chroot(".") == 0;
}

/* bind: it is the container's root, without what is mounted below that. */
static bool mount_it(const char *what)
{
	if (mkdir("/j", 0755) < 0)
		return false;
	return (strcmp(what, "bind") == 0 ? mount("/", "/j", NULL, MS_BIND, NULL)
					  : mount("t", "/j", "tmpfs", 0, NULL)) == 0;
}

/* It is the root, the working directory, or neither. */
static bool go_there(const char *what, int dir)
{
	if (fchdir(dir) < 0 || umount2("/j", MNT_DETACH) < 0)
		return false;
	for (const char *const *k = (const char *const[]){"root", "self", "bind", NULL}; *k; k++)
		if (strcmp(what, *k) == 0)
			return chroot(".") == 0;
	return strcmp(what, "cwd") == 0 || chdir("/") == 0;
}

static bool has_detached(const char *what)
{
	if (!mount_it(what))
		return false;
	int fd = open("/j/secret", O_RDWR | O_CREAT, 0600);
	int dir = open("/j", O_RDONLY | O_DIRECTORY);
	if (ftruncate(fd, 4096) < 0 || !go_there(what, dir))
		return false;
	if (strcmp(what, "mapped") == 0 &&
	    mmap(NULL, 4096, PROT_READ, MAP_SHARED, fd, 0) == MAP_FAILED)
		return false;
	if (strcmp(what, "file") != 0)
		close(fd);
	if (strcmp(what, "directory") != 0)
		close(dir);
	return true;
}

/* As a program that is nowhere but in memory. */
static bool is_program_of_memory(int ready)
{
	char name[] = "hostile", verb[] = "says", number[12];
	char *words[] = {name, verb, number, NULL}, *none[] = {NULL};
	int from = open("/bin/hostile", O_RDONLY), to = memfd_create("program", MFD_CLOEXEC);
	struct stat st;

	if (fstat(from, &st) < 0 || sendfile(to, from, NULL, (size_t)st.st_size) != st.st_size)
		return false;
	snprintf(number, sizeof(number), "%d", ready);
	close(from);
	return fexecve(to, words, none) == 0;
}

static int says(int ready)
{
	if (write(ready, "", 1) != 1)
		return 1;
	for (int fd = 0; fd < 20; fd++)
		close(fd);
	for (;;)
		pause();
}

static int detached(const char *what)
{
	int ready[2];
	char byte;

	if (strcmp(what, "self") == 0)
		for (bool is = has_detached(what);; usleep(10000))
			if (!is)
				return 1;
	if (pipe(ready) < 0)
		return 1;
	if (fork() == 0) {
		const bool is = strcmp(what, "program") == 0   ? is_program_of_memory(ready[1])
				: strcmp(what, "deleted") == 0 ? is_in_deleted()
				: strcmp(what, "moved") == 0   ? is_moved_out()
							       : has_detached(what);
		if (!is || write(ready[1], "", 1) != 1)
			_exit(1);
		close(ready[0]);
		close(ready[1]);
		for (;;)
			pause();
	}
	close(ready[1]);
	if (read(ready[0], &byte, 1) != 1)
		return 1;
	close(ready[0]);
	for (;;)
		round_went();
}

/* ---- code ------------------------------------------------------------------------------------ */

/* mkdir("/broken", 0777), and no more. */
static const unsigned char shell[] = {
	0x48, 0x8d, 0x3d, 0x15, 0,   0,   0, /* lea path(%rip), %rdi */
	0xbe, 0xff, 0x01, 0,    0,           /* mov $0777, %esi */
	0xb8, 83,   0,    0,    0,           /* mov $SYS_mkdir, %eax */
	0x0f, 0x05,                          /* syscall */
	0x90, 0x90, 0x90, 0x90,              /* nop */
	0xf3, 0x90,                          /* pause */
	0xeb, 0xfc,                          /* jmp to it */
	0x90,                                /* nop */
	'/',  'b',  'r',  'o',  'k', 'e', 'n', 0,
};

/* Where nothing of the vDSO is any more, by its own tables. */
static unsigned char *end_of_vdso(void)
{
	unsigned char *vdso = (unsigned char *)getauxval(AT_SYSINFO_EHDR);
	const Elf64_Ehdr *h = (const void *)vdso;
	const Elf64_Phdr *p = (const void *)(vdso + h->e_phoff);
	size_t end = h->e_shoff + (size_t)h->e_shnum * h->e_shentsize;

	for (unsigned i = 0; i < h->e_phnum; i++)
		if (p[i].p_offset + p[i].p_filesz > end)
			end = p[i].p_offset + p[i].p_filesz;
	return vdso + ((end + 15) & ~(size_t)15);
}

/* By a file, as the kernel may have sealed the vDSO. */
_Noreturn static void *fight(void *arg)
{
	const volatile unsigned char *at = arg;
	int mem = open("/proc/self/mem", O_RDWR);
	unsigned seen = 0;

	for (;;) {
		if (!*at || *at == shell[0])
			continue;
		if (pwrite(mem, shell, sizeof(shell), (off_t)(size_t)at) < 0)
			_exit(3);
		if (!seen++)
			put("/fought", "");
	}
}

static int code(void)
{
	pthread_t t;

	if (pthread_create(&t, NULL, fight, end_of_vdso()) != 0)
		return 1;
	for (;;)
		round_went();
}

/* ---- descriptors ----------------------------------------------------------------------------- */

static int fifo(void)
{
	if (mkfifo("/memfd:", 0666) < 0 || open("/memfd:", O_RDONLY | O_NONBLOCK) < 0)
		return 1;
	for (;;)
		round_went();
}

/* A descriptor in a message that nobody has read. */
static int send_fd(int by, int fd)
{
	char byte = 0;
	struct iovec iov = {&byte, 1};
	union {
		struct cmsghdr h;
		char room[CMSG_SPACE(sizeof(int))];
	} control = {.h = {.cmsg_len = CMSG_LEN(sizeof(int)),
			   .cmsg_level = SOL_SOCKET,
			   .cmsg_type = SCM_RIGHTS}};
	struct msghdr m = {.msg_iov = &iov,
			   .msg_iovlen = 1,
			   .msg_control = &control,
			   .msg_controllen = sizeof(control.room)};

	memcpy(CMSG_DATA(&control.h), &fd, sizeof(int));
	return sendmsg(by, &m, 0) == 1 ? 0 : -1;
}

static int flight(void)
{
	int pair[2];

	if (socketpair(AF_UNIX, SOCK_STREAM, 0, pair) < 0 || send_fd(pair[1], pair[0]) < 0)
		return 1;
	for (;;)
		round_went();
}

static int many(unsigned n)
{
	for (unsigned i = 0; i < n; i++)
		if (socket(AF_INET, SOCK_DGRAM, 0) < 0)
			return 1;
	for (;;)
		round_went();
}

static int forks(void)
{
	for (;;) {
		pid_t pid = fork();
		if (!pid) {
			usleep(4000);
			_exit(0);
		}
		waitpid(pid, NULL, 0);
		round_went();
	}
}

static int asks(const char *path)
{
	int watch = inotify_init1(IN_CLOEXEC);
	int fd = fanotify_init(FAN_CLASS_CONTENT | FAN_CLOEXEC, O_RDONLY);

	if (fd < 0 || inotify_add_watch(watch, path, IN_CREATE) < 0 ||
	    fanotify_mark(fd, FAN_MARK_ADD | FAN_MARK_FILESYSTEM, FAN_OPEN_PERM | FAN_ONDIR,
			  AT_FDCWD, path) < 0)
		return 1;
	for (;;)
		round_went();
}

static int asked(const char *path)
{
	int ready[2];
	char byte;

	if (pipe(ready) < 0)
		return 1;
	pid_t pid = fork();
	if (pid == 0) {
		close(ready[0]);
		int fd = fanotify_init(FAN_CLASS_CONTENT | FAN_CLOEXEC, O_RDONLY);
		if (fd < 0 ||
		    fanotify_mark(fd, FAN_MARK_ADD | FAN_MARK_FILESYSTEM, FAN_OPEN_PERM | FAN_ONDIR,
				  AT_FDCWD, path) < 0 ||
		    write(ready[1], "", 1) != 1)
			_exit(1);
		close(ready[1]);
		for (;;)
			pause();
	}
	close(ready[1]);
	if (pid < 0 || read(ready[0], &byte, 1) != 1 ||
	    prctl(PR_CAPBSET_DROP, CAP_SYS_ADMIN, 0, 0, 0) < 0)
		return 1;
	close(ready[0]);
	for (;;)
		round_went();
}

/* ---- FUSE ------------------------------------------------------------------------------------ */

static void answer_fuse(int fd, uint64_t unique, int error, const void *body, size_t n)
{
	char bytes[512];
	struct fuse_out_header h = {
		.len = (uint32_t)(sizeof(h) + n), .error = error, .unique = unique};

	memcpy(bytes, &h, sizeof(h));
	if (n)
		memcpy(bytes + sizeof(h), body, n);
	if (write(fd, bytes, h.len) < 0)
		_exit(4);
}

/* Whatever name is looked up is an empty file, whose attributes are good for no time at all. The end is
 * when one was open, and a descriptor of it was closed. */
_Noreturn static void *serve_fuse(void *arg)
{
	static char in[1 << 17];
	const int fd = *(int *)arg;
	const struct fuse_init_out init = {
		.major = FUSE_KERNEL_VERSION, .minor = 31, .max_write = 4096};
	const struct fuse_entry_out entry = {.nodeid = 2,
					     .attr = {.ino = 2, .mode = 0100644, .nlink = 1}};
	const struct fuse_open_out open_out = {.fh = 1};

	for (;;) {
		const struct fuse_in_header *h = (void *)in;
		if (read(fd, in, sizeof(in)) < (ssize_t)sizeof(*h))
			continue;
		const struct fuse_attr_out attr = {
			.attr = {.ino = h->nodeid,
				 .mode = h->nodeid == 1 ? 040755 : 0100644,
				 .nlink = 1}};
		switch (h->opcode) {
		case FUSE_INIT:
			answer_fuse(fd, h->unique, 0, &init, sizeof(init));
			break;
		case FUSE_LOOKUP:
			answer_fuse(fd, h->unique, 0, &entry, sizeof(entry));
			break;
		case FUSE_GETATTR:
			answer_fuse(fd, h->unique, 0, &attr, sizeof(attr));
			break;
		case FUSE_OPEN:
			answer_fuse(fd, h->unique, 0, &open_out, sizeof(open_out));
			break;
		case FUSE_FLUSH:
			answer_fuse(fd, h->unique, -ENOSYS, NULL, 0);
			for (;;)
				pause();
		default:
			answer_fuse(fd, h->unique, -ENOSYS, NULL, 0);
		}
	}
}

static volatile bool is_hidden;

_Noreturn static void *stays_outside(void *arg)
{
	(void)arg;
	if (unshare(CLONE_FS) < 0)
		_exit(4);
	put("/outside", "");
	while (!is_hidden)
		usleep(1000);
	for (;;)
		round_went();
}

/* By one in a directory that is deeper than any path. */
static int open_deep(void)
{
	static const char name[] =
		"a-directory-with-a-name-that-is-quite-long-so-that-few-of-them-do";

	if (mkdir("/deep", 0777) < 0 || chdir("/deep") < 0)
		return -1;
	for (int i = 0; i < 80; i++)
		if (mkdir(name, 0777) < 0 || chdir(name) < 0)
			return -1;
	if (mknod("fuse", S_IFCHR | 0666, makedev(10, 229)) < 0)
		return -1;
	const int fd = open("fuse", O_RDWR);
	return chdir("/") < 0 ? -1 : fd;
}

static pthread_mutex_t has_own = PTHREAD_MUTEX_INITIALIZER;

_Noreturn static void *keeps_own_table(void *arg)
{
	(void)arg;
	if (unshare(CLONE_FILES) < 0)
		_exit(5);
	pthread_mutex_unlock(&has_own);
	for (;;)
		pause();
}

/* So that nobody who looks at our table sees it. */
static int hide(const char *how, int fd)
{
	int pair[2];
	pthread_t t;

	if (strcmp(how, "waits") == 0)
		return socketpair(AF_UNIX, SOCK_STREAM, 0, pair) < 0 || send_fd(pair[1], fd) < 0 ||
				       close(fd) < 0
			       ? -1
			       : 0;
	if (strcmp(how, "thread") != 0)
		return 0;
	pthread_mutex_lock(&has_own);
	if (pthread_create(&t, NULL, keeps_own_table, NULL) != 0)
		return -1;
	pthread_mutex_lock(&has_own);
	return close(fd);
}

/* The server's descriptor comes behind the file's, so that this is looked at first. */
static int serves(const char *how)
{
	char options[64];
	pthread_t t, outside;
	int first = dup(0), fd = strcmp(how, "long") == 0 ? open_deep() : open("/dev/fuse", O_RDWR);

	snprintf(options, sizeof(options), "fd=%d,rootmode=40000,user_id=0,group_id=0", fd);
	if (fd < 0 || mount("fuse", "/mnt", "fuse", 0, options) < 0 ||
	    pthread_create(&t, NULL, serve_fuse, &fd) != 0)
		return 1;
	if (pthread_create(&outside, NULL, stays_outside, NULL) != 0)
		return 1;
	while (access("/outside", F_OK) < 0)
		usleep(1000);
	close(first);
	/* To close it a first time tells the kernel not to ask at the end, when nobody could answer. */
	if (chroot("/mnt") < 0 || open("/file", O_RDONLY) != first || close(dup(first)) < 0 ||
	    hide(how, fd) < 0)
		_exit(1);
	is_hidden = true;
	for (;;)
		pause();
}

_Noreturn static void *goes_on(void *arg)
{
	(void)arg;
	for (;;)
		round_went();
}

static int leaderless(void)
{
	pthread_t t;

	if (pthread_create(&t, NULL, goes_on, NULL) != 0)
		return 1;
	pthread_exit(NULL);
}

/* Of children that it has not made, one is there after it was held. */
static bool has_child(void)
{
	char path[64], text[16];

	snprintf(path, sizeof(path), "/proc/self/task/%d/children", getpid());
	int fd = open(path, O_RDONLY | O_CLOEXEC);
	ssize_t n = fd < 0 ? -1 : read(fd, text, sizeof(text));
	close(fd);
	return n > 0;
}

_Noreturn static int keeps_memory(void *arg)
{
	(void)arg;
	for (;;)
		pause();
}

static int leaves(void)
{
	static char stack[65536];

	while (!has_child())
		round_went();
	if (clone(keeps_memory, stack + sizeof(stack), CLONE_VM | SIGCHLD, NULL) < 0)
		return 1;
	put("/left", "");
	execl("/bin/hostile", "hostile", "stays", "/", NULL);
	return 1;
}

static void *tells_its_number(void *arg)
{
	const pid_t tid = gettid();

	if (write(*(int *)arg, &tid, sizeof(tid)) != sizeof(tid))
		_exit(1);
	for (;;)
		pause();
}

_Noreturn static void executes_once(int told, int *tell)
{
	pthread_t t;
	char go;

	if (pthread_create(&t, NULL, tells_its_number, tell) == 0 && read(told, &go, 1) == 1)
		execl("/bin/hostile", "hostile", "stays", "/", NULL);
	_exit(1);
}

static int executes(void)
{
	int number[2], go[2];
	pid_t thread;

	if (pipe(number) < 0 || pipe(go) < 0)
		return 1;
	const pid_t child = fork();
	if (child == 0)
		executes_once(go[0], &number[1]);
	if (child < 0 || read(number[0], &thread, sizeof(thread)) != sizeof(thread) ||
	    ptrace(PTRACE_SEIZE, thread, 0, 0) < 0 || write(go[1], "", 1) != 1)
		return 1;
	/* Until that thread is killed, but for us. */
	siginfo_t info;
	if (waitid(P_PID, (id_t)thread, &info, WEXITED | WNOWAIT | __WALL) < 0)
		return 1;
	for (;;)
		round_went();
}

static int shares(unsigned children, unsigned descriptors)
{
	for (unsigned i = 0; i < descriptors; i++)
		if (dup(0) < 0)
			return 1;
	for (unsigned i = 0; i < children; i++) {
		const long r = syscall(SYS_clone, CLONE_FILES | SIGCHLD, NULL, NULL, NULL, NULL);
		if (r == 0)
			for (;;)
				pause();
		if (r < 0)
			return 1;
	}
	for (;;)
		round_went();
}

static int open_unmounted(void)
{
	if ((mkdir("/t", 0777) < 0 && errno != EEXIST) || mount("t", "/t", "tmpfs", 0, NULL) < 0)
		return -1;
	const int fd = open("/t/f", O_RDWR | O_CREAT, 0600);
	return umount2("/t", MNT_DETACH) < 0 ? -1 : fd;
}

static int prints(const char *where)
{
	const int fd =
		strcmp(where, "memory") == 0 ? memfd_create("own", MFD_CLOEXEC) : open_unmounted();

	if (fd < 0 || dup2(fd, 1) < 0 || dup2(fd, 2) < 0)
		return 1;
	for (;;) {
		if (write(1, "secret\n", 7) != 7 || write(2, "secret\n", 7) != 7)
			return 1;
		round_went();
	}
}

static int moves(void)
{
	int ends[2];

	if (pipe(ends) < 0)
		return 1;
	const pid_t child = fork();
	if (child == 0) {
		if (setpgid(0, 0) < 0 || fcntl(ends[0], F_SETOWN, -getpid()) < 0)
			_exit(1);
		for (;;) {
			(void)setpgid(0, getppid());
			(void)setpgid(0, 0);
		}
	}
	for (;;) {
		round_went();
		usleep(10000);
	}
}

int main(int argc, char **argv)
{
	const char *verb = argc > 1 ? argv[1] : "", *arg = argc > 2 ? argv[2] : "";

	if (strcmp(verb, "reads") == 0)
		reads(arg);
	if (strcmp(verb, "stays") == 0)
		return stays(arg);
	if (strcmp(verb, "jailed") == 0)
		return jailed(arg, argc > 3 ? argv[3] : NULL);
	if (strcmp(verb, "detached") == 0)
		return detached(arg);
	if (strcmp(verb, "says") == 0)
		return says(atoi(arg));
	if (strcmp(verb, "code") == 0)
		return code();
	if (strcmp(verb, "fifo") == 0)
		return fifo();
	if (strcmp(verb, "flight") == 0)
		return flight();
	if (strcmp(verb, "forks") == 0)
		return forks();
	if (strcmp(verb, "asks") == 0)
		return asks(arg);
	if (strcmp(verb, "asked") == 0)
		return asked(arg);
	if (strcmp(verb, "serves") == 0)
		return serves("");
	if (strcmp(verb, "served") == 0)
		return serves(arg);
	if (strcmp(verb, "leaderless") == 0)
		return leaderless();
	if (strcmp(verb, "leaves") == 0)
		return leaves();
	if (strcmp(verb, "executes") == 0)
		return executes();
	if (strcmp(verb, "shares") == 0)
		return shares((unsigned)atoi(arg), argc > 3 ? (unsigned)atoi(argv[3]) : 0);
	if (strcmp(verb, "prints") == 0)
		return prints(arg);
	if (strcmp(verb, "moves") == 0)
		return moves();
	if (strcmp(verb, "many") == 0)
		return many((unsigned)atoi(arg));
	return 2;
}
