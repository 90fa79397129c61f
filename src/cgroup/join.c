/* SPDX-License-Identifier: Apache-2.0 */
/*
 * cgroup: processes enter. See cgroup.h for why v1 goes by `tasks` and v2 by clone3.
 *
 * Measured on 6.18, 0.3 s between tries, ten hierarchies: nine v1 ones by "0" > tasks 170-230 µs in
 * all; by cgroup.procs 6-7 ms (the first write waits, the rest follow at once); the v2 one by
 * cgroup.procs 5-8 ms.
 */
#define LR_ROOM "cgroup"

#include "src/cgroup/internal.h"

#include <fcntl.h>
#include <unistd.h>

int lr_cgroup_ref_clone_fd(const struct lr_cgroup_ref *ref)
{
	int i = lr_cgroup_find_v2(ref), fd;

	if (i < 0 || lr_cgroup_ref_check(ref, NULL) < 0)
		return LR_NOFD;
	fd = lr_open(ref->v[i].path, O_PATH | O_DIRECTORY | O_CLOEXEC);
	return fd < 0 ? LR_NOFD : fd;
}

int lr_cgroup_clone_fd(const struct lr_cgroup_plan *plan)
{
	/* The v2 tree of a hybrid host has no pids controller: then the limit does not
	 * matter here. */
	if (plan->no_birth && plan->ref.mode == LR_CGROUP_V2)
		return LR_NOFD;
	return lr_cgroup_ref_clone_fd(&plan->ref);
}

static int explain(const char *dir, const char *ctrl, int r, struct lr_err *err)
{
	lr_fail(err, -r, "cannot join the cgroup %s", dir);
	if (r == -ENOENT)
		lr_err_hint(err,
			    "the container was deleted meanwhile, or --cgroup names a sub-cgroup "
			    "that was not made");
	else if (r == -ENOSPC)
		lr_err_hint(err, "cpuset.cpus or cpuset.mems is empty there");
	else if (r == -EINVAL && lr_cgroup_name_has(ctrl, "cpu"))
		lr_err_hint(err, "a realtime process needs cpu.rt_runtime_us in its cgroup "
				 "(linux.resources.cpu.realtimeRuntime)");
	else if (r == -EBUSY || r == -EOPNOTSUPP)
		lr_err_hint(err, "the cgroup passes controllers on to sub-cgroups, so it cannot "
				 "hold processes itself: name a sub-cgroup (exec --cgroup)");
	return r;
}

/* Whoever moves himself goes on to his program. */
static int enter_self(const char *dir, bool v2)
{
	char path[PATH_MAX];
	int r = lr_cgroup_path(path, dir, v2 ? "cgroup.procs" : "tasks");

	if (r < 0)
		return r;
	LR_CLEANUP_FD_LATE int fd = lr_open(path, O_WRONLY | O_CLOEXEC);
	return fd < 0 || write(fd, "0", 1) < 0 ? -errno : 0;
}

static int enter(const char *dir, bool v2, const char *pid)
{
	return lr_streq(pid, "0") ? enter_self(dir, v2) : lr_cgroup_put(dir, "cgroup.procs", pid);
}

/* From a cgroup that is not the user's (a login session's), he cannot move himself to his own. */
static bool needs_systemd(const struct lr_cgroup_ref *ref, int r)
{
	return (r == -EACCES || r == -EPERM) && ref->unit && ref->user;
}

static int join_all(const struct lr_cgroup_ref *ref, bool skip_v2, const char *pid,
		    struct lr_err *err)
{
	for (size_t i = 0; i < ref->n; i++) {
		const struct lr_cgroup_place *p = &ref->v[i];
		bool v2 = p->hierarchy[0] == '\0';
		int r = v2 && skip_v2 ? 0 : enter(p->path, v2, pid);

		if (v2 && needs_systemd(ref, r))
			r = lr_cgroup_systemd_attach(ref, p->path, atoi(pid), err);
		else if (r < 0)
			explain(p->path, p->hierarchy, r, err);
		if (r < 0)
			return r;
	}
	return 0;
}

int lr_cgroup_join_self(const struct lr_cgroup_plan *plan, bool already_in_v2, struct lr_err *err)
{
	int r = join_all(&plan->ref, already_in_v2, "0", err);

	/* Its holder may go, others may look. In our copy of the plan nobody looks at it again. */
	lr_close(plan->hold);
	return r;
}

int lr_cgroup_join_pid(const struct lr_cgroup_ref *ref, pid_t pid, struct lr_err *err)
{
	char text[16];
	int r = lr_cgroup_ref_check(ref, err);

	if (r < 0)
		return r;
	if (pid <= 0)
		return lr_refuse(err, EINVAL, "not a process id: %d", (int)pid);
	snprintf(text, sizeof(text), "%d", (int)pid);
	return join_all(ref, false, text, err);
}

/* ---- exec ----------------------------------------------------------------------------------- */

/* --cgroup: the part after "ctrl,ctrl:", and whether it speaks of this hierarchy. */
static const char *sub_of(const char *entry, const char *hierarchy, bool *named, bool *match)
{
	const char *colon = strchr(entry, ':'), *slash = strchr(entry, '/');

	*named = colon && (!slash || colon < slash);
	*match = !*named;
	if (!*named)
		return entry;
	for (const char *p = entry; p < colon; p += strcspn(p, ",:"), p += p < colon) {
		size_t len = strcspn(p, ",:");
		char word[64];

		if (len == 0 || len >= sizeof(word))
			continue;
		memcpy(word, p, len);
		word[len] = '\0';
		*match |= lr_cgroup_name_has(hierarchy, word);
	}
	return colon + 1;
}

static int check_subpaths(const struct lr_cgroup_ref *ref, const struct lr_cgroup_join *how,
			  struct lr_err *err)
{
	for (size_t k = 0; k < how->n; k++) {
		bool named = false, match, known = false;
		const char *sub = how->subpaths[k];

		for (size_t i = 0; i < ref->n; i++) {
			sub = sub_of(how->subpaths[k], ref->v[i].hierarchy, &named, &match);
			known |= match;
		}
		if (lr_path_has_dotdot(sub))
			return lr_refuse(err, EINVAL, "cgroup \"%s\" must not hold \"..\"",
					 how->subpaths[k]);
		if (named && ref->mode == LR_CGROUP_V2) {
			lr_refuse(err, EINVAL, "cgroup \"%s\" names controllers", how->subpaths[k]);
			return lr_err_hint(err, "cgroup v2 has one tree: give the path alone");
		}
		if (ref->n && !known)
			return lr_refuse(err, EINVAL,
					 "cgroup \"%s\" names no controller of this container",
					 how->subpaths[k]);
	}
	return 0;
}

/* ref's directory with the sub-cgroup that the last fitting entry asks for. 1: there is one. */
static int place_dir(const struct lr_cgroup_place *p, const struct lr_cgroup_join *how,
		     char buf[PATH_MAX])
{
	const char *sub = NULL;
	int r;

	for (size_t k = 0; k < how->n; k++) {
		bool named, match;
		const char *s = sub_of(how->subpaths[k], p->hierarchy, &named, &match);

		if (match)
			sub = s;
	}
	while (sub && *sub == '/')
		sub++;
	if (!sub || !*sub)
		return snprintf(buf, PATH_MAX, "%s", p->path) >= PATH_MAX ? -ENAMETOOLONG : 0;
	r = lr_cgroup_path(buf, p->path, sub);
	return r < 0 ? r : 1;
}

/* Where init is now in the v2 tree: /proc/<pid>/cgroup says "0::/docker/<id>/init.scope"; what
 * follows the container's own path is below its directory. */
static int init_dir(const struct lr_cgroup_ref *ref, const char *dir, pid_t init_pid,
		    char buf[PATH_MAX])
{
	char file[32], text[2 * PATH_MAX], *line, *own;
	size_t len = strlen(ref->relative);
	ssize_t n;

	snprintf(file, sizeof(file), "/proc/%d/cgroup", (int)init_pid);
	n = lr_read_file_at(AT_FDCWD, file, text, sizeof(text));
	if (n < 0)
		return (int)n;
	line = lr_has_prefix(text, "0::") ? text : strstr(text, "\n0::");
	if (!line)
		return -ENOENT;
	line += line[0] == '\n';
	line[strcspn(line, "\n")] = '\0';
	own = strstr(line, ref->relative);
	if (!own || (own[len] && own[len] != '/') || lr_path_has_dotdot(own))
		return -ENOENT;
	return snprintf(buf, PATH_MAX, "%s%s", dir, own + len) >= PATH_MAX ? -ENAMETOOLONG : 0;
}

static int join_v2(const struct lr_cgroup_ref *ref, const struct lr_cgroup_place *p,
		   const struct lr_cgroup_join *how, struct lr_err *err)
{
	char dir[PATH_MAX], init[PATH_MAX];
	int sub = place_dir(p, how, dir), r;

	if (sub < 0)
		return lr_fail(err, -sub, "cgroup path too long");
	r = enter(dir, true, "0");
	if (r == 0)
		return 0;
	if (needs_systemd(ref, r))
		return lr_cgroup_systemd_attach(ref, dir, 0, err);
	if (sub == 0 && how->init_pid > 0 && (r == -EBUSY || r == -ENOENT || r == -EOPNOTSUPP) &&
	    init_dir(ref, p->path, how->init_pid, init) == 0 && !lr_streq(init, dir)) {
		lr_debug("cgroup: joining init's own %s", init);
		int again = enter(init, true, "0");
		if (again == 0)
			return 0;
	}
	return explain(dir, p->hierarchy, r, err);
}

int lr_cgroup_join_ref_self(const struct lr_cgroup_ref *ref, const struct lr_cgroup_join *how,
			    struct lr_err *err)
{
	static const struct lr_cgroup_join plain = {0};
	int r = lr_cgroup_ref_check(ref, err);

	how = how ? how : &plain;
	if (r == 0)
		r = check_subpaths(ref, how, err);
	for (size_t i = 0; i < ref->n && r == 0; i++) {
		const struct lr_cgroup_place *p = &ref->v[i];
		char dir[PATH_MAX];

		if (p->hierarchy[0] == '\0') {
			if (!how->already_in_v2)
				r = join_v2(ref, p, how, err);
			continue;
		}
		r = place_dir(p, how, dir);
		if (r < 0)
			return lr_fail(err, -r, "cgroup path too long");
		r = enter(dir, false, "0");
		if (r < 0)
			return explain(dir, p->hierarchy, r, err);
	}
	return r;
}
