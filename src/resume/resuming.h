/* SPDX-License-Identifier: Apache-2.0 */
/* resume: what the room's files share. */
#ifndef LR_RESUME_RESUMING_H
#define LR_RESUME_RESUMING_H

#include <fcntl.h>
#include <sys/ioctl.h>

#include "src/resume/image.h"
#include "src/resume/resume.h"
#include "src/seed/span.h"

#ifndef F_ADD_SEALS
#define F_ADD_SEALS 1033
#endif

/* What fcntl(2) sets of an open file; O_ASYNC is set later, with the owner. */
#define RESUME_STATUS_FLAGS (O_APPEND | O_NONBLOCK | O_DIRECT | O_NOATIME)

/* Where a process is: a root of its own (chroot(2); LR_NOFD: the container's), and its working directory. */
struct resume_place {
	int root, cwd;
};

/* Ours: kept open, at numbers that no process of the seed uses. */
struct lr_resume {
	struct lr_resume_opts opts;
	const struct lr_seed *seed;
	struct lr_arena *a;
	int base; /* the first of those numbers */
	int pages, report, lazy, proc;
	int source;                 /* of the kernel module; LR_NOFD: there is none */
	struct lr_seed_spans spans; /* what is mapped from it */
	int terminal;               /* LR_NOFD: the seed has none */
	bool resize; /* to `size`, which it had before it got the seed's, when all is in place */
	struct winsize size;
	uint64_t open_files[2]; /* the limit of them (soft, hard) that is not ours */
	int *files, *objects, *backings, *exes;
	struct resume_place *places; /* by LR_SEED_FS */
	bool *late;    /* objects that are sealed when all mappings are made; NULL: none */
	int *readonly; /* of objects that nobody may write to, or not all; else LR_NOFD */
	/* Of each file, which process (index) sets its owner; LR_SEED_NONE: nobody. NULL: nobody waits at the gate. */
	uint32_t *setters;
	int gate[2]; /* a pipe whose writing end has been closed by each process when all are made; or LR_NOFD */
	uint64_t *tmpfs; /* devices of those that were filled */
	size_t n_tmpfs;
	uint8_t *buffer; /* resume_fill_file's */
};

/* The kernel's own pages in our memory, in order: vvar and its like, then the vDSO. */
struct own_range {
	uint64_t start, end;
	bool special, vdso;
};
struct own_memory {
	struct own_range *v;
	size_t n;
};

/* One process in the making. */
struct one {
	struct lr_resume *r;
	const struct lr_seed *seed;
	const struct lr_seed_process *p;
	const struct lr_seed_mm *mm;
	uint32_t index;
	struct own_memory own;
	struct image image;
	uint64_t park, park_size; /* behind the image */
	uint64_t head;
	int uffd; /* LR_NOFD: pages are read into place */
};

/* host.c */
int resume_check_host(const struct lr_seed *s, struct lr_err *err);
/* open.c: descriptors to numbers from base on. */
int resume_keep(struct lr_resume *r, int fd, struct lr_err *err); /* takes fd; its new number */
/* A file by the path that the kernel gave it, in which are no links: whoever has put one there since
 * must not have us open something else. Does not wait for what a FIFO would. -1 with errno. */
int resume_open_path(const char *path, int flags);
/* An open file of its own, with its own place in it. */
int resume_open_again(const struct lr_resume *r, int fd, uint32_t flags);
/* err is filled, by a file that is not what it was: says whether the container had changed it, and
 * others. Returns what lr_err_hint does. */
int resume_hint_changed(const struct lr_resume *r, struct lr_err *err);
/* files.c */
int resume_open_files(struct lr_resume *r, struct lr_err *err); /* all but pairs of sockets */
/* When there are all rights again: makes pairs of sockets, as who made them, of whom their ends tell; gives pipes to
 * whose they were. */
int resume_open_pairs(struct lr_resume *r, struct lr_err *err);
int resume_own_pipes(const struct lr_resume *r, struct lr_err *err);
int resume_take_fds(struct lr_resume *r, const struct lr_seed_process *p, struct lr_err *err);
/* named.c: gives a Unix socket its file; has it listen, as who it was. */
int resume_bind_file(const struct lr_resume *r, const struct lr_seed_endpoint *e, int fd,
		     struct lr_err *err);
/* act(arg) with these effective ids, when there are all rights; 0 or a negative errno. */
int resume_act_as(uint32_t uid, uint32_t gid, int (*act)(void *arg), void *arg);
int resume_listen_as(const struct lr_seed_endpoint *e, int fd, struct lr_err *err);
/* places.c: opens the directories that processes are in. It is called twice: with the rights by which files are
 * opened, and, for lr_resume_opts.cwd alone (`beginnings`), with all rights. */
int resume_open_places(struct lr_resume *r, bool beginnings, struct lr_err *err);
/* Sets this process's working directory, and its umask. */
int resume_enter_place(const struct lr_resume *r, const struct lr_seed_process *p,
		       struct lr_err *err);
/* With no more rights than config.json's process could have, as it takes CAP_SYS_CHROOT. */
void plan_root(struct one *x, struct lr_resume_ops *ops);
/* watches.c: when all files are open. */
int resume_watch_files(const struct lr_resume *r, struct lr_err *err);
/* sockets.c: one that is of no pair; and when there are all rights again, whose they are. */
int resume_open_endpoint(struct lr_resume *r, const struct lr_seed_file *f, struct lr_err *err);
/* Those that are in `set`. text: of what, for messages. */
int resume_set_options(int fd, uint32_t set, const int32_t *options, const char *text,
		       struct lr_err *err);
int resume_own_endpoints(const struct lr_resume *r, struct lr_err *err);
/* objects.c: shared memory and mapped files. */
int resume_open_objects(struct lr_resume *r, struct lr_err *err);
int resume_open_backings(struct lr_resume *r, struct lr_err *err);
/* With all rights again, and when all is open: whose memory is that has a descriptor, and its mode. */
int resume_own_objects(const struct lr_resume *r, struct lr_err *err);
/* When all is open and has its owner: what nobody of the seed could change any more. */
int resume_seal_objects(struct lr_resume *r, struct lr_err *err);
/* Whether that can't be before all mappings are made. */
bool resume_seals_late(const struct lr_resume *r, uint32_t object);
/* A file of that size, empty so far, with these pages of the seed; 0 or -errno. */
int resume_fill_file(struct lr_resume *r, const struct lr_seed_range *runs, uint64_t size, int fd);
/* tmpfs.c */
int resume_fill_tmpfs(struct lr_resume *r, struct lr_err *err);
int resume_change_root(struct lr_resume *r, struct lr_err *err);
bool resume_is_in_tmpfs(const struct lr_resume *r, uint64_t device);
/* groups.c: session and process group of a process; of one that is about to be dead, as far as it
 * goes; whether it is the first that lives of that group. */
int resume_enter_groups(const struct lr_resume *r, uint32_t index, struct lr_err *err);
void resume_enter_groups_dead(const struct lr_resume *r, uint32_t index);
bool resume_is_first_of(const struct lr_resume *r, uint32_t index, uint32_t group);
/* terminal.c: keeps the caller's; sets it, in the first process; by the leader of its session, before
 * there are others in it; by the first of the group that is in its foreground; and what is left. */
int resume_keep_terminal(struct lr_resume *r, struct lr_err *err);
int resume_set_terminal(struct lr_resume *r, struct lr_err *err);
int resume_own_terminal(const struct lr_resume *r, const struct lr_seed_process *p,
			struct lr_err *err);
int resume_front_group(const struct lr_resume *r, uint32_t index, struct lr_err *err);
void plan_terminal(struct one *x, struct lr_resume_ops *ops);
/* gate.c. Before anybody is born: finds out whether there has to be a gate, and who sets which owner behind it. */
int resume_prepare_gate(struct lr_resume *r, struct lr_err *err);
/* By the first process: nobody else may have that pipe. */
int resume_open_gate(struct lr_resume *r, struct lr_err *err);
/* The wait, and what this process does after it. */
void plan_gate(struct one *x, struct lr_resume_ops *ops);
/* owners.c: who gets the signals of files. Whether any file has such an owner; which process is to set it
 * (r->setters); whether this process sets one; its calls for that. */
bool resume_has_owners(const struct lr_resume *r);
int resume_find_setters(struct lr_resume *r, struct lr_err *err);
bool plan_has_owners(const struct one *x);
void plan_owners(struct one *x, struct lr_resume_ops *ops);
/* layout.c */
/* proc: a procfs, or LR_NOFD for /proc. */
int own_memory_read(int proc, struct lr_arena *a, struct own_memory *ret, struct lr_err *err);
/* An address where `size` bytes are free now, and in the process to be. 0: nowhere. Pure. */
uint64_t layout_hole(const struct own_memory *own, const struct lr_seed *s,
		     const struct lr_seed_mm *mm, uint64_t size);
/* list.c */
struct resume_process {
	pid_t pid;
	uint32_t index; /* in the seed */
	bool later;     /* it was deaf, and is cleaned behind the others */
	bool of_seed; /* or else: it was listed under a process with that index, and was borne since the seed runs */
};
/* Zombies among them. */
struct resume_list {
	const struct lr_seed *seed;
	struct resume_process *v;
	size_t n, room;
	unsigned depth; /* of the seed's pid namespace, as /proc counts them; 0: not known yet */
	int64_t until;  /* ms; later ones need not be listed */
};
/* root: the first, or who has borne it. */
int resume_list_begin(struct resume_list *l, const struct lr_seed *s, pid_t root,
		      struct lr_err *err) LR_MUST_CHECK;
/* Adds those that are there and are not in it. -E2BIG: they are too many to be of use. */
int resume_list_more(struct resume_list *l, struct lr_err *err) LR_MUST_CHECK;
void resume_list_end(struct resume_list *l);
#define CLEANUP_LIST __attribute__((cleanup(resume_list_end)))
/* clean.c */
/* Each process of the seed has the restorer at a place of its own. Who was borne since has it where its parent had it, and
 * the parent may have ended. */
struct resume_places {
	const struct lr_resume_left *v;
	size_t n, likely;
};
bool resume_left_at(const struct lr_resume_left *l, uint64_t from, uint64_t to);
/* Where it is in a process; NULL: it is not there, or the process ends. */
int resume_find_left(pid_t pid, const struct resume_places *places,
		     const struct lr_resume_left **ret, struct lr_err *err) LR_MUST_CHECK;
/* One that waits for its child of vfork(2), as a rule: to hold it may take seconds, and fail. */
bool resume_is_deaf(pid_t pid);
/* How long it is worth to wait for them. */
#define RESUME_CLEAN_MS 5000
/* lr_resume_clean; until: in ms. After that it is tried once more, but for who is deaf. */
int resume_clean(pid_t pid, const struct resume_places *places, unsigned how, int64_t until,
		 struct lr_err *err) LR_MUST_CHECK;
/* become.c: how many bytes the restorer begins with, and whether it is these. */
#define RESUME_BLOB_HEAD 256
bool resume_is_blob(const void *head);
/* lazy.c */
int lazy_begin(struct one *x, struct lr_err *err);
bool lazy_is(const struct one *x, const struct lr_seed_vma *v);
/* What of the source the mapping has; NULL: it is none of those. */
const struct lr_seed_span *lazy_span(const struct one *x, const struct lr_seed_vma *v);
void lazy_plan(struct one *x, struct lr_resume_ops *ops, const struct lr_seed_vma *v);
/* memory.c, threads.c: the calls that make them. */
int plan_memory(struct one *x, struct lr_resume_ops *ops, struct lr_err *err);
/* keys.c: the program's protection keys. Behind plan_memory: execute-only memory takes the first one. */
void plan_keys(struct one *x, struct lr_resume_ops *ops);
/* With the process's own rights and limits. */
void plan_locks(struct one *x, struct lr_resume_ops *ops);
int plan_threads(struct one *x, struct lr_resume_ops *ops, struct lr_err *err);

#endif
