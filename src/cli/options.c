/* SPDX-License-Identifier: Apache-2.0 */
/*
 * cli: the rows of every option, sorted by name. The set is the union of what runc and crun take,
 * so that their callers find each option they use.
 */
#include <string.h>

#include "src/cli/table.h"
#include "src/forkctl/forkctl.h"

#define BIRTH (LR_ON(CREATE) | LR_ON(RUN))
#define BEGIN (BIRTH | LR_ON(RESTORE))
#define CRIU  (LR_ON(CHECKPOINT) | LR_ON(RESTORE))

#define FLAG(name_, letter_, id_, verbs_, help_)                                                   \
	{                                                                                          \
		.name = (name_), .letter = (letter_), .kind = LR_KIND_FLAG, .id = LR_OPT_##id_,    \
		.verbs = (verbs_), .help = (help_)                                                 \
	}
#define OPT(name_, letter_, id_, kind_, value_, verbs_, help_)                                     \
	{                                                                                          \
		.name = (name_), .letter = (letter_), .kind = LR_KIND_##kind_, .id = LR_OPT_##id_, \
		.verbs = (verbs_), .value = (value_), .help = (help_)                              \
	}
#define MANY(name_, letter_, id_, value_, verbs_, help_)                                           \
	{                                                                                          \
		.name = (name_), .letter = (letter_), .kind = LR_KIND_STRING, .repeat = true,      \
		.id = LR_OPT_##id_, .verbs = (verbs_), .value = (value_), .help = (help_)          \
	}
#define CHOICE(name_, letter_, id_, choices_, value_, verbs_, help_)                               \
	{                                                                                          \
		.name = (name_), .letter = (letter_), .kind = LR_KIND_CHOICE, .id = LR_OPT_##id_,  \
		.verbs = (verbs_), .value = (value_), .choices = (choices_), .help = (help_)       \
	}

/* clang-format off */
const struct lr_cli_opt lr_cli_opts[] = {
	MANY("additional-gids", 'g', ADDITIONAL_GIDS, "GID", LR_ON(EXEC),
	     "a supplementary group of the process"),
	FLAG("all", 'a', ALL, LR_ON(KILL), "signal every process of the container"),
	OPT("apparmor", 0, APPARMOR, STRING, "PROFILE", LR_ON(EXEC), "AppArmor profile of the process"),
	FLAG("auto-dedup", 0, AUTO_DEDUP, CRIU, "drop memory images that are no longer needed"),
	FLAG("background", 0, BACKGROUND, LR_ON(CHECKPOINT),
	     "print the ticket of --remote first, and copy memory after that"),
	OPT("blkio-weight", 0, BLKIO_WEIGHT, INT, "N", LR_ON(UPDATE), "block I/O weight, 10 to 1000"),
	OPT("bundle", 'b', BUNDLE, DIR, "DIR", BEGIN | LR_ON(SPEC) | LR_ON(POOL),
	    "the bundle: config.json and the root filesystem (default: .)"),
	MANY("cap", 'c', CAP, "CAP", LR_ON(EXEC), "a capability to add to the process (never inheritable)"),
	MANY("cgroup", 0, CGROUP, "[CTRL:]PATH", LR_ON(EXEC),
	     "run in this existing sub-cgroup of the container's"),
	CHOICE("cgroup-manager", 0, CGROUP_MANAGER, "cgroupfs systemd disabled", "MANAGER",
	       LR_ON(GLOBAL), "who makes cgroups: cgroupfs (default), systemd or disabled"),
	OPT("changes-bytes", 0, CHANGES_BYTES, SIZE, "BYTES", LR_ON(CHECKPOINT),
	    "refuse a container that changed more than that in its root; -1: no limit (default: 256M); with --with-changes"),
	OPT("changes-files", 0, CHANGES_FILES, INT, "N", LR_ON(CHECKPOINT),
	    "refuse a container that changed more files there; -1: no limit (default: 65536); with --with-changes"),
	OPT("config", 'f', CONFIG, FILE, "FILE", BIRTH,
	    "the configuration, if not config.json of the bundle"),
	OPT("console-socket", 0, CONSOLE_SOCKET, FILE, "SOCKET", BEGIN | LR_ON(EXEC),
	    "Unix socket that receives the terminal's master end"),
	OPT("count", 'n', NUMBER, INT, "N", LR_ON(POOL), "warm: so many at once (default: 1)"),
	OPT("count", 'n', NUMBER, INT, "N", LR_ON(RESTORE),
	    "make so many containers of one seed, CONTAINER-1 to CONTAINER-N; goes with --detach"),
	OPT("cpu-burst", 0, CPU_BURST, INT, "USEC", LR_ON(UPDATE), "CPU time that may be saved up"),
	CHOICE("cpu-idle", 0, CPU_IDLE, "0 1", "0|1", LR_ON(UPDATE), "1: run only when the CPU is idle"),
	OPT("cpu-period", 0, CPU_PERIOD, INT, "USEC", LR_ON(UPDATE), "length of a CPU quota period"),
	OPT("cpu-quota", 0, CPU_QUOTA, INT, "USEC", LR_ON(UPDATE), "CPU time per period; -1: no limit"),
	OPT("cpu-rt-period", 0, CPU_RT_PERIOD, INT, "USEC", LR_ON(UPDATE),
	    "length of a realtime period (cgroup v1)"),
	OPT("cpu-rt-runtime", 0, CPU_RT_RUNTIME, INT, "USEC", LR_ON(UPDATE),
	    "realtime CPU time per period (cgroup v1)"),
	OPT("cpu-share", 0, CPU_SHARE, INT, "N", LR_ON(UPDATE), "CPU weight relative to others"),
	OPT("cpuset-cpus", 0, CPUSET_CPUS, STRING, "LIST", LR_ON(UPDATE), "CPUs to run on: 0-3,7"),
	OPT("cpuset-mems", 0, CPUSET_MEMS, STRING, "LIST", LR_ON(UPDATE), "memory nodes to use"),
	OPT("criu", 0, CRIU, STRING, "PATH", LR_ON(GLOBAL),
	    "the program that checkpoint and restore use (default: criu, found in PATH)"),
	OPT("cwd", 0, CWD, STRING, "DIR", LR_ON(EXEC), "working directory in the container"),
	FLAG("debug", 0, DEBUG, LR_ON(GLOBAL), "log each step (the same as --log-level debug)"),
	FLAG("detach", 'd', DETACH, LR_ON(RUN) | LR_ON(EXEC) | LR_ON(RESTORE),
	     "return when the process runs instead of waiting for its end"),
	MANY("empty-ns", 0, EMPTY_NS, "TYPE", CRIU, "restore this namespace without its contents: network"),
	CHOICE("engine", 0, ENGINE, "criu fork", "ENGINE", CRIU,
	       "criu (default), or fork: a seed that many containers can continue"),
	MANY("env", 'e', ENV, "NAME=VALUE", LR_ON(EXEC), "an environment variable of the process"),
	FLAG("ext-unix-sk", 0, EXT_UNIX_SK, CRIU, "allow Unix sockets that lead out"),
	CHOICE("fetch", 0, FETCH, "ondemand cache prefetch prefetch: eager", "HOW", LR_ON(RESTORE),
	       "when memory comes, with --remote: ondemand, when it is touched (default); cache, the same, since this host keeps what came for the next child; prefetch, the rest in the background; prefetch:N, N MiB of the rest; eager, all of it before"),
	OPT("file", 'f', FILE, FILE, "FILE", LR_ON(SPEC), "where to write; -: standard output"),
	FLAG("file-locks", 0, FILE_LOCKS, CRIU, "handle file locks"),
	FLAG("force", 'f', FORCE, LR_ON(DELETE), "kill it first; no error if there is none"),
	OPT("forkd", 0, FORKD, FILE, "SOCKET", CRIU | LR_ON(SEED),
	    "control socket of lean-forkd (default: " LR_FORKCTL_SOCKET ")"),
	CHOICE("format", 'f', FORMAT, "table json", "FORMAT",
	       LR_ON(LIST) | LR_ON(PS) | LR_ON(POOL) | LR_ON(SEED),
	       "table (default) or json"),
	FLAG("help", 'h', HELP, LR_ON_ALL, "show this help"),
	FLAG("ignore-paused", 0, IGNORE_PAUSED, LR_ON(EXEC), "allow it in a paused container"),
	OPT("image-path", 0, IMAGE_PATH, DIR, "DIR", CRIU, "directory of the images"),
	OPT("interval", 0, INTERVAL, DURATION, "TIME", LR_ON(EVENTS), "time between stats (default: 5s)"),
	FLAG("keep", 0, KEEP, LR_ON(RUN), "keep the container's state after it ended"),
	{ .name = "kernel-memory", .kind = LR_KIND_SIZE, .id = LR_OPT_KERNEL_MEMORY, .hidden = true,
	  .verbs = LR_ON(UPDATE), .value = "BYTES", .help = "kernel memory (obsolete)" },
	{ .name = "kernel-memory-tcp", .kind = LR_KIND_SIZE, .id = LR_OPT_KERNEL_MEMORY_TCP,
	  .hidden = true, .verbs = LR_ON(UPDATE), .value = "BYTES",
	  .help = "memory of TCP buffers (obsolete)" },
	OPT("l3-cache-schema", 0, L3_CACHE_SCHEMA, STRING, "SCHEMA", LR_ON(UPDATE),
	    "Intel RDT L3 cache allocation"),
	FLAG("lazy-pages", 0, LAZY_PAGES, CRIU, "fetch memory pages when they are touched"),
	OPT("lean", 0, LEAN, MAYBE, "PARTS", LR_ON(GLOBAL),
	    "start faster by relaxing what docs/lean-profile.md says: all, or rootfs,network=pool,..."),
	OPT("lease", 0, LEASE, DURATION, "TIME", LR_ON(CHECKPOINT) | LR_ON(SEED),
	    "how long a seed lives without use: 90s, 5m, 2h (default: lean-forkd's)"),
	FLAG("leave-running", 0, LEAVE_RUNNING, LR_ON(CHECKPOINT), "let the container run on"),
	FLAG("link-remap", 0, LINK_REMAP, LR_ON(CHECKPOINT), "remap unlinked files by hard links"),
	OPT("log", 0, LOG, FILE, "FILE", LR_ON(GLOBAL),
	    "log file, or file:PATH, journald:NAME, syslog:NAME (default: standard error)"),
	CHOICE("log-format", 0, LOG_FORMAT, "text json", "FORMAT", LR_ON(GLOBAL),
	       "text (default) or json"),
	CHOICE("log-level", 0, LOG_LEVEL, "error warning warn info debug", "LEVEL", LR_ON(GLOBAL),
	       "error, warning, info or debug"),
	OPT("lsm-mount-context", 0, LSM_MOUNT_CONTEXT, STRING, "CONTEXT", LR_ON(RESTORE),
	    "LSM mount context to restore with"),
	OPT("lsm-profile", 0, LSM_PROFILE, STRING, "TYPE:NAME", LR_ON(RESTORE),
	    "LSM profile to restore with"),
	CHOICE("manage-cgroups-mode", 0, MANAGE_CGROUPS_MODE, "soft full strict ignore", "MODE", CRIU,
	       "soft (default), full, strict or ignore"),
	OPT("mem-bw-schema", 0, MEM_BW_SCHEMA, STRING, "SCHEMA", LR_ON(UPDATE),
	    "Intel RDT memory bandwidth allocation"),
	OPT("memory", 0, MEMORY, SIZE, "BYTES", LR_ON(UPDATE), "memory limit; -1: none"),
	OPT("memory-reservation", 0, MEMORY_RESERVATION, SIZE, "BYTES", LR_ON(UPDATE),
	    "memory that is left alone under pressure"),
	OPT("memory-swap", 0, MEMORY_SWAP, SIZE, "BYTES", LR_ON(UPDATE),
	    "memory and swap together; -1: no limit"),
	CHOICE("network-lock", 0, NETWORK_LOCK, "iptables nftables skip", "METHOD", CRIU,
	       "how the network is held still: iptables, nftables or skip"),
	FLAG("no-mount-fallback", 0, NO_MOUNT_FALLBACK, BIRTH,
	     "never soften mount flags that the kernel refused"),
	FLAG("no-new-keyring", 0, NO_NEW_KEYRING, BIRTH, "keep the caller's session keyring"),
	FLAG("no-new-privs", 0, NO_NEW_PRIVS, LR_ON(EXEC), "set no_new_privs for the process"),
	FLAG("no-pivot", 0, NO_PIVOT, BEGIN, "do not use pivot_root(2): for a root on a ramdisk"),
	FLAG("no-subreaper", 0, NO_SUBREAPER, BEGIN | LR_ON(EXEC), "do not adopt orphaned processes"),
	OPT("page-server", 0, PAGE_SERVER, STRING, "ADDRESS:PORT", LR_ON(CHECKPOINT),
	    "send memory pages to this server"),
	OPT("parent-path", 0, PARENT_PATH, DIR, "DIR", LR_ON(CHECKPOINT),
	    "images of an earlier pre-dump, relative to --image-path"),
	OPT("pid-file", 0, PID_FILE, FILE, "FILE", BEGIN | LR_ON(EXEC), "write the process id here"),
	OPT("pidfd-socket", 0, PIDFD_SOCKET, FILE, "SOCKET", BIRTH | LR_ON(EXEC),
	    "Unix socket that receives a pidfd of the process"),
	OPT("pids-limit", 0, PIDS_LIMIT, INT, "N", LR_ON(UPDATE), "largest number of tasks; -1: no limit"),
	FLAG("pre-dump", 0, PRE_DUMP, LR_ON(CHECKPOINT), "dump memory only, and let it run on"),
	OPT("preserve-fds", 0, PRESERVE_FDS, INT, "N", BIRTH | LR_ON(EXEC),
	    "hand on N descriptors from 3 upward, those that are open"),
	OPT("process", 'p', PROCESS, FILE, "FILE", LR_ON(EXEC), "the process as JSON, instead of a command (-: standard input)"),
	OPT("process-label", 0, PROCESS_LABEL, STRING, "LABEL", LR_ON(EXEC),
	    "SELinux label of the process"),
	FLAG("quiet", 'q', QUIET, LR_ON(LIST), "only the ids"),
	FLAG("regex", 'r', REGEX, LR_ON(KILL) | LR_ON(DELETE),
	     "CONTAINER is an extended regular expression"),
	FLAG("remote", 0, REMOTE, LR_ON(CHECKPOINT),
	     "give the seed to lean-forkd, and print a ticket by which other hosts continue it"),
	OPT("remote", 0, REMOTE, STRING, "TICKET", LR_ON(RESTORE),
	    "continue the seed of this ticket; file:PATH or env:NAME: where the ticket is"),
	OPT("resources", 'r', RESOURCES, FILE, "FILE", LR_ON(UPDATE),
	    "the new limits as JSON (linux.resources); -: standard input"),
	OPT("root", 0, ROOT, DIR, "DIR", LR_ON(GLOBAL), "where state is kept (default: /run/" LR_CLI_NAME ")"),
	CHOICE("rootless", 0, ROOTLESS, "true false auto", "MODE", LR_ON(GLOBAL),
	       "go on without cgroups that may not be made: true, false or auto"),
	FLAG("rootless", 0, ROOTLESS, LR_ON(SPEC), "for use without root privileges"),
	OPT("seed-dir", 0, SEED_DIR, DIR, "DIR", LR_ON(GLOBAL),
	    "let the annotation org.lean.seed name a ticket, or a seed in DIR, that a container continues"),
	OPT("seed-forkd", 0, SEED_FORKD, FILE, "SOCKET", LR_ON(GLOBAL),
	    "control socket of lean-forkd for such tickets (default: " LR_FORKCTL_SOCKET ")"),
	FLAG("shell-job", 0, SHELL_JOB, CRIU, "allow a terminal shared with a shell"),
	FLAG("stats", 0, STATS, LR_ON(EVENTS), "print the stats once and end"),
	FLAG("stats", 0, STATS, LR_ON(RESTORE),
	     "with the engine fork: when it runs, a line of JSON on standard error says what that cost"),
	OPT("status-fd", 0, STATUS_FD, INT, "FD", LR_ON(CHECKPOINT), "told when lazy pages are ready"),
	FLAG("stop", 0, STOP, LR_ON(CHECKPOINT), "end the container (the usual thing with criu)"),
	FLAG("systemd-cgroup", 0, SYSTEMD_CGROUP, LR_ON(GLOBAL),
	     "the same as --cgroup-manager systemd"),
	FLAG("tcp-close", 0, TCP_CLOSE, LR_ON(CHECKPOINT),
	     "TCP connections may be open, and are closed in what continues it; with criu restore needs it, too"),
	FLAG("tcp-close", 0, TCP_CLOSE, LR_ON(RESTORE), "with criu: close TCP connections"),
	FLAG("tcp-established", 0, TCP_ESTABLISHED, CRIU, "allow open TCP connections"),
	FLAG("tcp-skip-in-flight", 0, TCP_SKIP_IN_FLIGHT, LR_ON(CHECKPOINT),
	     "skip TCP connections that are being opened"),
	OPT("tmpfs-bytes", 0, TMPFS_BYTES, SIZE, "BYTES", LR_ON(CHECKPOINT),
	    "refuse a container with more than that in its tmpfs; -1: no limit (default: 256M); with a seed"),
	OPT("tmpfs-files", 0, TMPFS_FILES, INT, "N", LR_ON(CHECKPOINT),
	    "refuse a container with more files there; -1: no limit (default: 65536); with a seed"),
	FLAG("tty", 't', TTY, LR_ON(EXEC), "give the process a terminal"),
	OPT("user", 'u', USER, STRING, "UID[:GID]", LR_ON(EXEC), "user, and group, of the process"),
	{ .name = "version", .letter = 'v', .letter2 = 'V', .kind = LR_KIND_FLAG,
	  .id = LR_OPT_VERSION, .verbs = LR_ON(GLOBAL), .help = "show the version" },
	OPT("when-ready", 0, WHEN_READY, MAYBE, "TIME", LR_ON(CHECKPOINT),
	    "make the seed when a program of the container is in lean_seed_here(3); wait at most TIME"),
	FLAG("with-changes", 0, WITH_CHANGES, LR_ON(CHECKPOINT),
	     "what the container changed in its root goes along, where that is an overlay mount; with a seed"),
	FLAG("without-exec", 0, WITHOUT_EXEC, LR_ON(CHECKPOINT),
	     "leave processes of exec out of the seed, instead of refusing them"),
	OPT("work-path", 0, WORK_PATH, DIR, "DIR", CRIU, "directory for work files and logs"),
};
/* clang-format on */

const size_t lr_cli_n_opts = sizeof(lr_cli_opts) / sizeof(lr_cli_opts[0]);

const struct lr_cli_opt *lr_cli_opt_find(uint8_t verb, const char *name, size_t n)
{
	for (size_t i = 0; i < lr_cli_n_opts; i++) {
		const struct lr_cli_opt *o = &lr_cli_opts[i];
		if (lr_cli_takes(o, verb) && strncmp(o->name, name, n) == 0 && !o->name[n])
			return o;
	}
	return NULL;
}

const struct lr_cli_opt *lr_cli_opt_letter(uint8_t verb, char letter)
{
	for (size_t i = 0; i < lr_cli_n_opts; i++) {
		const struct lr_cli_opt *o = &lr_cli_opts[i];
		if (lr_cli_takes(o, verb) && letter &&
		    (o->letter == letter || o->letter2 == letter))
			return o;
	}
	return NULL;
}

const char *lr_cli_opt_name(enum lr_cli_opt_id id)
{
	for (size_t i = 0; i < lr_cli_n_opts; i++)
		if (lr_cli_opts[i].id == id)
			return lr_cli_opts[i].name;
	return "?";
}
