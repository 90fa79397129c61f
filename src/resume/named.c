/* SPDX-License-Identifier: Apache-2.0 */
/*
 * resume: Unix sockets get their names again, with the rights by which files are opened; they listen when
 * there are all rights, as who it was: that is whom their peers see (SO_PEERCRED). So are pairs made.
 *
 * A seed may name any file, and what is there may be an image's, or another container's, whose volume it
 * is. So the directory is opened without links; the name, in which there may be some, has to lead
 * there; and only a socket that nobody has any more makes way.
 */
#define LR_ROOM "resume"
#include <errno.h>
#include <fcntl.h>
#include <linux/openat2.h>
#include <stdio.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/un.h>
#include <sys/xattr.h>
#include <unistd.h>

#include "src/base/fd.h"
#include "src/base/str.h"
#include "src/resume/resuming.h"
#include "src/seed/socket.h"
#include "src/sys/syscalls.h"

/* Where a socket's file is to be. */
struct place {
	const struct lr_seed_endpoint *e;
	char path[sizeof(struct sockaddr_un)]; /* as the program named it */
	const char *name;                      /* its last component */
	const char *dir_path;
	int dir, base; /* base: from where `path` counts */
};

static int no_directory(const struct lr_resume *r, const struct place *x, int code,
			struct lr_err *err)
{
	lr_fail(err, code, "open the directory of the socket %s, at which the seed listened",
		x->dir_path);
	if (code != ENOENT)
		return -code;
	if (lr_seed_count(r->seed, LR_SEED_CHANGED))
		return resume_hint_changed(r, err);
	return lr_err_hint(err, "where the program makes it in its root, checkpoint --with-changes "
				"brings it along");
}

static int open_directories(const struct lr_resume *r, struct place *x, struct lr_err *err)
{
	char base[LR_SEED_PATH + 1];
	const int n = lr_seed_socket_base(x->dir_path, x->path);

	snprintf(base, sizeof(base), "%.*s", n > 0 ? n : 1, x->dir_path);
	x->dir = resume_open_path(x->dir_path, O_PATH | O_DIRECTORY);
	if (x->dir < 0)
		return no_directory(r, x, errno, err);
	x->base = resume_open_path(base, O_PATH | O_DIRECTORY);
	return x->base < 0 ? no_directory(r, x, errno, err) : 0;
}

static bool leads_nowhere(int code)
{
	return code == ENOENT || code == ENOTDIR || code == ELOOP || code == EACCES ||
	       code == EXDEV;
}

/* /var/run is a link in most images. What is none of the image's doing, as those of /proc, leads
 * nowhere. */
static int check_leads_there(const struct place *x, struct lr_err *err)
{
	const struct open_how how = {.flags = O_PATH | O_DIRECTORY | O_CLOEXEC,
				     .resolve = RESOLVE_NO_MAGICLINKS};
	char path[sizeof(x->path)];
	struct stat own, led;

	snprintf(path, sizeof(path), "%s", x->path);
	path[x->name - x->path] = 0;
	LR_CLEANUP_FD int fd = lr_openat2(x->base, *path ? path : ".", &how);
	if (fd < 0 && !leads_nowhere(-fd))
		return lr_fail(err, -fd, "look where %s leads", x->path);
	if (fd >= 0 && (fstat(fd, &led) < 0 || fstat(x->dir, &own) < 0))
		return lr_fail(err, errno, "look where %s leads", x->path);
	if (fd >= 0 && own.st_dev == led.st_dev && own.st_ino == led.st_ino)
		return 0;
	lr_refuse(err, ENOTSUP, "%s, at which the seed listened, is not in %s here", x->path,
		  x->dir_path);
	return lr_err_hint(err, "use the root file system that the seed was made with");
}

/* 0: somebody has the name; or an errno. By a socket of another type than any that listens: who has the name is told of
 * nothing. */
static int ask(const struct place *x, int fd)
{
	struct sockaddr_un un = {.sun_family = AF_UNIX};

	memcpy(un.sun_path, x->name, strlen(x->name));
	return connect(fd, (struct sockaddr *)&un, sizeof(un)) == 0 || errno == EPROTOTYPE ? 0
											   : errno;
}

/* Who may not connect to a socket can remove it nevertheless, and a mode may say that of its own owner. So it is asked
 * with all rights whether somebody has it, and only that: with what rights it is removed stays as it was. */
static int ask_with_all_rights(const struct lr_resume *r, const struct place *x, int fd, int *code,
			       struct lr_err *err)
{
	if (!r->opts.lower || !r->opts.raise)
		return 0;
	int rc = r->opts.raise(r->opts.arg, err);
	if (rc < 0)
		return rc;
	*code = ask(x, fd);
	return r->opts.lower(r->opts.arg, err);
}

/* 1: nobody has the name, 0: somebody does; or an error. */
static int is_nobodys(const struct lr_resume *r, const struct place *x, struct lr_err *err)
{
	LR_CLEANUP_FD int fd = socket(AF_UNIX, SOCK_DGRAM | SOCK_CLOEXEC, 0);

	if (fd < 0 || fchdir(x->dir) < 0)
		return lr_fail(err, errno, "ask who has %s", x->path);
	int code = ask(x, fd);
	int rc = code == EACCES ? ask_with_all_rights(r, x, fd, &code, err) : 0;
	if (rc < 0 || !code)
		return rc;
	if (code == ECONNREFUSED)
		return 1;
	rc = lr_fail(err, code, "ask who has %s", x->path);
	return code == EACCES ? lr_err_hint(err, "if nobody has it any more, remove it") : rc;
}

/* The parent's, which its root, or the seed's files, still have. */
static int make_way(const struct lr_resume *r, const struct place *x, struct lr_err *err)
{
	struct stat st;

	if (fstatat(x->dir, x->name, &st, AT_SYMLINK_NOFOLLOW) < 0)
		return errno == ENOENT ? 0 : lr_fail(err, errno, "look at %s", x->path);
	if (!S_ISSOCK(st.st_mode)) {
		lr_refuse(err, EEXIST, "listen at %s, as the seed did: it is no socket here",
			  x->path);
		return lr_err_hint(err, "use the root file system that the seed was made with");
	}
	int rc = is_nobodys(r, x, err);
	if (rc < 0)
		return rc;
	if (!rc) {
		lr_refuse(err, EADDRINUSE, "listen at %s, as the seed did: somebody has it",
			  x->path);
		return lr_err_hint(err, "as its parent does, where both have the same files: give "
					"the child a root, or a volume, of its own");
	}
	return unlinkat(x->dir, x->name, 0) < 0 ? lr_fail(err, errno, "remove the old %s", x->path)
						: 0;
}

/* What is made in a directory with such a list gets one, whatever the mask says, and lets others in. */
static int check_no_list(const struct place *x, struct lr_err *err)
{
	if (fchdir(x->dir) < 0)
		return lr_fail(err, errno, "go to %s", x->dir_path);
	if (getxattr(".", "system.posix_acl_default", NULL, 0) >= 0)
		return lr_refuse(err, ENOTSUP,
				 "listen at %s, as the seed did: what is made in %s would get an "
				 "access list of its own",
				 x->path, x->dir_path);
	return errno == ENODATA || errno == ENOTSUP
		       ? 0
		       : lr_fail(err, errno, "look for access lists of %s", x->dir_path);
}

static int own_file(const struct place *x, struct lr_err *err)
{
	const struct lr_seed_endpoint *e = x->e;
	struct stat st;

	/* Who shares the directory may have put another file there, and may do so between any two calls:
	 * what is given away is what was looked at. */
	LR_CLEANUP_FD int file = openat(x->dir, x->name, O_PATH | O_NOFOLLOW | O_CLOEXEC);
	if ((file < 0 && errno != ENOENT) || (file >= 0 && fstat(file, &st) < 0))
		return lr_fail(err, errno, "look at %s, which was just made", x->path);
	if (file < 0 || !S_ISSOCK(st.st_mode))
		return lr_refuse(err, EBUSY, "somebody changes %s meanwhile", x->dir_path);
	if ((st.st_uid == e->file_uid && st.st_gid == e->file_gid) ||
	    fchownat(file, "", e->file_uid, e->file_gid, AT_EMPTY_PATH) == 0)
		return 0;
	lr_fail(err, errno, "give %s to user %u, and group %u", x->path, e->file_uid, e->file_gid);
	return lr_err_hint(err, "config.json's process could not do that itself: CAP_CHOWN");
}

/* The mode is what the mask leaves: there is no instant with another one. */
static int bind_file(const struct place *x, int fd, struct lr_err *err)
{
	const struct lr_seed_endpoint *e = x->e;
	struct sockaddr_un un = {.sun_family = AF_UNIX};
	const size_t n = strlen(x->path);

	memcpy(un.sun_path, x->path, n);
	if (fchdir(x->base) < 0)
		return lr_fail(err, errno, "go to the directory of %s", x->path);
	const mode_t mask = umask(~e->mode & 0777);
	int rc = bind(fd, (struct sockaddr *)&un, (socklen_t)(sizeof(un.sun_family) + n));
	int code = errno;
	umask(mask);
	return rc < 0 ? lr_fail(err, code, "make the socket %s again", x->path) : own_file(x, err);
}

static int bind_at(const struct lr_resume *r, struct place *x, int fd, struct lr_err *err)
{
	int rc = open_directories(r, x, err);

	if (rc >= 0)
		rc = check_leads_there(x, err);
	if (rc >= 0)
		rc = check_no_list(x, err);
	if (rc >= 0)
		rc = make_way(r, x, err);
	return rc < 0 ? rc : bind_file(x, fd, err);
}

int resume_bind_file(const struct lr_resume *r, const struct lr_seed_endpoint *e, int fd,
		     struct lr_err *err)
{
	const char *at = (const char *)lr_seed_data(r->seed, &e->address) + sizeof(sa_family_t);
	struct place x = {
		.e = e, .dir_path = lr_seed_text(r->seed, e->dir), .dir = LR_NOFD, .base = LR_NOFD};

	snprintf(x.path, sizeof(x.path), "%.*s", (int)(e->address.length - sizeof(sa_family_t)),
		 at);
	const char *slash = strrchr(x.path, '/');
	x.name = slash ? slash + 1 : x.path;
	LR_CLEANUP_FD int here = lr_open(".", O_PATH | O_DIRECTORY | O_CLOEXEC);
	if (here < 0)
		return lr_fail(err, errno, "open the working directory");
	int rc = bind_at(r, &x, fd, err);
	lr_close(x.dir);
	lr_close(x.base);
	return fchdir(here) < 0 && rc >= 0 ? lr_fail(err, errno, "go back") : rc;
}

/* ---- as whom it is done ----------------------------------------------------------------------- */

/* The kernel makes a process visible, or not, when its ids change. */
static int take_ids(uint32_t uid, uint32_t gid)
{
	const uint32_t keep = UINT32_MAX;
	const int dumpable = prctl(PR_GET_DUMPABLE, 0, 0, 0, 0);

	/* Root can do both; so its ids are the last that are given up, and the first to come back. */
	if (geteuid() && syscall(SYS_setresuid, keep, uid, keep) < 0)
		return -errno;
	if (syscall(SYS_setresgid, keep, gid, keep) < 0 ||
	    syscall(SYS_setresuid, keep, uid, keep) < 0)
		return -errno;
	return prctl(PR_SET_DUMPABLE, dumpable == 1, 0, 0, 0) < 0 ? -errno : 0;
}

int resume_act_as(uint32_t uid, uint32_t gid, int (*act)(void *arg), void *arg)
{
	const uint32_t own_uid = geteuid(), own_gid = getegid();
	const bool other = own_uid != uid || own_gid != gid;
	int rc = other ? take_ids(uid, gid) : 0;

	if (rc >= 0)
		rc = act(arg);
	int back = other ? take_ids(own_uid, own_gid) : 0;
	return rc < 0 ? rc : back;
}

struct listening {
	int fd, backlog;
};

static int start_listening(void *arg)
{
	const struct listening *x = arg;

	return listen(x->fd, x->backlog) < 0 ? -errno : 0;
}

int resume_listen_as(const struct lr_seed_endpoint *e, int fd, struct lr_err *err)
{
	struct listening x = {fd, (int)e->backlog};
	int rc = resume_act_as(e->uid, e->gid, start_listening, &x);

	return rc < 0 ? lr_fail(err, -rc, "listen as user %u", e->uid) : 0;
}
