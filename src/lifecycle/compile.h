/* SPDX-License-Identifier: Apache-2.0 */
/* lifecycle: config.json (or the record, for exec) to the plans of src/init; internal. */
#ifndef LR_LIFECYCLE_COMPILE_H
#define LR_LIFECYCLE_COMPILE_H

#include "src/init/init.h"
#include "src/lifecycle/container.h"
#include "src/netdev/netdev.h"
#include "src/rdt/rdt.h"

/* Everything there is to know before the first thing is made. */
struct lr_compiled {
	const struct oci_config *config;
	const char *bundle; /* absolute */
	struct lr_init_plan init;
	struct lr_lean_plan lean;
	struct lr_lean_hold hold;
	struct lr_seccomp_plan seccomp;
	struct lr_cgroup_layout *layout; /* NULL: was not needed */
	const struct lr_netdev_plan *netdev;
	struct lr_rdt_plan rdt;
	struct lr_record record; /* complete but for pid and start time */
	const char *kept;        /* text of the part of config.json that the record keeps */
	size_t kept_len;
	int listen_fds; /* LISTEN_FDS to be passed on */
	bool notify;    /* NOTIFY_SOCKET is to be passed on */
};

/*
 * What a template (liblean/template.h) has found out once, for many containers. Its caller is a
 * program that uses the library: that program's environment, descriptors and umask say nothing
 * about the container.
 */
struct lr_given {
	const struct lr_compiled *master; /* compiled for no container; NULL: not yet */
	const struct oci_config *config;
	const char *bundle;                    /* absolute */
	const struct lr_store *store;          /* open */
	struct lr_cgroup_layout *layout;       /* NULL: not looked at yet */
	const struct lr_seccomp_prog *seccomp; /* NULL: none */
	const char *kept;                      /* for the record */
	size_t kept_len;
	const int *stdio; /* three descriptors */
	int stub;         /* of lr_init_stub_open; LR_NOFD: the caller is hidden itself */
	void *stack;
	size_t stack_size;
};

/* Takes what the lean profile has ready; the container's directory in the store exists. */
int lr_compile_take(const struct lr_runtime *rt, const struct lr_create_opts *o,
		    const struct lr_store *store, struct lr_arena *a, struct lr_compiled *c,
		    struct lr_err *err) LR_MUST_CHECK;

/* Makes n slots ready for containers of that kind; o->id is no container's. */
int lr_compile_warm(const struct lr_runtime *rt, const struct lr_create_opts *o, unsigned n,
		    const struct lr_store *store, struct lr_arena *a, struct lr_compiled *c,
		    struct lr_err *err) LR_MUST_CHECK;

/* Reads the bundle and compiles it. Makes nothing. `root`: of the store, absolute. */
int lr_compile(const struct lr_runtime *rt, const struct lr_create_opts *o, const char *root,
	       struct lr_arena *a, struct lr_compiled *ret, struct lr_err *err) LR_MUST_CHECK;

/* Absolute, without links. */
int lr_compile_bundle(const struct lr_create_opts *o, struct lr_arena *a, const char **ret,
		      struct lr_err *err) LR_MUST_CHECK;
/* config.json of a bundle, decoded and checked. *bundle: absolute. */
int lr_compile_read(const struct lr_create_opts *o, struct lr_arena *a, const char **bundle,
		    const struct oci_config **config, struct lr_err *err) LR_MUST_CHECK;
int lr_compile_check(const struct oci_config *c, struct lr_err *err) LR_MUST_CHECK;
/* runtime.md asks for a process no earlier than at `start`: this one, without a program, stands in
 * a container that is created from a config without a process. */
extern const struct oci_process lr_no_process;
/* Refuses: the process is missing. */
int lr_compile_no_process(struct lr_err *err);

/* What does not come from the process object itself. */
struct lr_process_opts {
	const struct oci_map *annotations; /* may be NULL */
	const struct oci_personality *personality;
	const struct oci_memory_policy *mempolicy;
	bool rootless;
	int preserve_fds;
	int listen_fds; /* passed on by socket activation, after the preserved ones */
	const char *keyring;
};
int lr_compile_process(const struct oci_process *p, const struct lr_process_opts *o,
		       struct lr_arena *a, struct lr_init_process *ret,
		       struct lr_err *err) LR_MUST_CHECK;

/* Adapts *ret, which was compiled from p, to a caller that is a library. */
int lr_process_given(const struct oci_process *p, const struct lr_given *g, struct lr_arena *a,
		     struct lr_init_process *ret, struct lr_err *err) LR_MUST_CHECK;

/* The page (lr_init_stub_open) is to execute the program. The caller keeps and closes `stub`. */
int lr_process_stub(const struct oci_process *p, int stub, struct lr_arena *a,
		    struct lr_init_process *ret, struct lr_err *err) LR_MUST_CHECK;

/* How many descriptors sd_listen_fds(3) hands to this process, 0 without LISTEN_FDS. */
int lr_listen_fds(struct lr_err *err) LR_MUST_CHECK;

/* What --rootless says; else whether our uid is not 0, or our user namespace not the host's. */
bool lr_is_rootless(const struct lr_runtime *rt);

#endif
