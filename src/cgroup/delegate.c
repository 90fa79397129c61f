/* SPDX-License-Identifier: Apache-2.0 */
/*
 * cgroup: the annotation run.oci.delegate-cgroup. Limits are the container's cgroup's; its
 * processes live in one below it that belongs to the container's root, so that the cgroup that the
 * container sees as the root of its namespace has none and may pass controllers on. Cgroup v2 only:
 * v1 has no safe delegation.
 */
#define LR_ROOM "cgroup"
#include <fcntl.h>
#include <unistd.h>

#include "src/cgroup/internal.h"
#include "src/sys/path.h"

#define WHERE "annotations[\"" LR_CGROUP_DELEGATE "\"]"

int lr_cgroup_plan_delegate(struct lr_cgroup_plan *p, const struct lr_cgroup_opts *o,
			    struct lr_arena *arena, struct lr_err *err)
{
	const char *name = o->delegate;

	if (!name || p->ref.n == 0)
		return 0;
	if (p->ref.mode != LR_CGROUP_V2) {
		lr_warn("annotation " LR_CGROUP_DELEGATE " is ignored: it needs cgroup v2");
		return 0;
	}
	if (!*name || *name == '/' || lr_path_has_dotdot(name) || strpbrk(name, "\n\r")) {
		lr_refuse(err, EINVAL, "\"%.200s\" is no path of a sub-cgroup", name);
		return lr_err_at(err, WHERE);
	}
	p->delegate = lr_strf(arena, "%s/%s", p->ref.v[0].path, name);
	p->delegate_uid = o->root_uid;
	p->delegate_gid = o->root_gid;
	return p->delegate ? 0 : lr_fail(err, ENOMEM, "plan the delegated cgroup");
}

/* cgroups(7), "Delegating a hierarchy". */
static int give(const char *dir, uid_t uid, gid_t gid)
{
	static const char *const files[] = {".", "cgroup.procs", "cgroup.threads",
					    "cgroup.subtree_control"};
	LR_CLEANUP_FD int fd = open(dir, O_PATH | O_DIRECTORY | O_CLOEXEC);

	if (fd < 0)
		return -errno;
	for (size_t i = 0; i < LR_ARRAY_SIZE(files); i++)
		if (fchownat(fd, files[i], uid, gid, 0) < 0)
			return -errno;
	return 0;
}

int lr_cgroup_make_delegate(struct lr_cgroup_plan *p, struct lr_err *err)
{
	char procs[PATH_MAX];
	int r = lr_cgroup_path(procs, p->delegate, "cgroup.procs");

	if (r >= 0)
		r = lr_mkdir_p(p->delegate, 0755);
	if (r >= 0 && (p->delegate_uid != geteuid() || p->delegate_gid != getegid()))
		r = give(p->delegate, p->delegate_uid, p->delegate_gid);
	/* Opened here: the kernel asks who opened it, and in a user namespace root may not move
	 * anybody out of the cgroup above. It ends with this process, and with execve. */
	if (r >= 0) {
		p->delegate_fd = open(procs, O_WRONLY | O_CLOEXEC);
		r = p->delegate_fd < 0 ? -errno : 0;
	}
	if (r < 0) {
		lr_fail(err, -r, "make the delegated cgroup %s", p->delegate);
		return lr_err_at(err, WHERE);
	}
	return 0;
}

int lr_cgroup_enter_delegate(const struct lr_cgroup_plan *p, struct lr_err *err)
{
	if (!p || !p->delegate || write(p->delegate_fd, "0", 1) == 1)
		return 0;
	lr_fail(err, errno, "enter the delegated cgroup %s", p->delegate);
	return lr_err_at(err, WHERE);
}
