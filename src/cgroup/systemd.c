/* SPDX-License-Identifier: Apache-2.0 */
/*
 * cgroup: the systemd driver: a container's cgroup is that of a transient unit, which systemd makes
 * and ends; what it has no property for is written to the files beside it, which Delegate= allows.
 *
 * A scope lives as long as it has processes, so it cannot be made before there is one; but limits
 * and device rules have to be there before the container's first process is. A holder takes its
 * place: a copy of this process that waits for the end of a pipe. The container's process closes
 * that pipe when it has joined, and so does the kernel when everybody else died: whenever the
 * runtime is killed, the holder ends, and systemd removes the empty scope by itself.
 */
#define LR_ROOM "cgroup"

#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

#include "src/cgroup/unit.h"
#include "src/dbus/dbus.h"
#include "src/sys/syscalls.h"

#define NAME     "org.freedesktop.systemd1"
#define PATH     "/org/freedesktop/systemd1"
#define MANAGER  NAME ".Manager"
#define BODY_MAX 32768
#define TEXT_MAX 256

/* How long a unit that has just ended may still be known. */
#define FORGET_TRIES 100
#define FORGET_US    10000

static struct lr_dbus_method manager(const char *member, const char *signature)
{
	return (struct lr_dbus_method){NAME, PATH, MANAGER, member, signature};
}

/* A method that takes the name of a unit, and perhaps a mode. */
static int call_unit(struct lr_dbus *c, const char *member, const char *unit, const char *mode,
		     struct lr_dbus_msg *reply, struct lr_err *err)
{
	const struct lr_dbus_method m = manager(member, mode ? "ss" : "s");
	uint8_t buf[2 * TEXT_MAX];
	struct lr_dbus_out body = {.buf = buf, .cap = sizeof(buf)};

	lr_dbus_put_string(&body, unit);
	if (mode)
		lr_dbus_put_string(&body, mode);
	return lr_dbus_call(c, &m, &body, reply, err);
}

/* ---- jobs ------------------------------------------------------------------------------------ */

/* What StartTransientUnit and StopUnit answer with; its end comes as a signal of the same
 * sender. */
struct job {
	char path[TEXT_MAX];
	char sender[TEXT_MAX];
};

static int open_for_jobs(bool user, struct lr_dbus *c, struct lr_err *err)
{
	int r = lr_dbus_open(user, c, err);

	if (r == 0)
		r = lr_dbus_match(c,
				  "type='signal',sender='" NAME "',path='" PATH
				  "',interface='" MANAGER "',member='JobRemoved'",
				  err);
	return r;
}

static int take_job(struct lr_dbus_msg *reply, struct job *job, struct lr_err *err)
{
	const char *path = lr_streq(reply->signature, "o") ? lr_dbus_get_string(&reply->body) : "";

	if (!*path || strlen(path) >= TEXT_MAX || strlen(reply->sender) >= TEXT_MAX)
		return lr_refuse(err, EPROTO, "systemd answers without a job");
	strcpy(job->path, path);
	strcpy(job->sender, reply->sender);
	return 0;
}

/* systemd answers before a job is run, so its end is never missed. */
static int wait_for_job(struct lr_dbus *c, const struct job *job, const char *unit,
			struct lr_err *err)
{
	struct lr_dbus_msg m;
	const char *path, *result;
	int r;

	do {
		r = lr_dbus_next(c, &m, err);
		if (r < 0)
			return r;
		path = result = "";
		if (m.type == LR_DBUS_SIGNAL && lr_streq(m.member, "JobRemoved") &&
		    lr_streq(m.interface, MANAGER) && lr_streq(m.sender, job->sender) &&
		    lr_streq(m.signature, "uoss")) {
			lr_dbus_get_u32(&m.body);
			path = lr_dbus_get_string(&m.body);
			lr_dbus_get_string(&m.body);
			result = lr_dbus_get_string(&m.body);
		}
	} while (!lr_streq(path, job->path));
	lr_debug("cgroup: systemd is done with %s: %s", unit, result);
	if (lr_streq(result, "done"))
		return 0;
	lr_refuse(err, EREMOTEIO, "systemd cannot start or stop %s: %.100s", unit, result);
	return lr_err_hint(err, "see journalctl -u %s", unit);
}

/* ---- where ---------------------------------------------------------------------------------- */

/* The cgroup that the manager's own units are below: "" for the host's, as a rule. */
static int control_group(bool user, struct lr_arena *arena, const char **ret, struct lr_err *err)
{
	static const struct lr_dbus_method get = {NAME, PATH, "org.freedesktop.DBus.Properties",
						  "Get", "ss"};
	uint8_t buf[TEXT_MAX];
	struct lr_dbus_out body = {.buf = buf, .cap = sizeof(buf)};
	LR_CLEANUP_DBUS struct lr_dbus c;
	struct lr_dbus_msg reply;
	const char *path;
	size_t len;
	int r = lr_dbus_open(user, &c, err);

	if (r < 0)
		return r;
	lr_dbus_put_string(&body, MANAGER);
	lr_dbus_put_string(&body, "ControlGroup");
	r = lr_dbus_call(&c, &get, &body, &reply, err);
	if (r < 0)
		return r;
	if (!lr_streq(reply.signature, "v") || !lr_streq(lr_dbus_get_signature(&reply.body), "s"))
		reply.body.bad = true;
	path = lr_dbus_get_string(&reply.body);
	len = strlen(path);
	if (reply.body.bad || (len && path[0] != '/') || lr_cgroup_has_dotdot(path))
		return lr_refuse(err, EPROTO, "systemd does not tell in which cgroup it is");
	while (len && path[len - 1] == '/')
		len--;
	*ret = lr_strndup(arena, path, len);
	return *ret ? 0 : lr_fail(err, ENOMEM, "cannot plan the unit");
}

int lr_cgroup_systemd_locate(struct lr_cgroup_plan *plan, const char *cgroups_path,
			     const struct lr_cgroup_opts *o, struct lr_arena *arena,
			     struct lr_err *err)
{
	struct lr_cgroup_unit *u = lr_new(arena, struct lr_cgroup_unit);
	const char *base, *path;
	int r;

	/* sd_booted(3): what every other caller looks at. */
	if (access("/run/systemd/system", F_OK) < 0) {
		lr_refuse(err, EOPNOTSUPP,
			  "the systemd cgroup manager was asked for, but systemd "
			  "does not run here");
		return lr_err_hint(
			err, "use the cgroupfs manager: leave --systemd-cgroup out; for Docker "
			     "set \"exec-opts\": [\"native.cgroupdriver=cgroupfs\"], for Podman "
			     "cgroup_manager = \"cgroupfs\"");
	}
	if (!u)
		return lr_fail(err, ENOMEM, "cannot plan the unit");
	r = lr_cgroup_unit_of(cgroups_path, o, arena, u, err);
	if (r == 0)
		r = control_group(o->rootless, arena, &base, err);
	if (r < 0)
		return r;
	path = lr_cgroup_unit_path(u, arena);
	plan->unit = u;
	plan->ref.unit = u->name;
	plan->ref.user = o->rootless;
	plan->ref.relative = path ? lr_strf(arena, "%s%s", base, path) : NULL;
	return plan->ref.relative ? 0 : lr_fail(err, ENOMEM, "cannot plan the unit");
}

/* The length of a directory's path up to the unit's own. */
static size_t unit_len(const struct lr_cgroup_ref *ref, const char *dir)
{
	size_t n = strlen(ref->unit);
	const char *found = NULL;

	for (const char *p = strchr(dir, '/'); p; p = strchr(p + 1, '/'))
		if (strncmp(p + 1, ref->unit, n) == 0 && (!p[1 + n] || p[1 + n] == '/'))
			found = p;
	return found ? (size_t)(found - dir) + 1 + n : strlen(dir);
}

/* ---- the holder ----------------------------------------------------------------------------- */

static _Noreturn void hold(int until)
{
	sigset_t all;
	char byte;

	/* A terminal's signals are for the container. */
	sigfillset(&all);
	sigprocmask(SIG_SETMASK, &all, NULL);
	/* Locks and sockets that others wait on: not ours to keep. */
	if (until > 0)
		(void)lr_close_range(0, (unsigned)until - 1, 0);
	(void)lr_close_range((unsigned)until + 1, ~0U, 0);
	while (read(until, &byte, 1) < 0 && errno == EINTR)
		;
	_exit(0);
}

static int start_holder(struct lr_cgroup_plan *plan, struct lr_err *err)
{
	int fds[2];

	if (pipe2(fds, O_CLOEXEC) < 0)
		return lr_fail(err, errno, "make a pipe");
	pid_t pid = fork();
	if (pid == 0) {
		lr_close(fds[1]);
		hold(fds[0]);
	}
	lr_close(fds[0]);
	plan->hold = fds[1];
	plan->holder = pid;
	return pid < 0 ? lr_fail(err, errno, "fork") : 0;
}

void lr_cgroup_unhold(struct lr_cgroup_plan *plan)
{
	if (plan && plan->unit)
		lr_cgroup_settle(plan);
}

void lr_cgroup_settle(struct lr_cgroup_plan *plan)
{
	if (!plan)
		return;
	plan->hold = lr_close(plan->hold);
	/* Another thread of our caller may have forked, and its child may keep the pipe for
	 * ever. */
	if (plan->holder > 0) {
		LR_CLEANUP_FD int pidfd = lr_pidfd_open(plan->holder, 0);
		struct pollfd p = {.fd = pidfd, .events = POLLIN};

		if (pidfd >= 0 && poll(&p, 1, LR_CGROUP_WAIT_MS) == 0)
			(void)kill(plan->holder, SIGKILL);
	}
	while (plan->holder > 0 && waitpid(plan->holder, NULL, 0) < 0 && errno == EINTR)
		;
	plan->holder = 0;
}

/* ---- start ---------------------------------------------------------------------------------- */

static int put_props(struct lr_dbus_out *o, const struct lr_cgroup_props *props, pid_t pid,
		     bool newer, struct lr_err *err)
{
	struct lr_dbus_array a = lr_dbus_put_array(o, 8);
	char pids[32];
	int r = 0;

	for (size_t i = 0; r == 0 && i < props->n; i++) {
		const struct lr_cgroup_prop *p = &props->v[i];

		if (p->newer && !newer)
			continue;
		lr_debug("cgroup: unit property %s=%s", p->name, p->value);
		lr_dbus_put_align(o, 8);
		lr_dbus_put_string(o, p->name);
		r = lr_dbus_put_text(o, p->value, err);
		if (r < 0 && p->where)
			lr_err_at(err, "%s", p->where);
	}
	if (r == 0 && pid > 0) {
		snprintf(pids, sizeof(pids), "[uint32 %d]", (int)pid);
		lr_dbus_put_align(o, 8);
		lr_dbus_put_string(o, "PIDs");
		r = lr_dbus_put_text(o, pids, err);
	}
	lr_dbus_end_array(o, a);
	return r;
}

/* A property that systemd does not take is named in its message: say where it came from. */
static int blame(const struct lr_dbus *c, const struct lr_cgroup_props *props, struct lr_err *err)
{
	for (size_t i = 0; i < props->n; i++)
		if (props->v[i].where && strstr(err->msg, props->v[i].name))
			lr_err_at(err, "%s", props->v[i].where);
	if (strstr(c->error, "InteractiveAuthorizationRequired") ||
	    strstr(c->error, "AccessDenied"))
		lr_err_hint(err, "this user may not ask that systemd: rootless containers need "
				 "the user's own (XDG_RUNTIME_DIR), or use the cgroupfs manager");
	return -err->code;
}

static bool is_unknown_property(const struct lr_dbus *c)
{
	return lr_has_suffix(c->error, ".PropertyReadOnly") ||
	       lr_has_suffix(c->error, ".UnknownProperty");
}

static int call_start(struct lr_dbus *c, const struct lr_cgroup_plan *plan, bool newer,
		      struct job *job, struct lr_err *err)
{
	const struct lr_dbus_method m = manager("StartTransientUnit", "ssa(sv)a(sa(sv))");
	const struct lr_cgroup_unit *u = plan->unit;
	uint8_t buf[BODY_MAX];
	struct lr_dbus_out body = {.buf = buf, .cap = sizeof(buf)};
	struct lr_dbus_msg reply;
	int r;

	lr_dbus_put_string(&body, u->name);
	lr_dbus_put_string(&body, "replace");
	r = put_props(&body, &u->props, plan->holder, newer, err);
	lr_dbus_end_array(&body, lr_dbus_put_array(&body, 8)); /* no units beside it */
	if (r == 0)
		r = lr_dbus_call(c, &m, &body, &reply, err);
	return r < 0 ? r : take_job(&reply, job, err);
}

static int in_use(const struct lr_cgroup_plan *plan, struct lr_err *err)
{
	lr_refuse(err, EBUSY, "the systemd unit %s exists", plan->unit->name);
	lr_err_hint(err,
		    "another container uses this cgroupsPath, or one was not removed; see "
		    "systemctl status %s",
		    plan->unit->name);
	return lr_err_at(err, "linux.cgroupsPath");
}

/*
 * One of that name may be there: a failed one is reset, one that is on its way out is waited for, a
 * slice is shared, and one with processes is another container's.
 */
static int start(struct lr_dbus *c, const struct lr_cgroup_plan *plan, struct lr_err *err)
{
	const struct lr_cgroup_unit *u = plan->unit;
	bool newer = true;
	struct job job;
	struct lr_dbus_msg reply;

	for (int tries = 0;;) {
		int r = call_start(c, plan, newer, &job, err);

		if (r == 0)
			return wait_for_job(c, &job, u->name, err);
		if (r != -EREMOTEIO)
			return r;
		if (newer && is_unknown_property(c)) {
			lr_debug("cgroup: %s; once more without newer properties", err->msg);
			newer = false;
		} else if (lr_has_suffix(c->error, ".UnitExists")) {
			if (u->is_slice)
				return 0;
			if (tries++ == FORGET_TRIES || lr_cgroup_populated(plan->ref.v[0].path) > 0)
				return in_use(plan, err);
			(void)!call_unit(c, "ResetFailedUnit", u->name, NULL, &reply, NULL);
			lr_sleep_us(FORGET_US);
		} else {
			return blame(c, &u->props, err);
		}
		lr_err_clear(err);
	}
}

/* In the hierarchy by which systemd knows its units, the unit's directory has to be where it was
 * planned; the others' are made here if systemd does not. */
static int check_place(const struct lr_cgroup_plan *plan, struct lr_err *err)
{
	for (size_t i = 0; i < plan->ref.n; i++) {
		const struct lr_cgroup_place *p = &plan->ref.v[i];
		char dir[PATH_MAX];

		if (plan->ref.mode == LR_CGROUP_V2 ? *p->hierarchy
						   : !lr_streq(p->hierarchy, "name=systemd"))
			continue;
		snprintf(dir, sizeof(dir), "%.*s", (int)unit_len(&plan->ref, p->path), p->path);
		if (access(dir, F_OK) < 0)
			return lr_fail(err, errno, "systemd started %s, but not in %s",
				       plan->unit->name, dir);
	}
	return 0;
}

int lr_cgroup_systemd_create(struct lr_cgroup_plan *plan, struct lr_err *err)
{
	LR_CLEANUP_DBUS struct lr_dbus c;
	struct lr_err local = {0};
	int r;

	err = err ? err : &local;
	r = open_for_jobs(plan->ref.user, &c, err);
	if (r == 0 && !plan->unit->is_slice)
		r = start_holder(plan, err);
	if (r == 0)
		r = start(&c, plan, err);
	if (r < 0) {
		lr_cgroup_settle(plan);
		plan->ref.n = 0;
		return r;
	}
	r = check_place(plan, err);
	if (r == 0)
		r = lr_cgroup_make_places(plan, err);
	/* Or the unit's own cgroup could not pass controllers on to the sub-cgroup. */
	if (r == 0 && plan->unit->subgroup && plan->ref.mode == LR_CGROUP_V2 && plan->holder > 0)
		r = lr_cgroup_join_pid(&plan->ref, plan->holder, err);
	if (r == 0)
		r = lr_cgroup_fill_places(plan, err);
	if (r < 0) {
		lr_cgroup_settle(plan);
		(void)!lr_cgroup_systemd_destroy(&plan->ref, true, NULL);
		plan->ref.n = 0;
	}
	return r;
}

/* ---- afterwards ----------------------------------------------------------------------------- */

int lr_cgroup_systemd_attach(const struct lr_cgroup_ref *ref, const char *dir, pid_t pid,
			     struct lr_err *err)
{
	const struct lr_dbus_method m = manager("AttachProcessesToUnit", "ssau");
	LR_CLEANUP_DBUS struct lr_dbus c;
	uint8_t buf[PATH_MAX];
	struct lr_dbus_out body = {.buf = buf, .cap = sizeof(buf)};
	struct lr_dbus_array pids;
	struct lr_dbus_msg reply;
	int r = lr_dbus_open(ref->user, &c, err);

	if (r < 0)
		return r;
	lr_dbus_put_string(&body, ref->unit);
	lr_dbus_put_string(&body, dir + unit_len(ref, dir));
	pids = lr_dbus_put_array(&body, 4);
	lr_dbus_put_u32(&body, (uint32_t)pid);
	lr_dbus_end_array(&body, pids);
	return lr_dbus_call(&c, &m, &body, &reply, err);
}

static int set_properties(const struct lr_cgroup_ref *ref, const struct lr_cgroup_props *props,
			  struct lr_err *err)
{
	const struct lr_dbus_method m = manager("SetUnitProperties", "sba(sv)");
	LR_CLEANUP_DBUS struct lr_dbus c;
	uint8_t buf[BODY_MAX];
	struct lr_dbus_msg reply;
	int r = lr_dbus_open(ref->user, &c, err);

	for (bool newer = true; r == 0; newer = false) {
		struct lr_dbus_out body = {.buf = buf, .cap = sizeof(buf)};

		lr_dbus_put_string(&body, ref->unit);
		lr_dbus_put_u32(&body, true); /* until the next boot */
		r = put_props(&body, props, 0, newer, err);
		if (r == 0)
			r = lr_dbus_call(&c, &m, &body, &reply, err);
		if (r != -EREMOTEIO)
			return r;
		if (!newer || !is_unknown_property(&c))
			return blame(&c, props, err);
		lr_err_clear(err);
		r = 0;
	}
	return r;
}

int lr_cgroup_systemd_update(const struct lr_cgroup_ref *ref, const struct oci_resources *res,
			     struct lr_arena *arena, struct lr_err *err)
{
	struct lr_cgroup_gen g = {.arena = arena, .ref = ref, .err = err, .update = true};
	struct lr_cgroup_props props = {0};
	int r = lr_cgroup_gen_update(&g, res);

	if (r == 0)
		r = lr_cgroup_unit_limits(g.v, g.n, ref->mode == LR_CGROUP_V2, true, arena, &props,
					  err);
	/* memory.checkBeforeUpdate: before systemd writes, too. */
	for (size_t i = 0; r == 0 && i < g.n; i++)
		if (g.v[i].flags & LR_W_CHECK_USAGE)
			r = lr_cgroup_write_all(&g.v[i], 1, false, err);
	if (r == 0 && props.n)
		r = set_properties(ref, &props, err);
	return r < 0 ? r : lr_cgroup_write_update(&g);
}

/* systemd has usually seen that the cgroup became empty and is through with the unit; this makes
 * sure of it, so that the next container can have the name. */
static int stop(struct lr_dbus *c, const struct lr_cgroup_ref *ref, struct lr_err *err)
{
	struct lr_dbus_msg reply;
	struct job job;
	int r = call_unit(c, "StopUnit", ref->unit, "replace", &reply, err);

	if (r == 0)
		r = take_job(&reply, &job, err);
	if (r == 0)
		r = wait_for_job(c, &job, ref->unit, err);
	if (r == -EREMOTEIO && lr_has_suffix(c->error, ".NoSuchUnit"))
		return 0;
	/* One that failed stays known until somebody has looked at it. */
	if (r == 0 && call_unit(c, "ResetFailedUnit", ref->unit, NULL, &reply, NULL) < 0)
		lr_debug("cgroup: %s is gone", ref->unit);
	return r;
}

#define SYSTEMD_WAIT_MS 1000

/*
 * systemd, whom we cannot tell, ends the unit when the kernel says that the cgroup is empty. The
 * kernel says so some time after the last process, and not at all if the directory was removed by
 * then: so systemd has to remove it. It may also be gone itself.
 */
static void leave_to_systemd(const struct lr_cgroup_ref *ref)
{
	int i = lr_cgroup_find_v2(ref);
	int64_t end = lr_now_ms() + SYSTEMD_WAIT_MS;

	while (i >= 0 && access(ref->v[i].path, F_OK) == 0 && lr_now_ms() < end) {
		if (lr_cgroup_signal_all(ref, SIGKILL, NULL) < 0)
			lr_debug("cgroup: cannot kill all in %s yet", ref->relative);
		lr_sleep_us(10000);
	}
}

int lr_cgroup_systemd_destroy(const struct lr_cgroup_ref *ref, bool kill, struct lr_err *err)
{
	struct lr_err why = {0};
	char line[600], dir[PATH_MAX];

	/* What may be somebody else's is not stopped. If it was ours after all, it went with the
	 * holder. */
	if (!kill)
		return lr_cgroup_fs_destroy(ref, false, err);
	LR_CLEANUP_DBUS struct lr_dbus c;
	int reached = open_for_jobs(ref->user, &c, &why);
	if (reached < 0)
		leave_to_systemd(ref);
	int r = lr_cgroup_fs_destroy(ref, true, err);
	if (r < 0)
		return r;
	if (reached >= 0)
		reached = stop(&c, ref, &why);
	if (reached < 0)
		lr_debug("cgroup: %s", lr_err_format(&why, line, sizeof(line)));
	/* Above a sub-cgroup, in hierarchies that systemd does not care about. */
	for (size_t i = 0; i < ref->n; i++) {
		size_t len = unit_len(ref, ref->v[i].path);

		snprintf(dir, sizeof(dir), "%.*s", (int)len, ref->v[i].path);
		if (ref->v[i].path[len] && rmdir(dir) < 0 && errno != ENOENT)
			lr_debug("cgroup: %s stays: %s", dir, lr_strerror(errno));
	}
	return 0;
}
