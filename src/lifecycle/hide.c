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

/* The namespace of that type; NULL: the config has none, so it is the caller's. */
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

/* Whether the container joins a namespace that is shared with other processes. Network, ipc, uts
 * and cgroup do not count: through them, nobody can look into a process. */
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

/* Whether a process of the container may have CAP_SYS_PTRACE where it counts. The bounding set
 * counts, too, as a file with capabilities gives what is in there. */
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

/* Through an execve, ids other than 0 keep their ambient capabilities only. The page's execve would
 * take others away, which the one after it may need to reach the program (CAP_DAC_OVERRIDE) or,
 * with no-new-privileges, to get what the program's file gives. */
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

/* The page suits if nobody can look at the newborn, if nothing of the container's is executed
 * before the page, if no right is lost by its execve, and if no label would apply to it. A filter
 * may allow the page; that is known when it is compiled (lr_init_stub_allowed). */
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
	/* In an existing container its processes see the newborn, and so do those of any other that
	 * has joined its pid namespace, whose rights nobody knows: neither our memory nor our file
	 * may be seen there. And the root of a container's own user namespace may trace a page that
	 * waits, and find our descriptors. */
	if (birth == LR_HIDE_ENTER || (c && !stub_suits(c)) ||
	    (c && birth == LR_HIDE_CREATE && is_new(find_ns(c, "user"))))
		return LR_HIDE_MOUNT;
	return LR_HIDE_STUB;
}
