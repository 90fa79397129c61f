/* SPDX-License-Identifier: Apache-2.0 */
/* capture: descriptors: what each one is, and which are one open file. */
#define LR_ROOM "capture"
#include "src/capture/files.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/sysmacros.h>
#include <unistd.h>

#include "src/base/fd.h"
#include "src/base/str.h"
#include "src/capture/state.h"
#include "src/capture/watches.h"
#include "src/sys/path.h"
#include "src/sys/proc.h"
#include "src/sys/syscalls.h"
#include "src/sys/terminal.h"

#ifndef KCMP_FILE
#define KCMP_FILE 0
#endif

/* What is being looked at. */
struct found {
	struct cap *c;
	const struct cap_process *p;
	int fd;
	const char *link, *info;
	struct stat st;
	struct cap_file *f;
};

static struct cap_file *file_of(const struct lr_treap_node *n)
{
	return (struct cap_file *)((uintptr_t)n - offsetof(struct cap_file, order));
}

int cap_borrow(pid_t pid, int fd)
{
	LR_CLEANUP_FD int pidfd = lr_pidfd_open(pid, 0);

	return pidfd < 0 ? pidfd : lr_pidfd_getfd(pidfd, fd);
}

/* The number behind "name:" of fdinfo. */
static unsigned long long info(const struct found *x, const char *name, int base)
{
	const char *at = strstr(x->info, name);

	return at ? strtoull(at + strlen(name) + strspn(at + strlen(name), " \t"), NULL, base) : 0;
}

static void refuse(const struct found *x, const char *why)
{
	cap_refuse(x->c, x->p, "descriptor %d: %s (%s)", x->fd, why, x->link);
}

/* ---- one kind each --------------------------------------------------------------------------- */

static void look_eventfd(struct found *x)
{
	x->f->seed.kind = LR_SEED_EVENTFD;
	x->f->seed.args[0] = info(x, "eventfd-count:", 16);
	x->f->seed.args[1] = info(x, "eventfd-semaphore:", 10);
}

/* "it_value: (seconds, nanoseconds)" */
static uint64_t pair(const struct found *x, const char *name)
{
	const char *at = strstr(x->info, name);
	unsigned long long s, ns;

	return at && sscanf(at + strlen(name), " (%llu, %llu)", &s, &ns) == 2 ? s * 1000000000 + ns
									      : 0;
}

static void look_timerfd(struct found *x)
{
	x->f->seed.kind = LR_SEED_TIMERFD;
	x->f->seed.args[0] = info(x, "clockid:", 10);
	x->f->seed.args[1] = info(x, "ticks:", 10);
	x->f->seed.args[2] = info(x, "settime flags:", 8);
	x->f->seed.args[3] = pair(x, "it_value:");
	x->f->seed.args[4] = pair(x, "it_interval:");
}

static void look_signalfd(struct found *x)
{
	x->f->seed.kind = LR_SEED_SIGNALFD;
	x->f->seed.args[0] = info(x, "sigmask:", 16);
}

/* "tfd: 5 events: 19 data: 5  pos:0 ino:61af sdev:7", a line each */
static void look_epoll(struct found *x)
{
	x->f->seed.kind = LR_SEED_EPOLL;
	for (const char *at = x->info; (at = strstr(at, "tfd:")); at++) {
		unsigned fd, events;
		unsigned long long data, inode;
		long long pos;
		if (sscanf(at, "tfd: %u events: %x data: %llx pos:%lli ino:%llx", &fd, &events,
			   &data, &pos, &inode) != 5) {
			refuse(x, "an epoll whose watches this program can't read");
			return;
		}
		struct cap_watch *v = lr_grow(x->c->a, x->f->watches, x->f->n_watches, sizeof(*v));
		if (!v)
			return;
		x->f->watches = v;
		v[x->f->n_watches++] = (struct cap_watch){fd, events, data, inode, x->p->pid, NULL};
	}
}

static void look_pidfd(struct found *x)
{
	x->f->seed.kind = LR_SEED_PIDFD;
	x->f->target = (pid_t)info(x, "Pid:", 10);
	if (x->f->seed.flags & O_EXCL) /* PIDFD_THREAD, Linux 6.9 */
		refuse(x, "a pidfd of a thread");
}

static void look_inotify(struct found *x)
{
	cap_watches_look(x->c, x->p, x->fd, x->info, x->f);
}

static const struct {
	const char *link;
	void (*look)(struct found *x);
} anonymous[] = {
	{"anon_inode:[eventfd]", look_eventfd},   {"anon_inode:[timerfd]", look_timerfd},
	{"anon_inode:[signalfd]", look_signalfd}, {"anon_inode:[eventpoll]", look_epoll},
	{"anon_inode:inotify", look_inotify},     {"anon_inode:[pidfd]", look_pidfd},
};

static void look_socket(struct found *x)
{
	LR_CLEANUP_FD int fd = cap_borrow(x->p->pid, x->fd);
	int domain = 0, type = 0, listens = 0;
	socklen_t len = sizeof(int);

	if (fd < 0 || getsockopt(fd, SOL_SOCKET, SO_DOMAIN, &domain, &len) < 0 ||
	    getsockopt(fd, SOL_SOCKET, SO_TYPE, &type, &len) < 0 ||
	    getsockopt(fd, SOL_SOCKET, SO_ACCEPTCONN, &listens, &len) < 0) {
		refuse(x, cap_socket_failed(x->c, fd < 0 ? -fd : errno));
		return;
	}
	if (domain != AF_UNIX || listens) {
		const char *why = cap_endpoint_look(x->c, x->f, fd);
		if (why)
			refuse(x, why);
		return;
	}
	x->f->seed.kind = LR_SEED_SOCKET;
	x->f->seed.args[1] = (uint64_t)type;
	struct cap_socket told = {0};
	int r = cap_socket_told(x->c, CAP_UNIX, x->st.st_ino, &told);
	/* Its network namespace may be another one, which is not asked. */
	if (r < 0 && r != -ENOENT) {
		refuse(x, cap_socket_failed(x->c, -r));
		return;
	}
	x->f->peer = told.peer;
	x->f->shut = told.shut;
	/* poll(2) says of it what it says of one whose other end is gone: that has to be told apart here. */
	if (told.unconnected && type != SOCK_DGRAM)
		refuse(x, "a Unix socket that neither listens nor is connected");
	/* A pair has no names, and both of its ends tell of who made it; those of a connection tell of two processes.
	 * Where the other end is gone, it goes along as an end of a pair. */
	else if (told.named && (told.peer || type == SOCK_DGRAM))
		refuse(x, "a Unix socket that was accepted, or has a name, and does not listen");
}

/* Its path is that of another file in the container's root, or of none. */
static bool leads_elsewhere(const struct found *x)
{
	return !cap_path_leads(x->c, x->link, &x->st, info(x, "mnt_id:", 10));
}

/* Of one whose name is deleted nobody knows whether it has others. Of a process that ends, nobody can tell whose it is,
 * too: it may be one of the standard three. */
static void refuse_path(const struct found *x)
{
	x->c->n_passing += !x->p->threads[0].held && lr_proc_dies(x->p->pid);
	refuse(x, lr_has_suffix(x->link, " (deleted)")
			  ? "a file whose name is deleted, and that may have another one"
			  : "a file that is in none of the container's mounts");
}

/* Slaves, what leads to one of them (/dev/tty), and masters. */
static bool is_terminal(dev_t device)
{
	return lr_terminal_is_slave(device) || device == makedev(5, 0) || device == makedev(5, 2);
}

static void look_device(struct found *x)
{
	/* null, zero, full, random, urandom: every container has them. */
	static const unsigned minors = 1U << 3 | 1U << 5 | 1U << 7 | 1U << 8 | 1U << 9;

	x->f->seed.kind = LR_SEED_REGULAR;
	if (!S_ISCHR(x->st.st_mode))
		refuse(x, "a device");
	else if (cap_terminal_is(x->c, x->p, x->fd, &x->st))
		x->f->seed.kind = LR_SEED_TERMINAL_FILE;
	else if (is_terminal(x->st.st_rdev))
		refuse(x, "a terminal that is not the container's own");
	else if (major(x->st.st_rdev) != 1 || !(minors & 1U << (minor(x->st.st_rdev) & 31)))
		refuse(x, "a device");
	else if (leads_elsewhere(x))
		refuse(x, "a device that its path does not lead to in the container");
}

/* What is memory in a child, which then has the mode and the owner that this has: so its processes may
 * open it again as they could. */
static void look_memory(struct found *x)
{
	uint32_t uid = x->st.st_uid, gid = x->st.st_gid;

	if (!cap_id_inside(x->c, &x->c->uids, &uid) || !cap_id_inside(x->c, &x->c->gids, &gid))
		refuse(x, "a file of somebody whom its user namespace does not know");
	x->f->seed.kind = LR_SEED_MEMFD_FILE;
	x->f->seed.args[0] = 1;
	x->f->seed.args[1] = x->st.st_mode & 0777;
	x->f->seed.args[2] = uid;
	x->f->seed.args[3] = gid;
}

static struct cap_inode *inode_of(const struct found *x)
{
	size_t i;

	return cap_index_find(&x->c->inode_of, x->st.st_dev, x->st.st_ino, &i) ? &x->c->inodes[i]
									       : NULL;
}

static void look_deleted(struct found *x)
{
	if (!S_ISREG(x->st.st_mode) || x->f->seed.flags & O_PATH) {
		refuse(x, "a file that is deleted, and no regular one");
		return;
	}
	if (cap_mount_may_wait(x->c, (unsigned)info(x, "mnt_id:", 10))) {
		refuse(x, "a file that is deleted, of FUSE or from outside");
		return;
	}
	/* Memory may have none of that, and would then get none of its flags. */
	x->f->seed.flags &= ~(uint32_t)O_DIRECT;
	struct cap_inode *inode = inode_of(x);
	if (!inode->deleted)
		x->c->deleted += (uint64_t)x->st.st_size;
	inode->deleted = true;
	x->f->deleted = true;
	x->f->size = (uint64_t)x->st.st_size;
	if (x->c->deleted > LR_CAPTURE_DELETED)
		refuse(x, "a file that is deleted, and larger than what is carried of those");
	look_memory(x);
}

/* The name it was opened by may be gone, and it have another. */
static void look_tmpfs(struct found *x)
{
	const char *path = cap_tmpfs_path(x->c, x->st.st_dev, x->st.st_ino);

	if (path && S_ISDIR(x->st.st_mode) && leads_elsewhere(x))
		refuse_path(x);
	else if (path)
		x->f->path = (char *)(uintptr_t)path;
	else if (S_ISREG(x->st.st_mode) && !(x->f->seed.flags & O_PATH))
		look_memory(x);
	else
		refuse(x, "a directory that is deleted");
}

/* Of a process, or a thread, that is not there yet when files are opened for a child (resume/files.c). */
static bool is_of_another(const struct found *x)
{
	const char *point = cap_mount_of_proc(x->c, (unsigned)info(x, "mnt_id:", 10));
	const char *root = point ? cap_root_path(x->c) : NULL;
	const char *path = root ? lr_path_below(x->link, root) : NULL;
	unsigned pid, tid;

	path = path ? lr_path_below(path, point) : NULL;
	const int n = path ? sscanf(path, "/%u/task/%u", &pid, &tid) : 0;
	return n > 0 && (pid != x->c->p->seed.pid || (n > 1 && tid != pid));
}

/* Such files are mostly open for an instant. */
static void refuse_of_another(const struct found *x)
{
	x->c->n_passing++;
	refuse(x, "a file of proc(5), of another process than the first, or of a thread");
}

static void look_path(struct found *x)
{
	const bool carried = cap_tmpfs_has(x->c, x->st.st_dev);

	x->f->seed.kind = LR_SEED_REGULAR;
	/* A file may be called as memory is. */
	if (lr_streq(x->link, CAP_SECRET))
		refuse(x, "secret memory");
	else if (x->st.st_dev == x->c->memory && S_ISREG(x->st.st_mode))
		look_memory(x);
	else if (!x->st.st_nlink && !carried)
		look_deleted(x);
	else if (S_ISFIFO(x->st.st_mode) || S_ISSOCK(x->st.st_mode))
		refuse(x, "a named pipe or socket");
	else if (lr_has_prefix(x->link, "/dmabuf:") && leads_elsewhere(x))
		refuse(x, "memory of a device (dma-buf)");
	else if (S_ISCHR(x->st.st_mode) || S_ISBLK(x->st.st_mode))
		look_device(x);
	else if (carried)
		look_tmpfs(x);
	else if (leads_elsewhere(x))
		refuse_path(x);
	else if (is_of_another(x))
		refuse_of_another(x);
	if (strstr(x->info, "\nlock:"))
		refuse(x, "a file with locks");
}

static void look(struct found *x)
{
	for (size_t i = 0; i < LR_ARRAY_SIZE(anonymous); i++)
		if (lr_streq(x->link, anonymous[i].link)) {
			anonymous[i].look(x);
			return;
		}
	if (lr_has_prefix(x->link, "pipe:["))
		x->f->seed.kind = LR_SEED_PIPE;
	else if (lr_has_prefix(x->link, "socket:["))
		look_socket(x);
	else if (x->link[0] == '/')
		look_path(x);
	else
		refuse(x, "of a kind that is not carried");
}

/* ---- all of them ----------------------------------------------------------------------------- */

static void refuse_untold(const struct found *x, int code)
{
	const char *why = lr_strf(x->c->a, "kcmp(2) does not tell with whom it is shared: %s",
				  lr_strerror(code));

	refuse(x, why ? why : "out of memory");
}

/* From so many of one inode on, they are put in order. With fewer, each is compared with each: as long as
 * processes run, a number may have become another file's, and in an order that would mislead the search for
 * others, too. */
#define FEW 32

static int by_file(void *arg, const struct lr_treap_node *a, const struct lr_treap_node *b)
{
	const struct found *x = arg;
	const struct cap_file *f = file_of(a), *g = file_of(b);
	const long r = syscall(SYS_kcmp, f->pid, g->pid, KCMP_FILE, f->fd, g->fd);

	/* Closed or gone meanwhile: that is found out when all are held. */
	if (r < 0 && (x->p->threads[0].held || (errno != EBADF && errno != ESRCH)))
		refuse_untold(x, errno);
	return cap_order_of(r);
}

/* The first that is the same as x, from f on, by `next`. Of the standard three, one with x's number is taken
 * first: the child is given these by number. */
static struct cap_file *same(struct found *x, struct cap_file *f)
{
	const struct cap_file asked = {.pid = x->p->pid, .fd = x->fd};
	struct cap_file *first = NULL;

	for (; f; f = f->next) {
		if (by_file(x, &asked.order, &f->order) != 0)
			continue;
		if (x->fd > 2 || f->fd == x->fd)
			return f;
		first = first ? first : f;
	}
	return first;
}

/* The same open file, wherever else it is. */
static struct cap_file *known(struct found *x)
{
	const struct cap_file asked = {.pid = x->p->pid, .fd = x->fd};
	const struct cap_inode *inode = inode_of(x);

	if (!inode || !inode->order)
		return inode ? same(x, inode->first) : NULL;
	const struct lr_treap_node *n = lr_treap_find(inode->order, &asked.order, by_file, x);
	struct cap_file *first = n ? file_of(n) : NULL;
	for (struct cap_file *f = first; f; f = f->same)
		if (x->fd > 2 || f->fd == x->fd)
			return f;
	return first;
}

static void put_in_order(struct found *x, struct cap_inode *inode, struct cap_file *f)
{
	struct lr_treap_node *n = lr_treap_put(&inode->order, &f->order, by_file, x);

	for (struct cap_file *last = file_of(n); last != f; last = last->same)
		if (!last->same)
			last->same = f;
}

static int add_to_inode(struct found *x, struct cap_file *f)
{
	struct cap *c = x->c;
	struct cap_inode *inode = inode_of(x);

	if (!inode) {
		inode = lr_grow(c->a, c->inodes, c->n_inodes, sizeof(*inode));
		if (!inode ||
		    cap_index_put(c->a, &c->inode_of, f->device, f->inode, c->n_inodes) < 0)
			return -ENOMEM;
		c->inodes = inode;
		inode += c->n_inodes++;
		*inode = (struct cap_inode){.first = f};
	} else {
		inode->last->next = f;
	}
	inode->last = f;
	inode->n++;
	if (inode->n == FEW)
		for (f = inode->first; f; f = f->next)
			put_in_order(x, inode, f);
	else if (inode->n > FEW)
		put_in_order(x, inode, f);
	return 0;
}

/* Of the first process, what leads out of the container: the new one gets its own. With a terminal
 * of its own there is nothing that does. A file is whoever's who has its mount, or one of it in another
 * namespace, where its path is the same. Memory is in nobody's, and
 * what is in one that the container has unmounted (lazily), or left with a namespace, has to be found by its path. */
static bool is_standard(const struct found *x)
{
	if (x->fd > 2 || x->p != x->c->p || x->c->opts->terminal)
		return false;
	const unsigned mount = (unsigned)info(x, "mnt_id:", 10);
	return !x->c->opts->namespace_too || !S_ISREG(x->st.st_mode) ||
	       (!cap_mount_is_inside(x->c, mount) &&
		(cap_mount_is_ours(x->c, mount) || lr_path_leads_to(x->link, &x->st)));
}

/* One of these that was opened again (/dev/stdout, /proc/self/fd/1), as servers do with their logs; or NULL. In a file
 * that is not appended to it has a place, which means nothing in a child's. */
static const struct cap_file *standard_again(const struct found *x)
{
	const struct cap_inode *inode = inode_of(x);
	const uint32_t flags = (uint32_t)info(x, "flags:", 8);
	const bool fits = S_ISFIFO(x->st.st_mode) || (S_ISREG(x->st.st_mode) && flags & O_APPEND);

	if (!x->c->opts->namespace_too || !inode || flags & O_PATH || !fits ||
	    cap_mount_is_inside(x->c, (unsigned)info(x, "mnt_id:", 10)))
		return NULL;
	for (const struct cap_file *f = inode->first; f; f = f->next)
		if (f->seed.kind == LR_SEED_STDIO && !((f->seed.flags ^ flags) & O_ACCMODE))
			return f;
	return NULL;
}

static struct cap_file *add_file(struct found *x)
{
	struct cap *c = x->c;
	struct cap_file **v = lr_grow(c->a, c->files, c->n_files, sizeof(struct cap_file *));
	struct cap_file *f = v ? lr_new(c->a, struct cap_file) : NULL;

	if (!f)
		return NULL;
	const bool standard = is_standard(x);
	const struct cap_file *again = standard ? NULL : standard_again(x);
	c->files = v;
	f->device = x->st.st_dev;
	f->inode = x->st.st_ino;
	f->pid = x->p->pid;
	f->fd = x->fd;
	f->path = lr_strdup(c->a, x->link);
	f->index = (uint32_t)c->n_files;
	f->seed = (struct lr_seed_file){.object = LR_SEED_NONE, .channel = LR_SEED_NONE};
	f->seed.pos = info(x, "pos:", 10);
	f->seed.flags = (uint32_t)info(x, "flags:", 8) & ~(uint32_t)O_CLOEXEC;
	v[c->n_files++] = f;
	x->f = f;
	if (add_to_inode(x, f) < 0)
		return NULL;
	if (again) {
		f->seed.kind = LR_SEED_STDIO;
		f->seed.args[0] = again->seed.args[0];
		f->seed.args[1] = 1;
		return f;
	}
	if (!standard) {
		look(x);
		cap_owner_look(c, x->p, x->fd, x->st.st_mode, f);
		return f;
	}
	/* What the new process gets: its own standard input, output and error. */
	f->seed.kind = LR_SEED_STDIO;
	f->seed.args[0] = (uint64_t)x->fd;
	return f;
}

/* What is_waited_for (strangers.c) saw of x->fd; *at: from where on to look for that. */
static bool was_noted(const struct cap_process *p, size_t *at, struct found *x)
{
	if (*at == p->n_noted || p->noted[*at].fd != x->fd)
		return false;
	x->link = p->noted[*at].link;
	x->st = p->noted[(*at)++].st;
	return true;
}

static int look_fd(struct cap *c, struct cap_process *p, int fd, size_t *noted, struct lr_err *err)
{
	struct found x = {.c = c, .p = p, .fd = fd};
	char path[48], *text;
	size_t size;

	snprintf(path, sizeof(path), "/proc/%d/fd/%d", p->pid, fd);
	if (!was_noted(p, noted, &x)) {
		x.link = cap_read_link(c->a, path);
		if (!x.link && errno == ENAMETOOLONG) {
			cap_refuse(
				c, p,
				"descriptor %d: a file whose path is longer than the kernel tells",
				fd);
			return 0;
		}
		if (!x.link || cap_stat(path, &x.st) < 0)
			return errno == ENOENT && !c->holds
				       ? 0
				       : lr_fail(err, errno, "look at %s", path);
	}
	snprintf(path, sizeof(path), "/proc/%d/fdinfo/%d", p->pid, fd);
	int r = cap_read_all(c->a, path, &text, &size, err);
	if (r < 0)
		return r == -ENOENT && !c->holds ? 0 : r;
	x.info = text;
	/* Each of the first process's standard three is attached by itself. */
	x.f = is_standard(&x) ? NULL : known(&x);
	struct cap_fd *v = lr_grow(c->a, p->fds, p->n_fds, sizeof(*v));
	if (!v || (!x.f && !add_file(&x)))
		return lr_fail(err, ENOMEM, "list the descriptors of process %d", p->pid);
	p->fds = v;
	v[p->n_fds++] =
		(struct cap_fd){(uint32_t)fd, (info(&x, "flags:", 8) & O_CLOEXEC) != 0, x.f};
	return 0;
}

static int by_number(const void *a, const void *b)
{
	const struct cap_fd *x = a, *y = b;

	return x->number < y->number ? -1 : x->number > y->number;
}

const struct cap_file *cap_file_of(const struct cap_process *p, uint32_t number)
{
	const struct cap_fd wanted = {.number = number};
	const struct cap_fd *fd =
		p->n_fds ? bsearch(&wanted, p->fds, p->n_fds, sizeof(wanted), by_number) : NULL;

	return fd ? fd->file : NULL;
}

int cap_files_look(struct cap *c, struct cap_process *p, struct lr_err *err)
{
	struct lr_dir d;
	size_t noted = 0;
	char path[32];
	int r = 0;

	if (p->seed.flags & LR_SEED_ZOMBIE || p->shares_table)
		return 0;
	snprintf(path, sizeof(path), "/proc/%d/fd", p->pid);
	LR_CLEANUP_FD int fd = lr_open(path, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	if (fd < 0)
		return lr_fail(err, errno, "list the descriptors of process %d", p->pid);
	lr_dir_begin(&d, fd);
	for (const struct lr_dirent *e; r >= 0 && (e = lr_dir_next(&d));)
		if (e->name[0] != '.')
			r = look_fd(c, p, atoi(e->name), &noted, err);
	if (r >= 0 && errno)
		return lr_fail(err, errno, "list the descriptors of process %d", p->pid);
	if (r >= 0 && p->n_fds)
		qsort(p->fds, p->n_fds, sizeof(*p->fds), by_number);
	return r;
}
