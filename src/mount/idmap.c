/* SPDX-License-Identifier: Apache-2.0 */
/*
 * mount: user namespaces for id-mapped mounts. A mapping comes from the mount's uidMappings and
 * gidMappings, from crun's option "idmap=uids=FS-HOST-SIZE#...;gids=..." (an "@" before the ids
 * makes the host side an id of the container), or from the container itself.
 */
#define LR_ROOM "mount"
#include "src/mount/internal.h"

#include <errno.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include "src/base/str.h"
#include "src/sys/path.h"
#include "src/sys/procfs.h"

static const char *lines_of(const struct oci_id_mappings *m, struct lr_arena *arena)
{
	const char *text = "";

	for (size_t i = 0; i < m->n && text; i++)
		text = lr_strf(arena, "%s%u %u %u\n", text, m->v[i].container_id, m->v[i].host_id,
			       m->v[i].size);
	return text;
}

/* A container id as the host sees it; the range must lie within one mapping. */
static int to_host(const struct oci_id_mappings *map, uint32_t id, uint32_t size, uint32_t *ret)
{
	for (size_t i = 0; map && i < map->n; i++) {
		const struct oci_id_mapping *m = &map->v[i];

		if (id < m->container_id || id - m->container_id >= m->size)
			continue;
		if (size > m->size - (id - m->container_id))
			return -ERANGE;
		*ret = m->host_id + (id - m->container_id);
		return 0;
	}
	return -ERANGE;
}

/* "10-20-5" -> three numbers. */
static int parse_triple(const char *s, size_t len, uint32_t v[3])
{
	char buf[40], *save = NULL;
	int n = 0;

	if (len >= sizeof(buf) || !len)
		return -EINVAL;
	memcpy(buf, s, len);
	buf[len] = '\0';
	if (buf[0] == '-' || buf[len - 1] == '-' || strstr(buf, "--"))
		return -EINVAL;
	for (char *p = strtok_r(buf, "-", &save); p; p = strtok_r(NULL, "-", &save))
		if (n == 3 || lr_parse_u32(p, &v[n++]) < 0)
			return -EINVAL;
	return n == 3 && v[2] ? 0 : -EINVAL;
}

/* The ranges of one kind, "0-1-10#@10-11-10", up to a ";" or the end. */
static int parse_ranges(const char **s, const struct oci_id_mappings *container,
			struct lr_arena *arena, const char **ret)
{
	const char *text = "", *p = *s;
	bool relative = *p == '@';

	for (;;) {
		uint32_t v[3];
		bool at = *p == '@';
		p += at;
		size_t len = strcspn(p, "#;");
		int r = parse_triple(p, len, v);
		if (r == 0 && (at || relative))
			r = to_host(container, v[1], v[2], &v[1]);
		if (r < 0)
			return r;
		text = lr_strf(arena, "%s%u %u %u\n", text, v[0], v[1], v[2]);
		if (!text)
			return -ENOMEM;
		p += len;
		if (*p != '#')
			break;
		p++;
	}
	*s = p;
	*ret = text;
	return 0;
}

static int parse_spec(const char *s, const struct lr_mount_opts *opts, struct lr_arena *arena,
		      struct lr_mount_map *map)
{
	while (*s) {
		bool uid = lr_has_prefix(s, "uids="), gid = lr_has_prefix(s, "gids=");
		const char **to = uid ? &map->uids : &map->gids;

		if ((!uid && !gid) || *to)
			return -EINVAL;
		s += 5;
		int r = parse_ranges(&s, uid ? opts->uid_map : opts->gid_map, arena, to);
		if (r < 0)
			return r;
		if (*s == ';')
			s++;
	}
	return map->uids && map->gids ? 0 : -EINVAL;
}

static int refuse(const struct lr_mount_op *op, struct lr_err *err, const char *what,
		  const char *hint)
{
	lr_refuse(err, EINVAL, "id-mapped mount on %s: %s", op->dest, what);
	lr_err_at(err, "mounts[%zu].%s", op->index, op->o.idmap ? "options" : "uidMappings");
	if (hint)
		lr_err_hint(err, "%s", hint);
	return -EINVAL;
}

static int choose_map(const struct lr_mount_plan *plan, const struct lr_mount_op *op,
		      const struct oci_mount *m, struct lr_arena *arena, struct lr_mount_map *map,
		      struct lr_err *err)
{
	const struct lr_mount_opts *opts = &plan->opts;
	bool has_container = opts->uid_map && opts->uid_map->n && opts->gid_map && opts->gid_map->n;
	int r = 0;

	*map = (struct lr_mount_map){.fd = LR_NOFD};
	if (op->o.idmap_spec) {
		r = parse_spec(op->o.idmap_spec, opts, arena, map);
		if (r < 0 && r != -ENOMEM)
			return refuse(op, err,
				      r == -ERANGE ? "an id after @ is not mapped"
						   : "the mapping cannot be read",
				      "write idmap=uids=FS-HOST-SIZE#...;gids=FS-HOST-SIZE#...");
	} else if (m->uid_mappings.n || m->gid_mappings.n) {
		if (!m->uid_mappings.n || !m->gid_mappings.n)
			return refuse(op, err, "uidMappings and gidMappings go together", NULL);
		map->uids = lines_of(&m->uid_mappings, arena);
		map->gids = lines_of(&m->gid_mappings, arena);
	} else if (has_container) {
		map->uids = lines_of(opts->uid_map, arena);
		map->gids = lines_of(opts->gid_map, arena);
	} else if (opts->userns_path) {
		map->path = opts->userns_path;
	} else {
		return refuse(op, err, "there is no mapping to use",
			      "give the mount uidMappings and gidMappings, or the container a user "
			      "namespace with mappings");
	}
	if (r < 0 || (!map->path && (!map->uids || !map->gids))) {
		lr_fail(err, ENOMEM, "mount plan");
		return -ENOMEM;
	}
	return 0;
}

static bool same(const char *a, const char *b)
{
	return a && b ? lr_streq(a, b) : a == b;
}

int lr_mount_idmap_plan(struct lr_mount_plan *plan, struct lr_mount_op *op,
			const struct oci_mount *m, struct lr_arena *arena, struct lr_err *err)
{
	struct lr_mount_map map;

	if (!op->o.idmap && !m->uid_mappings.n && !m->gid_mappings.n)
		return 0;
	if (op->kind != LR_MOUNT_BIND)
		return refuse(op, err, "only a bind mount can be id-mapped",
			      "mount the file system on the host and bind it");
	int r = choose_map(plan, op, m, arena, &map, err);
	if (r < 0)
		return r;
	for (size_t i = 0; i < plan->n_maps; i++)
		if (same(plan->maps[i].uids, map.uids) && same(plan->maps[i].gids, map.gids) &&
		    same(plan->maps[i].path, map.path)) {
			op->map = (ssize_t)i;
			return 0;
		}
	op->map = (ssize_t)plan->n_maps;
	plan->maps[plan->n_maps++] = map;
	return 0;
}

/* The namespace lives as long as somebody is in it or holds it open: a child sits in it until the
 * parent has opened it. It ends with the parent, too: then the pipe's other end is gone. */
static pid_t sit_in_new_userns(int wait_fd, int other_end)
{
	struct clone_args args = {.flags = CLONE_NEWUSER, .exit_signal = SIGCHLD};
	pid_t pid = lr_clone3(&args, sizeof(args));

#if !defined(__s390__) && !defined(__CRIS__)
	if (pid == -ENOSYS || pid == -EPERM) {
		pid = (pid_t)syscall(SYS_clone, CLONE_NEWUSER | SIGCHLD, 0, 0, 0, 0);
		if (pid < 0)
			pid = -errno;
	}
#endif
	if (pid != 0)
		return pid;
	char c;
	close(other_end);
	while (read(wait_fd, &c, 1) < 0 && errno == EINTR)
		;
	_exit(0);
}

static int write_map(int procfd, pid_t pid, const char *file, const char *lines, struct lr_err *err)
{
	char path[64];

	snprintf(path, sizeof(path), "%d/%s", (int)pid, file);
	int r = lr_procfs_write(procfd, path, lines, strlen(lines));
	if (r < 0) {
		lr_fail(err, -r, "write %s of an id-mapped mount", file);
		lr_err_hint(err, "ranges must not overlap, and mapping other ids needs CAP_SETUID "
				 "and CAP_SETGID on the host");
	}
	return r;
}

static int map_and_open(const struct lr_mount_map *map, int procfd, pid_t pid, struct lr_err *err)
{
	char path[64];
	int r = write_map(procfd, pid, "uid_map", map->uids, err);

	if (r < 0 || (r = write_map(procfd, pid, "gid_map", map->gids, err)) < 0)
		return r;
	snprintf(path, sizeof(path), "%d/ns/user", (int)pid);
	r = lr_procfs_open_magic(procfd, path, O_RDONLY);
	if (r < 0)
		lr_fail(err, -r, "open the user namespace of an id-mapped mount");
	return r;
}

int lr_mount_idmap_open(const struct lr_mount_map *map, int procfd, struct lr_err *err)
{
	if (map->path) {
		int fd = lr_open(map->path, O_RDONLY | O_CLOEXEC);
		int r = fd >= 0 ? fd : -errno;
		if (r < 0)
			lr_fail(err, -r, "open %s", map->path);
		return r;
	}
	int ends[2];
	if (pipe2(ends, O_CLOEXEC) < 0) {
		int r = -errno;
		lr_fail(err, -r, "pipe");
		return r;
	}
	LR_CLEANUP_FD int rd = ends[0];
	LR_CLEANUP_FD int wr = ends[1];
	pid_t pid = sit_in_new_userns(rd, wr);
	if (pid < 0) {
		lr_fail(err, -pid, "create a user namespace for an id-mapped mount");
		lr_err_hint(err, "check user.max_user_namespaces");
		return pid;
	}
	int r = map_and_open(map, procfd, pid, err);
	lr_close(lr_take_fd(&wr)); /* the child sees the end of the pipe */
	while (waitpid(pid, NULL, 0) < 0 && errno == EINTR)
		;
	return r;
}

int lr_mount_idmap_fail(const struct lr_mount_op *op, int r, int tree, struct lr_err *err)
{
	lr_fail(err, -r, "id-map the mount of %s", op->source);
	lr_err_at(err, "mounts[%zu]", op->index);
	if (r == -EINVAL)
		lr_err_hint(err,
			    "its file system (0x%lx) must support id-mapped mounts in this kernel "
			    "(ext4, xfs: 5.12; btrfs: 5.15; tmpfs: 6.3), and not be mapped yet",
			    lr_fs_magic(tree));
	else if (r == -ENOSYS)
		lr_err_hint(err, "id-mapped mounts need Linux 5.12");
	else if (r == -EPERM)
		lr_err_hint(err, "id-mapping needs CAP_SYS_ADMIN over the file system, which a "
				 "rootless runtime does not have");
	return r;
}

int lr_mount_idmap_apply(const struct lr_mount_plan *plan, const struct lr_mount_op *op, int tree,
			 struct lr_err *err)
{
	struct mount_attr attr = {
		.attr_set = MOUNT_ATTR_IDMAP,
		.userns_fd = (uint64_t)plan->maps[op->map].fd,
	};
	unsigned flags = AT_EMPTY_PATH | (op->o.ridmap && op->o.rec ? AT_RECURSIVE : 0);
	int r = lr_mount_setattr(tree, "", flags, &attr);

	return r < 0 ? lr_mount_idmap_fail(op, r, tree, err) : 0;
}
