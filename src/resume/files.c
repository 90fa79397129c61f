/* SPDX-License-Identifier: Apache-2.0 */
/* resume: open files are made once, for all processes; each then takes those it had, by number. */
#define LR_ROOM "resume"
#include <errno.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/eventfd.h>
#include <sys/inotify.h>
#include <sys/ioctl.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/timerfd.h>
#include <unistd.h>

#include "src/base/fd.h"
#include "src/base/str.h"
#include "src/resume/resuming.h"
#include "src/sys/syscalls.h"

#ifndef F_SETSIG
#define F_SETSIG 10
#endif
#ifndef TFD_IOC_SET_TICKS
#define TFD_IOC_SET_TICKS _IOW('T', 0, uint64_t)
#endif

typedef int open_kind(struct lr_resume *r, const struct lr_seed_file *f, struct lr_err *err);

/* Where a directory of ext4 is first read at its end, nothing is found at its beginning later. */
static void begin_directory(int fd)
{
	char names[4096];
	struct stat st;

	if (fstat(fd, &st) == 0 && S_ISDIR(st.st_mode))
		(void)syscall(SYS_getdents64, fd, names, sizeof(names));
}

static int open_regular(struct lr_resume *r, const struct lr_seed_file *f, struct lr_err *err)
{
	const char *path = lr_seed_text(r->seed, f->path);

	/* openat2(2) is strict about what it does not know, or O_PATH does not take. */
	const int known = O_ACCMODE | O_APPEND | O_DIRECT | O_DIRECTORY | O_DSYNC | O_NOATIME |
			  O_NOFOLLOW | O_PATH | O_SYNC;
	const int of_path = O_PATH | O_DIRECTORY | O_NOFOLLOW;
	int fd = resume_open_path(path, (int)f->flags & (f->flags & O_PATH ? of_path : known));
	if (fd < 0) {
		int rc = lr_fail(err, errno, "open %s, which the seed had open", path);
		return lr_seed_count(r->seed, LR_SEED_CHANGED) ? resume_hint_changed(r, err) : rc;
	}
	if (!(f->flags & O_PATH) && f->pos)
		begin_directory(fd);
	if (!(f->flags & O_PATH) && f->pos && lseek(fd, (off_t)f->pos, SEEK_SET) < 0) {
		int rc = lr_fail(err, errno, "go to where the seed was in %s", path);
		lr_close(fd);
		return rc;
	}
	return fd;
}

/* As its program had done. LR_NOFD: the new process has none like that, or a socket, which nobody can open; or only for
 * less: whoever gets a log to write to it does not read what others have written there. Nor does it write over that, as
 * one would that begins anew in a file. */
static int open_stdio_again(const struct lr_resume *r, int from, uint32_t flags)
{
	const int has = fcntl(from, F_GETFL);
	const uint32_t own = flags & (O_ACCMODE | O_APPEND | O_NONBLOCK);
	struct stat st;

	if (has < 0 || ((has & O_ACCMODE) != O_RDWR && ((uint32_t)has ^ flags) & O_ACCMODE))
		return LR_NOFD;
	if (!(flags & O_APPEND) && (fstat(from, &st) < 0 || S_ISREG(st.st_mode)))
		return LR_NOFD;
	/* It waits for nobody, and gives nobody a terminal. */
	int fd = resume_open_again(r, from, own | O_NONBLOCK | O_NOCTTY);
	return fd >= 0 && fcntl(fd, F_SETFL, own) < 0 ? lr_close(fd) : fd;
}

static int open_stdio(struct lr_resume *r, const struct lr_seed_file *f, struct lr_err *err)
{
	int from = r->opts.stdio[f->args[0]];
	int fd = from >= 0 && f->args[1] ? open_stdio_again(r, from, f->flags) : LR_NOFD;

	if (fd < 0)
		fd = from >= 0 ? fcntl(from, F_DUPFD_CLOEXEC, 3)
			       : lr_open("/dev/null", O_RDWR | O_CLOEXEC);
	return fd < 0 ? lr_fail(err, errno, "attach standard input and output") : fd;
}

static int open_eventfd(struct lr_resume *r, const struct lr_seed_file *f, struct lr_err *err)
{
	int flags = EFD_CLOEXEC | (f->args[1] ? EFD_SEMAPHORE : 0);

	(void)r;
	int fd = eventfd(0, flags);
	if (fd >= 0 && f->args[0] && write(fd, &f->args[0], sizeof(uint64_t)) < 0)
		fd = lr_close(fd);
	return fd < 0 ? lr_fail(err, errno, "make an eventfd") : fd;
}

static struct timespec span(uint64_t ns)
{
	return (struct timespec){(time_t)(ns / 1000000000), (long)(ns % 1000000000)};
}

static int open_timerfd(struct lr_resume *r, const struct lr_seed_file *f, struct lr_err *err)
{
	/* One whose expiry has not been read yet begins again when it is. */
	const uint64_t left = f->args[3] ? f->args[3] : f->args[4];
	const struct itimerspec when = {span(f->args[4]), span(left)};

	(void)r;
	int fd = timerfd_create((int)f->args[0], TFD_CLOEXEC);
	if (fd < 0)
		return lr_fail(err, errno, "make a timerfd");
	/* What it says is what is left, whatever the time was given as. */
	if (left && timerfd_settime(fd, 0, &when, NULL) < 0) {
		int rc = lr_fail(err, errno, "set a timerfd");
		lr_close(fd);
		return rc;
	}
	if (f->args[1] && ioctl(fd, TFD_IOC_SET_TICKS, &f->args[1]) < 0) {
		int rc = lr_fail(err, errno, "set the ticks of a timerfd");
		lr_close(fd);
		return rc;
	}
	return fd;
}

static int open_signalfd(struct lr_resume *r, const struct lr_seed_file *f, struct lr_err *err)
{
	(void)r;
	int fd = (int)syscall(SYS_signalfd4, -1, &f->args[0], sizeof(uint64_t), O_CLOEXEC);
	return fd < 0 ? lr_fail(err, errno, "make a signalfd") : fd;
}

static int open_epoll(struct lr_resume *r, const struct lr_seed_file *f, struct lr_err *err)
{
	(void)r;
	(void)f;
	int fd = epoll_create1(EPOLL_CLOEXEC);
	return fd < 0 ? lr_fail(err, errno, "make an epoll") : fd;
}

static int open_inotify(struct lr_resume *r, const struct lr_seed_file *f, struct lr_err *err)
{
	(void)r;
	(void)f;
	int fd = inotify_init1(IN_CLOEXEC);
	if (fd >= 0)
		return fd;
	if (errno != EMFILE)
		return lr_fail(err, errno, "make an inotify");
	/* It is no limit of descriptors. */
	lr_refuse(err, EDQUOT, "make an inotify: its user has no more");
	return lr_err_hint(err, "fs.inotify.max_user_instances (sysctl) says how many there are "
				"for a user");
}

static int open_memfd(struct lr_resume *r, const struct lr_seed_file *f, struct lr_err *err)
{
	int fd = resume_open_again(r, r->objects[f->object], f->flags & O_ACCMODE);
	if (fd >= 0 && lseek(fd, (off_t)f->pos, SEEK_SET) < 0)
		fd = lr_close(fd);
	return fd < 0 ? lr_fail(err, errno, "open shared memory again") : fd;
}

static int open_terminal(struct lr_resume *r, const struct lr_seed_file *f, struct lr_err *err)
{
	int fd = resume_open_again(
		r, r->terminal,
		f->flags & O_PATH ? O_PATH : (f->flags & O_ACCMODE) | O_NONBLOCK | O_NOCTTY);

	return fd < 0 ? lr_fail(err, errno, "open the container's terminal") : fd;
}

static open_kind *const kinds[] = {
	[LR_SEED_REGULAR] = open_regular,        [LR_SEED_STDIO] = open_stdio,
	[LR_SEED_EVENTFD] = open_eventfd,        [LR_SEED_TIMERFD] = open_timerfd,
	[LR_SEED_SIGNALFD] = open_signalfd,      [LR_SEED_EPOLL] = open_epoll,
	[LR_SEED_INOTIFY] = open_inotify,        [LR_SEED_MEMFD_FILE] = open_memfd,
	[LR_SEED_TERMINAL_FILE] = open_terminal, [LR_SEED_ENDPOINT_FILE] = resume_open_endpoint,
};

/* ---- pipes and pairs ------------------------------------------------------------------------- */

struct ends {
	int fd[2];
	bool taken[2]; /* of a pipe: by a file that is this one */
};

static int fill_pipe(const struct lr_resume *r, const struct lr_seed_channel *c, struct ends *e,
		     struct lr_err *err)
{
	if (c->capacity && fcntl(e->fd[1], F_SETPIPE_SZ, c->capacity) < 0) {
		lr_fail(err, errno, "make a pipe of %u bytes", c->capacity);
		return lr_err_hint(err, "are pipe-user-pages-soft and pipe-max-size of "
					"/proc/sys/fs as they were for its parent?");
	}
	fcntl(e->fd[1], F_SETFL, O_NONBLOCK);
	ssize_t n = lr_write_full(e->fd[1], lr_seed_data(r->seed, &c->data[0]), c->data[0].length);
	fcntl(e->fd[1], F_SETFL, 0);
	return n == (ssize_t)c->data[0].length ? 0 : lr_fail(err, (int)-n, "fill a pipe");
}

/* What end k has yet to read comes from the other one. */
static int fill_socket(const struct lr_resume *r, const struct lr_seed_channel *c, struct ends *e,
		       struct lr_err *err)
{
	for (unsigned k = 0; k < 2; k++) {
		const uint8_t *at = lr_seed_data(r->seed, &c->data[k]);
		uint64_t left = c->data[k].length;
		while (left) {
			uint32_t length;
			memcpy(&length, at, sizeof(length));
			at += sizeof(length);
			if (send(e->fd[!k], at, length, MSG_DONTWAIT) != (ssize_t)length)
				return lr_fail(err, errno ? errno : EIO, "fill a pair of sockets");
			at += length;
			left -= sizeof(length) + length;
		}
	}
	return 0;
}

/* When nothing is to be written any more. */
static int shut_socket(const struct lr_seed_channel *c, struct ends *e, struct lr_err *err)
{
	static const struct {
		unsigned end;
		uint32_t bit;
		int how;
	} all[] = {{0, LR_SEED_NO_READ(0), SHUT_RD},
		   {0, LR_SEED_NO_WRITE(0), SHUT_WR},
		   {1, LR_SEED_NO_READ(1), SHUT_RD},
		   {1, LR_SEED_NO_WRITE(1), SHUT_WR}};

	for (size_t i = 0; i < LR_ARRAY_SIZE(all); i++)
		if (c->ends & all[i].bit && shutdown(e->fd[all[i].end], all[i].how) < 0)
			return lr_fail(err, errno, "shut down an end of a pair of sockets");
	return 0;
}

static int open_pipe(const struct lr_resume *r, const struct lr_seed_channel *c, struct ends *e,
		     struct lr_err *err)
{
	return pipe2(e->fd, O_CLOEXEC) < 0 ? lr_fail(err, errno, "make a pipe")
					   : fill_pipe(r, c, e, err);
}

struct making {
	int type, *fd;
};

static int make_pair(void *arg)
{
	const struct making *x = arg;

	return socketpair(AF_UNIX, x->type | SOCK_CLOEXEC, 0, x->fd) < 0 ? -errno : 0;
}

static int set_ends(const struct lr_seed_channel *c, const struct ends *e, uint32_t which,
		    struct lr_err *err)
{
	int rc = 0;

	for (unsigned k = 0; rc >= 0 && k < 2; k++)
		rc = resume_set_options(e->fd[k], c->set[k] & which, c->options[k],
					"a pair of sockets", err);
	return rc;
}

/* Without these there may be no room for what it is filled with. */
#define BEFORE_IT_IS_FILLED (1U << LR_SEED_SNDBUF | 1U << LR_SEED_RCVBUF)

/* It is filled before its ends are told of senders (SO_PASSCRED): what waits to be read would tell of us. */
static int open_pair(const struct lr_resume *r, const struct lr_seed_channel *c, uint64_t type,
		     struct ends *e, struct lr_err *err)
{
	struct making x = {(int)type, e->fd};
	int rc = resume_act_as(c->uid, c->gid, make_pair, &x);

	if (rc < 0)
		return lr_fail(err, -rc, "make a pair of sockets as user %u", c->uid);
	rc = set_ends(c, e, BEFORE_IT_IS_FILLED, err);
	if (rc >= 0)
		rc = fill_socket(r, c, e, err);
	if (rc >= 0)
		rc = set_ends(c, e, ~BEFORE_IT_IS_FILLED, err);
	return rc < 0 ? rc : shut_socket(c, e, err);
}

static int open_channel(const struct lr_resume *r, const struct lr_seed_file *f, struct ends *e,
			struct lr_err *err)
{
	const struct lr_seed_channel *c = lr_seed_channel(r->seed, f->channel);

	if (e->fd[0] >= 0 || e->fd[1] >= 0)
		return 0;
	return f->kind == LR_SEED_PIPE ? open_pipe(r, c, e, err)
				       : open_pair(r, c, f->args[1], e, err);
}

/* Who opened an end again (/proc/self/fd) has two files of it, or one that has both ends, and flags, as O_NONBLOCK, are a
 * file's own. The pipe is still ours, and so are both of its ends: nobody is waited for. */
static int take_pipe(const struct lr_resume *r, struct ends *e, uint32_t flags)
{
	const uint32_t mode = flags & O_ACCMODE;
	const unsigned end = mode == O_WRONLY;

	if (flags & O_PATH)
		return resume_open_again(r, e->fd[end], O_PATH);
	if (e->taken[end] || mode == O_RDWR)
		return resume_open_again(r, e->fd[end], mode | O_NONBLOCK);
	e->taken[end] = true;
	return fcntl(e->fd[end], F_DUPFD_CLOEXEC, 3);
}

static int take_end(const struct lr_resume *r, struct ends *e, const struct lr_seed_file *f,
		    struct lr_err *err)
{
	int fd = f->kind == LR_SEED_PIPE ? take_pipe(r, e, f->flags)
					 : fcntl(e->fd[f->args[0]], F_DUPFD_CLOEXEC, 3);

	return fd < 0 ? lr_fail(err, errno, "open an end of a pipe") : fd;
}

/* ---- all ------------------------------------------------------------------------------------- */

static int open_one(struct lr_resume *r, uint32_t i, struct ends *ends, struct lr_err *err)
{
	const struct lr_seed_file *f = lr_seed_file(r->seed, i);
	bool channel = f->channel != LR_SEED_NONE;
	int rc = channel ? open_channel(r, f, &ends[f->channel], err) : 0;

	r->files[i] = LR_NOFD;
	if (rc < 0 || f->kind == LR_SEED_PIDFD)
		return rc;
	int fd = channel ? take_end(r, &ends[f->channel], f, err) : kinds[f->kind](r, f, err);
	if (fd < 0)
		return fd;
	r->files[i] = resume_keep(r, fd, err);
	if (r->files[i] < 0 || f->kind == LR_SEED_STDIO || f->flags & O_PATH)
		return r->files[i];
	fcntl(r->files[i], F_SETFL, (int)f->flags & RESUME_STATUS_FLAGS);
	if (f->signal && fcntl(r->files[i], F_SETSIG, (int)f->signal) < 0)
		return lr_fail(err, errno, "set the signal of a file");
	return r->files[i];
}

typedef bool some_files(const struct lr_seed_file *f);

static bool is_pair(const struct lr_seed_file *f)
{
	return f->kind == LR_SEED_SOCKET;
}

static bool is_no_pair(const struct lr_seed_file *f)
{
	return !is_pair(f);
}

static int open_some(struct lr_resume *r, some_files *wanted, struct lr_err *err)
{
	uint32_t n = lr_seed_count(r->seed, LR_SEED_CHANNEL);
	struct ends *ends = lr_new_n(r->a, n + 1, struct ends);
	int rc = ends ? 0 : lr_fail(err, ENOMEM, "open files");

	for (uint32_t i = 0; rc >= 0 && i < n; i++)
		ends[i] = (struct ends){.fd = {LR_NOFD, LR_NOFD}};
	for (uint32_t i = 0; rc >= 0 && i < lr_seed_count(r->seed, LR_SEED_FILE); i++)
		if (wanted(lr_seed_file(r->seed, i)))
			rc = open_one(r, i, ends, err);
	/* An end that nobody had is closed, as it was. */
	for (uint32_t i = 0; ends && i < n; i++)
		for (int k = 0; k < 2; k++)
			ends[i].fd[k] = lr_close(ends[i].fd[k]);
	return rc < 0 ? rc : 0;
}

int resume_open_files(struct lr_resume *r, struct lr_err *err)
{
	return open_some(r, is_no_pair, err);
}

int resume_open_pairs(struct lr_resume *r, struct lr_err *err)
{
	return open_some(r, is_pair, err);
}

/* Whose it is, and its mode, say who may open it again (/proc/self/fd). */
static int own_pipe(const struct lr_seed_channel *c, int fd, struct lr_err *err)
{
	struct stat st;

	if (fstat(fd, &st) < 0 ||
	    ((st.st_uid != c->uid || st.st_gid != c->gid) && fchown(fd, c->uid, c->gid) < 0) ||
	    ((st.st_mode & 0777) != c->mode && fchmod(fd, c->mode) < 0))
		return lr_fail(err, errno, "give a pipe to user %u", c->uid);
	return 0;
}

int resume_own_pipes(const struct lr_resume *r, struct lr_err *err)
{
	int rc = 0;

	for (uint32_t i = 0; rc >= 0 && i < lr_seed_count(r->seed, LR_SEED_FILE); i++) {
		const struct lr_seed_file *f = lr_seed_file(r->seed, i);
		if (f->kind == LR_SEED_PIPE && !(f->flags & O_PATH))
			rc = own_pipe(lr_seed_channel(r->seed, f->channel), r->files[i], err);
	}
	return rc;
}

/* NULL: the process has none of that number. They are in order. */
static const struct lr_seed_fd *find_fd(const struct lr_resume *r, const struct lr_seed_process *p,
					uint32_t number)
{
	uint32_t low = p->fds.first, high = low + p->fds.count;

	while (low < high) {
		const uint32_t mid = low + (high - low) / 2;
		const struct lr_seed_fd *fd = lr_seed_fd(r->seed, mid);
		if (fd->number == number)
			return fd;
		if (fd->number < number)
			low = mid + 1;
		else
			high = mid;
	}
	return NULL;
}

/* Watches go by number and file, so whoever has both under the right numbers adds them. */
static int add_watches(const struct lr_resume *r, const struct lr_seed_process *p,
		       const struct lr_seed_fd *epoll, struct lr_err *err)
{
	const struct lr_seed_file *f = lr_seed_file(r->seed, epoll->file);

	for (uint32_t i = 0; i < f->watches.count; i++) {
		const struct lr_seed_watch *w = lr_seed_watch(r->seed, f->watches.first + i);
		const struct lr_seed_fd *fd = find_fd(r, p, w->number);
		struct epoll_event e = {.events = w->mask, .data.u64 = w->data};
		if (fd && fd->file == w->file &&
		    epoll_ctl((int)epoll->number, EPOLL_CTL_ADD, (int)w->number, &e) < 0 &&
		    errno != EEXIST)
			return lr_fail(err, errno, "watch descriptor %u", w->number);
	}
	return 0;
}

/* Once for a file, whatever numbers it has: a forged seed may have both by the hundred thousand. */
static int add_all_watches(const struct lr_resume *r, const struct lr_seed_process *p,
			   struct lr_err *err)
{
	bool *done = lr_new_n(r->a, lr_seed_count(r->seed, LR_SEED_FILE) + 1, bool);
	int rc = done ? 0 : lr_fail(err, ENOMEM, "watch descriptors");

	for (uint32_t i = 0; rc >= 0 && i < p->fds.count; i++) {
		const struct lr_seed_fd *fd = lr_seed_fd(r->seed, p->fds.first + i);
		if (lr_seed_file(r->seed, fd->file)->kind == LR_SEED_EPOLL && !done[fd->file])
			rc = add_watches(r, p, fd, err);
		if (rc >= 0)
			done[fd->file] = true;
	}
	return rc;
}

/* What the seed's process does not have may be ours: it must not have that. */
static int close_gaps(const struct lr_resume *r, const struct lr_seed_process *p,
		      struct lr_err *err)
{
	unsigned next = 0;
	int rc = 0;

	for (uint32_t i = 0; rc >= 0 && i < p->fds.count; i++) {
		unsigned number = lr_seed_fd(r->seed, p->fds.first + i)->number;
		if (number > next)
			rc = lr_close_range(next, number - 1, 0);
		next = number + 1;
	}
	if (rc >= 0 && next < (unsigned)r->base)
		rc = lr_close_range(next, (unsigned)r->base - 1, 0);
	return rc < 0 ? lr_fail(err, -rc, "close what the seed's process does not have") : 0;
}

/* By each process for itself, when its children are made. Whom else it has a pidfd of was there before it: capture sees
 * to that. */
static int open_pidfd(struct lr_resume *r, uint32_t file, struct lr_err *err)
{
	const struct lr_seed_file *f = lr_seed_file(r->seed, file);

	if (f->kind != LR_SEED_PIDFD || r->files[file] >= 0)
		return 0;
	int fd = lr_pidfd_open((pid_t)f->args[0], f->flags & O_NONBLOCK);
	if (fd < 0)
		return lr_fail(err, -fd, "open process %llu, as the seed did",
			       (unsigned long long)f->args[0]);
	r->files[file] = resume_keep(r, fd, err);
	return r->files[file];
}

int resume_take_fds(struct lr_resume *r, const struct lr_seed_process *p, struct lr_err *err)
{
	int rc = close_gaps(r, p, err);

	for (uint32_t i = 0; rc >= 0 && i < p->fds.count; i++) {
		const struct lr_seed_fd *fd = lr_seed_fd(r->seed, p->fds.first + i);
		rc = open_pidfd(r, fd->file, err);
		if (rc < 0)
			return rc;
		if (dup3(r->files[fd->file], (int)fd->number, fd->cloexec ? O_CLOEXEC : 0) < 0)
			return lr_fail(err, errno, "open descriptor %u", fd->number);
	}
	return rc < 0 ? rc : add_all_watches(r, p, err);
}
