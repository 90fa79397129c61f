/* SPDX-License-Identifier: Apache-2.0 */
/* ns: from linux.namespaces and the mappings to flags, paths and texts. Pure. */
#define LR_ROOM "namespace"
#include <errno.h>
#include <string.h>

#include "src/base/str.h"
#include "src/ns/ns.h"
#include "src/sys/syscalls.h"

static const struct {
	const char *name;
	unsigned flag;
} kinds[LR_NS_KINDS] = {
	[LR_NS_USER] = {"user", CLONE_NEWUSER},       [LR_NS_TIME] = {"time", CLONE_NEWTIME},
	[LR_NS_PID] = {"pid", CLONE_NEWPID},          [LR_NS_NET] = {"network", CLONE_NEWNET},
	[LR_NS_IPC] = {"ipc", CLONE_NEWIPC},          [LR_NS_UTS] = {"uts", CLONE_NEWUTS},
	[LR_NS_CGROUP] = {"cgroup", CLONE_NEWCGROUP}, [LR_NS_MOUNT] = {"mount", CLONE_NEWNS},
};

unsigned lr_ns_flag(enum lr_ns_kind kind)
{
	return kinds[kind].flag;
}

const char *lr_ns_name(enum lr_ns_kind kind)
{
	return kinds[kind].name;
}

bool lr_ns_private(const struct lr_ns_plan *p, enum lr_ns_kind kind)
{
	return p->create & kinds[kind].flag || p->join[kind];
}

static int find_kind(const char *name)
{
	for (int k = 0; name && k < LR_NS_KINDS; k++)
		if (lr_streq(kinds[k].name, name))
			return k;
	return -EINVAL;
}

static int plan_namespaces(const struct oci_namespaces *list, struct lr_ns_plan *p,
			   struct lr_err *err)
{
	unsigned seen = 0;

	for (size_t i = 0; i < list->n; i++) {
		const struct oci_namespace *ns = &list->v[i];
		int k = find_kind(ns->type);
		if (k < 0) {
			lr_refuse(err, EINVAL, "unknown namespace type \"%s\"",
				  ns->type ? ns->type : "");
			lr_err_hint(err,
				    "known are pid, network, mount, ipc, uts, user, cgroup, time");
			return lr_err_at(err, "linux.namespaces[%zu].type", i);
		}
		if (seen & kinds[k].flag) {
			lr_refuse(err, EINVAL, "namespace %s is listed twice", ns->type);
			return lr_err_at(err, "linux.namespaces[%zu].type", i);
		}
		seen |= kinds[k].flag;
		p->index[k] = i;
		if (!ns->path || !*ns->path) {
			p->create |= kinds[k].flag;
		} else if (ns->path[0] == '/') {
			p->join[k] = ns->path;
		} else {
			lr_refuse(err, EINVAL, "namespace path \"%s\" is not absolute", ns->path);
			return lr_err_at(err, "linux.namespaces[%zu].path", i);
		}
	}
	return 0;
}

static int map_text(const struct oci_id_mappings *m, const char *where, struct lr_arena *a,
		    const char **ret, struct lr_err *err)
{
	char *text = lr_strdup(a, "");

	for (size_t i = 0; i < m->n; i++) {
		if (m->v[i].size == 0) {
			lr_refuse(err, EINVAL, "an id mapping of size 0");
			return lr_err_at(err, "%s[%zu].size", where, i);
		}
		text = text ? lr_strf(a, "%s%u %u %u\n", text, m->v[i].container_id,
				      m->v[i].host_id, m->v[i].size)
			    : NULL;
	}
	if (!text)
		return lr_fail(err, ENOMEM, "make the plan");
	*ret = text;
	return 0;
}

int lr_ns_default_maps(const struct oci_linux *l, const struct lr_ns_caller *caller,
		       struct lr_arena *a, const struct oci_linux **ret, struct lr_err *err)
{
	bool new_user = false;

	for (size_t i = 0; i < l->namespaces.n; i++) {
		const struct oci_namespace *ns = &l->namespaces.v[i];
		new_user |= ns->type && lr_streq(ns->type, "user") && (!ns->path || !*ns->path);
	}
	*ret = l;
	if (!new_user || (l->uid_mappings.n && l->gid_mappings.n))
		return 0;
	struct oci_linux *mapped = lr_new(a, struct oci_linux);
	struct oci_id_mapping *own = lr_new_n(a, 2, struct oci_id_mapping);
	if (!mapped || !own)
		return lr_fail(err, ENOMEM, "make the plan");
	own[0] = (struct oci_id_mapping){.host_id = caller->euid, .size = 1};
	own[1] = (struct oci_id_mapping){.host_id = caller->egid, .size = 1};
	*mapped = *l;
	if (!l->uid_mappings.n)
		mapped->uid_mappings = (struct oci_id_mappings){.v = &own[0], .n = 1};
	if (!l->gid_mappings.n)
		mapped->gid_mappings = (struct oci_id_mappings){.v = &own[1], .n = 1};
	*ret = mapped;
	return 0;
}

static int plan_maps(const struct oci_linux *l, const struct lr_ns_caller *caller,
		     struct lr_arena *a, struct lr_ns_plan *p, struct lr_err *err)
{
	if (!(p->create & CLONE_NEWUSER)) {
		/* runc refuses mappings without a user namespace; with a joined one they only
		 * describe what is there. */
		if ((l->uid_mappings.n || l->gid_mappings.n) && !p->join[LR_NS_USER]) {
			lr_refuse(err, EINVAL, "id mappings need a user namespace");
			lr_err_hint(err, "add {\"type\": \"user\"} to linux.namespaces");
			return lr_err_at(err, "linux.%s",
					 l->uid_mappings.n ? "uidMappings" : "gidMappings");
		}
		return 0;
	}
	p->uids = &l->uid_mappings;
	p->gids = &l->gid_mappings;
	p->rootless_maps = caller->euid != 0;
	int r = map_text(p->uids, "linux.uidMappings", a, &p->uid_map, err);
	return r < 0 ? r : map_text(p->gids, "linux.gidMappings", a, &p->gid_map, err);
}

static int plan_offsets(const struct oci_time_offsets *t, struct lr_arena *a, struct lr_ns_plan *p,
			struct lr_err *err)
{
	if (!t || (!t->monotonic && !t->boottime))
		return 0;
	if (!(p->create & CLONE_NEWTIME)) {
		lr_refuse(err, EINVAL, "time offsets need a new time namespace");
		return lr_err_at(err, "linux.timeOffsets");
	}
	const char *text = "";
	const struct {
		const char *name;
		const struct oci_time_offset *o;
	} clocks[] = {{"monotonic", t->monotonic}, {"boottime", t->boottime}};
	for (size_t i = 0; text && i < LR_ARRAY_SIZE(clocks); i++) {
		if (!clocks[i].o)
			continue;
		if (clocks[i].o->nanosecs >= 1000000000) {
			lr_refuse(err, EINVAL, "%u ns is a second or more", clocks[i].o->nanosecs);
			return lr_err_at(err, "linux.timeOffsets.%s.nanosecs", clocks[i].name);
		}
		text = lr_strf(a, "%s%s %lld %u\n", text, clocks[i].name,
			       (long long)clocks[i].o->secs, clocks[i].o->nanosecs);
	}
	if (!text)
		return lr_fail(err, ENOMEM, "make the plan");
	p->time_offsets = text;
	return 0;
}

bool lr_ns_child_joins(const struct lr_ns_plan *p, enum lr_ns_kind k)
{
	if (k == LR_NS_MOUNT)
		return true;
	/* In a new user namespace it has no right to; and a process in between can do it as
	 * well. */
	return k != LR_NS_USER && k != LR_NS_TIME && k != LR_NS_PID && !p->staged &&
	       !(p->create & CLONE_NEWUSER);
}

/* Whether somebody has to enter what the child is to be born into. */
static bool steps_in(const struct lr_ns_plan *p)
{
	bool any = p->create & CLONE_NEWTIME;

	for (int k = 0; k < LR_NS_KINDS; k++)
		any = any || (p->join[k] && !lr_ns_child_joins(p, (enum lr_ns_kind)k));
	return any;
}

int lr_ns_plan(const struct oci_linux *l, const struct lr_ns_caller *caller, struct lr_arena *a,
	       struct lr_ns_plan *ret, struct lr_err *err)
{
	struct lr_ns_plan p = {0};

	int r = plan_namespaces(&l->namespaces, &p, err);
	if (r >= 0)
		r = plan_maps(l, caller, a, &p, err);
	if (r >= 0)
		r = plan_offsets(l->time_offsets, a, &p, err);
	if (r < 0)
		return r;
	/* Without privilege of its own the caller cannot make a time namespace; the new user
	 * namespace's root can. */
	p.staged_user = p.join[LR_NS_USER] ||
			(caller->euid != 0 && p.create & CLONE_NEWUSER && p.create & CLONE_NEWTIME);
	p.staged = p.staged_user || (caller->confined && steps_in(&p));
	*ret = p;
	return 0;
}
