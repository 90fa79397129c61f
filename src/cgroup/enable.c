/* SPDX-License-Identifier: Apache-2.0 */
/*
 * cgroup: a v2 cgroup has a controller only if every ancestor passes it on
 * (cgroup.subtree_control). Usually a look at the new directory shows that all is there; else the
 * ancestors are walked from the mount point down, and each passes on all it has, so that the next
 * container finds it done and statistics are complete.
 */
#define LR_ROOM "cgroup"

#include "src/cgroup/internal.h"

/* What `docker stats` and its like read: worth a walk when missing. */
#define WANTED (1U << LR_CTRL_CPU | 1U << LR_CTRL_MEMORY | 1U << LR_CTRL_PIDS | 1U << LR_CTRL_BLKIO)
/* Those that a threaded cgroup can have. */
#define THREADED (1U << LR_CTRL_CPU | 1U << LR_CTRL_CPUSET | 1U << LR_CTRL_PIDS)

/* Where a needed controller got stuck. */
struct stuck {
	int code; /* of the write to subtree_control; 0: not offered from above at all */
	char dir[PATH_MAX];
};

static unsigned controllers_in(const char *dir, const char *file)
{
	char text[256];

	return lr_cgroup_read(dir, file, text, sizeof(text)) < 0 ? 0 : lr_cgroup_ctrl_set(text);
}

static int pass_on(const char *dir, unsigned set)
{
	char text[256] = "";
	size_t n = 0;

	for (enum lr_cgroup_ctrl c = 0; c < LR_CTRL_N; c++)
		if (set & 1U << c)
			n += (size_t)snprintf(text + n, sizeof(text) - n, "%s+%s", n ? " " : "",
					      lr_cgroup_ctrl_v2(c));
	return lr_cgroup_put(dir, "cgroup.subtree_control", text);
}

static void enable_level(const char *dir, unsigned need, struct stuck *stuck)
{
	unsigned have = controllers_in(dir, "cgroup.controllers");
	unsigned missing = have & ~controllers_in(dir, "cgroup.subtree_control");

	if (!missing || pass_on(dir, missing) == 0)
		return;
	/* All or nothing: one that is in the way (a realtime task keeps "cpu" out, say) must not
	 * take the others with it. */
	for (enum lr_cgroup_ctrl c = 0; c < LR_CTRL_N; c++) {
		int r = missing & 1U << c ? pass_on(dir, 1U << c) : 0;

		if (r < 0 && (need & 1U << c) && !stuck->code) {
			stuck->code = -r;
			snprintf(stuck->dir, sizeof(stuck->dir), "%s", dir);
		}
	}
}

static int refuse(const char *dir, unsigned missing, const struct stuck *stuck,
		  const char *const *where, struct lr_err *err)
{
	enum lr_cgroup_ctrl c = (enum lr_cgroup_ctrl)__builtin_ctz(missing);
	const char *name = lr_cgroup_ctrl_v2(c);

	if (stuck->code) {
		lr_fail(err, stuck->code, "cannot enable the cgroup controller \"%s\" below %s",
			name, stuck->dir);
		lr_err_hint(err,
			    stuck->code == EBUSY
				    ? "that cgroup has processes of its own: move them into "
				      "a sub-cgroup first (cgroup v2, \"no internal processes\")"
				    : "have it delegated: systemd's Delegate=yes for the "
				      "user's session, or run as root");
	} else {
		lr_refuse(err, EOPNOTSUPP, "the cgroup controller \"%s\" is not available in %s",
			  name, dir);
		lr_err_hint(err,
			    "see cgroup.controllers at the mount point: not built in, disabled "
			    "on the kernel's command line, used by cgroup v1, or not delegated "
			    "to this user");
	}
	if (where && where[c])
		lr_err_at(err, "%s", where[c]);
	return -err->code;
}

/* Below a threaded cgroup a new one is invalid until it is threaded as well. */
static int enter_threaded(const char *dir, unsigned need, struct lr_err *err)
{
	char type[32];
	int r;

	if (lr_cgroup_read(dir, "cgroup.type", type, sizeof(type)) < 0 ||
	    !lr_has_prefix(type, "domain invalid"))
		return 0;
	if (need & ~THREADED)
		return lr_refuse(err, EOPNOTSUPP,
				 "%s is below a threaded cgroup, which cannot limit memory or io",
				 dir);
	r = lr_cgroup_put(dir, "cgroup.type", "threaded");
	return r < 0 ? lr_fail(err, -r, "cannot make %s threaded, as its parent is", dir) : 0;
}

int lr_cgroup_enable(const char *mountpoint, const char *dir, unsigned need,
		     const char *const *where, struct lr_err *err)
{
	struct stuck stuck = {0};
	char level[PATH_MAX];
	size_t len = strlen(mountpoint);
	unsigned have = controllers_in(dir, "cgroup.controllers");
	int r;

	if ((have & (need | WANTED)) == (need | WANTED))
		return 0;
	for (;; len += 1 + strcspn(dir + len + 1, "/")) {
		memcpy(level, dir, len);
		level[len] = '\0';
		if (!dir[len])
			break;
		enable_level(level, need, &stuck);
	}
	r = enter_threaded(dir, need, err);
	if (r < 0)
		return r;
	have = controllers_in(dir, "cgroup.controllers");
	return need & ~have ? refuse(dir, need & ~have, &stuck, where, err) : 0;
}
