/* SPDX-License-Identifier: Apache-2.0 */
/* mount: new instances of file systems, where direct.c cannot make them or has to know why: fsopen,
 * fsconfig, fsmount, move_mount; or mount(2) by descriptor. */
#define LR_ROOM "mount"
#include "src/mount/internal.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/xattr.h>
#include <unistd.h>

#include "src/base/log.h"
#include "src/base/str.h"
#include "src/sys/path.h"

/* The kernel says what it did not like, line by line: "e tmpfs: Bad value for 'size'". */
static void read_reason(int ctx, char *buf, size_t size)
{
	char line[256];
	ssize_t n;

	buf[0] = '\0';
	while ((n = read(ctx, line, sizeof(line) - 1)) > 0) {
		line[n] = '\0';
		line[strcspn(line, "\n")] = '\0';
		if (n > 2 && (line[0] == 'e' || !buf[0]))
			snprintf(buf, size, "%s", line + 2);
	}
}

static int fail_make(const struct lr_mount_fs *fs, int ctx, int r, struct lr_err *err)
{
	char reason[256];

	read_reason(ctx, reason, sizeof(reason));
	lr_fail(err, -r, "mount %s%s%s", fs->type, reason[0] ? ": " : "", reason);
	return r;
}

static int set_sb_flags(int ctx, unsigned long sb)
{
	static const struct {
		unsigned long bit;
		const char *key;
	} flags[] = {
		{MS_RDONLY, "ro"},     {MS_SYNCHRONOUS, "sync"},  {MS_DIRSYNC, "dirsync"},
		{MS_MANDLOCK, "mand"}, {MS_LAZYTIME, "lazytime"},
	};

	for (size_t i = 0; i < LR_ARRAY_SIZE(flags); i++) {
		int r = sb & flags[i].bit
				? lr_fsconfig(ctx, FSCONFIG_SET_FLAG, flags[i].key, NULL, 0)
				: 0;
		if (r < 0)
			return r;
	}
	return 0;
}

static int configure(int ctx, const struct lr_mount_fs *fs)
{
	int r = 0;

	if (fs->source && *fs->source)
		r = lr_fsconfig(ctx, FSCONFIG_SET_STRING, "source", fs->source, 0);
	if (r == 0)
		r = set_sb_flags(ctx, fs->sb);
	for (size_t i = 0; i < fs->n_params && r == 0; i++)
		r = lr_fsconfig(ctx, fs->params[i].value ? FSCONFIG_SET_STRING : FSCONFIG_SET_FLAG,
				fs->params[i].key, fs->params[i].value, 0);
	if (r == 0 && fs->mode)
		r = lr_fsconfig(ctx, FSCONFIG_SET_STRING, "mode", fs->mode, 0);
	return r == 0 ? lr_fsconfig(ctx, FSCONFIG_CMD_CREATE, NULL, NULL, 0) : r;
}

/* A detached mount, or -errno with the kernel's own words in *err. */
static int make(struct lr_mount_plan *plan, const struct lr_mount_fs *fs, bool *unavailable,
		struct lr_err *err)
{
	*unavailable = true;
	if (plan->no_fsopen || lr_mount_no_new_api)
		return -ENOSYS;
	LR_CLEANUP_FD_LATE int ctx = lr_fsopen(fs->type, FSOPEN_CLOEXEC);
	if (lr_not_offered(ctx)) {
		plan->no_fsopen = true;
		return ctx;
	}
	*unavailable = false;
	if (ctx < 0) {
		lr_fail(err, -ctx, "mount %s", fs->type);
		if (ctx == -ENODEV)
			lr_err_hint(err, "the kernel has no file system of that type (see "
					 "/proc/filesystems)");
		return ctx;
	}
	int r = configure(ctx, fs);
	if (r < 0)
		return fail_make(fs, ctx, r, err);
	int mfd = lr_fsmount(ctx, FSMOUNT_CLOEXEC, (unsigned)fs->attr);
	/* A filter, or a kernel that finds a procfs or sysfs "too revealing": mount(2) will
	 * tell. */
	*unavailable = lr_not_offered(mfd);
	return mfd < 0 ? fail_make(fs, ctx, mfd, err) : mfd;
}

int lr_mount_attach(int mfd, const struct lr_mount_dest *dest)
{
	return lr_move_mount(mfd, "", dest->fd, dest->name ? dest->name : "",
			     MOVE_MOUNT_F_EMPTY_PATH | (dest->name ? 0 : MOVE_MOUNT_T_EMPTY_PATH));
}

/* What the host's own instance may stand in for when a user namespace may not make a new one. */
static const char *host_dir_of(const struct lr_mount_op *op)
{
	return lr_streq(op->type, "sysfs")    ? "/sys"
	       : lr_streq(op->type, "mqueue") ? "/dev/mqueue"
					      : NULL;
}

static void explain(const struct lr_mount_plan *plan, const struct lr_mount_op *op, int r,
		    struct lr_err *err)
{
	lr_err_at(err, "mounts[%zu]", op->index);
	if (r == -EPERM && lr_streq(op->type, "proc"))
		lr_err_hint(err, "a new procfs needs a pid namespace of the container's own, and "
				 "in a user namespace a host /proc that is not partly covered "
				 "(nested container): unmask it there, or bind /proc");
	else if (r == -EPERM && lr_streq(op->type, "sysfs") && !plan->opts.netns)
		lr_err_hint(err, "in a user namespace, sysfs needs a network namespace of the "
				 "container's own");
	else if (r == -EINVAL && plan->opts.userns && lr_streq(op->type, "devpts"))
		lr_err_hint(err, "drop \"gid=5\", or map that group in linux.gidMappings");
	else if (r == -EINVAL && op->o.n_params)
		lr_err_hint(err,
			    "what is no mount option (%s) is handed to %s as it is: see %s(5) or "
			    "the kernel's documentation",
			    op->o.data, op->type, op->type);
	else if (r == -ENOENT && op->o.n_params)
		lr_err_hint(err, "a directory or device in its options or source is missing");
	else if (r == -EPERM)
		lr_err_hint(err, "this file system cannot be mounted in a user namespace, or "
				 "CAP_SYS_ADMIN is missing");
}

/* Decides the mode of a tmpfs that has none: that of the directory it covers, as runc and crun
 * do; the kernel's default (1777) if there was none. Moves on to the slow way when `d` is a link.
 */
static int peek_dest(struct lr_mount_plan *plan, struct lr_mount_op *op,
		     const struct lr_mount_env *env, struct lr_mount_dest *d, struct stat *st,
		     struct lr_err *err)
{
	if (d->made && !op->o.copyup)
		return 0;
	if (d->name) {
		if (fstatat(d->fd, d->name, st, AT_SYMLINK_NOFOLLOW) == 0 && S_ISDIR(st->st_mode))
			return 0;
		lr_mount_dest_close(d);
		int r = lr_mount_dest_open(plan, op, env, LR_NOFD, d, err);
		if (r < 0)
			return r;
	}
	if (fstat(d->fd, st) < 0) {
		int r = -errno;
		lr_fail(err, -r, "stat %s", op->dest);
		return r;
	}
	return 0;
}

/* The directory below a coming tmpfs, to be read after it is covered. */
static int open_covered(const struct lr_mount_dest *d)
{
	int fd = openat(d->fd, d->name ? d->name : ".",
			O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
	return fd < 0 ? -errno : fd;
}

static int copy_up(const struct lr_mount_op *op, int from, int to, const struct stat *st,
		   struct lr_err *err)
{
	if (!lr_mount_options_has(&op->o, "uid") && !lr_mount_options_has(&op->o, "gid") &&
	    fchownat(to, "", st->st_uid, st->st_gid, AT_EMPTY_PATH) < 0 && errno != EPERM &&
	    errno != EINVAL) {
		int r = -errno;
		lr_fail(err, -r, "tmpcopyup: owner of %s", op->dest);
		return r;
	}
	return lr_mount_copyup(from, to, err);
}

/* mqueue takes no context= option; its root can be labelled as a file. */
static void label_mqueue(const struct lr_mount_plan *plan, const struct lr_mount_op *op, int mfd)
{
	const char *label = plan->opts.mount_label;

	if (!label || !*label || !lr_streq(op->type, "mqueue"))
		return;
	LR_CLEANUP_FD int fd = openat(mfd, ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	if (fd < 0 || fsetxattr(fd, "security.selinux", label, strlen(label) + 1, 0) < 0)
		lr_debug("mount: %s takes no SELinux label", op->dest);
}

static int settle(const struct lr_mount_plan *plan, struct lr_mount_op *op, int *mfd,
		  const struct lr_mount_env *env, struct lr_err *err)
{
	int r = lr_mount_changes_apply(plan, *mfd, op->props, op->n_props, LR_MOUNT_BOTH, env, err);

	if (r < 0)
		return r;
	label_mqueue(plan, op, *mfd);
	if (op->keep)
		op->mfd = lr_take_fd(mfd);
	return 0;
}

static int legacy(struct lr_mount_plan *plan, struct lr_mount_op *op,
		  const struct lr_mount_env *env, struct lr_err *err)
{
	LR_MOUNT_CLEANUP_DEST struct lr_mount_dest d = {.fd = LR_NOFD};
	LR_CLEANUP_FD int covered = LR_NOFD;
	char data[LR_MOUNT_DATA_MAX];
	struct stat st = {0};
	int r = lr_mount_dest_open(plan, op, env, LR_NOFD, &d, err);

	if (r < 0 || ((op->inherit_mode || op->o.copyup) &&
		      (r = peek_dest(plan, op, env, &d, &st, err)) < 0))
		return r;
	int n = op->inherit_mode && !d.made && !op->made
			? snprintf(data, sizeof(data), "%s%smode=%o", op->o.data,
				   *op->o.data ? "," : "", st.st_mode & 07777)
			: snprintf(data, sizeof(data), "%s", op->o.data);
	if (n >= (int)sizeof(data)) {
		lr_fail(err, E2BIG, "mount %s: options", op->type);
		return -E2BIG;
	}
	if (op->o.copyup && (covered = open_covered(&d)) < 0) {
		lr_fail(err, -covered, "open %s", op->dest);
		return covered;
	}
	r = lr_mount_legacy(env, d.fd, *op->source ? op->source : NULL, op->type, op->ms_flags,
			    data);
	if (r == -EPERM && host_dir_of(op))
		return lr_mount_bind_instead(plan, op, host_dir_of(op), env, err);
	if (r < 0) {
		lr_fail(err, -r, "mount %s on %s", op->type, op->dest);
		explain(plan, op, r, err);
		return r;
	}
	if (!op->keep && !op->n_props && !op->o.copyup && !plan->opts.mount_label)
		return 0;
	LR_CLEANUP_FD_LATE int mfd = lr_mount_dest_reopen(plan, op, env, d.fd, err);
	if (mfd < 0)
		return mfd;
	if (op->o.copyup && (r = copy_up(op, covered, mfd, &st, err)) < 0)
		return r;
	return settle(plan, op, &mfd, env, err);
}

/* Puts mfd into its place; makes a missing directory only when the kernel says it is missing. */
static int attach(struct lr_mount_plan *plan, struct lr_mount_op *op,
		  const struct lr_mount_env *env, int mfd, struct lr_mount_dest *d,
		  struct lr_err *err)
{
	int r = lr_mount_attach(mfd, d);

	if (r == -ENOENT && d->name && mkdirat(d->fd, d->name, 0755) == 0)
		r = lr_mount_attach(mfd, d);
	if (r < 0 && d->name && !lr_not_offered(r)) { /* a link, a file: by the long way */
		r = lr_mount_dest_open(plan, op, env, LR_NOFD, d, err);
		if (r < 0)
			return r;
		r = lr_mount_attach(mfd, d);
	}
	return r;
}

/* Whose roots are wanted later (lr_mount_take_top). */
static bool is_top(const struct lr_mount_op *op)
{
	return (lr_streq(op->dest, "/proc") && lr_streq(op->type, "proc")) ||
	       (lr_streq(op->dest, "/sys") && lr_streq(op->type, "sysfs"));
}

/* Makes a mount that nobody sees, and puts it into its place. bench: made there (bench.c).
 * *again: nothing came of it, and another way may do. */
static int fresh(struct lr_mount_plan *plan, struct lr_mount_op *op, const struct lr_mount_env *env,
		 bool bench, bool *again, struct lr_err *err)
{
	struct lr_mount_fs fs = {op->type,     op->source, op->o.params, op->o.n_params,
				 op->ms_flags, op->attr,   NULL};
	LR_MOUNT_CLEANUP_DEST struct lr_mount_dest d = {.fd = LR_NOFD};
	struct stat st = {0};
	char mode[8];
	int r;

	/* What is copied up is charged to the container: not once more, because it can't be
	 * attached. */
	*again = op->o.copyup && lr_not_offered(lr_move_mount(LR_NOFD, "", LR_NOFD, "", 0));
	if (*again)
		return -ENOSYS;
	if (!lr_mount_dest_near(plan, op, env, &d) &&
	    (r = lr_mount_dest_open(plan, op, env, LR_NOFD, &d, err)) < 0)
		return r;
	if (d.name && op->below_new && mkdirat(d.fd, d.name, 0755) == 0)
		d.made = true;
	if (op->inherit_mode || op->o.copyup) {
		if ((r = peek_dest(plan, op, env, &d, &st, err)) < 0)
			return r;
		snprintf(mode, sizeof(mode), "%o", st.st_mode & 07777);
		if (op->inherit_mode && !d.made)
			fs.mode = mode;
		op->made = d.made;
	}
	LR_CLEANUP_FD_LATE int mfd =
		bench ? lr_mount_make_on_bench(op, again, err) : make(plan, &fs, again, err);
	if (mfd < 0)
		return mfd;
	if (op->o.copyup) {
		LR_CLEANUP_FD int from = open_covered(&d);
		if (from < 0)
			return lr_fail(err, -from, "open %s", op->dest), from;
		if ((r = copy_up(op, from, mfd, &st, err)) < 0)
			return r;
	}
	r = attach(plan, op, env, mfd, &d, err);
	if (r < 0) {
		/* AppArmor before 4.0 answers EACCES to any move_mount of a detached mount. */
		*again = bench ? lr_mount_clear_bench() : lr_not_offered(r) || r == -EACCES;
		if (!err || !err->code)
			lr_fail(err, -r, "mount %s on %s", op->type, op->dest);
		return r;
	}
	*again = false;
	op->keep = op->keep || (bench && is_top(op));
	return settle(plan, op, &mfd, env, err);
}

int lr_mount_fs_apply(struct lr_mount_plan *plan, struct lr_mount_op *op,
		      const struct lr_mount_env *env, struct lr_err *err)
{
	bool again;
	int r;

	if (lr_mount_has_bench(plan, op, env) && (op->keep || is_top(op))) {
		r = fresh(plan, op, env, true, &again, err);
		if (r == 0 || !again)
			return r;
		lr_debug("mount: mounts[%zu]: errno %d, once more", op->index, -r);
		lr_err_clear(err);
		plan->no_bench = true;
	}
	if (lr_mount_is_direct(plan, op)) {
		r = lr_mount_direct(plan, op, env, &again, err);
		if (r == 0 || !again)
			return r;
		lr_debug("mount: mounts[%zu]: errno %d, once more by fsopen", op->index, -r);
	}
	plan->at = -1;
	again = op->o.only_mount2 || plan->no_fsopen || lr_mount_no_new_api;
	r = again ? -ENOSYS : fresh(plan, op, env, false, &again, err);
	if (r < 0 && again) {
		lr_err_clear(err);
		return legacy(plan, op, env, err);
	}
	if (r == -EPERM && host_dir_of(op)) {
		lr_err_clear(err);
		return lr_mount_bind_instead(plan, op, host_dir_of(op), env, err);
	}
	if (r < 0)
		explain(plan, op, r, err);
	return r;
}
