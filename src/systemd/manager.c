/* SPDX-License-Identifier: Apache-2.0 */
/* systemd: calls to its manager, and the jobs that it does for them. */
#define LR_ROOM "systemd"

#include "src/systemd/systemd.h"

#include <limits.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "src/base/log.h"
#include "src/base/str.h"

#define NAME     "org.freedesktop.systemd1"
#define PATH     "/org/freedesktop/systemd1"
#define MANAGER  NAME ".Manager"
#define BODY_MAX 32768
#define TEXT_MAX 256

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

int lr_systemd_open(bool user, struct lr_dbus *c, struct lr_err *err)
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
	lr_debug("systemd: systemd is done with %s: %s", unit, result);
	if (lr_streq(result, "done"))
		return 0;
	lr_refuse(err, EREMOTEIO, "systemd cannot start or stop %s: %.100s", unit, result);
	return lr_err_hint(err, "see journalctl -u %s", unit);
}

/* ---- where ----------------------------------------------------------------------------------- */

int lr_systemd_check(struct lr_err *err)
{
	/* sd_booted(3): what every other caller looks at. */
	if (access("/run/systemd/system", F_OK) == 0)
		return 0;
	lr_refuse(err, EOPNOTSUPP,
		  "the systemd cgroup manager was asked for, but systemd does not run here");
	return lr_err_hint(err,
			   "use the cgroupfs manager: leave --systemd-cgroup out; for Docker set "
			   "\"exec-opts\": [\"native.cgroupdriver=cgroupfs\"], for Podman "
			   "cgroup_manager = \"cgroupfs\"");
}

int lr_systemd_base(bool user, struct lr_arena *arena, const char **ret, struct lr_err *err)
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
	if (reply.body.bad || (len && path[0] != '/') || lr_path_has_dotdot(path))
		return lr_refuse(err, EPROTO, "systemd does not tell in which cgroup it is");
	while (len && path[len - 1] == '/')
		len--;
	*ret = lr_strndup(arena, path, len);
	return *ret ? 0 : lr_fail(err, ENOMEM, "cannot plan the unit");
}

/* ---- units ----------------------------------------------------------------------------------- */

static int put_props(struct lr_dbus_out *o, const struct lr_systemd_props *props, pid_t pid,
		     bool newer, struct lr_err *err)
{
	struct lr_dbus_array a = lr_dbus_put_array(o, 8);
	char pids[32];
	int r = 0;

	for (size_t i = 0; r == 0 && i < props->n; i++) {
		const struct lr_systemd_prop *p = &props->v[i];

		if (p->newer && !newer)
			continue;
		lr_debug("systemd: unit property %s=%s", p->name, p->value);
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
static int blame(const struct lr_dbus *c, const struct lr_systemd_props *props, struct lr_err *err)
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

static int call_start(struct lr_dbus *c, const struct lr_systemd_unit *u, pid_t pid, bool newer,
		      struct job *job, struct lr_err *err)
{
	const struct lr_dbus_method m = manager("StartTransientUnit", "ssa(sv)a(sa(sv))");
	uint8_t buf[BODY_MAX];
	struct lr_dbus_out body = {.buf = buf, .cap = sizeof(buf)};
	struct lr_dbus_msg reply;
	int r;

	lr_dbus_put_string(&body, u->name);
	lr_dbus_put_string(&body, "replace");
	r = put_props(&body, &u->props, pid, newer, err);
	lr_dbus_end_array(&body, lr_dbus_put_array(&body, 8)); /* no units beside it */
	if (r == 0)
		r = lr_dbus_call(c, &m, &body, &reply, err);
	return r < 0 ? r : take_job(&reply, job, err);
}

int lr_systemd_start(struct lr_dbus *c, const struct lr_systemd_unit *u, pid_t pid,
		     struct lr_err *err)
{
	struct job job;
	int r = call_start(c, u, pid, true, &job, err);

	if (r == -EREMOTEIO && is_unknown_property(c)) {
		lr_debug("systemd: %s; once more without newer properties", err->msg);
		lr_err_clear(err);
		r = call_start(c, u, pid, false, &job, err);
	}
	if (r == -EREMOTEIO)
		return lr_has_suffix(c->error, ".UnitExists") ? -EEXIST : blame(c, &u->props, err);
	return r < 0 ? r : wait_for_job(c, &job, u->name, err);
}

void lr_systemd_forget(struct lr_dbus *c, const char *unit)
{
	struct lr_dbus_msg reply;

	if (call_unit(c, "ResetFailedUnit", unit, NULL, &reply, NULL) < 0)
		lr_debug("systemd: %s is gone", unit);
}

int lr_systemd_stop(struct lr_dbus *c, const char *unit, struct lr_err *err)
{
	struct lr_dbus_msg reply;
	struct job job;
	int r = call_unit(c, "StopUnit", unit, "replace", &reply, err);

	if (r == 0)
		r = take_job(&reply, &job, err);
	if (r == 0)
		r = wait_for_job(c, &job, unit, err);
	if (r == -EREMOTEIO && lr_has_suffix(c->error, ".NoSuchUnit"))
		return 0;
	if (r == 0)
		lr_systemd_forget(c, unit);
	return r;
}

int lr_systemd_set(bool user, const char *unit, const struct lr_systemd_props *props,
		   struct lr_err *err)
{
	const struct lr_dbus_method m = manager("SetUnitProperties", "sba(sv)");
	LR_CLEANUP_DBUS struct lr_dbus c;
	uint8_t buf[BODY_MAX];
	struct lr_dbus_msg reply;
	int r = lr_dbus_open(user, &c, err);

	for (bool newer = true; r == 0; newer = false) {
		struct lr_dbus_out body = {.buf = buf, .cap = sizeof(buf)};

		lr_dbus_put_string(&body, unit);
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

int lr_systemd_attach(bool user, const char *unit, const char *below, pid_t pid, struct lr_err *err)
{
	const struct lr_dbus_method m = manager("AttachProcessesToUnit", "ssau");
	LR_CLEANUP_DBUS struct lr_dbus c;
	uint8_t buf[PATH_MAX];
	struct lr_dbus_out body = {.buf = buf, .cap = sizeof(buf)};
	struct lr_dbus_array pids;
	struct lr_dbus_msg reply;
	int r = lr_dbus_open(user, &c, err);

	if (r < 0)
		return r;
	lr_dbus_put_string(&body, unit);
	lr_dbus_put_string(&body, below);
	pids = lr_dbus_put_array(&body, 4);
	lr_dbus_put_u32(&body, (uint32_t)pid);
	lr_dbus_end_array(&body, pids);
	return lr_dbus_call(&c, &m, &body, &reply, err);
}
