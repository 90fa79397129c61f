/* SPDX-License-Identifier: Apache-2.0 */
/*
 * criu: a narrow client of criu's RPC, as src/systemd has one of D-Bus, and a reader of what its images say of mounts
 * and of deleted files.
 *
 * The program is started as `criu swrk FD`, gets one request on that socket, tells its progress by
 * notifications, each of which waits for an answer, and ends with a response. Nothing is decided by
 * what it prints or logs; its first error there is for the message that says why it failed.
 *
 * The messages are those of criu's published rpc.proto. So few of their fields are used here, and
 * they are encoded so simply, that a table takes the place of a library for protocol buffers. Tests
 * hold the table against rpc.proto.
 */
#ifndef LR_CRIU_CRIU_H
#define LR_CRIU_CRIU_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

#include "src/base/arena.h"
#include "src/base/err.h"

/* As criu counts them: 3.17 and later know every field that is used here. */
#define LR_CRIU_OLDEST 31700

/* ---- messages ------------------------------------------------------------------------------ */

enum lr_criu_type {
	LR_CRIU_EMPTY = 0,
	LR_CRIU_DUMP = 1,
	LR_CRIU_RESTORE = 2,
	LR_CRIU_PRE_DUMP = 4,
	LR_CRIU_NOTIFY = 6,
	LR_CRIU_FEATURES = 9,
	LR_CRIU_VERSION = 10,
};

enum lr_criu_cgroups { /* manage_cgroups_mode */
		       LR_CRIU_CGROUPS_IGNORE = 0,
		       LR_CRIU_CGROUPS_SOFT = 3,
		       LR_CRIU_CGROUPS_FULL = 4,
		       LR_CRIU_CGROUPS_STRICT = 5,
};

enum lr_criu_lock { LR_CRIU_LOCK_IPTABLES = 1, LR_CRIU_LOCK_NFTABLES = 2, LR_CRIU_LOCK_SKIP = 3 };

/* One value, or two that belong together: a key and what it stands for. `fd` of inherit_fd. */
struct lr_criu_pair {
	const char *key, *value;
	int fd;
};

struct lr_criu_list {
	struct lr_criu_pair *v;
	size_t n;
};

/* criu_opts. Begins as LR_CRIU_OPTS_INIT: what is NULL, false, negative or an empty list is left
 * out. Descriptors are numbers in criu's process. */
struct lr_criu_opts {
	int images_dir_fd, work_dir_fd, pid, log_level, status_fd;
	int manage_cgroups_mode, empty_ns, network_lock;
	bool leave_running, ext_unix_sk, tcp_established, tcp_close, tcp_skip_in_flight;
	bool evasive_devices, shell_job, file_locks, track_mem, auto_dedup, link_remap;
	bool notify_scripts, manage_cgroups, rst_sibling, ext_masters, orphan_pts_master;
	bool lazy_pages;
	const char *log_file, *root, *parent_img, *config_file;
	const char *lsm_profile, *lsm_mount_context;
	const char *page_server; /* its address; NULL: none */
	const char *cgroup_yard; /* where the hierarchies are, by name; NULL: criu mounts them */
	int page_server_port;
	struct lr_criu_list external;   /* key */
	struct lr_criu_list inherit_fd; /* key, fd */
	struct lr_criu_list cg_root;    /* key: controllers, or NULL (v2); value: path */
};
#define LR_CRIU_OPTS_INIT                                                                          \
	{                                                                                          \
		.images_dir_fd = -1, .work_dir_fd = -1, .pid = -1, .log_level = -1,                \
		.status_fd = -1, .manage_cgroups_mode = -1, .empty_ns = -1, .network_lock = -1,    \
		.page_server_port = -1                                                             \
	}

struct lr_criu_request {
	enum lr_criu_type type;
	const struct lr_criu_opts *opts; /* NULL: none */
	bool notify_success;
	bool mem_track, lazy_pages; /* LR_CRIU_FEATURES: asks for these */
};

/* What was read of an answer; a field that was not in it is 0. */
struct lr_criu_response {
	enum lr_criu_type type;
	bool success;
	char script[32]; /* of a notification */
	pid_t pid;       /* of a notification, or the restored process */
	int error;       /* errno, as criu has it */
	char message[256];
	int version; /* 40201 for 4.2.1 */
	bool mem_track, lazy_pages;
};

/* Pure. *ret: the bytes. -ENOMEM. */
int lr_criu_encode(const struct lr_criu_request *rq, struct lr_arena *a, uint8_t **ret, size_t *n,
		   struct lr_err *err) LR_MUST_CHECK;
/* Pure. -EBADMSG. */
int lr_criu_decode(const uint8_t *bytes, size_t n, struct lr_criu_response *ret,
		   struct lr_err *err) LR_MUST_CHECK;

/* ---- images -------------------------------------------------------------------------------- */

/* A mount of one of the container's mount namespaces, as it is in the images. */
struct lr_criu_mount {
	bool first;                   /* of the first process's namespace */
	uint32_t id, parent;          /* the parent of a namespace's root is not among its mounts */
	uint32_t type;                /* criu's number of the file system's type: LR_CRIU_FS_* */
	uint32_t device;              /* as criu has it: equal for what is of one file system */
	uint32_t flags;               /* MS_* */
	uint32_t external;            /* not 0: it is, as versions before 3.17 have it */
	uint32_t plugin;              /* not 0: a plugin of criu's mounts it */
	uint32_t deleted;             /* not 0: what it shows has no name any more */
	uint32_t peers, master;       /* groups, of which it is, and which it hears from; 0: none */
	const char *fsname;           /* NULL, or the name of the type where that has no number */
	const char *root;             /* what of the file system is mounted */
	const char *point;            /* where, from the container's root */
	const char *source, *options; /* of the file system */
	const char
		*key; /* under which the request to restore has what is bound there; NULL: none */
};

/* File systems that criu mounts itself, by what is in its images; 0: it binds, or fails. */
enum lr_criu_fs {
	LR_CRIU_FS_OTHER = 0,
	LR_CRIU_FS_PROC = 1,
	LR_CRIU_FS_SYSFS = 2,
	LR_CRIU_FS_DEVTMPFS = 3,
	LR_CRIU_FS_BINFMT_MISC = 4,
	LR_CRIU_FS_TMPFS = 5,
	LR_CRIU_FS_DEVPTS = 6,
	LR_CRIU_FS_PSTORE = 8,
	LR_CRIU_FS_SECURITYFS = 9,
	LR_CRIU_FS_FUSECTL = 10,
	LR_CRIU_FS_DEBUGFS = 11,
	LR_CRIU_FS_CGROUP = 12,
	LR_CRIU_FS_MQUEUE = 14,
	LR_CRIU_FS_AUTO = 16,
	LR_CRIU_FS_OVERLAYFS = 17,
	LR_CRIU_FS_TRACEFS = 19,
	LR_CRIU_FS_CGROUP2 = 23,
};

/* Pure: adds the mounts of a file mountpoints-N.img, whose `first` is the caller's to set. Texts are
 * the arena's. -EBADMSG, -ENOMEM. */
int lr_criu_decode_mounts(const uint8_t *bytes, size_t n, struct lr_arena *a,
			  struct lr_criu_mount **v, size_t *count,
			  struct lr_err *err) LR_MUST_CHECK;

/* The mounts of the namespaces that the processes in the images below `dir` are in. -ENOENT: an image is
 * missing. */
int lr_criu_read_mounts(int dir, struct lr_arena *a, struct lr_criu_mount **ret, size_t *n,
			struct lr_err *err) LR_MUST_CHECK;

/* A file that was deleted and is still open, or a directory that somebody is in: criu makes it again under a
 * name beside its old one. */
struct lr_criu_remap {
	int32_t mount;    /* its number, as in lr_criu_mount; -1: not known */
	const char *path; /* its old one, in its mount namespace */
};

/* Pure. remaps, files: the two images that have them. -EBADMSG, -ENOMEM. */
int lr_criu_decode_remaps(const uint8_t *remaps, size_t n_remaps, const uint8_t *files,
			  size_t n_files, struct lr_arena *a, struct lr_criu_remap **ret, size_t *n,
			  struct lr_err *err) LR_MUST_CHECK;
/* All that are in the images below `dir`. */
int lr_criu_read_remaps(int dir, struct lr_arena *a, struct lr_criu_remap **ret, size_t *n,
			struct lr_err *err) LR_MUST_CHECK;

/* ---- a session ----------------------------------------------------------------------------- */

struct lr_criu_session {
	int sock;
	pid_t pid;  /* of criu, a child of the caller */
	int pidfd;  /* LR_NOFD: the kernel has none */
	int saved;  /* a pidfd of what it saves, or LR_NOFD */
	bool group; /* of its own, which ends with it */
	int output; /* what it printed: for when it does not even begin to work */
};
#define LR_CRIU_SESSION_NONE                                                                       \
	{                                                                                          \
		.sock = -EBADF, .pidfd = -EBADF, .saved = -EBADF, .output = -EBADF                 \
	}

struct lr_criu_how {
	const char *program; /* a path, or a name to be found in PATH */
	/* In criu's process, before it is executed; NULL: nothing. */
	int (*before)(void *arg, struct lr_err *err);
	void *arg;
	/* It restores: what it starts is not to end with it. Else it has a process group of its own,
	 * and when it is killed, its helpers, which would wait for it for ever, go, too. */
	bool restores;
	/* The first process of what it saves: while that lives, criu is given all the time that it takes to
	 * let it go on. 0: it saves nothing. */
	pid_t saves;
	/* Descriptors for criu, from LR_CRIU_FIRST_FD on; `before` may fill them in. */
	const int *fds;
	size_t n_fds;
};
#define LR_CRIU_FIRST_FD 4 /* 3 is the socket */

/* -ENOENT with a hint if there is no criu. */
int lr_criu_open(const struct lr_criu_how *how, struct lr_criu_session *ret,
		 struct lr_err *err) LR_MUST_CHECK;
/* How long criu may take to answer and to end, once there is nothing left for it to do: what it saved is written,
 * and has ended. */
#define LR_CRIU_END_MS 10000
/* Ends it, if it has not ended: waits for its process, and kills it when its time is up. Safe to call twice. */
void lr_criu_close(struct lr_criu_session *s);

/* Answers a notification; fd: a descriptor that came with it, or LR_NOFD; the callee's to take by
 * lr_take_fd. A failure makes criu give up. */
typedef int lr_criu_notified(void *arg, const struct lr_criu_response *rsp, int *fd,
			     struct lr_err *err);

/* One request, up to its response. -EPIPE: criu ended without one; -ETIMEDOUT: it was killed, as its time
 * was up; -EREMOTEIO: it says that it failed, *ret says how; or what `notified` has returned. */
int lr_criu_ask(const struct lr_criu_session *s, const struct lr_criu_request *rq,
		lr_criu_notified *notified, void *arg, struct lr_criu_response *ret,
		struct lr_err *err) LR_MUST_CHECK;

/* Starts criu to learn its version, which has to be LR_CRIU_OLDEST at least, and whether it has
 * the features that are asked for. */
int lr_criu_check(const char *program, bool lazy_pages, bool mem_track,
		  struct lr_err *err) LR_MUST_CHECK;

/* The last words of criu, for *err: the first error in its log, below dirfd, else the end of what
 * it printed. Empty if there is nothing. */
void lr_criu_why(int dirfd, const char *log, int output, char *buf, size_t size);

/* Pure: the line of a log that tells best why it failed, without time and place; false: none. */
bool lr_criu_telling(const char *log, size_t n, char *buf, size_t size);

#endif
