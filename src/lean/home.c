/* SPDX-License-Identifier: Apache-2.0 */
/* lean: the directory of what is prepared; see lean.h. */
#define LR_ROOM "lean"
#include <dirent.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/file.h>
#include <sys/mount.h>
#include <sys/stat.h>
#include <unistd.h>

#include "src/base/log.h"
#include "src/base/str.h"
#include "src/lean/internal.h"
#include "src/store/trust.h"
#include "src/sys/path.h"
#include "src/sys/proc.h"
#include "src/sys/syscalls.h"

#define DEAD "dead."

static const char *const dirs[] = {"key", "slot", "free", "used", "dirty", "net"};

void lr_lean_home_close(struct lr_lean_home *h)
{
	h->fd = lr_close(h->fd);
}

int lr_lean_home_lock(const struct lr_lean_home *h, int how, struct lr_err *err)
{
	struct stat st;
	LR_CLEANUP_FD int fd = openat(h->fd, "lock", O_RDWR | O_NOFOLLOW | O_CLOEXEC);

	if (fd < 0)
		return errno == ENOENT ? -ESTALE : lr_fail(err, errno, "open %s/lock", h->path);
	while (flock(fd, how) < 0) {
		if (errno == EWOULDBLOCK)
			return -EWOULDBLOCK;
		if (errno != EINTR)
			return lr_fail(err, errno, "lock %s", h->path);
	}
	if (fstat(fd, &st) < 0)
		return lr_fail(err, errno, "look at %s/lock", h->path);
	/* It was drained while we waited: the next home has another lock. */
	if (st.st_nlink == 0)
		return -ESTALE;
	return lr_take_fd(&fd);
}

int lr_lean_home_warm(const struct lr_lean_home *h, struct lr_err *err)
{
	LR_CLEANUP_FD int fd = openat(h->fd, ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC);

	if (fd < 0)
		return errno == ENOENT ? -ESTALE : lr_fail(err, errno, "open %s", h->path);
	while (flock(fd, LOCK_SH) < 0)
		if (errno != EINTR)
			return lr_fail(err, errno, "lock %s", h->path);
	return lr_take_fd(&fd);
}

bool lr_lean_home_warms(const struct lr_lean_home *h)
{
	LR_CLEANUP_FD int fd = openat(h->fd, ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC);

	return fd < 0 || flock(fd, LOCK_EX | LOCK_NB) < 0;
}

/* path "": fd itself, which may be the directory beneath the mount. */
static bool is_mount(int fd, const char *path)
{
	struct statx st;

	return lr_statx(fd, path, AT_SYMLINK_NOFOLLOW | (*path ? 0 : AT_EMPTY_PATH), 0, &st) >= 0 &&
	       st.stx_attributes & STATX_ATTR_MOUNT_ROOT;
}

/* Made as the last step of making the home fit: without it, the steps are done again. */
#define FIT "fit"

static bool is_fit(const struct lr_lean_home *h)
{
	return is_mount(h->fd, "") && faccessat(h->fd, FIT, F_OK, 0) == 0;
}

static int fit(const struct lr_lean_home *h, struct lr_err *err)
{
	LR_CLEANUP_FD int lock = lr_lean_home_lock(h, LOCK_EX, err);

	if (lock < 0)
		return lock;
	if (!is_mount(AT_FDCWD, h->path) && mount(h->path, h->path, NULL, MS_BIND, NULL) < 0)
		return lr_fail(err, errno, "bind %s onto itself", h->path);
	if (mount(NULL, h->path, NULL, MS_PRIVATE, NULL) < 0)
		return lr_fail(err, errno, "make %s private", h->path);
	LR_CLEANUP_FD int mark = openat(h->fd, FIT, O_WRONLY | O_CREAT | O_CLOEXEC, 0600);
	return mark < 0 ? lr_fail(err, errno, "create %s/" FIT, h->path) : 0;
}

/* -ENOENT comes without a text. What is in here says where the caller mounts and writes, as a
 * record does, so it counts only if nobody else can have made it. */
static int open_ours(const char *path, struct lr_err *err)
{
	struct stat st;
	LR_CLEANUP_FD int fd = lr_open(path, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);

	if (fd < 0 || fstat(fd, &st) < 0)
		return errno == ENOENT ? -ENOENT : lr_fail(err, errno, "open %s", path);
	return lr_trust_ours(&st) ? lr_take_fd(&fd) : lr_trust_refuse(&st, "the pool", path, err);
}

bool lr_lean_home_mounted(const struct lr_lean_home *h)
{
	return is_mount(AT_FDCWD, h->path);
}

int lr_lean_home_fit(struct lr_lean_home *h, struct lr_err *err)
{
	if (is_fit(h))
		return 0;
	int r = fit(h, err);
	if (r < 0)
		return r;
	/* Opened again, as mounts below the directory beneath the mount would not be seen. */
	lr_close(h->fd);
	h->fd = open_ours(h->path, err);
	if (h->fd == -ENOENT)
		lr_fail(err, ENOENT, "open %s", h->path);
	return h->fd < 0 ? h->fd : 0;
}

/* ENOENT: it is being drained. */
static int fail_fill(const char *path, struct lr_err *err)
{
	return errno == ENOENT ? -ESTALE : lr_fail(err, errno, "make %s", path);
}

static int fill(int store, struct lr_lean_home *h, struct lr_err *err)
{
	h->fd = lr_close(h->fd);
	if ((mkdirat(store, LR_LEAN_DIR, 0700) < 0 && errno != EEXIST) ||
	    (mkdir(h->path, 0700) < 0 && errno != EEXIST))
		return fail_fill(h->path, err);
	h->fd = open_ours(h->path, err);
	if (h->fd < 0)
		return h->fd == -ENOENT ? -ESTALE : h->fd;
	for (size_t i = 0; i < LR_ARRAY_SIZE(dirs); i++)
		if (mkdirat(h->fd, dirs[i], 0700) < 0 && errno != EEXIST)
			return fail_fill(h->path, err);
	LR_CLEANUP_FD int lock = openat(h->fd, "lock", O_RDWR | O_CREAT | O_CLOEXEC, 0600);
	return lock < 0 ? fail_fill(h->path, err) : lr_lean_home_fit(h, err);
}

int lr_lean_home_whole(int store, struct lr_lean_home *h, struct lr_err *err)
{
	if (h->fd >= 0 && faccessat(h->fd, "lock", F_OK, AT_SYMLINK_NOFOLLOW) == 0)
		return 0;
	return fill(store, h, err);
}

void lr_lean_homes_bury(int store)
{
	LR_CLEANUP_DIR DIR *d = lr_opendir_at(store, LR_LEAN_DIR);

	if (!d && errno != ENOENT)
		lr_warn("lean: open %s: %s", LR_LEAN_DIR, lr_strerror(errno));
	if (!d)
		return;
	for (struct dirent *e; (e = readdir(d));) {
		int r = lr_has_prefix(e->d_name, DEAD) ? lr_remove_tree(dirfd(d), e->d_name) : 0;
		if (r < 0)
			lr_warn("lean: %s/%s is left: %s", LR_LEAN_DIR, e->d_name, lr_strerror(-r));
	}
	/* It stays if there are homes of other mount namespaces. */
	(void)unlinkat(store, LR_LEAN_DIR, AT_REMOVEDIR);
}

int lr_lean_unmount(const char *path)
{
	while (umount2(path, MNT_DETACH | UMOUNT_NOFOLLOW) == 0)
		;
	return errno == EINVAL ? EBUSY : errno;
}

int lr_lean_home_remove(int store, struct lr_lean_home *h, struct lr_err *err)
{
	char dead[64];

	int busy = lr_lean_unmount(h->path);
	h->fd = lr_close(h->fd);
	LR_CLEANUP_FD int dir = openat(store, LR_LEAN_DIR, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	/* By one rename, or somebody would use a home that is half removed. */
	snprintf(dead, sizeof(dead), DEAD "%.32s.%d", h->name, getpid());
	if (dir < 0 || (renameat(dir, h->name, dir, dead) < 0 && errno != ENOENT))
		return lr_fail(err, errno == EBUSY ? busy : errno, "remove %s", h->path);
	lr_lean_homes_bury(store);
	return 0;
}

static int open_home(int store, const char *store_path, struct lr_arena *a, struct lr_lean_home *h,
		     struct lr_err *err)
{
	struct stat st;

	h->path = lr_strf(a, "%s/" LR_LEAN_DIR "/%s", store_path, h->name);
	if (!h->path)
		return lr_fail(err, ENOMEM, "make a path");
	if (fstatat(store, LR_LEAN_DIR, &st, AT_SYMLINK_NOFOLLOW) < 0)
		return errno == ENOENT ? -ENOENT : lr_fail(err, errno, "look at %s", h->path);
	if (!lr_trust_ours(&st))
		return lr_trust_refuse(&st, "the directory of", h->path, err);
	h->fd = open_ours(h->path, err);
	return h->fd < 0 ? h->fd : 0;
}

const char *lr_lean_home_name(struct lr_arena *a, struct lr_err *err)
{
	struct stat st;

	/* Pins are mounts, which belong to a mount namespace; managers in different ones may use
	 * the same ROOT. */
	if (stat("/proc/self/ns/mnt", &st) < 0) {
		lr_fail(err, errno, "stat /proc/self/ns/mnt");
		return NULL;
	}
	const char *name = lr_strf(a, "m%lu", (unsigned long)st.st_ino);
	if (!name)
		lr_fail(err, ENOMEM, "make a path");
	return name;
}

int lr_lean_home_open(int store, const char *store_path, enum lr_lean_home_make make,
		      struct lr_arena *a, struct lr_lean_home *ret, struct lr_err *err)
{
	struct lr_lean_home h = LR_LEAN_HOME_NONE;

	h.name = lr_lean_home_name(a, err);
	if (!h.name)
		return -(err ? err->code : EIO);
	int r = open_home(store, store_path, a, &h, err);
	if ((r == -ENOENT && make) || (r >= 0 && make == LR_LEAN_HOME_REPAIR))
		r = fill(store, &h, err);
	if (r < 0) {
		lr_lean_home_close(&h);
		return r;
	}
	*ret = h;
	return 0;
}

size_t lr_lean_home_in(const char *in_record)
{
	size_t len = strcspn(in_record, "/");
	bool named = in_record[0] == 'm' && strspn(in_record + 1, "0123456789") == len - 1;

	return named && len <= 32 && in_record[len] && !strchr(in_record + len + 1, '/') ? len : 0;
}

int lr_lean_home_named(int store, const char *store_path, const char *in_record, struct lr_arena *a,
		       struct lr_lean_home *ret, struct lr_err *err)
{
	struct lr_lean_home h = LR_LEAN_HOME_NONE;
	size_t len = lr_lean_home_in(in_record);

	if (len == 0)
		return lr_refuse(err, EPROTO, "the record names no slot: \"%.64s\"", in_record);
	h.name = lr_strndup(a, in_record, len);
	if (!h.name)
		return lr_fail(err, ENOMEM, "make a path");
	int r = open_home(store, store_path, a, &h, err);
	if (r < 0) {
		lr_lean_home_close(&h);
		return r;
	}
	*ret = h;
	return 0;
}

/* Only the first pid namespace sees all processes. */
static bool sees_all(int proc)
{
	struct stat st;

	return fstatat(proc, "self/ns/pid", &st, 0) == 0 && st.st_ino == LR_PROC_FIRST_PID_NS;
}

bool lr_lean_home_is_orphan(const char *name)
{
	uint64_t inode;
	LR_CLEANUP_DIR DIR *d = lr_opendir_at(AT_FDCWD, "/proc");

	if (!d || name[0] != 'm' || lr_parse_u64(name + 1, &inode) < 0 || !sees_all(dirfd(d)))
		return false;
	for (struct dirent *e; (errno = 0, e = readdir(d));) {
		char path[280];
		struct stat st;
		if (e->d_name[0] < '0' || e->d_name[0] > '9')
			continue;
		snprintf(path, sizeof(path), "%s/ns/mnt", e->d_name);
		/* The process is gone, or we may not look at it (EACCES). Neither counts as being
		 * in the namespace: without some capability there always are processes that we may
		 * not look at, and nothing would ever be removed. */
		bool none = fstatat(dirfd(d), path, &st, 0) < 0;
		if (none ? errno != ENOENT && errno != ESRCH && errno != EACCES
			 : st.st_ino == inode)
			return false;
	}
	return errno == 0;
}
