/* SPDX-License-Identifier: Apache-2.0 */
/* Its examples and comments are laid out by hand. */
/* clang-format off */
/*
 * liblean: containers out of your own program, without a command line and without a fork of it.
 *
 *	struct lean_error e;
 *	struct lean_template *t;
 *	struct lean_container *c;
 *	int status;
 *
 *	if (lean_open(&(struct lean_options){.size = sizeof(struct lean_options),
 *					     .bundle = "/srv/hello", .profile = "lean"}, &t, &e) < 0)
 *		errx(1, "%s", e.message);
 *	if (lean_start(t, NULL, &c, &e) < 0 || lean_wait(c, -1, &status, &e) < 0 ||
 *	    lean_delete(c, 0, &e) < 0)
 *		errx(1, "%s", e.message);
 *	lean_close(t);
 *
 * A *template* is an OCI bundle that was read, checked and compiled once. What it starts are
 * containers as any other below the runtime's root: `lean-runtime list`, state, exec, kill and
 * delete work on them, and if your program is killed, `lean-runtime delete --force` removes
 * everything there was.
 *
 * Errors.     Functions return 0, or a negative errno and the words in *error (which may be NULL).
 *             On failure nothing is left behind, and output parameters are not touched.
 * Threads.    Everything may be called from any thread at any time, on the same template and the
 *             same container, too; except that nobody may use what lean_close, lean_delete,
 *             lean_forget or lean_process_free has freed. Not after fork in the child, not from
 *             signal handlers, and not in a thread that may be cancelled asynchronously.
 * Memory.     Handles are yours until you free them. Strings and arrays that you pass are copied,
 *             strings that you get live as long as their handle.
 * Structures  that you pass begin with their size: set it to sizeof, zero the rest, and a program
 *             works with later versions of the library.
 * Privileges. Those that the container asks for; usually root's (docs/rootless applies).
 *
 * Your program while containers start. The child is made as vfork(2) makes one: it shares your
 * memory and the calling thread waits, for half a millisecond, until it has executed; other threads
 * go on. So the size of your program does not matter (a page table copy takes 15 ms a gigabyte).
 *   - Signals of the calling thread wait for that time. No handler of yours runs in the child.
 *   - Descriptors of yours do not get into a container, but the three that you name. 0, 1 and 2 of
 *     your program must be open while it uses the library (-EBADF): a daemon has /dev/null there.
 *   - Containers are children of your process: SIGCHLD comes as for any child. Do not wait for any
 *     child (waitpid(-1)), and do not ignore SIGCHLD, or lean_wait cannot tell the status.
 *   - PR_SET_DUMPABLE is off while a start is under way, and then as it was. CAP_SYS_PTRACE could
 *     look into your memory all the same, by way of the child. So with -EOPNOTSUPP
 *       lean_exec refuses a container that has it, and no new user namespace (what it cannot know:
 *       a process that got it by `exec --cap`, another container that has joined the pid namespace);
 *       lean_open refuses such a one without a new pid namespace, and any that joins one.
 *   - Your program's file is never to be seen as /proc/self/exe in a container, not even by an
 *     entrypoint "#!/proc/self/exe" (CVE-2019-5736): a sealed program in memory stands between
 *     (or see lean_protect). A seccomp filter has to allow what that one does: execveat, execve,
 *     fcntl and write. It would take a label of AppArmor or SELinux for itself, so lean_open refuses
 *     one unless lean_protect was called.
 *   - If your program ignores SIGCHLD, that is suspended while a hook or mount(8) runs: its status
 *     would be lost.
 *   - Your umask holds for directories of control groups.
 * The library keeps no state of its own between calls but that of open handles, starts no threads
 * and no processes but containers (and a fork of your program, for a moment, when lean_warm or a
 * start of the lean profile has to make something ready: warm what you will use at a time, early),
 * and handles no signals.
 *
 * What a template cannot have, because somebody would have to look after it: a terminal, hooks
 * createContainer and startContainer, a time namespace. A user namespace, network devices,
 * prestart and createRuntime hooks and a seccomp listener need the parent's help before the program
 * runs, and what tmpcopyup copies would be charged to your program's cgroup: all of these work, but
 * the start pays a fork of your program.
 *
 * Linux 5.4; 5.5 for starts without the fork. x86-64 and arm64.
 */
#ifndef LEAN_LEAN_H
#define LEAN_LEAN_H

#include <stddef.h>
#include <sys/types.h>

#include <lean/seed.h> /* for programs in a container: lean_seed_here */

#ifdef __cplusplus
extern "C" {
#endif

#define LEAN_VERSION_MAJOR 0
#define LEAN_VERSION_MINOR 1

/* The version of the library that is linked, as "0.1.0". */
const char *lean_version(void);

struct lean_error {
	int code;           /* errno, positive; 0: none */
	char path[192];     /* place in config.json, "mounts[3].options"; "": none */
	char message[1216]; /* all of it in one line, the place and what to do included */
};

/*
 * Optional, the first thing in main, with main's argv: executes your program once more, from a
 * read-only view of its file that no container could make writable. Then nothing has to stand
 * between it and a container's program, and a start costs 0.05 ms less. 0 in the protected program.
 * On error all is as before, and starts work all the same: -EPERM: no CAP_SYS_ADMIN, or Linux
 * before 5.12. Not for programs that look for files beside /proc/self/exe.
 */
int lean_protect(char **argv, struct lean_error *error);

/* ---- templates ------------------------------------------------------------------------------ */

struct lean_template;

enum lean_cgroups {
	LEAN_CGROUPS_FS,      /* control groups are made by the library */
	LEAN_CGROUPS_SYSTEMD, /* by systemd */
	LEAN_CGROUPS_NONE,
};

struct lean_options {
	size_t size;        /* sizeof(struct lean_options) */
	const char *bundle; /* directory with config.json; NULL: what relative paths mean is `rootfs` */
	const char *config; /* text of a config.json, instead of the bundle's; NULL: the bundle's */
	const char *rootfs; /* directory, instead of root.path; NULL: root.path */
	const char *root; /* the runtime's state directory (--root); NULL: /run/lean-runtime */
	/* The lean profile, as of --lean: "lean", or parts of it ("rootfs,network=pool"); NULL: as
	 * config.json's annotations say, or none. */
	const char *profile;
	enum lean_cgroups cgroups;
};

/*
 * Reads, checks and compiles. Whatever is wrong with the config is said here: -EINVAL and the place
 * of it. -ENOENT: no bundle; -EACCES, -EPERM: no rights; -EOPNOTSUPP: nothing for a template.
 */
int lean_open(const struct lean_options *options, struct lean_template **ret,
	      struct lean_error *error);
/* Containers started from it are not affected. NULL is allowed. */
void lean_close(struct lean_template *t);
/*
 * Makes ready what n containers at a time need, if the profile has something to make ready: the
 * first starts are as fast as later ones. It stays below the runtime's root for whoever comes next;
 * `lean-runtime pool` shows and drains it.
 */
int lean_warm(struct lean_template *t, unsigned n, struct lean_error *error);

/* ---- containers ----------------------------------------------------------------------------- */

struct lean_container;

#define LEAN_FD_NULL (-1) /* /dev/null */

struct lean_start_options {
	size_t size;             /* sizeof(struct lean_start_options) */
	const char *id;          /* NULL: "lean-" and a random number */
	const char *const *args; /* instead of process.args, ends with NULL; NULL: those */
	const char *const *env;  /* added to process.env, "NAME=value", ends with NULL; NULL: none */
	int fds[3];              /* what the program gets as 0, 1, 2; LEAN_FD_NULL */
};

/*
 * Starts a container; its program runs when this returns. options: NULL for a random id and
 * your 0, 1 and 2. -EEXIST: the id is taken; -ENOENT, -EACCES, -ENOEXEC ...: the program cannot be
 * executed. Free it by lean_delete or lean_forget.
 */
int lean_start(struct lean_template *t, const struct lean_start_options *options,
	       struct lean_container **ret, struct lean_error *error);

const char *lean_id(const struct lean_container *c);
pid_t lean_pid(const struct lean_container *c);
/* For poll(2): readable when the first process has ended. Belongs to the handle. */
int lean_pidfd(const struct lean_container *c);

/*
 * Until its first process has ended, or timeout_ms milliseconds (negative: for ever) are over:
 * -ETIMEDOUT. *status: exit status, or 128 + number of the signal that killed it. Any number
 * of threads, any number of times. -ECHILD: it has ended, but your program took the status.
 */
int lean_wait(struct lean_container *c, int timeout_ms, int *status, struct lean_error *error);
/* To the first process. -ESRCH: it has ended. Not even SIGKILL reaches a paused one (cgroup v1). */
int lean_signal(struct lean_container *c, int signal, struct lean_error *error);
/* Freezes all its processes, and lets them go on. Either may be repeated. */
int lean_pause(struct lean_container *c, struct lean_error *error);
int lean_resume(struct lean_container *c, struct lean_error *error);

#define LEAN_FORCE 1u /* kill what still runs */

/*
 * Removes everything of it, runs poststop hooks, and frees the handle if that worked. -EBUSY: it
 * runs, and flags has no LEAN_FORCE.
 */
int lean_delete(struct lean_container *c, unsigned flags, struct lean_error *error);
/* Frees the handle only: the container stays, for the command line. NULL is allowed. */
void lean_forget(struct lean_container *c);

/* ---- more processes in a container ------------------------------------------------------------ */

struct lean_process;

struct lean_exec_options {
	size_t size;             /* sizeof(struct lean_exec_options) */
	const char *const *args; /* ends with NULL; args[0] is looked for in the container's PATH */
	const char *const *env;  /* added to the container's; NULL: none */
	const char *cwd;         /* NULL: the container's */
	const char *user;        /* "UID[:GID]"; NULL: the container's */
	int fds[3];              /* as for lean_start */
};

/* Errors as for lean_start; -ESRCH: the container has ended; -EAGAIN: it is paused. */
int lean_exec(struct lean_container *c, const struct lean_exec_options *options,
	      struct lean_process **ret, struct lean_error *error);
pid_t lean_process_pid(const struct lean_process *p);
int lean_process_pidfd(const struct lean_process *p);
int lean_process_wait(struct lean_process *p, int timeout_ms, int *status,
		      struct lean_error *error);
int lean_process_signal(struct lean_process *p, int signal, struct lean_error *error);
/* The process goes on, if it runs. NULL is allowed. */
void lean_process_free(struct lean_process *p);

#ifdef __cplusplus
}
#endif

#endif
