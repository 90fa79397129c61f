/* SPDX-License-Identifier: Apache-2.0 */
/* lifecycle: create. The record is written first, so that after any failure `delete` knows what to
 * remove. */
#define LR_ROOM "create"
#include "src/lifecycle/create.h"

#include <errno.h>
#include <fcntl.h>
#include <sched.h>
#include <signal.h>
#include <stdio.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <unistd.h>

#include "libocispec/ocispec.h"
#include "src/base/fd.h"
#include "src/base/log.h"
#include "src/base/str.h"
#include "src/init/seed.h"
#include "src/lifecycle/notify.h"
#include "src/lifecycle/seeded.h"
#include "src/sys/proc.h"
#include "src/tty/tty.h"

void lr_birth_close(struct lr_birth *b)
{
	lr_init_child_close(&b->child);
	b->console = lr_close(b->console);
	b->c.init.process.console = lr_close(b->c.init.process.console);
	lr_lean_hold_close(&b->c.hold);
	lr_tree_close(&b->c.init.tree);
	lr_close_hook_outputs(&b->c.init.hook_opts);
	b->c.init.go = lr_close(b->c.init.go);
	b->c.init.answer = lr_close(b->c.init.answer);
	b->stub = lr_close(b->stub);
	lr_init_seed_close(&b->seed);
	lr_store_unlock(&b->entry);
	if (!b->given)
		lr_store_close(&b->store);
}

/* What the cgroup says of a container with a memory limit; NULL: nothing that would count. */
static const struct lr_stats *memory_stats(const struct lr_birth *b, struct lr_arena *a)
{
	const struct oci_linux *l = b->c.config->linux_;
	const struct oci_memory *m = l && l->resources ? l->resources->memory : NULL;
	struct lr_stats *stats;

	/* A cgroup of a pool may count what another container has used. */
	if (!m || !m->limit || *m->limit <= 0 || b->c.record.lean_cgroup)
		return NULL;
	return lr_stats_read(lr_cgroup_plan_ref(b->c.init.cgroup), a, &stats, NULL) < 0 ? NULL
											: stats;
}

bool lr_birth_out_of_memory(const struct lr_birth *b, struct lr_arena *a)
{
	const struct lr_stats *stats = memory_stats(b, a);

	return stats && stats->memory.oom_kill > 0;
}

/* Whether an error on the way to the program means that the limit was reached. The kernel does not
 * kill a child that shares our memory: its system calls fail instead. */
static bool was_short(const struct lr_birth *b, int code, struct lr_arena *a)
{
	/* The second ones: any of a seed's processes. */
	const bool ended =
		code == EPIPE || (b->c.init.process.seed && (code == ECHILD || code == ESRCH));
	const struct lr_stats *stats = ended || code == ENOMEM ? memory_stats(b, a) : NULL;

	return stats && (ended ? stats->memory.oom_kill > 0 : stats->memory.usage.failcnt > 0);
}

/* Where memory is short, the kernel says that a tmpfs is full, or that arguments are too long. It
 * may also mean that. */
static bool may_be_short(const struct lr_birth *b, int code, struct lr_arena *a)
{
	const struct lr_stats *stats = code == ENOSPC || code == E2BIG ? memory_stats(b, a) : NULL;

	return stats && stats->memory.usage.failcnt > 0;
}

void lr_birth_undo(struct lr_birth *b, struct lr_arena *a, struct lr_err *err)
{
	struct lr_err why = {0};
	char line[1200];

	if (err && was_short(b, err->code, a)) {
		lr_refuse(err, ENOMEM, "out of memory before the program could start");
		lr_err_at(err, "linux.resources.memory.limit");
		lr_err_hint(err, b->c.init.process.seed
					 ? "raise the limit: what the seed has in memory, and in "
					   "its tmpfs, counts"
					 : "raise the limit: starting takes up to 1 MB, and the "
					   "program its own");
	} else if (err && may_be_short(b, err->code, a)) {
		err->hint[0] = '\0';
		lr_err_hint(err, "it reached linux.resources.memory.limit: is that too low?");
	}

	lr_init_abort(&b->child);
	lr_cgroup_unhold(b->c.init.cgroup);
	/* With poststop: runtime.md runs those after a creation that failed, too. */
	if (lr_container_destroy(&b->entry, &b->c.record, b->c.kept, b->c.kept_len, b->c.bundle, a,
				 &why) < 0)
		lr_warn("clean up: %s", lr_err_format(&why, line, sizeof(line)));
	lr_cgroup_settle(b->c.init.cgroup);
}

/* Network devices and cache allocation need the child's pid, and the child needs them. */
int lr_birth_parent_work(void *arg, pid_t child, struct lr_err *err)
{
	struct lr_birth *b = arg;
	int r = 0;

	if (b->c.netdev->n) {
		/* The child has not joined it yet, so it is opened by its path. */
		const char *path = b->c.init.ns.join[LR_NS_NET];
		if (!path)
			path = lr_strf(b->c.init.arena, "/proc/%d/ns/net", child);
		LR_CLEANUP_FD int netns = path ? lr_open(path, O_RDONLY | O_CLOEXEC) : LR_NOFD;
		r = netns < 0 ? lr_fail(err, path ? errno : ENOMEM, "open the network namespace")
			      : lr_netdev_move(b->c.netdev, netns, err);
	}
	if (r >= 0 && b->c.rdt.given) {
		LR_CLEANUP_FD int root = lr_rdt_open(err);
		r = root < 0 ? root : lr_rdt_apply(&b->c.rdt, root, child, err);
		if (r > 0)
			b->c.record.rdt_made = r;
	}
	return r;
}

static int get_seccomp(struct lr_birth *b, struct lr_arena *a, struct lr_err *err)
{
	if (!b->c.seccomp.given)
		return 0;
	if (b->given) {
		b->seccomp = *b->given->seccomp;
	} else {
		LR_CLEANUP_FD int cache = lr_seccomp_cache_open(b->store.fd);
		int r = lr_seccomp_get(&b->c.seccomp, cache, a, &b->seccomp, err);
		if (r < 0)
			return r;
	}
	b->c.init.process.seccomp = &b->seccomp;
	return 0;
}

/* For exec. */
static int save_seccomp(struct lr_birth *b, struct lr_err *err)
{
	if (!b->c.seccomp.given)
		return 0;
	LR_CLEANUP_FD int fd = openat(b->entry.dir, LR_STORE_SECCOMP,
				      O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0600);
	if (fd < 0)
		return lr_fail(err, errno, "save the seccomp filter");
	return lr_seccomp_save(&b->seccomp, fd, err);
}

/* cgroup v1 is joined when the first process comes to its mounts. Not in a user namespace, where it
 * could not by then; and not in a mount namespace that is joined, where it would not find them. */
static bool joins_late(const struct lr_birth *b)
{
	const struct lr_ns_plan *ns = &b->c.init.ns;
	bool own_mounts = !ns->join[LR_NS_MOUNT] && b->c.hold.enter.mntns < 0;

	return !b->given && !b->c.hold.cgroup && lr_cgroup_joins_late(b->c.init.cgroup) &&
	       !ns->staged && !(ns->create & CLONE_NEWUSER) && own_mounts &&
	       !lr_ns_cgroup_first(ns);
}

/* After an attempt (r) to make the cgroups. The record must not name what is not ours, or it would
 * be removed with the container. */
static int record_cgroups(struct lr_birth *b, int r, struct lr_arena *a, struct lr_err *err)
{
	const struct lr_cgroup_ref *made = lr_cgroup_plan_ref(b->c.init.cgroup);
	struct lr_record *rec = &b->c.record;

	/* Some hierarchies may have been left out (no permission), or all (the cgroup is another
	 * container's). */
	if (made->n != rec->cgroups.n) {
		struct lr_err *why = r < 0 ? NULL : err;
		int rc = lr_cgroup_to_record(made, a, rec, why);
		if (rc >= 0)
			rc = lr_store_write(&b->entry, rec, b->c.kept, b->c.kept_len, a, why);
		r = r < 0 ? r : rc;
	}
	if (r < 0)
		return r;
	lr_debug("create: cgroup %s, in %zu hierarchies",
		 made->n && made->relative ? made->relative : "none", made->n);
	/* From here on, a process in the cgroup is ours, even if we are killed before we know its
	 * pid. */
	rec->flags |= LR_RECORD_CGROUP;
	b->unsaved = true;
	/* A scope of systemd's has a process from the start, its holder. Else lr_birth_save can wait. */
	return made->unit ? lr_birth_save(b, err) : 0;
}

static int make_cgroups(struct lr_birth *b, struct lr_arena *a, struct lr_err *err)
{
	if (b->c.hold.cgroup)
		return 0; /* made, and recorded as ours */
	return record_cgroups(b, lr_cgroup_create(b->c.init.cgroup, err), a, err);
}

int lr_birth_save(struct lr_birth *b, struct lr_err *err)
{
	if (!b->unsaved)
		return 0;
	b->unsaved = false;
	return lr_store_update(&b->entry, &b->c.record, err);
}

int lr_birth_record_pid(struct lr_birth *b, pid_t pid, uint64_t *ignored, struct lr_err *err)
{
	struct lr_proc_stat st;

	int r = lr_proc_stat(pid, &st);
	if (r < 0)
		return lr_fail(err, -r, "look at the new process");
	b->c.record.pid = pid;
	b->c.record.start_time = st.start_time;
	if (ignored)
		*ignored = st.ignored;
	return lr_store_update(&b->entry, &b->c.record, err);
}

static int record_started(struct lr_birth *b, struct lr_err *err)
{
	b->c.record.flags &= ~(uint32_t)LR_RECORD_CREATING;
	b->c.record.flags |= LR_RECORD_STARTED;
	return lr_store_update(&b->entry, &b->c.record, err);
}

/* In the child, for lr_init_shared. */
static int record_self(void *arg, pid_t pid, bool starts, uint64_t *ignored, struct lr_err *err)
{
	return starts ? record_started(arg, err) : lr_birth_record_pid(arg, pid, ignored, err);
}

/* A child that needs no help from us is born in our memory, and nothing is copied. */
static void choose_way(struct lr_birth *b, enum lr_birth_kind kind)
{
	struct lr_init_plan *p = &b->c.init;

	p->work_arg = b;
	if (b->c.netdev->n || b->c.rdt.given)
		p->parent_work = lr_birth_parent_work;
	p->cgroup_late = joins_late(b);
	/* What is made between birth and program: the notify socket, and files and messages that
	 * tell the pid. */
	bool between = p->go < 0 && (b->c.notify || b->hands_out);
	p->process.held = between && p->process.stub_argv;
	if ((!between || p->process.held) && lr_init_alone(p)) {
		b->shared = (struct lr_init_shared){.record = record_self, .arg = b};
		/* A runtime that stays gets signals by a descriptor, and blocks them (lr_tty_signals_open). */
		b->shared.blocked = kind == LR_BIRTH_FOREGROUND;
		if (b->given) {
			b->shared.stack = b->given->stack;
			b->shared.stack_size = b->given->stack_size;
		}
		p->shared = &b->shared;
	}
}

int lr_birth_record(struct lr_birth *b, struct lr_arena *a, struct lr_err *err)
{
	struct lr_record *rec = &b->c.record;
	if (b->c.hold.cgroup)
		rec->flags |= LR_RECORD_CGROUP;
	int r = lr_store_write(&b->entry, rec, b->c.kept, b->c.kept_len, a, err);
	if (r >= 0)
		lr_debug("create: recorded as %s/%s", b->store.path, rec->id);
	if (r >= 0 && b->c.notify)
		r = lr_notify_prepare(&b->entry, err);
	if (r >= 0)
		r = save_seccomp(b, err);
	return r < 0 ? r : make_cgroups(b, a, err);
}

/* What has to be there before the process is. */
static int prepare(struct lr_birth *b, enum lr_birth_kind kind, struct lr_arena *a,
		   struct lr_err *err)
{
	const struct lr_init_seed *seed = b->c.init.process.seed;
	int r = lr_birth_record(b, a, err);
	/* Once more, as another one may have come meanwhile: whoever is recorded second sees the first. */
	if (r >= 0 && seed && lr_seed_changes(&seed->seed))
		r = lr_seeded_check_root(&b->store, &b->c.record, false, err);
	if (r >= 0)
		r = lr_tree_prepare(&b->c.init.tree, err);
	if (r >= 0 && kind == LR_BIRTH_CREATE) {
		struct lr_store_fifos f = {LR_NOFD, LR_NOFD};
		r = lr_store_fifos_make(&b->entry, &f, err);
		b->c.init.go = f.go;
		b->c.init.answer = f.answer;
	}
	if (r < 0)
		return r;
	choose_way(b, kind);
	/* A child in our memory writes its pid into the record first of all, and this with it. Before
	 * that it has joined no cgroup of v1, and it is alone in that of v2. */
	return b->c.init.shared ? 0 : lr_birth_save(b, err);
}

static int spawn(struct lr_birth *b, struct lr_arena *a, struct lr_err *err)
{
	struct lr_init_plan *p = &b->c.init;

	int r = lr_init_spawn(p, &b->child, err);
	/* Only the child keeps its end, so that we see it close. */
	p->process.console = lr_close(p->process.console);
	/* Nor is its mount namespace kept, or a mount of it busy, while it runs. */
	lr_tree_close(&p->tree);
	if (r >= 0 && !b->child.alone)
		r = lr_birth_record_pid(b, b->child.pid, NULL, err);
	if (r >= 0)
		r = lr_init_attend(p, &b->child, err);
	if (r >= 0)
		lr_debug("create: process %d is ready", b->child.pid);
	if (r >= 0 && b->c.record.rdt_made)
		r = lr_store_write(&b->entry, &b->c.record, b->c.kept, b->c.kept_len, a, err);
	return r;
}

int lr_console_open(bool terminal, bool detached, const char *path, int *theirs, int *ours,
		    struct lr_err *err)
{
	int sv[2];

	if (path && (!detached || !terminal)) {
		lr_refuse(err, EINVAL,
			  "cannot use console socket if the runtime will not detach or allocate a "
			  "tty");
		return lr_err_hint(err, "--console-socket goes with process.terminal, and with "
					"--detach for run and exec");
	}
	if (!terminal)
		return 0;
	if (path) {
		int sock = lr_tty_connect(path, err);
		*theirs = sock;
		return sock < 0 ? sock : 0;
	}
	if (detached) {
		lr_refuse(err, EINVAL,
			  "cannot allocate tty if the runtime will detach without setting console "
			  "socket");
		lr_err_hint(err, "give one by --console-socket, or have no terminal");
		return lr_err_at(err, "process.terminal");
	}
	if (socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, sv) < 0)
		return lr_fail(err, errno, "make the console socket");
	*theirs = sv[0];
	*ours = sv[1];
	return 0;
}

void lr_console_relayed(struct lr_tty_console *tty, struct lr_arena *a)
{
	struct oci_console_size *size = lr_new(a, struct oci_console_size);

	tty->relayed = true;
	if (size && lr_tty_caller_size(size))
		tty->size = size;
}

static const char *pidfd_receiver(const struct lr_create_opts *o, const struct oci_map *annotations)
{
	if (o->pidfd_socket || !annotations)
		return o->pidfd_socket;
	return oci_map_get(annotations, "run.oci.pidfd_receiver");
}

/* Where the page does not suit, we execute ourselves again, hidden, and begin anew. The config
 * alone tells, before anything is planned. */
static int hide(struct lr_birth *b, const struct lr_create_opts *o, const struct oci_config *c,
		struct lr_err *err)
{
	/* What continues a seed executes nothing, so no page comes between. */
	const struct lr_hide_caller who = {
		.hidden = !o->hide, .wants = lr_seeded(c) ? LR_HIDE_MOUNT : LR_HIDE_NEEDLESS};

	b->hide = lr_hide(&who, o->two_phase ? LR_HIDE_CREATE : LR_HIDE_RUN, c, err);
	return b->hide == LR_HIDE_MOUNT ? o->hide(o->hide_arg, err) : 0;
}

static int open_stub(struct lr_birth *b, const struct lr_create_opts *o, struct lr_arena *a,
		     struct lr_err *err)
{
	const struct lr_seccomp_prog *filter = b->c.init.process.seccomp;

	if (b->hide != LR_HIDE_STUB)
		return 0;
	/* A container without a process has nothing to execute. */
	if (!(b->c.record.flags & LR_RECORD_NO_PROGRAM) &&
	    (!filter || lr_init_stub_allowed(filter, a)))
		b->stub = lr_init_stub_open(NULL);
	if (b->stub < 0)
		return o->hide(o->hide_arg, err);
	return lr_process_stub(b->c.config->process, b->stub, a, &b->c.init.process, err);
}

/* Nothing can be prepared for it: what it has is the seed's. */
static int open_seed(struct lr_birth *b, struct lr_create_opts *o, struct lr_arena *a,
		     struct lr_err *err)
{
	const struct oci_config *c = o->given ? o->given->config : o->read_config;

	if (!lr_seeded(c))
		return 0;
	if (o->given) {
		lr_refuse(err, EOPNOTSUPP, "a library does not continue seeds");
		return lr_err_at(err, "annotations[\"" LR_SEEDED_ANNOTATION "\"]");
	}
	if (!o->open_seed)
		return 0;
	o->seed = &b->seed;
	b->rt.lean = NULL;
	return o->open_seed(&b->rt, c, a, &b->seed, err);
}

static int plan_seed(struct lr_birth *b, struct lr_init_seed *seed, bool many, struct lr_err *err)
{
	b->c.init.process.seed = seed;
	const bool has = lr_seed_count(&seed->seed, LR_SEED_TERMINAL);
	if (b->c.config->process->terminal != has) {
		lr_refuse(err, ENOTSUP, "the seed has %s terminal, and process.terminal is %s",
			  has ? "a" : "no", has ? "false" : "true");
		lr_err_hint(err, "its processes have it open, or others: set process.terminal to "
				 "what it was in the seed's container");
		return lr_err_at(err, "process.terminal");
	}
	if (seed->lazy >= 0 && b->c.init.ns.create & CLONE_NEWUSER) {
		lr_refuse(err, ENOTSUP,
			  "memory that comes when it is touched does not come into a user "
			  "namespace: userfaultfd(2) asks for CAP_SYS_PTRACE outside");
		lr_err_hint(err, "use --fetch=eager, or the annotation " LR_SEEDED_FETCH);
		return lr_err_at(err, "linux.namespaces");
	}
	int r = lr_init_seed_check(&b->c.init, &seed->seed, err);
	if (r >= 0 && lr_seed_changes(&seed->seed))
		r = lr_seeded_check_root(&b->store, &b->c.record, many, err);
	return r;
}

int lr_birth_plan(const struct lr_runtime *rt, const struct lr_create_opts *o, struct lr_arena *a,
		  struct lr_birth *b, struct lr_err *err)
{
	/* Found out once: it is asked often, and costs a look at /proc. */
	b->rt = *rt;
	b->rt.rootless = lr_is_rootless(rt);

	int r = lr_store_check_id(o->id, err);
	b->given = o->given;
	if (o->given)
		b->store = *o->given->store;
	else if (r >= 0)
		r = lr_store_open(rt->root, true, a, &b->store, err);
	struct lr_create_opts opts = *o;
	if (r >= 0 && !o->given)
		r = lr_compile_read(o, a, &opts.read_bundle, &opts.read_config, err);
	/* A template has decided when it was opened. */
	if (r >= 0 && !o->given)
		r = hide(b, o, opts.read_config, err);
	if (r >= 0)
		r = open_seed(b, &opts, a, err);
	if (r >= 0)
		r = lr_compile(&b->rt, &opts, b->store.path, a, &b->c, err);
	if (r >= 0)
		r = get_seccomp(b, a, err);
	if (r >= 0 && opts.seed)
		r = plan_seed(b, opts.seed, o->many, err);
	if (r >= 0)
		r = open_stub(b, o, a, err);
	if (r >= 0)
		lr_debug("create: %s compiled: %zu mounts, namespaces %#x, %zu cgroups",
			 b->c.bundle, b->c.config->mounts.n, b->c.record.namespaces,
			 b->c.record.cgroups.n);
	return r;
}

int lr_birth_make(const struct lr_create_opts *o, enum lr_birth_kind kind, struct lr_arena *a,
		  struct lr_birth *b, struct lr_err *err)
{
	int r = lr_console_open(b->c.config->process->terminal, kind != LR_BIRTH_FOREGROUND,
				o->console_socket, &b->c.init.process.console, &b->console, err);
	if (r >= 0)
		r = lr_store_create(&b->store, o->id, &b->entry, err);
	if (r < 0)
		return r;
	b->c.init.process.detached = kind == LR_BIRTH_DETACHED;
	b->hands_out = o->pid_file || pidfd_receiver(o, &b->c.config->annotations);
	if (b->console >= 0) {
		lr_console_relayed(&b->c.init.process.tty, a);
		b->c.record.flags |= LR_RECORD_RELAYED;
	}
	r = lr_compile_take(&b->rt, o, &b->store, a, &b->c, err);
	if (r >= 0) {
		/* The container's users have to get into some of what is made here. A library does
		 * not change the umask, which all threads of its caller share. */
		mode_t mask = o->given ? 0022 : umask(0022);
		r = prepare(b, kind, a, err);
		if (mask != 0022)
			umask(mask);
	}
	if (r >= 0)
		r = spawn(b, a, err);
	if (r < 0)
		lr_birth_undo(b, a, err);
	return r;
}

int lr_birth(const struct lr_runtime *rt, const struct lr_create_opts *o, enum lr_birth_kind kind,
	     struct lr_arena *a, struct lr_birth *b, struct lr_err *err)
{
	int r = lr_birth_plan(rt, o, a, b, err);

	return r < 0 ? r : lr_birth_make(o, kind, a, b, err);
}

static int poststart(struct lr_birth *b, struct lr_arena *a, struct lr_err *err)
{
	const struct oci_hooks *h = b->c.config->hooks;

	if (!h)
		return 0;
	struct oci_state st = lr_hook_state(&b->c.record, "running", b->child.pid);
	return lr_run_hooks(&h->poststart, "poststart", b->c.bundle, false, &st, a, err);
}

int lr_birth_start(struct lr_birth *b, const struct lr_create_opts *o, struct lr_arena *a,
		   struct lr_err *err)
{
	/* Nobody is sent into a container before its seed's processes have only their own rights. */
	const bool late = b->c.init.process.seed;
	int r = b->child.runs || late ? 0 : record_started(b, err);

	if (r >= 0)
		r = lr_birth_hand_out(o, &b->c.config->annotations, &b->child, err);
	if (r >= 0)
		r = lr_init_start(&b->child, err);
	if (r >= 0 && late)
		r = record_started(b, err);
	if (r >= 0)
		lr_debug("run: the program runs");
	return r < 0 ? r : poststart(b, a, err);
}

int lr_birth_hand_out(const struct lr_create_opts *o, const struct oci_map *annotations,
		      const struct lr_init_child *c, struct lr_err *err)
{
	const char *receiver = pidfd_receiver(o, annotations);
	int r = 0;

	if (receiver)
		r = lr_send_pidfd(receiver, c->pidfd, err);
	if (r >= 0 && o->pid_file)
		r = lr_write_pid_file(o->pid_file, c->pid, err);
	return r;
}

static int record_created(struct lr_birth *b, struct lr_arena *a, struct lr_err *err)
{
	const struct lr_init_seed *seed = b->c.init.process.seed;

	b->c.record.flags &= ~(uint32_t)LR_RECORD_CREATING;
	if (!seed)
		return lr_store_update(&b->entry, &b->c.record, err);
	lr_seeded_record(seed, b->c.config, &b->c.record);
	return lr_store_write(&b->entry, &b->c.record, b->c.kept, b->c.kept_len, a, err);
}

int lr_lifecycle_create(const struct lr_runtime *rt, const struct lr_create_opts *o,
			struct lr_err *err)
{
	LR_CLEANUP_ARENA struct lr_arena *a = lr_arena_new();
	struct lr_birth b = LR_BIRTH_NONE;

	struct lr_create_opts opts = *o;

	opts.two_phase = true;
	int r = lr_birth(rt, &opts, LR_BIRTH_CREATE, a, &b, err);
	if (r >= 0) {
		r = record_created(&b, a, err);
		if (r >= 0)
			r = lr_birth_hand_out(o, &b.c.config->annotations, &b.child, err);
		if (r < 0)
			lr_birth_undo(&b, a, err);
	}
	lr_birth_close(&b);
	return r;
}
