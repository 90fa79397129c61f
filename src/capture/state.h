/* SPDX-License-Identifier: Apache-2.0 */
/* capture: what is known of the processes while they become a seed. Memory is the arena's. */
#ifndef LR_CAPTURE_STATE_H
#define LR_CAPTURE_STATE_H

#include <stdbool.h>
#include <stdint.h>
#include <sys/stat.h>
#include <sys/types.h>

#include "src/base/arena.h"
#include "src/base/treap.h"
#include "src/capture/capture.h"
#include "src/capture/files.h"
#include "src/capture/tmpfs.h"
#include "src/seed/seed.h"
#include "src/trace/trace.h"

/* index.c: places in a table, by two numbers. Empty: {0}. */
struct cap_index {
	struct lr_treap_node *root;
};

#define CAP_SHARED                                                                                 \
	3 /* what processes may share: memory, descriptors, a working directory (shares.c) */

/* A call that goes on by restart_syscall(2). */
struct cap_restart {
	uint32_t nr; /* 0: none, or nobody knows which */
	uint64_t args[6], sp, pc;
};

/* What a thread's filters of seccomp(2) let through, whatever the arguments. */
struct cap_may {
	bool known;   /* what they are: then they can be suspended, too */
	bool ask;     /* all that a thread is asked by */
	bool barrier; /* membarrier(2) */
};

struct cap_thread {
	pid_t tid;                /* as we see it */
	struct cap_restart again; /* before it was held */
	bool held, shadow_stack;
	uint32_t seccomp, filters;  /* its mode, and how many filters it has */
	struct lr_seed_thread seed; /* ranges and references are filled in at the end */
	void *xsave;
	size_t xsave_size;
	struct lr_seed_signal *pending;
	size_t n_pending;
	struct lr_seed_cred cred;
	uint32_t *groups;
	size_t n_groups;
};

struct cap_vma {
	uint64_t start, end, offset, inode;
	uint32_t major, minor;
	uint32_t prot, flags;   /* flags: LR_SEED_GROWSDOWN and so on */
	bool shared, may_write; /* may_write: or may become so ("mw") */
	char *name;             /* as /proc/PID/maps has it */
	char *refused;
	bool keyed; /* by a protection key that a child would not have */
};

struct cap_maps {
	struct cap_vma *v;
	size_t n;
	uint64_t vdso, vdso_end, vvar, vvar_end;
};

/* What several descriptors may share. */
struct cap_file {
	struct lr_seed_file seed;
	uint64_t device, inode;
	pid_t pid; /* where it was found first, for kcmp(2) */
	int fd;
	char *path;
	uint32_t index;
	bool stdio;
	uint64_t peer; /* inode of the other end of a pair of sockets */
	uint8_t shut;  /* what of this one is shut down, as struct cap_socket has it */
	pid_t target;  /* of a pidfd, as we see it */
	struct cap_watch *watches;
	size_t n_watches;
	struct cap_endpoint *endpoint; /* of a socket that is of no pair */
	bool deleted;
	uint64_t size;              /* of one that is deleted, as it was counted */
	pid_t owner;                /* as we see it; seed.owner_kind says what it is */
	struct cap_file *next;      /* of the same inode */
	struct lr_treap_node order; /* in cap_inode.order */
	struct cap_file
		*same; /* the next that is the same open file; only where there is an order */
};

/* The open files of an inode. */
struct cap_inode {
	struct cap_file *first, *last;
	size_t n;
	bool deleted;                /* and counted */
	struct lr_treap_node *order; /* of these files, by kcmp(2); NULL: there are few, and none */
};

struct cap_watch {
	uint32_t number, events;
	uint64_t data, inode;
	pid_t pid;
	const char *path; /* of inotify's, which have number, events, and its type as data */
};

struct cap_endpoint {
	struct lr_seed_endpoint seed;
	uint8_t address[128];
	size_t size;
	const char *dir;
};

struct cap_fd {
	uint32_t number, cloexec;
	struct cap_file *file;
};

/* A descriptor when all are held: two look at it then. */
struct cap_noted {
	int fd;
	const char *link; /* a path: others are not noted */
	struct stat st;
};

/* A twin that we end: as we see it, and as its parent does. */
struct cap_dead {
	pid_t pid, inside;
	uint64_t start_time;
};

struct cap_process {
	pid_t pid, parent;   /* as we see them */
	uint64_t start_time; /* clock ticks since boot; 0: it is not known */
	struct lr_seed_process seed;
	struct lr_seed_mm mm;
	struct cap_thread *threads;
	size_t n_threads;
	struct cap_maps maps; /* as they were before it was held */
	struct lr_trace_process trace;
	bool traced;
	struct cap_fd *fds;
	size_t n_fds;
	struct cap_noted *noted; /* in the order of /proc */
	size_t n_noted;
	struct lr_seed_action *actions;
	size_t n_actions;
	struct lr_seed_signal *pending;
	size_t n_pending;
	struct lr_seed_timer *timers;
	size_t n_timers;
	struct lr_seed_limit limits[16];
	char *exe, *cwd, *root;
	uint32_t umask;
	void *auxv;
	size_t auxv_size;
	struct cap_may lets;     /* of the leader's filters */
	pid_t twin, twin_inside; /* as we see it, and as the process does */
	struct cap_dead dead;
	int mem;          /* the twin's, as a file; or LR_NOFD */
	bool twin_lost;   /* there may be one that we don't know */
	int pidfd;        /* of a process with a twin; else LR_NOFD */
	uint64_t caught;  /* or ignored; signal n: bit n - 1 */
	pid_t group;      /* as we see it */
	bool locks;       /* some of its memory is locked (mlock(2)) */
	uint64_t tables;  /* bytes: by which the kernel finds its memory */
	uint64_t numbers; /* of descriptors, for which the kernel has room */
	uint64_t written; /* bytes: of its private memory, what it has written to */
	struct lr_seed_run *runs;
	size_t n_runs;
	bool shares_table; /* of descriptors, which is another's, too, and looked at there; refused */
	struct lr_treap_node order[CAP_SHARED];
};

/* Memory that several mappings, or a descriptor, share. */
struct cap_object {
	uint64_t device, inode;
	struct lr_seed_object seed;
	char *name;
	int fd; /* of ours */
	struct lr_seed_run *runs;
	size_t n_runs;
	bool is_here;       /* the page of a program that knows of seeds (seed/here.h) */
	int here;           /* by which that is told; or LR_NOFD */
	uint8_t *here_page; /* a mapping of it that is not to be touched */
};

struct cap_channel {
	uint64_t inode[2]; /* of a pipe: the same twice */
	struct lr_seed_channel seed;
	void *data[2];
	size_t size[2];
	int fd[2];       /* of ours; of a pipe: its end to read, and to write */
	bool of_packets; /* of a pipe: what is written to it is a packet each (O_DIRECT) */
	bool attached;   /* it is one of the first process's standard three, and leads outside */
};

/* Ids of a user namespace; outside: as we see them. */
struct cap_mapped {
	uint32_t inside, outside, count;
};
struct cap_map {
	struct cap_mapped *v;
	size_t n;
};

struct cap_stranger {
	pid_t pid, tid; /* tid: 0: it was let go */
};

/* The container's; is: there is one. */
struct cap_terminal {
	bool is;
	uint64_t device, inode;
	dev_t number; /* as processes name it */
	int unread;   /* bytes */
	struct lr_seed_terminal seed;
};

#define CAP_SPACES 10 /* namespaces that a thread has */

/* What a look at processes that run leaves for the one when all are held. */
struct cap_before {
	bool may_leave; /* one of their threads may go to another namespace, or could when it was looked at */
	const char *spaces[CAP_SPACES]; /* the root's */
	/* Their ipc namespace, and where its queues are; their uts namespace, and ours (spaces.c); or LR_NOFD. */
	int ipc, system_v[3], posix, uts, own_uts;
	/* What the root's mountinfo had, which tells by poll(2) when that changes, and the root's root (mounts.c). */
	int mountinfo;
	struct lr_arena *of_mounts; /* the memory of these */
	char *mounts;
	const char *root_path;
	struct lr_arena *a;
	/* Processes that were looked at, and those that keep memory from their forks (MADV_DONTFORK); by when they began, and
	 * their ids. */
	struct cap_index seen, withhold;
};

/* Mapped files that their paths lead to (reached.c): of one look. When all are held, another file may be at such a path,
 * and what is mapped be of another mount, than while they ran. */
struct cap_led {
	struct cap_led_file {
		const char *name;
		uint64_t inode, device;
	} * v;
	size_t n;
	struct cap_index of; /* by inode, and by a hash of the rest */
};

struct cap {
	const struct lr_capture *opts;
	struct lr_arena *a;
	int pidfd;       /* of the root */
	uint64_t memory; /* the device of memfds and of shared anonymous memory */
	struct cap_process *p;
	size_t n;
	struct cap_index known;   /* of p, by pid */
	struct cap_index members; /* of p, by a number of a kind (enum cap_member) */
	struct lr_treap_node *shared[CAP_SHARED]; /* of p, by each of these */
	struct cap_file **files;
	size_t n_files;
	struct cap_inode *inodes; /* of files */
	size_t n_inodes;
	struct cap_index inode_of; /* by device and inode */
	struct cap_object *objects;
	size_t n_objects;
	struct cap_index object_of; /* by device and inode */
	struct cap_channel *channels;
	size_t n_channels;
	struct cap_index channel_of; /* by device and inode */
	struct cap_tmpfs *tmpfs;
	size_t n_tmpfs;
	struct cap_map uids, gids;
	const char *spaces[CAP_SPACES]; /* the root's, by which all others are (proc.c) */
	bool stayed; /* the root is in those in which it was before it was held */
	struct cap_stranger *strangers; /* that are held, and left out */
	size_t n_strangers;
	struct cap_terminal terminal;
	struct cap_before *before; /* the caller's, who tries again */
	struct cap_paths *paths;   /* of what is watched; the caller's, too */
	struct cap_led led;
	uint64_t watch_numbers;       /* the highest of each inotify, together */
	struct cap_backing *backings; /* write.c */
	size_t n_backings;
	struct cap_index backing_of; /* by inode, and by a hash of the rest */
	char *mounts;                /* mountinfo of the root */
	struct cap_index mount_of;   /* where a mount's line begins there */
	int root;                    /* that paths count from; once root_known. Below 0: none */
	bool root_known;
	const char *root_path;            /* cap_root_path */
	struct lr_capture_filter *filter; /* that was looked at last */
	struct cap_may filter_lets;
	bool holds;  /* whom it lists, it holds next */
	bool let_go; /* who has begun after that instant, in clock ticks since boot, is no concern */
	uint64_t held_until;
	char *refusals;               /* lines */
	size_t n_refusals, n_passing; /* n_passing: of these, what may be so for an instant */
	uint64_t pages_at;            /* end of what was written to the file of pages */
	uint64_t private_at;          /* where private memory begins in that file */
	uint64_t zero_pages;
	uint64_t not_looked;           /* bytes that were read since all twins were looked at */
	char congestion[LR_SEED_NAME]; /* TCP's in its network namespace; "": not known yet */
	struct cap_sockets sockets[CAP_KINDS];
	uint64_t deleted; /* bytes of files that have no name any more */
	size_t n_noted;   /* of all processes */
	bool taken;       /* what private memory has is somebody else's (lr_capture.take) */
	size_t first_run; /* of those that a page may be added to */
};

/* index.c. *ret, which may be NULL: the place. */
bool cap_index_find(const struct cap_index *i, uint64_t of, uint64_t number, size_t *ret);
/* Where these numbers have a place, they keep it. 0 or -ENOMEM. */
int cap_index_put(struct lr_arena *a, struct cap_index *i, uint64_t of, uint64_t number, size_t at);

/* Notes what can't be carried; "process 12 (name): " goes before it. */
void cap_refuse(struct cap *c, const struct cap_process *p, const char *fmt, ...) LR_PRINTF(3, 4);

/* tree.c: the processes, from /proc, and to hold them all. */
int cap_tree_look(struct cap *c, struct lr_err *err);
int cap_tree_hold(struct cap *c, struct lr_err *err);
void cap_tree_let_go(struct cap *c);
/* A child without a signal that nobody knows yet: the twin, which lives or is dead. 0: none. */
pid_t cap_tree_twin(struct cap *c, const struct cap_process *p, bool dead);
/* Of that pid, as we see it. The pointer is good as long as no process comes to the table. */
const struct cap_process *cap_process_of(const struct cap *c, pid_t pid);
/* When all of them have been looked at: notes which numbers are whose; the first process that has such
 * a number; that thread. */
enum cap_member { CAP_GROUP, CAP_THREAD, CAP_INNER_PID };
int cap_members_note(struct cap *c, struct lr_err *err);
const struct cap_process *cap_member_of(const struct cap *c, enum cap_member kind, uint32_t number);
const struct cap_thread *cap_thread_of(const struct cap *c, pid_t tid);
/* After they were killed: waits for those that are gone, and says whether all are. */
bool cap_tree_bury(struct cap *c);
/* mounts.c: whether a mount (mnt_id of fdinfo) is one of the root's namespace. */
/* So that the next ones can tell; or a negative errno. */
int cap_mounts_read(struct cap *c);
void cap_mounts_close(struct cap_before *b);
bool cap_mount_is_inside(struct cap *c, unsigned id);
/* Whether it is one of our own namespace. */
bool cap_mount_is_ours(struct cap *c, unsigned id);
/* Whether a program answers who reads there, which may be one that is held; or it is none of them. */
bool cap_mount_may_wait(struct cap *c, unsigned id);
/* The same of any of them. */
bool cap_mounts_may_wait(struct cap *c);
/* If it is a whole proc(5): where, from the root of the first process. Else NULL. */
const char *cap_mount_of_proc(struct cap *c, unsigned id);
/* strangers.c: processes of the pid namespace that came from elsewhere. */
int cap_strangers_refuse(struct cap *c, struct lr_err *err);
/* While nobody is held: who they are, for the next one. */
int cap_strangers_look(struct cap *c, struct lr_err *err);
/* Whether to open a file of the container could take for ever, as somebody in there has to answer first;
 * who is refused then, with `tell`. Whatever rights they have by now: the descriptor may come from others. */
bool cap_would_wait(struct cap *c, bool tell);
/* Where they are left out: before the processes are looked at, as this takes a while. cap_tree_let_go lets them go, too. */
int cap_strangers_hold(struct cap *c, struct lr_err *err);
void cap_strangers_let_go(struct cap *c);
/* spaces.c: names and queues of the container's own namespaces. Before it is held, and then once more. */
int cap_spaces_refuse(struct cap *c, struct lr_err *err);
void cap_spaces_close(struct cap_before *b);
void cap_names_close(struct cap_before *b); /* what is only for the names */
/* policy.c: from which nodes their memory comes. Before they are held. */
int cap_policy_refuse(struct cap *c, struct lr_err *err);
uint64_t cap_ticks(void); /* since boot, as /proc has them */

/* maps.c. file: "smaps", or "maps", which is fast and knows no flags. */
int cap_maps_read(struct lr_arena *a, pid_t pid, const char *file, struct cap_maps *ret,
		  struct lr_err *err);
/* What is mapped there, for reading; below 0: errno says why. */
int cap_open_mapping(pid_t pid, const struct cap_vma *v);
void cap_maps_refuse(struct cap *c, const struct cap_process *p);
/* Why its flags, by smaps, can't be carried; or NULL. */
const char *cap_maps_flagged(const struct cap_vma *v);

/* proc.c: what /proc tells of a process and its threads. */
int cap_proc_look(struct cap *c, struct cap_process *p, struct lr_err *err);
int cap_proc_take(struct cap *c, struct cap_process *p, struct lr_err *err);
/* What a fork has of its parent: from the twin, when the process runs on. */
int cap_proc_take_twin(struct cap *c, struct cap_process *p, struct lr_err *err);
int cap_read_all(struct lr_arena *a, const char *path, char **ret, size_t *size,
		 struct lr_err *err);
char *cap_read_link(struct lr_arena *a, const char *path);
/* As stat(2), by what the kernel knows. A file of FUSE may be served by a process that is held by us, or
 * answers nobody. */
int cap_stat(const char *path, struct stat *ret);
/* The same below `dir`, or of it ("" for a path); *mount: the number that mountinfo has; 0: an older kernel, before
 * Linux 5.8. */
int cap_stat_at(int dir, const char *path, struct stat *ret, uint64_t *mount);
/*
 * A file of theirs, by what /proc has of it; below 0: errno says why. It never waits: whoever has a
 * lease on a file may be held by us, and the kernel takes that away after 45 seconds only. EAGAIN is
 * tried again when all run.
 */
int cap_open(const char *path, int flags);
/* What was opened, in another way, and by no name again. */
int cap_open_again(int fd, int flags);
/* r: of lr_fail. Adds what can be said. */
int cap_open_failed(int r, struct lr_err *err);

/* reached.c: whether the path that the kernel has of it, from the container's root, leads a child there, too. Also true
 * when that can't be told, which is refused by its own name then. */
bool cap_path_leads(struct cap *c, const char *path, const struct stat *st, uint64_t mount);
/* Where the root of the first process is; NULL: errno says why. */
const char *cap_root_path(struct cap *c);
/* The same of what a process has mapped. */
bool cap_mapping_leads(struct cap *c, const struct cap_process *p, const struct cap_vma *v);
/* Finds p->exe, p->cwd and p->root; once more while it is held, as a mount may be detached after that. Paths are looked
 * up, so it has to be known before that nobody would be waited for. */
int cap_places_look(struct cap *c, struct cap_process *p, struct lr_err *err);
void cap_reached_close(struct cap *c);

/* shares.c: what a process has together with others, and what a thread has of its own. */
void cap_shares_refuse(struct cap *c, struct cap_process *p);

/* restarts.c: before it is held. Pure: of /proc/TID/syscall and wchan; whether a held thread still is
 * in that call. */
void cap_restart_look(struct cap *c, pid_t pid, struct cap_thread *t);
void cap_restart_of(const char *text, const char *wchan, struct cap_restart *ret);
bool cap_restart_is(const struct cap_restart *x, const struct user_regs_struct *r);

/* cost.c: when they have been looked at, and taken. */
void cap_cost(const struct cap *c, struct lr_capture_cost *ret);

/* threads.c: what ptrace(2) tells; inside.c: what only calls in the process tell. */
int cap_threads_take(struct cap *c, struct cap_process *p, struct lr_err *err);
/* And it forks the twin, which is the first that the kernel kills. */
int cap_inside_take(struct cap *c, struct cap_process *p, struct lr_err *err);
void cap_inside_end(struct cap_process *p); /* the twin; its process has ended, or is held */
/* The twin of a process that runs. */
void cap_inside_end_running(struct cap *c, struct cap_process *p);
/* Has the process wait for it; only when all twins have ended: it may take memory. */
void cap_inside_reap(struct cap *c, struct cap_process *p);
/* Whose number may be another's then. If it has not when somebody of that number is held, that is
 * the one. */
bool cap_has_ended(int pidfd);

/* ids.c: first of all; an id as the container has it (false: it has none); all of a thread. */
int cap_ids_look(struct cap *c, struct lr_err *err);
bool cap_id_inside(const struct cap *c, const struct cap_map *map, uint32_t *id);
void cap_ids_of_thread(struct cap *c, const struct cap_process *p, struct cap_thread *t);
/* terminal.c: before files are looked at; whether that descriptor is it; when all processes were
 * looked at: whose it is. */
int cap_terminal_look(struct cap *c, struct lr_err *err);
bool cap_terminal_is(const struct cap *c, const struct cap_process *p, int fd,
		     const struct stat *st);
int cap_terminal_find(struct cap *c, struct lr_err *err);
void cap_terminal_put(const struct cap *c, struct lr_seed_writer *w);

/* Below 0, 0 or above it: what kcmp(2) says of two things, in an order of its own. If it can't tell: above. */
static inline int cap_order_of(long r)
{
	return r == 0 ? 0 : r == 1 ? -1 : 1;
}

/* files.c */
int cap_files_look(struct cap *c, struct cap_process *p, struct lr_err *err);
/* What a descriptor is; NULL: there is none of that number. */
const struct cap_file *cap_file_of(const struct cap_process *p, uint32_t number);
/* pidfds.c: whose they are, as the seed knows them. */
void cap_pidfds_find(struct cap *c);
/* owners.c: who gets the signals of a descriptor; and when all are known, who that is in the seed. */
void cap_owner_look(struct cap *c, const struct cap_process *p, int fd, mode_t mode,
		    struct cap_file *f);
void cap_owners_find(struct cap *c);
/* channels.c, objects.c */
int cap_channels_find(struct cap *c, struct lr_err *err);
int cap_channels_take(struct cap *c, struct lr_err *err);
#define CAP_SECRET "/secretmem (deleted)" /* of memfd_secret(2) */
int cap_objects_begin(struct cap *c, struct lr_err *err);
/* A file that has no path any more, or never had one. */
bool cap_is_shared_memory(const struct cap *c, const struct cap_vma *v);
int cap_objects_find(struct cap *c, struct lr_err *err);
int cap_objects_copy(struct cap *c, struct lr_err *err);
struct cap_object *cap_object_of(struct cap *c, uint64_t device, uint64_t inode);

/* here.c: programs that wait for their seed (seed/here.h). With all held, when the objects are known;
 * on the copy of an object's first page; when the seed is whole. -ENOMSG: nobody waits, though that
 * is asked for. */
int cap_here_take(struct cap *c, struct lr_err *err);
void cap_here_copied(const struct cap_object *o, uint8_t *page);
void cap_here_tell(const struct cap *c);
void cap_here_close(struct cap_object *o);

/* domains.c: of Landlock. In the twins, when their processes run on. */
int cap_domains_refuse(struct cap *c, struct lr_err *err);

/* pages.c: from memory to the file of pages. */
int cap_put(int fd, const void *bytes, size_t n, uint64_t at, const char *what, struct lr_err *err);
int cap_pages_put(struct cap *c, const uint8_t *bytes, uint64_t start, size_t n, bool keep_zero,
		  struct lr_seed_run **runs, size_t *n_runs, struct lr_err *err);
/* The contents of an open file; buffer: CAP_BATCH pages. */
struct cap_contents {
	int fd;
	uint64_t size;
	struct lr_seed_run **runs;
	size_t *n_runs;
	struct cap_object *object; /* whose they are, or NULL */
	uint64_t *left;            /* bytes that may still be copied; NULL: all. Else -EFBIG */
};
int cap_runs_copy(struct cap *c, const struct cap_contents *from, uint8_t *buffer,
		  struct lr_err *err);
/* With `filled` or `take` they are listed, and nothing is read, until cap_pages_fill. */
int cap_pages_copy(struct cap *c, struct cap_process *p, struct lr_err *err);
/* Once a seed is with others. */
int cap_pages_fill(struct cap *c, struct lr_err *err);
#define CAP_BATCH 256U /* pages */

/* capture.c: it withholds memory from its forks, as whoever looks at it again has to know. */
int cap_note_withheld(struct cap_before *b, const struct cap_process *p, struct lr_err *err);
bool cap_was_seen(const struct cap_before *b, const struct cap_process *p); /* while it ran */
/* capture.c: whether all twins are still there: only then was what was read theirs. */
int cap_check_twins(const struct cap *c, struct lr_err *err);

/* write.c */
int cap_write(struct cap *c, struct lr_err *err);

#endif
