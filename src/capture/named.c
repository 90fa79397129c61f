/* SPDX-License-Identifier: Apache-2.0 */
/* capture: Unix sockets that listen: their names, and the files that these have. */
#define LR_ROOM "capture"
#include <errno.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <sys/xattr.h>
#include <unistd.h>

#include "src/base/fd.h"
#include "src/base/str.h"
#include "src/capture/files.h"
#include "src/capture/state.h"
#include "src/seed/socket.h"

#ifndef SIOCUNIXFILE
#define SIOCUNIXFILE 0x89E0
#endif

#define DELETED " (deleted)"

/* As bind(2) takes it: what the kernel says is one byte longer where it is a path. */
static const char *take_name(struct cap *c, int fd, struct cap_endpoint *e,
			     struct sockaddr_un *name)
{
	struct {
		struct sockaddr_un un;
		char more[8];
	} a = {0};
	socklen_t n = sizeof(a);

	if (getsockname(fd, (struct sockaddr *)&a, &n) < 0)
		return cap_socket_failed(c, errno);
	if (n > sizeof(a))
		return cap_socket_failed(c, ENAMETOOLONG);
	if (n <= offsetof(struct sockaddr_un, sun_path))
		return "a Unix socket that listens, and has no name";
	*name = a.un;
	e->size = n;
	if (a.un.sun_path[0])
		e->size = offsetof(struct sockaddr_un, sun_path) +
			  strnlen(a.un.sun_path, sizeof(a.un.sun_path));
	memcpy(e->address, &a.un, e->size);
	return NULL;
}

/* NULL: its mount is one of the container's. */
static const char *why_outside(struct cap *c, int fd)
{
	char path[40], *text, *at;
	size_t size;

	snprintf(path, sizeof(path), "/proc/self/fdinfo/%d", fd);
	int r = cap_read_all(c->a, path, &text, &size, NULL);
	if (r >= 0)
		r = cap_mounts_read(c);
	if (r < 0)
		return cap_socket_failed(c, -r);
	at = strstr(text, "mnt_id:");
	return at && cap_mount_is_inside(c, (unsigned)strtoul(at + strlen("mnt_id:"), NULL, 10))
		       ? NULL
		       : "a socket that listens, and whose file is outside";
}

/* The mode of one that has a list is not what its group may do. link: to a descriptor of it. */
static const char *access_list(struct cap *c, const char *link)
{
	if (getxattr(link, "system.posix_acl_access", NULL, 0) >= 0)
		return "a socket that listens, and whose file has an access list";
	return errno == ENODATA || errno == ENOTSUP ? NULL : cap_socket_failed(c, errno);
}

static const char *take_file(struct cap *c, int file, struct cap_endpoint *e)
{
	struct stat st;

	if (fstat(file, &st) < 0)
		return cap_socket_failed(c, errno);
	/* What else there may be says nothing of a socket. */
	e->seed.mode = st.st_mode & 0777;
	e->seed.file_uid = st.st_uid;
	e->seed.file_gid = st.st_gid;
	return cap_id_inside(c, &c->uids, &e->seed.file_uid) &&
			       cap_id_inside(c, &c->gids, &e->seed.file_gid)
		       ? NULL
		       : "a socket whose file is of somebody whom its user namespace does not know";
}

/* The name that a program gave may count from a directory that it has left since, and have links in it.
 * The kernel knows the file, wherever it is by now. */
static const char *take_place(struct cap *c, int fd, const char *name, struct cap_endpoint *e)
{
	char link[40];
	LR_CLEANUP_FD int file = ioctl(fd, SIOCUNIXFILE);

	if (file < 0)
		return cap_socket_failed(c, errno);
	snprintf(link, sizeof(link), "/proc/self/fd/%d", file);
	errno = ENOMEM;
	char *place = cap_read_link(c->a, link), *slash = place ? strrchr(place, '/') : NULL;
	if (!place)
		return cap_socket_failed(c, errno);
	if (!slash || place[0] != '/')
		return "a socket whose file can't be told";
	const char *own = strrchr(name, '/');
	if (!lr_streq(slash + 1, own ? own + 1 : name))
		return lr_has_suffix(place, DELETED)
			       ? "a socket that listens, and whose file is deleted"
			       : "a socket that listens, and whose file has another name now";
	const char *why = why_outside(c, file);
	if (why)
		return why;
	slash[slash == place] = 0;
	e->dir = place;
	if (lr_seed_socket_base(place, name) < 0)
		return "a socket that listens, and whose name leads elsewhere now";
	why = access_list(c, link);
	return why ? why : take_file(c, file, e);
}

static const char *other_option(struct cap *c, int fd)
{
	static const struct cap_other others[] = {
		{SOL_SOCKET, SO_PASSSEC, 0, "a socket that listens, with SO_PASSSEC"},
		{SOL_SOCKET, SO_PASSPIDFD, 0, "a socket that listens, with SO_PASSPIDFD"},
		{SOL_SOCKET, SO_PASSRIGHTS, 1,
		 "a socket that listens, and that takes no descriptors (SO_PASSRIGHTS)"},
	};

	return cap_socket_other(c, fd, others, LR_ARRAY_SIZE(others));
}

/* Whom its peers see: who made it listen. */
static const char *take_owner(struct cap *c, int fd, struct cap_endpoint *e)
{
	struct ucred owner;
	socklen_t n = sizeof(owner);

	if (getsockopt(fd, SOL_SOCKET, SO_PEERCRED, &owner, &n) < 0)
		return cap_socket_failed(c, errno);
	e->seed.uid = owner.uid;
	e->seed.gid = owner.gid;
	return cap_id_inside(c, &c->uids, &e->seed.uid) && cap_id_inside(c, &c->gids, &e->seed.gid)
		       ? NULL
		       : "a socket of somebody whom its user namespace does not know";
}

const char *cap_named_look(struct cap *c, const struct cap_file *f, int fd, struct cap_endpoint *e)
{
	char path[sizeof(struct sockaddr_un)];
	struct sockaddr_un name;
	struct cap_socket told = {0};
	const char *why = take_name(c, fd, e, &name);
	int r = why ? 0 : cap_socket_told(c, CAP_UNIX, f->inode, &told);

	if (why)
		return why;
	if (r < 0 || told.backlog > INT32_MAX)
		return cap_socket_failed(c, r < 0 ? -r : EPROTO);
	e->seed.backlog = told.backlog;
	e->seed.protocol = 0;
	snprintf(path, sizeof(path), "%.*s", (int)sizeof(name.sun_path), name.sun_path);
	why = path[0] ? take_place(c, fd, path, e) : NULL;
	if (!why)
		why = other_option(c, fd);
	return why ? why : take_owner(c, fd, e);
}
