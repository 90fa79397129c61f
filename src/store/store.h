/* SPDX-License-Identifier: Apache-2.0 */
/*
 * store: the container's record on disk, one directory a container below the runtime's root:
 *
 * 	ROOT/ID/record     what the runtime knows (format below)
 * 	ROOT/ID/start      fifo: somebody reads it while the container waits for `start`
 * 	ROOT/ID/answer     fifo: what init has to say to `start`; its end: the program runs
 * 	ROOT/ID/seccomp    the compiled filter, for exec (src/seccomp owns the format)
 *
 * Format of `record`, version 2. First a header: struct header in record.c, in the byte order of
 * this machine, which the file never leaves. Then two JSON texts: `body` (what state, kill and
 * delete need) and `config` (what exec and the hooks of start and delete need: a config.json with
 * the rest left out). Then all of it once more: a checksum tells which copy is whole, and one is
 * enough. The file is replaced by rename. Only pid, start time and flags change in place: they
 * stand twice in the first header, next to each other, each with a checksum, and both are changed
 * by one write.
 *
 * A record that somebody else could have written is refused (trust.h).
 *
 * What the record names (cgroups, processes) is made after it and removed before it, so `delete
 * --force` finds everything, whenever the runtime was killed. Writers hold the lock of the
 * directory; readers need none.
 */
#ifndef LR_STORE_STORE_H
#define LR_STORE_STORE_H

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

#include "libocispec/config.h"
#include "src/base/arena.h"
#include "src/base/err.h"

#define LR_STORE_ID_MAX  1024
#define LR_STORE_FIFO    "start"
#define LR_STORE_ANSWER  "answer"
#define LR_STORE_SECCOMP "seccomp"
#define LR_STORE_COPIED  "copied"

enum {
	LR_RECORD_STARTED = 1,    /* set by `run`, which has no fifo: the program was started */
	LR_RECORD_CREATING = 2,   /* create has not finished */
	LR_RECORD_CGROUP = 4,     /* the cgroup is ours: whatever is in it goes with us */
	LR_RECORD_NO_PROGRAM = 8, /* config.json has no process: there is nothing to start */
	LR_RECORD_RELAYED =
		16, /* its terminal was made for us in the foreground (lr_tty_console) */
};
enum {
	LR_RECORD_POSTSTART = 1,
	LR_RECORD_POSTSTOP = 2,
};

struct lr_record {
	/* header */
	pid_t pid; /* 0: no process yet */
	uint64_t start_time;
	uint32_t flags; /* LR_RECORD_* */

	/* body */
	const char *id;
	const char *oci_version;
	const char *bundle;  /* absolute */
	const char *rootfs;  /* absolute */
	const char *created; /* RFC 3339, UTC, nanoseconds */
	struct oci_map annotations;
	uint32_t namespaces;     /* CLONE_NEW* of those that are not the host's */
	int32_t cgroup_mode;     /* enum lr_cgroup_mode */
	const char *cgroup_path; /* cgroupsPath as resolved; NULL: no cgroup */
	struct oci_map cgroups;  /* hierarchy -> absolute directory */
	const char *cgroup_unit; /* systemd's unit; NULL: the cgroup was made without systemd */
	bool cgroup_user;        /* the unit is the user's systemd's */
	int32_t rdt_made;        /* what src/rdt made (LR_RDT_MADE_*), for its removal */
	uint32_t hooks; /* LR_RECORD_POSTSTART, LR_RECORD_POSTSTOP: decode config for them */
	bool has_seccomp;
	bool notify; /* NOTIFY_SOCKET is passed on */
	/* A container that continues a seed, until it is started: descriptors of its first process
	 * by which `start` finds the seed and its restorer. 0: none. */
	int32_t seed_report, seed_descriptor, seed_lazy;
	bool seed_prefetch;
	uint32_t seed_prefetch_mib; /* 0: without a limit */
	const char *lean_slot;      /* what it has of the lean profile; NULL: nothing */
	const char *lean_net;
	bool lean_cgroup; /* its cgroup is the slot's */

	/* directory, not on disk */
	uid_t owner;
};

struct lr_store {
	int fd;           /* the root directory */
	const char *path; /* absolute */
};

/* An entry that is open for change. */
struct lr_entry {
	int dir;    /* holds the lock */
	int record; /* LR_NOFD until made or changed */
	bool blank; /* it was made just now, and nothing is written to it yet */
	const char *id;
	const struct lr_store *store;
};
#define LR_ENTRY_NONE                                                                              \
	{                                                                                          \
		.dir = LR_NOFD, .record = LR_NOFD                                                  \
	}

/* Opens the root, and makes it (0711) if `create`. -EACCES, -EROFS, ... with a hint; -EPERM: others
 * than the caller and root can write to it. */
int lr_store_open(const char *root, bool create, struct lr_arena *a, struct lr_store *ret,
		  struct lr_err *err) LR_MUST_CHECK;
void lr_store_close(struct lr_store *s);

/* [A-Za-z0-9_+-][A-Za-z0-9_+.-]*, at most LR_STORE_ID_MAX. -EINVAL. */
int lr_store_check_id(const char *id, struct lr_err *err) LR_MUST_CHECK;

/* A new, locked entry, whose record is empty: until that is written, it counts as none. -EEXIST if
 * there is one. */
int lr_store_create(const struct lr_store *s, const char *id, struct lr_entry *ret,
		    struct lr_err *err) LR_MUST_CHECK;
/* Locks an existing entry (waits for whoever changes it). -ENOENT. */
int lr_store_lock(const struct lr_store *s, const char *id, struct lr_entry *ret,
		  struct lr_err *err) LR_MUST_CHECK;
/* The same, within so many milliseconds. -EBUSY: somebody has it all that time, and *err names who. */
int lr_store_await(const struct lr_store *s, const char *id, int ms, struct lr_entry *ret,
		   struct lr_err *err) LR_MUST_CHECK;
void lr_store_unlock(struct lr_entry *e); /* closes; NULL-safe fields */
/* Lets others have the lock for a while; lr_store_return takes it again. -ENOENT: one of them has
 * removed the entry. */
void lr_store_leave(const struct lr_entry *e);
int lr_store_return(const struct lr_entry *e, struct lr_err *err) LR_MUST_CHECK;

/* Writes the whole record. `config`: JSON text. */
int lr_store_write(struct lr_entry *e, const struct lr_record *r, const char *config, size_t len,
		   struct lr_arena *a, struct lr_err *err) LR_MUST_CHECK;
/* Header only: pid, start_time and flags of *r. */
int lr_store_update(struct lr_entry *e, const struct lr_record *r,
		    struct lr_err *err) LR_MUST_CHECK;

/*
 * Reads a record; *config (if given) receives the JSON text of the second part. -ENOENT: no such
 * container; -ENODATA: the entry is there, but creation was cut off before anything was
 * recorded (nothing else exists then); -EPROTO: damaged; -EPERM: somebody else's; -ENOTSUP: of
 * another version.
 */
int lr_store_load(const struct lr_store *s, const char *id, struct lr_arena *a,
		  struct lr_record *ret, const char **config, size_t *config_len,
		  struct lr_err *err) LR_MUST_CHECK;

/* Opens the container's filter for reading. It is refused, as a record is, if others could have
 * written it. */
int lr_store_open_seccomp(const struct lr_store *s, const char *id,
			  struct lr_err *err) LR_MUST_CHECK;

/* What a damaged record still tells: pid, start time and flags. The rest of *ret is empty but the
 * id; if nothing is known, pid is 0. */
int lr_store_salvage(const struct lr_entry *e, struct lr_arena *a, struct lr_record *ret,
		     struct lr_err *err) LR_MUST_CHECK;

/* Removes the directory of a locked entry. The caller still unlocks it. Idempotent. */
int lr_store_remove(struct lr_entry *e, struct lr_err *err) LR_MUST_CHECK;

/* Ids, sorted. Entries that are no containers (dot files) are left out. */
int lr_store_list(const struct lr_store *s, struct lr_arena *a, struct oci_strv *ret,
		  struct lr_err *err) LR_MUST_CHECK;

/*
 * The fifos of `start`. `make` opens both for reading and writing, for init: it blocks on `go`, and
 * has `answer` closed by execve(2). `waits` says whether a process does (1/0). `open` is for
 * `start`: go for writing one byte, answer for reading; -ENXIO if nobody waits.
 */
struct lr_store_fifos {
	int go, answer;
};
int lr_store_fifos_make(struct lr_entry *e, struct lr_store_fifos *ret,
			struct lr_err *err) LR_MUST_CHECK;
int lr_store_fifo_waits(const struct lr_store *s, const char *id) LR_MUST_CHECK;
int lr_store_fifos_open(const struct lr_entry *e, struct lr_store_fifos *ret) LR_MUST_CHECK;
void lr_store_fifos_remove(const struct lr_entry *e);
void lr_store_fifos_close(struct lr_store_fifos *f);

/*
 * A seed's memory may be copied when the command that made it has ended, from processes of ours in
 * the container. `copying`, under the entry's lock: a descriptor that says so until its last copy
 * is closed. `copied`: one to wait by with flock(2), LOCK_SH; -ENOENT if nothing is being copied.
 */
int lr_store_copying(const struct lr_entry *e, struct lr_err *err) LR_MUST_CHECK;
int lr_store_copied(const struct lr_entry *e, struct lr_err *err) LR_MUST_CHECK;

/* Exposed for the fuzzer: a record file's bytes. */
int lr_record_decode(const void *bytes, size_t size, struct lr_arena *a, struct lr_record *ret,
		     const char **config, size_t *config_len, struct lr_err *err) LR_MUST_CHECK;

#endif
