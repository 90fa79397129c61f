/* SPDX-License-Identifier: Apache-2.0 */
/* user: see user.h. */
#define LR_ROOM "user"
#include "src/user/user.h"

#include <errno.h>
#include <linux/capability.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/sysmacros.h>
#include <unistd.h>

#include "libocispec/ocispec.h"
#include "src/base/fd.h"
#include "src/base/log.h"
#include "src/base/str.h"
#include "src/sys/syscalls.h"

/* 32-bit architectures have two generations of these; the plain name takes 16-bit ids there. */
#ifdef SYS_setgroups32
#define LR_SETGROUPS SYS_setgroups32
#define LR_SETRESGID SYS_setresgid32
#define LR_SETRESUID SYS_setresuid32
#else
#define LR_SETGROUPS SYS_setgroups
#define LR_SETRESGID SYS_setresgid
#define LR_SETRESUID SYS_setresuid
#endif

#define NO_ID UINT32_MAX

static bool asks_to_keep(const struct oci_map *annotations)
{
	const char *value = oci_map_get(annotations, LR_USER_KEEP_GROUPS);

	return value && !lr_streq(value, "0") && !lr_streq(value, "false");
}

int lr_user_plan(const struct oci_user *user, const struct oci_map *annotations,
		 struct lr_arena *arena, struct lr_user_plan *ret, struct lr_err *err)
{
	struct lr_user_plan p = {.uid = user->uid, .gid = user->gid};

	if (user->uid == NO_ID || user->gid == NO_ID) {
		lr_refuse(err, EINVAL, "4294967295 is not an id: to the kernel it means \"keep\"");
		return lr_err_at(err, "process.user.%s", user->uid == NO_ID ? "uid" : "gid");
	}
	p.keep_groups = asks_to_keep(annotations);
	p.n_gids = user->additional_gids.n;
	if (p.keep_groups && p.n_gids) {
		lr_refuse(err, EINVAL, "additional groups and %s exclude each other",
			  LR_USER_KEEP_GROUPS);
		return lr_err_at(err, "process.user.additionalGids");
	}
	if (p.n_gids > 65536) {
		lr_refuse(err, EINVAL, "%zu groups; the kernel takes 65536 at most", p.n_gids);
		return lr_err_at(err, "process.user.additionalGids");
	}
	p.gids = p.n_gids ? lr_new_n(arena, p.n_gids, gid_t) : NULL;
	if (p.n_gids && !p.gids)
		return lr_fail(err, ENOMEM, "groups");
	for (size_t i = 0; i < p.n_gids; i++) {
		if (user->additional_gids.v[i] == NO_ID) {
			lr_refuse(err, EINVAL, "4294967295 is not an id");
			return lr_err_at(err, "process.user.additionalGids[%zu]", i);
		}
		p.gids[i] = user->additional_gids.v[i];
	}
	if (user->umask) {
		if (*user->umask > 07777) {
			lr_refuse(err, EINVAL, "%#o is not a file mode mask", *user->umask);
			return lr_err_at(err, "process.user.umask");
		}
		p.has_umask = true;
		p.umask = *user->umask & 0777;
	}
	*ret = p;
	return 0;
}

static int apply_groups(const struct lr_user_plan *p, struct lr_err *err)
{
	if (p->keep_groups || syscall(LR_SETGROUPS, p->n_gids, p->gids) == 0)
		return 0;

	int code = errno;
	/*
	 * user_namespaces(7): an unprivileged gid map requires setgroups to be denied before. Who has
	 * the capability and is refused is in such a namespace: that is cheaper to ask than
	 * /proc/self/setgroups, which may not even be there.
	 */
	bool denied = code == EPERM && lr_has_cap(CAP_SETGID);

	/* Nothing was asked for and nothing can be changed: the caller's groups stay, unmapped. */
	if (denied && p->n_gids == 0)
		return 0;
	lr_fail(err, code, "cannot set the supplementary groups");
	lr_err_step(err, "setgroups");
	if (p->n_gids)
		lr_err_at(err, "process.user.additionalGids");
	if (denied)
		return lr_err_hint(err, "setgroups is denied in this user namespace: give the user "
					"a range in /etc/subgid, or leave additionalGids out");
	if (code == EINVAL)
		return lr_err_hint(err, "every group must be mapped by linux.gidMappings");
	return lr_err_hint(err, "the runtime needs CAP_SETGID in its user namespace");
}

static int apply_id(long call, uint32_t id, const char *what, struct lr_err *err)
{
	if (syscall(call, id, id, id) == 0)
		return 0;

	int code = errno;
	bool user = call == LR_SETRESUID;

	lr_fail(err, code, "cannot become %s %u", what, id);
	lr_err_step(err, user ? "setresuid" : "setresgid");
	lr_err_at(err, "process.user.%s", user ? "uid" : "gid");
	if (code == EINVAL)
		return lr_err_hint(err, "the id must be mapped by linux.%s",
				   user ? "uidMappings" : "gidMappings");
	return lr_err_hint(err, "the runtime needs %s in its user namespace",
			   user ? "CAP_SETUID" : "CAP_SETGID");
}

int lr_user_apply(const struct lr_user_plan *plan, struct lr_err *err)
{
	int r = apply_groups(plan, err);

	if (r == 0)
		r = apply_id(LR_SETRESGID, plan->gid, "group", err);
	if (r == 0)
		r = apply_id(LR_SETRESUID, plan->uid, "user", err);
	if (r < 0)
		return r;
	if (plan->has_umask)
		umask(plan->umask);
	lr_debug("user: uid %u gid %u, %zu more groups", plan->uid, plan->gid, plan->n_gids);
	return 0;
}

int lr_user_own_stdio(const struct lr_user_plan *plan, struct lr_err *err)
{
	if (plan->uid == 0)
		return 0;
	for (int fd = 0; fd < 3; fd++) {
		struct stat st;

		if (fstat(fd, &st) < 0) {
			if (errno == EBADF)
				continue;
			return lr_fail(err, errno, "fstat of descriptor %d", fd);
		}
		/* Memory devices (major 1: /dev/null) are the host's, shared by everyone. */
		if (st.st_uid == plan->uid || (S_ISCHR(st.st_mode) && major(st.st_rdev) == 1))
			continue;
		if (fchown(fd, plan->uid, (gid_t)-1) == 0)
			continue;
		/* EINVAL: the owner isn't mapped; EPERM: not ours; EROFS: read-only: all common
		 * with inherited descriptors, and the open descriptor itself works anyway. */
		if (errno != EINVAL && errno != EPERM && errno != EROFS)
			return lr_fail(err, errno, "cannot give descriptor %d to uid %u", fd,
				       plan->uid);
	}
	return 0;
}

/* Digits only, up to 4294967294; returns what follows, or NULL. */
static const char *parse_id(const char *s, uint32_t *ret)
{
	uint64_t v = 0;
	const char *start = s;

	for (; *s >= '0' && *s <= '9'; s++) {
		v = v * 10 + (uint64_t)(*s - '0');
		if (v >= NO_ID)
			return NULL;
	}
	if (s == start)
		return NULL;
	*ret = (uint32_t)v;
	return s;
}

int lr_user_parse(const char *text, uint32_t *uid, uint32_t *gid, bool *has_gid, struct lr_err *err)
{
	uint32_t u = 0, g = 0;
	const char *rest = parse_id(text, &u);
	bool colon = rest && *rest == ':';

	if (colon)
		rest = parse_id(rest + 1, &g);
	if (!rest || *rest) {
		lr_refuse(err, EINVAL, "invalid user \"%s\"", text);
		return lr_err_hint(err, "UID or UID:GID, decimal numbers below 4294967295");
	}
	*uid = u;
	if (colon)
		*gid = g;
	*has_gid = colon;
	return 0;
}
