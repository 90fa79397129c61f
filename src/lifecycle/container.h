/* SPDX-License-Identifier: Apache-2.0 */
/* lifecycle: what the verbs on an existing container share; internal to src/lifecycle. */
#ifndef LR_LIFECYCLE_CONTAINER_H
#define LR_LIFECYCLE_CONTAINER_H

#include "src/cgroup/cgroup.h"
#include "src/hook/hook.h"
#include "src/lifecycle/lifecycle.h"
#include "src/store/store.h"

/* How long a process may take to be gone after SIGKILL. */
#define LR_KILL_TIMEOUT_MS 10000

/* An existing container, opened by lr_container_open. */
struct lr_existing {
	struct lr_store store;
	struct lr_entry entry; /* locked if asked for */
	struct lr_record record;
	const char *config_text; /* the kept part of config.json */
	size_t config_len;
	struct lr_cgroup_ref cgroup; /* n == 0: none */
	enum lr_status status;
};
#define LR_EXISTING_NONE                                                                           \
	{                                                                                          \
		.store = {.fd = -EBADF}, .entry = LR_ENTRY_NONE                                    \
	}

/* `lock`: for verbs that change it. -ENOENT: `container "ID" does not exist`. */
int lr_container_open(const struct lr_runtime *rt, const char *id, bool lock, struct lr_arena *a,
		      struct lr_existing *ret, struct lr_err *err) LR_MUST_CHECK;
/* The same, locked by that function. */
typedef int lr_container_lock(const struct lr_store *s, const char *id, struct lr_entry *ret,
			      struct lr_err *err);
int lr_container_open_by(const struct lr_runtime *rt, const char *id, lr_container_lock *lock,
			 struct lr_arena *a, struct lr_existing *ret,
			 struct lr_err *err) LR_MUST_CHECK;
void lr_container_close(struct lr_existing *c); /* also safe on LR_EXISTING_NONE */
#define LR_CLEANUP_EXISTING __attribute__((cleanup(lr_container_close)))

int lr_container_status(const struct lr_store *store, const struct lr_record *r,
			const struct lr_cgroup_ref *cg) LR_MUST_CHECK;

/* The record's strings as the cgroup room wants them, and back. */
int lr_cgroup_of_record(const struct lr_record *r, struct lr_arena *a, struct lr_cgroup_ref *ret,
			struct lr_err *err) LR_MUST_CHECK;
int lr_cgroup_to_record(const struct lr_cgroup_ref *cg, struct lr_arena *a, struct lr_record *r,
			struct lr_err *err) LR_MUST_CHECK;

/* The state that hooks get: status and pid as given, from the record. */
struct oci_state lr_hook_state(const struct lr_record *r, const char *status, pid_t pid);

/* crun's annotations run.oci.hooks.stdout and .stderr: files, opened and left to the caller to
 * close. */
int lr_open_hook_outputs(const struct oci_map *annotations, struct lr_hook_opts *opts,
			 struct lr_err *err) LR_MUST_CHECK;
void lr_close_hook_outputs(struct lr_hook_opts *opts);

/* What the container has of the lean profile will not be used for another one (lr_lean_mark). */
int lr_container_mark(const struct lr_store *s, const struct lr_record *r, bool net,
		      struct lr_arena *a, struct lr_err *err) LR_MUST_CHECK;

/* Runs hooks outside of the container, with that state on their standard input, in the directory
 * `dir` (NULL: the caller's). */
int lr_run_hooks(const struct oci_hook_list *hooks, const char *kind, const char *dir,
		 bool keep_going, const struct oci_state *state, struct lr_arena *a,
		 struct lr_err *err) LR_MUST_CHECK;

/*
 * Removes all that is left of a container, whatever stage it was in: processes, cgroup, poststop
 * hooks (in hooks_dir; NULL: in the caller's directory), record. Idempotent; used by delete, by the
 * end of run, and to undo a creation.
 */
int lr_container_destroy(struct lr_entry *e, const struct lr_record *r, const char *config,
			 size_t config_len, const char *hooks_dir, struct lr_arena *a,
			 struct lr_err *err) LR_MUST_CHECK;

/* "2026-01-02T03:04:05.000000006Z"; buf needs 40 bytes. */
void lr_timestamp(char buf[40]);

/* Writes a decimal number to a file, by a rename in the same directory. */
int lr_write_pid_file(const char *path, pid_t pid, struct lr_err *err) LR_MUST_CHECK;
/* Sends a descriptor to a listening Unix socket (--pidfd-socket). */
int lr_send_pidfd(const char *socket, int pidfd, struct lr_err *err) LR_MUST_CHECK;

#endif
