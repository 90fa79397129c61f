/* SPDX-License-Identifier: Apache-2.0 */
/* store: the directories of the containers; see store.h. */
#define LR_ROOM "store"
#include "src/store/store.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include "src/base/clock.h"
#include "src/base/fd.h"
#include "src/base/log.h"
#include "src/base/str.h"
#include "src/store/holder.h"
#include "src/store/record.h"
#include "src/store/trust.h"
#include "src/sys/path.h"

#define RECORD     "record"
#define RECORD_TMP "record.tmp"

/* O_NONBLOCK: a fifo that was put in its place must not block us. */
#define READ_OURS (O_RDONLY | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC)

static const char *absolute(const char *root, struct lr_arena *a)
{
	char cwd[PATH_MAX];

	if (root[0] == '/')
		return root;
	return getcwd(cwd, sizeof(cwd)) ? lr_concat(a, cwd, "/", root, NULL) : NULL;
}

/* For a root directory that we made. In a sticky directory, another user may have made it before
 * us, and have removed again by now what we have opened. */
static int trust_made(int fd, const char *path, struct lr_err *err)
{
	struct stat opened, named;
	int r = lr_trust_path(path, err);

	if (r < 0)
		return r;
	if (fstat(fd, &opened) < 0 || stat(path, &named) < 0)
		return lr_fail(err, errno, "look at the runtime's root directory %s", path);
	if (opened.st_dev == named.st_dev && opened.st_ino == named.st_ino)
		return 0;
	return lr_refuse(err, EAGAIN, "the runtime's root directory %s was exchanged", path);
}

int lr_store_open(const char *root, bool create, struct lr_arena *a, struct lr_store *ret,
		  struct lr_err *err)
{
	const char *path = absolute(root, a);
	int trusted = path ? lr_trust_path(path, err) : lr_fail(err, errno, "resolve %s", root);
	if (trusted < 0)
		return trusted;
	/* Mostly it is there: it is opened first, and made only if that fails. */
	LR_CLEANUP_FD int fd = lr_open(root, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	if (fd < 0 && errno == ENOENT && create) {
		int r = lr_mkdir_p(root, 0711);
		if (r < 0) {
			lr_fail(err, -r, "make the runtime's root directory %s", root);
			return lr_err_hint(err, "give another one by --root");
		}
		fd = lr_open(root, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	}
	if (fd < 0) {
		lr_fail(err, errno, "open the runtime's root directory %s", root);
		return errno == ENOENT ? -ENOENT : lr_err_hint(err, "give another one by --root");
	}
	if (!trusted && (trusted = trust_made(fd, path, err)) < 0)
		return trusted;
	*ret = (struct lr_store){.fd = lr_take_fd(&fd), .path = path};
	return 0;
}

void lr_store_close(struct lr_store *s)
{
	s->fd = lr_close(s->fd);
}

int lr_store_check_id(const char *id, struct lr_err *err)
{
	static const char ok[] =
		"abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_+-.";

	/* A first dot is refused: "..", and entries of the runtime's own. */
	size_t len = strlen(id);
	if (len > 0 && len <= LR_STORE_ID_MAX && id[0] != '.' && strspn(id, ok) == len)
		return 0;
	lr_refuse(err, EINVAL, "invalid container id \"%.64s\"", id);
	return lr_err_hint(
		err, "letters, digits, '_', '+', '-' and, not first, '.'; at most %d characters",
		LR_STORE_ID_MAX);
}

static int unknown(const char *id, struct lr_err *err)
{
	return lr_err_hint((lr_refuse(err, ENOENT, "container \"%s\" does not exist", id), err),
			   "'lean-runtime list' shows those of a --root");
}

static int lock(int fd, struct lr_err *err)
{
	while (flock(fd, LOCK_EX) < 0)
		if (errno != EINTR)
			return lr_fail(err, errno, "lock the container");
	return 0;
}

/* Asked for again and again: a signal that cuts flock(2) off might be one that our caller waits for. */
static int lock_within(int fd, int ms, const char *id, struct lr_err *err)
{
	const int64_t end = lr_now_ms() + ms;

	for (unsigned round = 0; flock(fd, LOCK_EX | LOCK_NB) < 0; round++) {
		if (errno != EWOULDBLOCK && errno != EINTR)
			return lr_fail(err, errno, "lock the container");
		if (lr_now_ms() >= end)
			return lr_store_held(fd, id, err);
		lr_sleep_us(round < 10 ? 500 : 10000);
	}
	return 0;
}

/* Whether the locked directory is still there. It may have been removed while we waited; then a
 * directory of that name is another. 1: it is; 0: not. */
static int lives(int dir, const char *id, struct lr_err *err)
{
	struct stat st;

	if (fstat(dir, &st) < 0)
		return lr_fail(err, errno, "look at the directory of container %s", id);
	return st.st_nlink > 0;
}

static int exists(const char *id, struct lr_err *err)
{
	lr_refuse(err, EEXIST, "container with id %s already exists", id);
	return lr_err_hint(err, "take another id, or delete that one");
}

static int fail_record(const char *path, const char *id, struct lr_err *err)
{
	return lr_fail(err, errno, "create %s/%s/record", path, id);
}

/*
 * Locks a directory that we made just now, and makes its record. Before that, a `delete` may have
 * taken it for what a killed creation has left, and removed it, and another create may have made it
 * again: then that one is open here, and has a record. In a directory that was removed, nothing can
 * be made. *ret >= 0: it is ours; LR_NOFD: it is gone.
 */
static int claim(const struct lr_store *s, int dir, const char *id, int *ret, struct lr_err *err)
{
	int r = lock(dir, err);

	if (r < 0)
		return r;
	*ret = openat(dir, RECORD, O_RDWR | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, 0600);
	if (*ret >= 0)
		return 0;
	*ret = LR_NOFD;
	if (errno == EEXIST)
		return exists(id, err);
	return errno == ENOENT ? 0 : fail_record(s->path, id, err);
}

int lr_store_create(const struct lr_store *s, const char *id, struct lr_entry *ret,
		    struct lr_err *err)
{
	int r = lr_store_check_id(id, err), record = LR_NOFD;

	while (r == 0 && record < 0) {
		if (mkdirat(s->fd, id, 0700) < 0) {
			if (errno == EEXIST)
				return exists(id, err);
			lr_fail(err, errno, "make %s/%s", s->path, id);
			return lr_err_hint(err, "give another root directory by --root");
		}
		LR_CLEANUP_FD int dir =
			openat(s->fd, id, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
		if (dir >= 0)
			r = claim(s, dir, id, &record, err);
		else if (errno != ENOENT)
			r = lr_fail(err, errno, "open %s/%s", s->path, id);
		if (record >= 0)
			*ret = (struct lr_entry){.dir = lr_take_fd(&dir),
						 .record = record,
						 .blank = true,
						 .id = id,
						 .store = s};
		else if (r < 0 && r != -EEXIST)
			unlinkat(s->fd, id, AT_REMOVEDIR);
	}
	return r;
}

static int check_lives(int dir, const char *id, struct lr_err *err)
{
	int r = lives(dir, id, err);

	return r == 0 ? unknown(id, err) : r < 0 ? r : 0;
}

/* ms < 0: however long it takes. */
static int open_locked(const struct lr_store *s, const char *id, int ms, struct lr_entry *ret,
		       struct lr_err *err)
{
	int r = lr_store_check_id(id, err);
	if (r < 0)
		return r;
	LR_CLEANUP_FD int dir = openat(s->fd, id, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
	if (dir < 0)
		return errno == ENOENT ? unknown(id, err)
				       : lr_fail(err, errno, "open %s/%s", s->path, id);
	r = ms < 0 ? lock(dir, err) : lock_within(dir, ms, id, err);
	if (r < 0)
		return r;
	r = check_lives(dir, id, err);
	if (r < 0)
		return r;
	*ret = (struct lr_entry){
		.dir = lr_take_fd(&dir),
		.record = LR_NOFD,
		.id = id,
		.store = s,
	};
	return 0;
}

int lr_store_lock(const struct lr_store *s, const char *id, struct lr_entry *ret,
		  struct lr_err *err)
{
	return open_locked(s, id, -1, ret, err);
}

int lr_store_await(const struct lr_store *s, const char *id, int ms, struct lr_entry *ret,
		   struct lr_err *err)
{
	return open_locked(s, id, ms, ret, err);
}

void lr_store_unlock(struct lr_entry *e)
{
	/* Not by closing alone: a child that waits for `start` has a copy of the descriptor. */
	if (e->dir >= 0)
		(void)flock(e->dir, LOCK_UN);
	e->record = lr_close(e->record);
	e->dir = lr_close(e->dir);
}

void lr_store_leave(const struct lr_entry *e)
{
	(void)flock(e->dir, LOCK_UN);
}

int lr_store_return(const struct lr_entry *e, struct lr_err *err)
{
	int r = lock(e->dir, err);

	return r < 0 ? r : check_lives(e->dir, e->id, err);
}

int lr_store_write(struct lr_entry *e, const struct lr_record *r, const char *config, size_t len,
		   struct lr_arena *a, struct lr_err *err)
{
	size_t size;
	void *bytes;
	int rc = lr_record_encode(r, config, len, a, &bytes, &size, err);
	if (rc < 0)
		return rc;

	/* The first record is written in its place, without a rename: one that is not whole counts
	 * as none (store.h). */
	bool again = !e->blank;
	e->blank = false;
	LR_CLEANUP_FD int fd =
		again ? openat(e->dir, RECORD_TMP,
			       O_RDWR | O_CREAT | O_NOFOLLOW | O_CLOEXEC | O_TRUNC, 0600)
		      : lr_take_fd(&e->record);
	if (fd < 0)
		return fail_record(e->store->path, e->id, err);
	ssize_t n = lr_write_full(fd, bytes, size);
	if (n < 0)
		return lr_err_hint(
			(lr_fail(err, (int)-n, "write %s/%s/record", e->store->path, e->id), err),
			"free some space there, or give another root directory by --root");
	if (again && renameat(e->dir, RECORD_TMP, e->dir, RECORD) < 0)
		return lr_fail(err, errno, "rename the record");
	lr_close(e->record);
	e->record = lr_take_fd(&fd);
	return 0;
}

int lr_store_update(struct lr_entry *e, const struct lr_record *r, struct lr_err *err)
{
	struct record_live live[2];

	lr_record_live(r, live);
	if (e->record < 0)
		e->record = openat(e->dir, RECORD, O_RDWR | O_NOFOLLOW | O_CLOEXEC);
	if (e->record < 0 ||
	    pwrite(e->record, live, sizeof(live), RECORD_LIVE_OFFSET) != sizeof(live))
		return lr_fail(err, errno, "update the record of %s", e->id);
	return 0;
}

static int read_record(int fd, const char *id, struct lr_arena *a, char **bytes, size_t *size,
		       uid_t *owner, struct lr_err *err)
{
	struct stat st;

	if (fstat(fd, &st) < 0)
		return lr_fail(err, errno, "stat the record");
	if (!S_ISREG(st.st_mode) || st.st_size > RECORD_MAX)
		return lr_refuse(err, EPROTO, "the record is not a file of ours");
	if (!lr_trust_ours(&st))
		return lr_trust_refuse(&st, "the record of", id, err);
	*bytes = lr_alloc(a, (size_t)st.st_size + 1);
	if (!*bytes)
		return lr_fail(err, ENOMEM, "read the record");
	ssize_t n = lr_read_full(fd, *bytes, (size_t)st.st_size);
	if (n < 0)
		return lr_fail(err, (int)-n, "read the record");
	*size = (size_t)n;
	*owner = st.st_uid;
	return 0;
}

static int incomplete(const char *id, struct lr_err *err)
{
	return lr_refuse(err, ENODATA, "container \"%s\" was never created completely", id);
}

/* Nobody else may write to our directory, so what lies in it is ours. */
static int check_entry(const struct lr_store *s, const char *id, struct lr_err *err)
{
	struct stat st;

	if (fstatat(s->fd, id, &st, AT_SYMLINK_NOFOLLOW) < 0)
		return errno == ENOENT ? unknown(id, err)
				       : lr_fail(err, errno, "look at %s/%s", s->path, id);
	if (!S_ISDIR(st.st_mode))
		return lr_refuse(err, EPERM, "%s/%s is not a directory", s->path, id);
	return lr_trust_ours(&st) ? 0 : lr_trust_refuse(&st, "the directory of", id, err);
}

int lr_store_load(const struct lr_store *s, const char *id, struct lr_arena *a,
		  struct lr_record *ret, const char **config, size_t *config_len,
		  struct lr_err *err)
{
	struct lr_record rec;
	int r = lr_store_check_id(id, err);
	if (r >= 0)
		r = check_entry(s, id, err);
	if (r < 0)
		return r;

	char path[LR_STORE_ID_MAX + sizeof("/" RECORD)];
	snprintf(path, sizeof(path), "%s/" RECORD, id);
	LR_CLEANUP_FD int fd = openat(s->fd, path, READ_OURS);
	if (fd < 0)
		return errno == ENOENT ? incomplete(id, err)
				       : lr_fail(err, errno, "open %s/%s", s->path, path);
	char *bytes;
	size_t size;
	uid_t owner;
	r = read_record(fd, id, a, &bytes, &size, &owner, err);
	if (r >= 0)
		r = lr_record_decode(bytes, size, a, &rec, config, config_len, err);
	if (r == -ENODATA)
		return incomplete(id, err);
	if (r < 0)
		return r;
	if (!lr_streq(rec.id, id))
		return lr_refuse(err, EPROTO, "%s/%s is the record of another container, %.64s",
				 s->path, path, rec.id);
	rec.owner = owner;
	*ret = rec;
	return 0;
}

int lr_store_open_seccomp(const struct lr_store *s, const char *id, struct lr_err *err)
{
	char path[LR_STORE_ID_MAX + sizeof("/" LR_STORE_SECCOMP)];
	struct stat st;

	snprintf(path, sizeof(path), "%s/" LR_STORE_SECCOMP, id);
	LR_CLEANUP_FD int fd = openat(s->fd, path, READ_OURS);
	if (fd < 0 || fstat(fd, &st) < 0)
		return lr_fail(err, errno, "open the container's seccomp filter");
	if (!lr_trust_ours(&st))
		return lr_trust_refuse(&st, "the seccomp filter of", id, err);
	return lr_take_fd(&fd);
}

int lr_store_salvage(const struct lr_entry *e, struct lr_arena *a, struct lr_record *ret,
		     struct lr_err *err)
{
	struct lr_record r = {.id = e->id};
	char *bytes;
	size_t size;

	LR_CLEANUP_FD int fd = openat(e->dir, RECORD, READ_OURS);
	if (fd < 0)
		return lr_fail(err, errno, "open the record of %s", e->id);
	int rc = read_record(fd, e->id, a, &bytes, &size, &r.owner, err);
	if (rc < 0)
		return rc;
	/* If it can be decoded, it names another container. */
	struct lr_record whole;
	if (lr_record_decode(bytes, size, a, &whole, NULL, NULL, NULL) < 0 &&
	    !lr_record_salvage(bytes, size, &r))
		lr_debug("store: nothing is known of %s", e->id);
	*ret = r;
	return 0;
}

static int remove_dir(const struct lr_entry *e)
{
	return unlinkat(e->store->fd, e->id, AT_REMOVEDIR) < 0 && errno != ENOENT ? -errno : 0;
}

int lr_store_remove(struct lr_entry *e, struct lr_err *err)
{
	/* What the record names is gone. If we are killed from here on, an entry without a record
	 * is left, which any `delete` may remove. Most entries hold nothing but the record, others
	 * that and a filter. */
	(void)unlinkat(e->dir, RECORD, 0);
	int r = remove_dir(e);
	if (r < 0 && unlinkat(e->dir, LR_STORE_SECCOMP, 0) == 0)
		r = remove_dir(e);
	if (r < 0) {
		/* Removed by their names: that takes few calls and no descriptor, and when a
		 * creation is undone there may be none left. */
		(void)unlinkat(e->dir, RECORD_TMP, 0);
		(void)unlinkat(e->dir, LR_STORE_COPIED, 0);
		lr_store_fifos_remove(e);
		r = remove_dir(e);
	}
	/* If somebody has removed our directory meanwhile, this one is the next container's. */
	int ours = r < 0 ? lives(e->dir, e->id, err) : 0;
	if (ours <= 0)
		return ours;
	r = lr_remove_tree(e->store->fd, e->id);
	return r < 0 ? lr_fail(err, -r, "remove %s/%s", e->store->path, e->id) : 0;
}

static int by_name(const void *a, const void *b)
{
	return strcmp(*(const char *const *)a, *(const char *const *)b);
}

int lr_store_list(const struct lr_store *s, struct lr_arena *a, struct oci_strv *ret,
		  struct lr_err *err)
{
	LR_CLEANUP_DIR DIR *dir = lr_opendir_at(s->fd, ".");
	struct oci_strv ids = {0};

	if (!dir)
		return lr_fail(err, errno, "list %s", s->path);
	for (struct dirent *e; (errno = 0, e = readdir(dir));) {
		if (lr_store_check_id(e->d_name, NULL) < 0 ||
		    (e->d_type != DT_DIR && e->d_type != DT_UNKNOWN))
			continue;
		ids.v = lr_grow(a, ids.v, ids.n, sizeof(*ids.v));
		if (!ids.v || !(ids.v[ids.n] = lr_strdup(a, e->d_name)))
			return lr_fail(err, ENOMEM, "list %s", s->path);
		ids.n++;
	}
	if (errno)
		return lr_fail(err, errno, "list %s", s->path);
	if (ids.n)
		qsort(ids.v, ids.n, sizeof(*ids.v), by_name);
	*ret = ids;
	return 0;
}

static int fifo_make(const struct lr_entry *e, const char *name, struct lr_err *err)
{
	if (mkfifoat(e->dir, name, 0600) < 0)
		return lr_fail(err, errno, "make the fifo %s", name);
	/* Opened for reading and writing: so the reader never sees an end of file, and the open
	 * does not block. */
	int fd = openat(e->dir, name, O_RDWR | O_CLOEXEC);
	return fd < 0 ? lr_fail(err, errno, "open the fifo %s", name) : fd;
}

int lr_store_fifos_make(struct lr_entry *e, struct lr_store_fifos *ret, struct lr_err *err)
{
	ret->go = fifo_make(e, LR_STORE_FIFO, err);
	if (ret->go < 0)
		return ret->go;
	ret->answer = fifo_make(e, LR_STORE_ANSWER, err);
	return ret->answer < 0 ? ret->answer : 0;
}

void lr_store_fifos_close(struct lr_store_fifos *f)
{
	f->go = lr_close(f->go);
	f->answer = lr_close(f->answer);
}

static int fifo_open(int dirfd, const char *path)
{
	int fd = openat(dirfd, path, O_WRONLY | O_NONBLOCK | O_NOFOLLOW | O_CLOEXEC);

	return fd < 0 ? -errno : fd;
}

int lr_store_fifo_waits(const struct lr_store *s, const char *id)
{
	char path[LR_STORE_ID_MAX + sizeof("/" LR_STORE_FIFO)];

	snprintf(path, sizeof(path), "%s/" LR_STORE_FIFO, id);
	LR_CLEANUP_FD int fd = fifo_open(s->fd, path);
	if (fd >= 0)
		return 1;
	return fd == -ENOENT || fd == -ENXIO ? 0 : fd;
}

int lr_store_fifos_open(const struct lr_entry *e, struct lr_store_fifos *ret)
{
	LR_CLEANUP_FD int go = fifo_open(e->dir, LR_STORE_FIFO);
	if (go < 0)
		return go;
	/* O_NONBLOCK: init may die just now, or another `start` may read what it says. */
	LR_CLEANUP_FD int answer =
		openat(e->dir, LR_STORE_ANSWER, O_RDONLY | O_NONBLOCK | O_NOFOLLOW | O_CLOEXEC);
	if (answer < 0)
		return -errno;
	*ret = (struct lr_store_fifos){.go = lr_take_fd(&go), .answer = lr_take_fd(&answer)};
	return 0;
}

void lr_store_fifos_remove(const struct lr_entry *e)
{
	unlinkat(e->dir, LR_STORE_FIFO, 0);
	unlinkat(e->dir, LR_STORE_ANSWER, 0);
}

/* ---- whose memory is being copied ------------------------------------------------------------ */

int lr_store_copying(const struct lr_entry *e, struct lr_err *err)
{
	LR_CLEANUP_FD int fd =
		openat(e->dir, LR_STORE_COPIED, O_RDWR | O_CREAT | O_NOFOLLOW | O_CLOEXEC, 0600);

	if (fd < 0 || flock(fd, LOCK_EX | LOCK_NB) < 0)
		return lr_fail(err, errno, "note that %s/%s is copied", e->store->path, e->id);
	return lr_take_fd(&fd);
}

int lr_store_copied(const struct lr_entry *e, struct lr_err *err)
{
	LR_CLEANUP_FD int fd = openat(e->dir, LR_STORE_COPIED, O_RDONLY | O_NOFOLLOW | O_CLOEXEC);

	if (fd < 0 && errno == ENOENT)
		return -ENOENT;
	if (fd < 0)
		return lr_fail(err, errno, "see whether %s/%s is copied", e->store->path, e->id);
	if (flock(fd, LOCK_SH | LOCK_NB) == 0)
		return -ENOENT;
	if (errno != EWOULDBLOCK)
		return lr_fail(err, errno, "see whether %s/%s is copied", e->store->path, e->id);
	return lr_take_fd(&fd);
}
