/* SPDX-License-Identifier: Apache-2.0 */
/* init: whether a container may continue a seed; see seed.h. */
#define LR_ROOM "init"
#include <errno.h>
#include <linux/capability.h>
#include <linux/securebits.h>
#include <sched.h>
#include <sys/stat.h>

#include "src/base/str.h"
#include "src/init/init.h"
#include "src/init/seed.h"
#include "src/seed/socket.h"

void lr_init_seed_close(struct lr_init_seed *s)
{
	s->pages = lr_close(s->pages);
	s->descriptor = lr_close(s->descriptor);
	s->lazy = lr_close(s->lazy);
}

/* ---- the container --------------------------------------------------------------------------- */

static int refuse(struct lr_err *err, const char *at, const char *why)
{
	lr_refuse(err, ENOTSUP, "a seed is not continued %s", why);
	lr_err_hint(err, "the engine criu carries more");
	return lr_err_at(err, "%s", at);
}

static int check_namespaces(const struct lr_init_plan *p, struct lr_err *err)
{
	/* Ids are the seed's, and have to be free. */
	if (!(p->ns.create & CLONE_NEWPID))
		return refuse(err, "linux.namespaces", "without a pid namespace of its own");
	if (p->ns.join[LR_NS_USER] || p->ns.staged)
		return refuse(err, "linux.namespaces", "in a user namespace that is joined");
	return 0;
}

static int check_process(const struct lr_init_plan *p, struct lr_err *err)
{
	const struct lr_init_process *process = &p->process;

	/* Labels come by execve, and there is none. */
	if (process->lsm.apparmor || process->lsm.selinux)
		return refuse(err, "process", "under a label of a security module");
	if (process->seccomp && process->seccomp->notify)
		return refuse(err, "linux.seccomp", "with a filter that asks an agent");
	/* They would run while our rights are still there. */
	if (p->hooks && p->hooks->start_container.n)
		return refuse(err, "hooks.startContainer", "with hooks in the container");
	return 0;
}

/* ---- rights ---------------------------------------------------------------------------------- */

/* What a process of the plan could come to have, by execve and by programs with rights of their
 * own. */
uint64_t lr_init_seed_reach(const struct lr_init_process *p)
{
	if (!p->no_new_privileges)
		return p->caps.bounding | p->caps.inheritable;
	/* Then execve gives root no more than it had. */
	return p->user.uid == 0 ? p->caps.permitted & (p->caps.bounding | p->caps.inheritable)
				: p->caps.ambient;
}

static bool has_group(const struct lr_user_plan *u, uint32_t gid)
{
	for (size_t i = 0; i < u->n_gids; i++)
		if (u->gids[i] == gid)
			return true;
	return gid == u->gid;
}

static int check_ids(const struct lr_init_process *p, const struct lr_seed *s,
		     const struct lr_seed_cred *c, const char **why, uint32_t *id)
{
	const uint64_t may = lr_init_seed_reach(p);
	const uint32_t *groups = lr_seed_data(s, &c->groups);

	for (int i = 0; i < 4; i++) {
		*id = c->uids[i];
		*why = "is user";
		if (*id != p->user.uid && !(may & LR_CAPS_BIT(CAP_SETUID)))
			return -EPERM;
		*id = c->gids[i];
		*why = "is of group";
		if (!has_group(&p->user, *id) && !(may & LR_CAPS_BIT(CAP_SETGID)))
			return -EPERM;
	}
	for (uint64_t i = 0; i < c->groups.length / sizeof(*groups); i++) {
		*id = groups[i];
		if (!has_group(&p->user, *id) && !(may & LR_CAPS_BIT(CAP_SETGID)))
			return -EPERM;
	}
	return 0;
}

static int check_caps(const struct lr_init_process *p, const struct lr_seed_cred *c,
		      const char **which, uint64_t *beyond)
{
	const uint64_t may = lr_init_seed_reach(p), outer = p->caps.bounding | p->caps.inheritable;
	const struct {
		const char *name;
		uint64_t has, may;
	} sets[] = {
		{"effective", c->effective, may & c->permitted},
		{"permitted", c->permitted, may},
		{"inheritable", c->inheritable, outer},
		{"bounding", c->bounding, p->caps.bounding},
		{"ambient", c->ambient, may & c->permitted & c->inheritable},
	};

	for (size_t i = 0; i < LR_ARRAY_SIZE(sets); i++) {
		*which = sets[i].name;
		*beyond = sets[i].has & ~sets[i].may;
		if (*beyond)
			return -EPERM;
	}
	return 0;
}

static int check_thread(const struct lr_init_process *p, const struct lr_seed *s,
			const struct lr_seed_thread *t, struct lr_err *err)
{
	const struct lr_seed_cred *c = lr_seed_cred(s, t->cred);
	const char *what;
	uint64_t beyond;
	uint32_t id;

	if (check_ids(p, s, c, &what, &id) < 0) {
		lr_refuse(err, EPERM, "thread %u of the seed %s %u, which the process may not be",
			  t->tid, what, id);
		return lr_err_at(err, "process.user");
	}
	if (check_caps(p, c, &what, &beyond) < 0) {
		const char *name = lr_caps_name(__builtin_ctzll(beyond));
		lr_refuse(err, EPERM, "thread %u of the seed has %s (%s), and the process may not",
			  t->tid, name ? name : "a new capability", what);
		return lr_err_at(err, "process.capabilities");
	}
	const uint32_t bits = c->securebits & ~(uint32_t)SECBIT_KEEP_CAPS;
	if (bits || c->uids[1] != c->uids[3] || c->gids[1] != c->gids[3])
		return lr_refuse(err, ENOTSUP, "thread %u of the seed has %s, which is not carried",
				 t->tid, bits ? "secure bits" : "other ids for files");
	return 0;
}

int lr_init_seed_check_creds(const struct lr_init_process *p, const struct lr_seed *seed,
			     struct lr_err *err)
{
	int r = 0;

	for (uint32_t i = 0; r >= 0 && i < lr_seed_count(seed, LR_SEED_THREAD); i++)
		r = check_thread(p, seed, lr_seed_thread(seed, i), err);
	return r;
}

/* ---- a user namespace ------------------------------------------------------------------------- */

static int check_id(const struct oci_id_mappings *m, uint32_t id, const char *what, const char *at,
		    struct lr_err *err)
{
	for (size_t i = 0; i < m->n; i++)
		if (id - m->v[i].container_id < m->v[i].size)
			return 0;
	lr_refuse(err, ENOTSUP, "the seed has %s %u, and the user namespace maps none to it", what,
		  id);
	return lr_err_at(err, "%s", at);
}

static int check_user(const struct lr_init_plan *p, uint32_t id, struct lr_err *err)
{
	return check_id(p->ns.uids, id, "user", "linux.uidMappings", err);
}

static int check_group(const struct lr_init_plan *p, uint32_t id, struct lr_err *err)
{
	return check_id(p->ns.gids, id, "group", "linux.gidMappings", err);
}

static int check_both(const struct lr_init_plan *p, uint32_t uid, uint32_t gid, struct lr_err *err)
{
	int r = check_user(p, uid, err);

	return r < 0 ? r : check_group(p, gid, err);
}

static int check_mapped_endpoint(const struct lr_init_plan *p, const struct lr_seed *s, uint32_t i,
				 struct lr_err *err)
{
	const struct lr_seed_endpoint *e = lr_seed_endpoint(s, i);
	int r = check_both(p, e->uid, e->gid, err);

	return r >= 0 && lr_seed_has_path(s, e) ? check_both(p, e->file_uid, e->file_gid, err) : r;
}

/* Ids are those inside. What they stand for outside is the new container's affair. */
static int check_mapped(const struct lr_init_plan *p, const struct lr_seed *s, struct lr_err *err)
{
	int r = 0;

	if (!(p->ns.create & CLONE_NEWUSER))
		return 0;
	for (uint32_t i = 0; r >= 0 && i < lr_seed_count(s, LR_SEED_CRED); i++) {
		const struct lr_seed_cred *c = lr_seed_cred(s, i);
		const uint32_t *groups = lr_seed_data(s, &c->groups);
		for (int k = 0; r >= 0 && k < 4; k++)
			r = check_both(p, c->uids[k], c->gids[k], err);
		for (uint64_t k = 0; r >= 0 && k < c->groups.length / sizeof(*groups); k++)
			r = check_group(p, groups[k], err);
	}
	for (uint32_t i = 0; r >= 0 && i < lr_seed_count(s, LR_SEED_NODE); i++)
		r = check_both(p, lr_seed_node(s, i)->uid, lr_seed_node(s, i)->gid, err);
	for (uint32_t i = 0; r >= 0 && i < lr_seed_count(s, LR_SEED_ENDPOINT); i++)
		r = check_mapped_endpoint(p, s, i, err);
	for (uint32_t i = 0; r >= 0 && i < lr_seed_count(s, LR_SEED_CHANNEL); i++)
		r = check_both(p, lr_seed_channel(s, i)->uid, lr_seed_channel(s, i)->gid, err);
	for (uint32_t i = 0; r >= 0 && i < lr_seed_count(s, LR_SEED_FILE); i++) {
		const struct lr_seed_file *f = lr_seed_file(s, i);
		if (f->kind == LR_SEED_MEMFD_FILE && f->args[0])
			r = check_both(p, (uint32_t)f->args[2], (uint32_t)f->args[3], err);
	}
	return r;
}

static bool may_own(const struct lr_init_process *p, uint32_t uid, uint32_t gid)
{
	const uint64_t may = lr_init_seed_reach(p);

	return (uid == p->user.uid || may & LR_CAPS_BIT(CAP_SETUID)) &&
	       (has_group(&p->user, gid) || may & LR_CAPS_BIT(CAP_SETGID));
}

static int check_owner(const struct lr_init_process *p, const char *what, uint32_t i, uint32_t uid,
		       uint32_t gid, struct lr_err *err)
{
	if (may_own(p, uid, gid))
		return 0;
	lr_refuse(err, EPERM,
		  "%s %u of the seed is user %u's and group %u's, which the process may not be",
		  what, i, uid, gid);
	return lr_err_at(err, "process.user");
}

/* Who may listen beside it, and what a firewall of the network namespace says, goes by its owner. */
static int check_endpoint(const struct lr_init_process *p, const struct lr_seed *s, uint32_t i,
			  struct lr_err *err)
{
	const struct lr_seed_endpoint *e = lr_seed_endpoint(s, i);

	return check_owner(p, "endpoint", i, e->uid, e->gid, err);
}

/* Whom an end of a pair of sockets tells of (SO_PEERCRED), and whose a pipe is. */
static int check_channel(const struct lr_init_process *p, const struct lr_seed *s, uint32_t i,
			 struct lr_err *err)
{
	const struct lr_seed_channel *c = lr_seed_channel(s, i);

	return check_owner(p, "channel", i, c->uid, c->gid, err);
}

/* Memory that has a descriptor: who is handed one may believe its owner. */
static int check_memory(const struct lr_init_process *p, const struct lr_seed *s, uint32_t i,
			struct lr_err *err)
{
	const struct lr_seed_file *f = lr_seed_file(s, i);

	if (f->kind != LR_SEED_MEMFD_FILE || !f->args[0])
		return 0;
	return check_owner(p, "file", i, (uint32_t)f->args[2], (uint32_t)f->args[3], err);
}

/* ---- tmpfs ------------------------------------------------------------------------------------ */

/* Where it is to be filled by us, and not by a program of the container's: with more rights than
 * that has, so with nothing that would give it some. */
static int check_node(const struct lr_init_process *p, const struct lr_seed *s, uint32_t i,
		      struct lr_err *err)
{
	const struct lr_seed_node *n = lr_seed_node(s, i);
	const uint64_t may = lr_init_seed_reach(p);
	const bool own = n->uid == p->user.uid || may & LR_CAPS_BIT(CAP_SETUID);
	const bool own_group = has_group(&p->user, n->gid) || may & LR_CAPS_BIT(CAP_SETGID);

	if (!S_ISREG(n->mode) ||
	    ((own || !(n->mode & S_ISUID)) && (own_group || !(n->mode & S_ISGID))))
		return 0;
	lr_refuse(err, EPERM,
		  "\"%s\", a file of the seed, runs as somebody that the process may not be",
		  lr_seed_text(s, n->name));
	return lr_err_at(err, "process.user");
}

/* Whose it is the caller knows (lifecycle/seeded.h). */
static int check_root(const struct lr_init_plan *p, const struct lr_seed *s, struct lr_err *err)
{
	const struct lr_rootfs_plan *root = p->tree.rootfs;

	if (!lr_seed_changes(s))
		return 0;
	if (root->readonly) {
		lr_refuse(err, EROFS,
			  "the seed changes files of its root, and this one is read-only");
		lr_err_hint(err, "make it writable, or the seed without --with-changes");
		return lr_err_at(err, "root.readonly");
	}
	return root->new_mount_ns ? 0
				  : refuse(err, "linux.namespaces",
					   "that changes files of its root, without a mount "
					   "namespace of its own");
}

static int check_tmpfs(const struct lr_init_plan *p, const struct lr_seed *s, struct lr_err *err)
{
	int r = 0;

	for (uint32_t i = 0; i < lr_seed_count(s, LR_SEED_TMPFS); i++) {
		const struct lr_seed_tmpfs *t = lr_seed_tmpfs(s, i);
		const char *path = lr_seed_text(s, t->path);
		if (t->flags & LR_SEED_ROOT)
			continue;
		if (t->nodes.count > 1 && !lr_mount_has_tmpfs(p->tree.mounts, path, NULL)) {
			lr_refuse(err, ENOTSUP,
				  "the seed has files in the tmpfs %s, and there is none", path);
			return lr_err_at(err, "mounts");
		}
	}
	for (uint32_t i = 0; r >= 0 && i < lr_seed_count(s, LR_SEED_NODE); i++)
		r = check_node(&p->process, s, i, err);
	return r;
}

int lr_init_seed_check(const struct lr_init_plan *p, const struct lr_seed *seed, struct lr_err *err)
{
	const struct lr_seed_process *first = lr_seed_process(seed, 0);

	if (first->pid != 1)
		return lr_refuse(
			err, ENOTSUP,
			"the seed's first process has the id %u: it is none of a container",
			first->pid);
	int r = check_namespaces(p, err);
	if (r >= 0)
		r = check_process(p, err);
	if (r >= 0)
		r = check_mapped(p, seed, err);
	if (r >= 0)
		r = check_root(p, seed, err);
	if (r >= 0)
		r = check_tmpfs(p, seed, err);
	for (uint32_t i = 0; r >= 0 && i < lr_seed_count(seed, LR_SEED_ENDPOINT); i++)
		r = check_endpoint(&p->process, seed, i, err);
	for (uint32_t i = 0; r >= 0 && i < lr_seed_count(seed, LR_SEED_CHANNEL); i++)
		r = check_channel(&p->process, seed, i, err);
	for (uint32_t i = 0; r >= 0 && i < lr_seed_count(seed, LR_SEED_FILE); i++)
		r = check_memory(&p->process, seed, i, err);
	return r < 0 ? r : lr_init_seed_check_creds(&p->process, seed, err);
}
