/* SPDX-License-Identifier: Apache-2.0 */
/*
 * seccomp: the system call filter (config-linux.md "linux.seccomp").
 *
 *   lr_seccomp_plan()    config.json -> a validated policy; pure, knows no system call numbers
 *   lr_seccomp_get()     policy -> program, from the cache or the compiler; in the parent
 *   lr_seccomp_load()    in the container's process, as late as privileges allow
 *
 * The compiler is our own; libseccomp only lends its tables of numbers. A policy becomes one tree
 * of comparisons over ranges of numbers per architecture, so that a Docker-sized profile has a
 * third of the instructions of libseccomp's binary tree and loads several times faster, and it
 * compiles in a fraction of a millisecond instead of ten. What it means is the same, and the unit
 * tests hold the two against each other:
 *
 *  - an unconditional rule of a system call decides, the first one if there are several; else the
 *    conditional ones, the most restrictive action first (the kernel's own order among filters);
 *    else the default action. Rules that only repeat the default action are dropped.
 *  - conditions of one rule must all hold; but if two are about the same argument, each is a rule
 *    of its own, as runc has it.
 *  - a system call of an architecture that is not listed kills the thread. The native one is
 *    always listed.
 *  - on 32-bit architectures the low half of an argument counts.
 *  - socketcall(2) and ipc(2) are unpacked where the architecture has them.
 *  - system calls newer than any in the profile get ENOSYS instead of the default action, unless
 *    that is one that lets them through: libraries then fall back to older calls instead of
 *    failing with EPERM.
 */
#ifndef LR_SECCOMP_SECCOMP_H
#define LR_SECCOMP_SECCOMP_H

#include <linux/filter.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

#include "libocispec/config.h"
#include "src/base/arena.h"
#include "src/base/err.h"

#ifdef SECCOMP_FILTER_FLAG_WAIT_KILLABLE_RECV
#define LR_SECCOMP_WAIT_KILLABLE SECCOMP_FILTER_FLAG_WAIT_KILLABLE_RECV
#else
#define LR_SECCOMP_WAIT_KILLABLE (1UL << 5)
#endif

/* crun's annotations. */
#define LR_SECCOMP_FAIL_UNKNOWN "run.oci.seccomp_fail_unknown_syscall"
#define LR_SECCOMP_RECEIVER     "run.oci.seccomp.receiver"
#define LR_SECCOMP_BPF_DATA     "run.oci.seccomp_bpf_data"

enum lr_seccomp_op {
	LR_SECCOMP_NE,
	LR_SECCOMP_LT,
	LR_SECCOMP_LE,
	LR_SECCOMP_EQ,
	LR_SECCOMP_GE,
	LR_SECCOMP_GT,
	LR_SECCOMP_MASKED_EQ, /* (argument & value) == value_two */
};

struct lr_seccomp_cond {
	uint8_t arg; /* 0..5 */
	uint8_t op;  /* enum lr_seccomp_op */
	uint64_t value;
	uint64_t value_two;
};

struct lr_seccomp_rule {
	const char *const *names;
	size_t n_names;
	uint32_t action; /* as a filter returns it: SECCOMP_RET_* with its data */
	const struct lr_seccomp_cond *conds;
	size_t n_conds;
	bool separate; /* each condition is a rule of its own */
	bool counts;   /* false: repeats the default action; only its numbers are of interest */
};

struct lr_seccomp_plan {
	bool given;
	uint32_t default_action;
	const uint32_t *archs; /* SCMP_ARCH_* tokens, the native one first, each once */
	size_t n_archs;
	unsigned flags; /* SECCOMP_FILTER_FLAG_* */
	bool notify;    /* some rule notifies: a listener is needed */
	bool fail_unknown;
	const char *listener_path;     /* NULL if notify is false */
	const char *listener_metadata; /* may be NULL */
	const char *bpf_data;          /* base64; replaces everything else */
	const struct lr_seccomp_rule *rules;
	size_t n_rules;
};

/* A program as the kernel takes it, and what is needed to load it. */
struct lr_seccomp_prog {
	struct sock_filter *v;
	unsigned short n;
	unsigned flags;
	bool notify;
	const char *listener_path;
	const char *listener_metadata;
};

/* ---- parent ------------------------------------------------------------------------------ */

/* Pure. seccomp and annotations may be NULL. Strings and lists stay the caller's. */
int lr_seccomp_plan(const struct oci_seccomp *seccomp, const struct oci_map *annotations,
		    struct lr_arena *arena, struct lr_seccomp_plan *ret,
		    struct lr_err *err) LR_MUST_CHECK;

/* Makes the program in the arena. Unknown system calls are skipped, or an error if fail_unknown. */
int lr_seccomp_compile(const struct lr_seccomp_plan *plan, struct lr_arena *arena,
		       struct lr_seccomp_prog *ret, struct lr_err *err) LR_MUST_CHECK;

/*
 * The same through a cache: files in a directory of the runtime's own, named by a hash of the
 * policy, valid only if the whole policy in them is equal byte for byte. Whatever is wrong with
 * the cache, the result is right: it falls back to compiling. cachefd: lr_seccomp_cache_open or
 * LR_NOFD.
 */
int lr_seccomp_get(const struct lr_seccomp_plan *plan, int cachefd, struct lr_arena *arena,
		   struct lr_seccomp_prog *ret, struct lr_err *err) LR_MUST_CHECK;

/*
 * Opens (makes) ".seccomp" below the runtime's root directory; refused (-errno, no *err: carry on
 * without) unless it is ours alone, mode 0700.
 */
int lr_seccomp_cache_open(int rootfd) LR_MUST_CHECK;

/* The canonical bytes of a policy: equal bytes, equal program. NULL when out of memory. */
const void *lr_seccomp_canonical(const struct lr_seccomp_plan *plan, struct lr_arena *arena,
				 size_t *len);

/*
 * A program in a file of the container's record: written at the descriptor's position; read back
 * with every field checked. -EBADMSG for anything that is not such a file.
 */
int lr_seccomp_save(const struct lr_seccomp_prog *prog, int fd, struct lr_err *err) LR_MUST_CHECK;
int lr_seccomp_restore(int fd, struct lr_arena *arena, struct lr_seccomp_prog *ret,
		       struct lr_err *err) LR_MUST_CHECK;

/* Is this a program that the kernel's checker would take? (Reachable returns, jumps in range.) */
bool lr_seccomp_valid(const struct sock_filter *v, size_t n);

/*
 * Whether the program lets these system calls of the native architecture through, whatever their
 * arguments. False also if that cannot be said, or for want of memory.
 */
bool lr_seccomp_allows(const struct lr_seccomp_prog *prog, const int *calls, size_t n,
		       struct lr_arena *arena);

/*
 * Hands the listener to the agent: connects to the Unix stream socket `path`, sends the container
 * process state `json` with the descriptor attached, and closes the connection. The descriptor
 * stays the caller's.
 */
int lr_seccomp_send_listener(const char *path, int listener_fd, const char *json, size_t len,
			     struct lr_err *err) LR_MUST_CHECK;

/* ---- child ------------------------------------------------------------------------------- */

/*
 * Loads the program into the calling process. It needs CAP_SYS_ADMIN in its user namespace, or
 * no_new_privs. *listener_fd (NULL only if prog->notify is false) gets the listener, close-on-exec,
 * or LR_NOFD. With a listener the caller then may use write(2) and what the profile allows, nothing
 * else, until the listener has been handed over: the plan refuses SCMP_ACT_NOTIFY for write.
 */
int lr_seccomp_load(const struct lr_seccomp_prog *prog, int *listener_fd,
		    struct lr_err *err) LR_MUST_CHECK;

/* ---- lists for `features`, NULL-terminated ----------------------------------------------- */

extern const char *const lr_seccomp_actions[];
extern const char *const lr_seccomp_operators[];
extern const char *const lr_seccomp_archs[];
extern const char *const lr_seccomp_flags[];

/* Asks the kernel. `name` from lr_seccomp_flags. */
bool lr_seccomp_flag_supported(const char *name);

#endif
