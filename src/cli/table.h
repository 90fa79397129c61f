/* SPDX-License-Identifier: Apache-2.0 */
/*
 * cli: the one table of verbs and options.
 *
 * Everything a user can type is a row here. The parser, `--help`, the man page and the three
 * shells' completions are all derived from it, so none of them can forget a row. To add an option:
 * one id in enum lr_cli_opt_id, one row in options.c. To add a verb: one id in enum
 * lr_cli_verb_id, one row in verbs.c, one function.
 */
#ifndef LR_CLI_TABLE_H
#define LR_CLI_TABLE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "src/base/err.h"

#define LR_CLI_NAME "lean-runtime"

struct lr_cli_args;

/* ---- options ----------------------------------------------------------------------------- */

/* What an option means; two rows may share an id when two verbs describe it differently. */
enum lr_cli_opt_id {
	LR_OPT_ADDITIONAL_GIDS,
	LR_OPT_ALL,
	LR_OPT_APPARMOR,
	LR_OPT_AUTO_DEDUP,
	LR_OPT_BACKGROUND,
	LR_OPT_BLKIO_WEIGHT,
	LR_OPT_BUNDLE,
	LR_OPT_CAP,
	LR_OPT_CGROUP,
	LR_OPT_CGROUP_MANAGER,
	LR_OPT_CHANGES_BYTES,
	LR_OPT_CHANGES_FILES,
	LR_OPT_CONFIG,
	LR_OPT_CONSOLE_SOCKET,
	LR_OPT_CPUSET_CPUS,
	LR_OPT_CPUSET_MEMS,
	LR_OPT_CPU_BURST,
	LR_OPT_CPU_IDLE,
	LR_OPT_CPU_PERIOD,
	LR_OPT_CPU_QUOTA,
	LR_OPT_CPU_RT_PERIOD,
	LR_OPT_CPU_RT_RUNTIME,
	LR_OPT_CPU_SHARE,
	LR_OPT_CRIU,
	LR_OPT_CWD,
	LR_OPT_DEBUG,
	LR_OPT_DETACH,
	LR_OPT_EMPTY_NS,
	LR_OPT_ENGINE,
	LR_OPT_ENV,
	LR_OPT_EXT_UNIX_SK,
	LR_OPT_FETCH,
	LR_OPT_FILE,
	LR_OPT_FILE_LOCKS,
	LR_OPT_FORCE,
	LR_OPT_FORKD,
	LR_OPT_FORMAT,
	LR_OPT_HELP,
	LR_OPT_IGNORE_PAUSED,
	LR_OPT_IMAGE_PATH,
	LR_OPT_INTERVAL,
	LR_OPT_KEEP,
	LR_OPT_KERNEL_MEMORY,
	LR_OPT_KERNEL_MEMORY_TCP,
	LR_OPT_L3_CACHE_SCHEMA,
	LR_OPT_LAZY_PAGES,
	LR_OPT_LEAN,
	LR_OPT_LEASE,
	LR_OPT_LEAVE_RUNNING,
	LR_OPT_LINK_REMAP,
	LR_OPT_LOG,
	LR_OPT_LOG_FORMAT,
	LR_OPT_LOG_LEVEL,
	LR_OPT_LSM_MOUNT_CONTEXT,
	LR_OPT_LSM_PROFILE,
	LR_OPT_MANAGE_CGROUPS_MODE,
	LR_OPT_MEMORY,
	LR_OPT_MEMORY_RESERVATION,
	LR_OPT_MEMORY_SWAP,
	LR_OPT_MEM_BW_SCHEMA,
	LR_OPT_NETWORK_LOCK,
	LR_OPT_NO_MOUNT_FALLBACK,
	LR_OPT_NO_NEW_KEYRING,
	LR_OPT_NO_NEW_PRIVS,
	LR_OPT_NO_PIVOT,
	LR_OPT_NO_SUBREAPER,
	LR_OPT_NUMBER,
	LR_OPT_PAGE_SERVER,
	LR_OPT_PARENT_PATH,
	LR_OPT_PIDFD_SOCKET,
	LR_OPT_PIDS_LIMIT,
	LR_OPT_PID_FILE,
	LR_OPT_PRESERVE_FDS,
	LR_OPT_PRE_DUMP,
	LR_OPT_PROCESS,
	LR_OPT_PROCESS_LABEL,
	LR_OPT_QUIET,
	LR_OPT_REGEX,
	LR_OPT_REMOTE,
	LR_OPT_RESOURCES,
	LR_OPT_ROOT,
	LR_OPT_ROOTLESS,
	LR_OPT_SEED_DIR,
	LR_OPT_SEED_FORKD,
	LR_OPT_SHELL_JOB,
	LR_OPT_STATS,
	LR_OPT_STATUS_FD,
	LR_OPT_STOP,
	LR_OPT_SYSTEMD_CGROUP,
	LR_OPT_TCP_CLOSE,
	LR_OPT_TCP_ESTABLISHED,
	LR_OPT_TCP_SKIP_IN_FLIGHT,
	LR_OPT_TMPFS_BYTES,
	LR_OPT_TMPFS_FILES,
	LR_OPT_TTY,
	LR_OPT_USER,
	LR_OPT_VERSION,
	LR_OPT_WHEN_READY,
	LR_OPT_WITH_CHANGES,
	LR_OPT_WITHOUT_EXEC,
	LR_OPT_WORK_PATH,
	LR_OPT_COUNT
};

/* How a value is checked and completed. Only a FLAG stands without a value. */
enum lr_cli_kind {
	LR_KIND_FLAG,     /* bare, or =true, =false as Go's flag package reads them */
	LR_KIND_STRING,   /* any text */
	LR_KIND_FILE,     /* a path */
	LR_KIND_DIR,      /* a path of a directory */
	LR_KIND_INT,      /* a signed 64-bit decimal number */
	LR_KIND_SIZE,     /* bytes, with an optional suffix k, m, g, t, p (powers of 1024); or -1 */
	LR_KIND_DURATION, /* 500ms, 5s, 1m30s; a bare number is seconds */
	LR_KIND_MAYBE,    /* bare or =text; never takes the next word */
	LR_KIND_CHOICE, /* one of the space-separated words of `choices`; behind a colon a number */
};

struct lr_cli_opt {
	const char *name;  /* long name without dashes */
	char letter;       /* short name, or 0 */
	char letter2;      /* another one, or 0 */
	bool repeat;       /* may be given more than once; otherwise the last one counts */
	bool hidden;       /* parsed, but in no help: kept for callers of old */
	uint8_t kind;      /* enum lr_cli_kind */
	uint8_t id;        /* enum lr_cli_opt_id */
	uint32_t verbs;    /* LR_ON() bits of the verbs that take it */
	const char *value; /* how help names the value; NULL for flags */
	const char *choices;
	const char *help; /* one line */
};

extern const struct lr_cli_opt lr_cli_opts[];
extern const size_t lr_cli_n_opts;

/* ---- verbs ------------------------------------------------------------------------------- */

enum lr_cli_verb_id {
	LR_VERB_GLOBAL, /* no verb: the options in front of it */
	LR_VERB_CHECKPOINT,
	LR_VERB_CREATE,
	LR_VERB_DELETE,
	LR_VERB_EVENTS,
	LR_VERB_EXEC,
	LR_VERB_FEATURES,
	LR_VERB_HELP,
	LR_VERB_KILL,
	LR_VERB_LIST,
	LR_VERB_MOUNTS,
	LR_VERB_PAUSE,
	LR_VERB_POOL,
	LR_VERB_PS,
	LR_VERB_RESTORE,
	LR_VERB_RESUME,
	LR_VERB_RUN,
	LR_VERB_SEED,
	LR_VERB_SPEC,
	LR_VERB_START,
	LR_VERB_STATE,
	LR_VERB_UPDATE,
};
#define LR_ON(v)  (UINT32_C(1) << LR_VERB_##v)
#define LR_ON_ALL (~UINT32_C(0))

/* What the argument after the verb is, for completions. */
enum lr_cli_operand { LR_OPERAND_NONE, LR_OPERAND_NEW_ID, LR_OPERAND_ID, LR_OPERAND_VERB };

#define LR_ANY_ARGS UINT8_MAX

/* Puts a process into a container, which must not see our file (sys/selfexe.h): first thing in
 * main, or when it turns out that it has to be (lr_create_opts.hide). */
enum lr_cli_hidden { LR_HIDDEN_NO, LR_HIDDEN_FIRST, LR_HIDDEN_LATER };

struct lr_cli_verb {
	const char *name;
	uint8_t id;           /* enum lr_cli_verb_id */
	uint8_t min, max;     /* number of operands; LR_ANY_ARGS: no limit */
	uint8_t operand;      /* enum lr_cli_operand */
	bool command;         /* what follows the first operand is somebody else's command line */
	bool own_opts_after;  /* ... but options right after that operand are still ours */
	uint8_t hidden;       /* enum lr_cli_hidden */
	uint8_t fail;         /* exit status of a failure that asks for none itself */
	const char *operands; /* as help shows them: "CONTAINER [SIGNAL]" */
	const char *summary;  /* one line, no full stop */
	const char
		*about; /* a paragraph or more; one line of text each; NULL: summary says it all */
	/* An exit status >= 0, or a negative errno with *err filled. */
	int (*run)(const struct lr_cli_args *args, struct lr_err *err);
};

extern const struct lr_cli_verb lr_cli_verbs[]; /* in the order help shows them */
extern const size_t lr_cli_n_verbs;

/* NULL when unknown. */
const struct lr_cli_verb *lr_cli_verb_find(const char *name);
/* The option of that long name (n bytes) that the verb takes, or NULL. */
const struct lr_cli_opt *lr_cli_opt_find(uint8_t verb, const char *name, size_t n);
const struct lr_cli_opt *lr_cli_opt_letter(uint8_t verb, char letter);
/* The long name of an option, for messages. */
const char *lr_cli_opt_name(enum lr_cli_opt_id id);

static inline bool lr_cli_takes(const struct lr_cli_opt *o, uint8_t verb)
{
	return o->verbs >> verb & 1;
}

#endif
