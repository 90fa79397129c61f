/* SPDX-License-Identifier: Apache-2.0 */
/* lifecycle: hiding the caller's file and memory; see hide.h. */
#define LR_ROOM "hide"
#include "src/lifecycle/hide.h"

#include <errno.h>

#include "src/base/str.h"
#include "src/lifecycle/container.h"

static bool has_text(const char *s)
{
	return s && *s;
}

/* Of that type; NULL: none, so it is the caller's. */
static const struct oci_namespace *find_ns(const struct oci_config *c, const char *type)
{
	for (size_t i = 0; c->linux_ && i < c->linux_->namespaces.n; i++)
		if (lr_streq(c->linux_->namespaces.v[i].type, type))
			return &c->linux_->namespaces.v[i];
	return NULL;
}

static bool is_new(const struct oci_namespace *ns)
{
	return ns && !has_text(ns->path);
}

/* Of a network, or of names, nobody looks into a process; the others are where processes, files or
 * rights are shared. */
static bool joins(const struct oci_config *c)
{
	static const char *const harmless[] = {"network", "ipc", "uts", "cgroup"};

	for (size_t i = 0; c->linux_ && i < c->linux_->namespaces.n; i++) {
		const struct oci_namespace *ns = &c->linux_->namespaces.v[i];
		bool matters = has_text(ns->path);
		for (size_t k = 0; k < LR_ARRAY_SIZE(harmless); k++)
			matters = matters && !lr_streq(ns->type, harmless[k]);
		if (matters)
			return true;
	}
	return false;
}

static bool has(const struct oci_strv *set, const char *name)
{
	for (size_t i = 0; i < set->n; i++)
		if (lr_streq(set->v[i], name))
			return true;
	return false;
}

/* Whether a process of the container may have CAP_SYS_PTRACE where it counts. A file with
 * capabilities brings in what is in the bounding set alone. */
static bool may_trace(const struct oci_config *c)
{
	const struct oci_capabilities *caps = c->process ? c->process->capabilities : NULL;
	static const char name[] = "CAP_SYS_PTRACE";

	return caps && !is_new(find_ns(c, "user")) &&
	       (has(&caps->bounding, name) || has(&caps->permitted, name) ||
		has(&caps->effective, name) || has(&caps->inheritable, name) ||
		has(&caps->ambient, name));
}

static bool has_label(const struct oci_config *c)
{
	const struct oci_process *p = c->process;

	return p && (has_text(p->apparmor_profile) || has_text(p->selinux_label));
}

/* Ids other than 0 keep what is ambient through an execve, and no other capability: the stub's
 * would take what the execve after it counts on, to reach the program (CAP_DAC_OVERRIDE), or, with
 * no-new-privileges, to be allowed what its file gives. */
static bool loses_caps(const struct oci_process *p)
{
	const struct oci_capabilities *caps = p ? p->capabilities : NULL;

	if (!caps || p->user.uid == 0)
		return false;
	for (size_t i = 0; i < caps->permitted.n; i++)
		if (!has(&caps->ambient, caps->permitted.v[i]))
			return true;
	return false;
}

/* Nobody may look at the newborn, nothing of the container's be executed by it before the stub, its
 * rights outlast the stub's execve, and no label stand between the two execve calls. A filter may,
 * if it lets them through: that is known when it is compiled (lr_init_stub_allowed). */
static bool stub_suits(const struct oci_config *c)
{
	return is_new(find_ns(c, "pid")) && !joins(c) && !has_label(c) && !loses_caps(c->process) &&
	       !(c->hooks && (c->hooks->create_container.n || c->hooks->start_container.n));
}

static enum lr_hide refuse_traced(enum lr_hide_birth birth, struct lr_err *err)
{
	lr_refuse(err, EOPNOTSUPP,
		  birth == LR_HIDE_ENTER
			  ? "with CAP_SYS_PTRACE, a process of the container could read this "
			    "program's memory in the process that is to enter it"
			  : "with CAP_SYS_PTRACE in the pid namespace of this program, the "
			    "container could read this program's memory");
	lr_err_hint(err, "%s, or use the program lean-runtime",
		    birth == LR_HIDE_ENTER
			    ? "take it away, give the container a new user namespace"
			    : "take it away, give the container a new pid namespace");
	lr_err_at(err, "process.capabilities");
	return LR_HIDE_REFUSE;
}

static enum lr_hide refuse_joined(const struct oci_config *c, const struct oci_namespace *pid,
				  struct lr_err *err)
{
	lr_refuse(err, EOPNOTSUPP,
		  "a process in the pid namespace %.64s may have CAP_SYS_PTRACE, and could read "
		  "this program's memory in the new process",
		  pid->path);
	lr_err_hint(err, "make a new pid namespace, or use the program lean-runtime");
	lr_err_at(err, "linux.namespaces[%zu].path", (size_t)(pid - c->linux_->namespaces.v));
	return LR_HIDE_REFUSE;
}

static enum lr_hide refuse_label(const struct oci_config *c, struct lr_err *err)
{
	bool apparmor = has_text(c->process->apparmor_profile);

	lr_refuse(err, EOPNOTSUPP,
		  "the sealed page that hides this program's file would take the label for itself");
	lr_err_hint(err, "call lean_protect first thing, or use the program lean-runtime");
	lr_err_at(err, "process.%s", apparmor ? "apparmorProfile" : "selinuxLabel");
	return LR_HIDE_REFUSE;
}

static enum lr_hide for_library(const struct lr_hide_caller *who, enum lr_hide_birth birth,
				const struct oci_config *c, struct lr_err *err)
{
	const struct oci_namespace *pid = find_ns(c, "pid");

	if (birth != LR_HIDE_ENTER && pid && !is_new(pid))
		return refuse_joined(c, pid, err);
	if ((birth == LR_HIDE_ENTER || !pid) && may_trace(c))
		return refuse_traced(birth, err);
	if (who->hidden)
		return LR_HIDE_NEEDLESS;
	return has_label(c) ? refuse_label(c, err) : LR_HIDE_STUB;
}

enum lr_hide lr_hide(const struct lr_hide_caller *who, enum lr_hide_birth birth,
		     const struct oci_config *c, struct lr_err *err)
{
	if (who->library)
		return for_library(who, birth, c, err);
	if (who->hidden || who->wants)
		return who->hidden ? LR_HIDE_NEEDLESS : who->wants;
	/* In a container that is there its processes see the newborn, and so do those of any other
	 * that has joined its pid namespace, whose rights nobody knows: it gets neither our memory
	 * nor our file. And a page that waits belongs to the user namespace, whose root may trace
	 * it, and find our descriptors. */
	if (birth == LR_HIDE_ENTER || (c && !stub_suits(c)) ||
	    (c && birth == LR_HIDE_CREATE && is_new(find_ns(c, "user"))))
		return LR_HIDE_MOUNT;
	return LR_HIDE_STUB;
}
