/* SPDX-License-Identifier: Apache-2.0 */
/* resume: the calls that make threads, and put each where it was. */
#define LR_ROOM "resume"
#include <errno.h>
#include <linux/sched.h>
#include <signal.h>
#include <stddef.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <sys/time.h>
#include <time.h>

#include "src/base/str.h"
#include "src/resume/resuming.h"
#include "src/sys/syscalls.h"
#include "src/sys/vectors.h"

#define ARCH_SET_GS 0x1001
#define ARCH_SET_FS 0x1002
#ifndef ARCH_REQ_XCOMP_PERM
#define ARCH_REQ_XCOMP_PERM 0x1023
#endif
#ifndef PR_TIMER_CREATE_RESTORE_IDS
#define PR_TIMER_CREATE_RESTORE_IDS 77
#endif
#ifndef SIGEV_THREAD_ID
#define SIGEV_THREAD_ID 4
#endif
#define STACK 8192

/* ---- the frame that rt_sigreturn(2) takes ---------------------------------------------------- */

struct frame_context {
	uint64_t flags, link;
	uint64_t altstack;
	uint32_t altstack_flags, zero;
	uint64_t altstack_size;
	uint64_t r8, r9, r10, r11, r12, r13, r14, r15, rdi, rsi, rbp, rbx, rdx, rax, rcx, rsp, rip;
	uint64_t eflags;
	uint16_t cs, gs, fs, ss;
	uint64_t err, trap, oldmask, cr2, fpstate, reserved[8];
	uint64_t mask;
};
_Static_assert(sizeof(struct frame_context) == 304, "struct ucontext of the kernel");

#define UC_FP_XSTATE         1U
#define UC_SIGCONTEXT_SS     2U
#define UC_STRICT_RESTORE_SS 4U

/* In the words of an XSAVE area that are left to programs. */
struct frame_fx {
	uint32_t magic, extended_size;
	uint64_t features;
	uint32_t size, padding[7];
};
#define FX_MAGIC  0x46505853U
#define FX_MAGIC2 0x46505845U

static uint64_t used(const struct one *x, const struct lr_seed_thread *t)
{
	return lr_vectors_used(lr_seed_data(x->seed, &t->xsave));
}

static bool has_tiles(const struct one *x, const struct lr_seed_thread *t)
{
	return used(x, t) & LR_VECTORS_TILE_DATA;
}

static uint64_t put_xsave(const struct one *x, const struct lr_seed_thread *t)
{
	const uint64_t told = lr_seed_host(x->seed, 0)->xfeatures;
	const uint64_t all = told | (lr_vectors_has_keys() ? LR_VECTORS_KEYS : 0);
	const uint64_t features = has_tiles(x, t) ? all : all & ~LR_VECTORS_TILE_DATA;
	const uint32_t size = (uint32_t)lr_vectors_size(features), magic2 = FX_MAGIC2;
	const size_t length = t->xsave.length < size ? t->xsave.length : size;
	const struct frame_fx fx = {.magic = FX_MAGIC,
				    .extended_size = size + sizeof(magic2),
				    .features = features,
				    .size = size};
	uint8_t *area;
	uint64_t at =
		image_room((struct image *)&x->image, size + sizeof(magic2), 64, (void **)&area);

	if (x->image.failed)
		return at;
	memcpy(area, lr_seed_data(x->seed, &t->xsave), length);
	memset(area + length, 0, size - length);
	if (all != told) /* keys are not known where the seed is from */
		lr_vectors_set_pkru(area, LR_VECTORS_NEW_PKRU);
	memcpy(area + LR_VECTORS_WORDS, &fx, sizeof(fx));
	memcpy(area + size, &magic2, sizeof(magic2));
	return at;
}

/* Returns what the stack pointer has to be for the call: at the context. */
static uint64_t put_frame(struct one *x, const struct lr_seed_thread *t, uint64_t xsave)
{
	const uint64_t *r = t->regs;
	const struct frame_context c = {
		.flags = UC_FP_XSTATE | UC_SIGCONTEXT_SS | UC_STRICT_RESTORE_SS,
		.altstack = t->altstack,
		.altstack_flags = t->altstack_flags,
		.altstack_size = t->altstack_size,
		.r8 = r[LR_SEED_R8],
		.r9 = r[LR_SEED_R9],
		.r10 = r[LR_SEED_R10],
		.r11 = r[LR_SEED_R11],
		.r12 = r[LR_SEED_R12],
		.r13 = r[LR_SEED_R13],
		.r14 = r[LR_SEED_R14],
		.r15 = r[LR_SEED_R15],
		.rdi = r[LR_SEED_RDI],
		.rsi = r[LR_SEED_RSI],
		.rbp = r[LR_SEED_RBP],
		.rbx = r[LR_SEED_RBX],
		.rdx = r[LR_SEED_RDX],
		.rax = r[LR_SEED_RAX],
		.rcx = r[LR_SEED_RCX],
		.rsp = r[LR_SEED_RSP],
		.rip = r[LR_SEED_RIP],
		.eflags = r[LR_SEED_EFLAGS],
		.cs = 0x33,
		.ss = 0x2b,
		.fpstate = xsave,
		.mask = t->mask,
	};

	return image_put(&x->image, &c, sizeof(c));
}

/* ---- a thread's own -------------------------------------------------------------------------- */

static void queue(struct one *x, struct lr_resume_ops *ops, const struct lr_seed_range *signals,
		  uint32_t tid)
{
	for (uint32_t i = 0; i < signals->count; i++) {
		siginfo_t info;
		memcpy(&info, lr_seed_signal(x->seed, signals->first + i), sizeof(info));
		uint64_t at = image_put(&x->image, &info, sizeof(info));
		if (tid)
			image_op(ops, SYS_rt_tgsigqueueinfo, 0, x->p->pid, tid,
				 (uint64_t)info.si_signo, at, 0, 0);
		else
			image_op(ops, SYS_rt_sigqueueinfo, 0, x->p->pid, (uint64_t)info.si_signo,
				 at, 0, 0, 0);
	}
}

static void set_priority(struct one *x, struct lr_resume_ops *ops, const struct lr_seed_thread *t,
			 unsigned flags)
{
	const struct lr_sched_attr a = {.size = sizeof(a),
					.policy = t->policy,
					.flags = t->sched_flags & 1,
					.nice = t->nice,
					.priority = t->priority};

	if (t->policy || t->nice)
		image_op(ops, SYS_sched_setattr, flags, 0, image_put(&x->image, &a, sizeof(a)), 0,
			 0, 0, 0);
}

/* What this machine does not let programs switch is as it has it. */
static void set_speculation(struct lr_resume_ops *ops, const struct lr_seed_thread *t)
{
	for (unsigned i = 0; i < LR_SEED_SPECULATIONS; i++) {
		const uint64_t was = t->speculation >> (8 * i) & 0xff;
		const int is = was ? prctl(PR_GET_SPECULATION_CTRL, i, 0, 0, 0) : 0;
		if (is > 0 && is & PR_SPEC_PRCTL && (uint64_t)is != was)
			image_op(ops, SYS_prctl, 0, PR_SET_SPECULATION_CTRL, i,
				 was & ~(uint64_t)PR_SPEC_PRCTL, 0, 0, 0);
	}
}

static void set_thread(struct one *x, struct lr_resume_ops *ops, const struct lr_seed_thread *t)
{
	image_op(ops, SYS_arch_prctl, 0, ARCH_SET_FS, t->regs[LR_SEED_FS_BASE], 0, 0, 0, 0);
	image_op(ops, SYS_arch_prctl, 0, ARCH_SET_GS, t->regs[LR_SEED_GS_BASE], 0, 0, 0, 0);
	image_op(ops, SYS_set_tid_address, 0, t->clear_tid, 0, 0, 0, 0, 0);
	if (t->robust_list)
		image_op(ops, SYS_set_robust_list, 0, t->robust_list, t->robust_size, 0, 0, 0, 0);
	if (t->rseq)
		image_op(ops, SYS_rseq, 0, t->rseq, t->rseq_size, 0, t->rseq_signature, 0, 0);
	image_op(ops, SYS_prctl, 0, PR_SET_NAME, image_put(&x->image, t->name, sizeof(t->name)), 0,
		 0, 0, 0);
	/* It may have been given this by rights that it has no more, or has it by a limit that it gets
	 * later; so it is tried with both (confine). */
	set_priority(x, ops, t, BLOB_MAY_FAIL);
	if (t->timer_slack)
		image_op(ops, SYS_prctl, 0, PR_SET_TIMERSLACK, t->timer_slack, 0, 0, 0, 0);
	if (t->mce_kill)
		image_op(ops, SYS_prctl, 0, PR_MCE_KILL, PR_MCE_KILL_SET, t->mce_kill - 1, 0, 0, 0);
	set_speculation(ops, t);
	queue(x, ops, &t->signals, t->tid);
}

/* Before anybody runs: what runs could look at those that still have our rights. */
static int confine(struct one *x, struct lr_resume_ops *ops, const struct lr_seed_thread *t,
		   struct lr_err *err)
{
	const struct lr_resume_opts *o = &x->r->opts;
	int r = o->confine ? o->confine(o->arg, t, ops, err) : 0;

	if (r >= 0)
		set_priority(x, ops, t, 0);
	/* A change of ids takes it away. The first process's parent is who makes it, and may end at once. */
	if (r >= 0 && t->pdeathsig && x->index)
		image_op(ops, SYS_prctl, 0, PR_SET_PDEATHSIG, t->pdeathsig, 0, 0, 0, 0);
	return r;
}

/* Behind everything that a filter might refuse. */
static int leave(struct one *x, struct lr_resume_ops *ops, const struct lr_seed_thread *t,
		 struct lr_err *err)
{
	const struct lr_resume_opts *o = &x->r->opts;
	int r = o->filter ? o->filter(o->arg, t, ops, err) : 0;

	if (r < 0)
		return r;
	if (lr_vectors_size(used(x, t)) > t->xsave.length)
		return lr_refuse(err, EBADMSG, "the XSAVE area of thread %u ends too early",
				 t->tid);
	const uint64_t xsave = put_xsave(x, t);
	if (has_tiles(x, t))
		image_op(ops, BLOB_TILES, 0, xsave, 0, 0, 0, 0, 0);
	image_op(ops, BLOB_RETURN, 0, put_frame(x, t, xsave), 0, 0, 0, 0, 0);
	return 0;
}

static int make_thread(struct one *x, struct lr_resume_ops *leader, uint32_t i, struct lr_err *err)
{
	const struct lr_seed_thread *t = lr_seed_thread(x->seed, x->p->threads.first + i);
	struct lr_resume_ops ops = {.image = &x->image};
	const uint32_t tid = t->tid;

	set_thread(x, &ops, t);
	int r = confine(x, &ops, t, err);
	image_op(&ops, BLOB_ARRIVE, 0, 0, 0, 0, 0, 0, 0);
	if (r >= 0)
		r = leave(x, &ops, t, err);
	if (r < 0)
		return r;
	struct clone_args c = {
		.flags = CLONE_VM | CLONE_FS | CLONE_FILES | CLONE_SIGHAND | CLONE_THREAD |
			 CLONE_SYSVSEM,
		.stack = image_room(&x->image, STACK, 16, NULL),
		.stack_size = STACK,
		.set_tid = image_put(&x->image, &tid, sizeof(tid)),
		.set_tid_size = 1,
	};
	uint64_t list = image_list(&ops, x->head, i);
	image_op(leader, BLOB_THREAD, 0, image_put(&x->image, &c, sizeof(c)), sizeof(c), list, 0, 0,
		 0);
	return 0;
}

/* ---- the process's, by its leader ------------------------------------------------------------ */

struct kernel_action {
	uint64_t handler, flags, restorer, mask;
};

static void set_actions(struct one *x, struct lr_resume_ops *ops)
{
	const struct kernel_action none = {0};
	uint64_t at = image_put(&x->image, &none, sizeof(none));

	/* Whatever the resuming program had. */
	for (unsigned sig = 1; sig <= 64; sig++)
		if (sig != SIGKILL && sig != SIGSTOP)
			image_op(ops, SYS_rt_sigaction, 0, sig, at, 0, 8, 0, 0);
	for (uint32_t i = 0; i < x->p->actions.count; i++) {
		const struct lr_seed_action *a = lr_seed_action(x->seed, x->p->actions.first + i);
		const struct kernel_action k = {a->handler, a->flags, a->restorer, a->mask};
		image_op(ops, SYS_rt_sigaction, 0, a->signal, image_put(&x->image, &k, sizeof(k)),
			 0, 8, 0, 0);
	}
}

static void set_timer(struct one *x, struct lr_resume_ops *ops, const struct lr_seed_timer *t)
{
	const struct {
		uint64_t value;
		int32_t signal, notify, tid, padding[11];
	} event = {t->value_pointer,
		   (int32_t)t->signal,
		   (int32_t)t->notify | (t->tid ? SIGEV_THREAD_ID : 0),
		   (int32_t)t->tid,
		   {0}};
	int64_t left = t->left ? t->left : t->interval;
	const struct itimerspec when = {{t->interval / 1000000000, t->interval % 1000000000},
					{left / 1000000000, left % 1000000000}};

	_Static_assert(sizeof(event) == 64, "struct sigevent of the kernel");
	uint64_t id = image_put(&x->image, &t->id, sizeof(t->id));
	uint64_t at = image_put(&x->image, &event, sizeof(event));
	image_op(ops, SYS_timer_create, 0, t->clock, at, id, 0, 0, 0);
	if (left)
		image_op(ops, SYS_timer_settime, 0, (uint64_t)t->id, 0,
			 image_put(&x->image, &when, sizeof(when)), 0, 0, 0);
}

static void set_timers(struct one *x, struct lr_resume_ops *ops)
{
	const struct lr_seed_range *timers = &x->p->timers;

	/* Linux 6.15: the ids that they had. */
	if (timers->count)
		image_op(ops, SYS_prctl, 0, PR_TIMER_CREATE_RESTORE_IDS, 1, 0, 0, 0, 0);
	for (uint32_t i = 0; i < timers->count; i++)
		set_timer(x, ops, lr_seed_timer(x->seed, timers->first + i));
	if (timers->count)
		image_op(ops, SYS_prctl, 0, PR_TIMER_CREATE_RESTORE_IDS, 0, 0, 0, 0, 0);
	for (unsigned i = 0; i < 3; i++) {
		const int64_t *us = &x->p->itimers[2 * i];
		/* One whose signal has not been taken yet begins again when it is. */
		int64_t left = us[1] ? us[1] : us[0];
		const struct itimerval v = {{us[0] / 1000000, us[0] % 1000000},
					    {left / 1000000, left % 1000000}};
		if (left)
			image_op(ops, SYS_setitimer, 0, i, image_put(&x->image, &v, sizeof(v)), 0,
				 0, 0, 0);
	}
}

/* All is open by now, at whatever numbers: a limit is for those that come. Before any thread gets the
 * limits of config.json: what is lowered cannot be raised again by everybody. */
static void restore_limit(struct one *x, struct lr_resume_ops *ops)
{
	const uint64_t *files = x->r->open_files;

	image_op(ops, SYS_prlimit64, 0, 0, RLIMIT_NOFILE,
		 image_put(&x->image, files, sizeof(x->r->open_files)), 0, 0, 0);
}

int plan_threads(struct one *x, struct lr_resume_ops *ops, struct lr_err *err)
{
	const struct lr_seed_thread *leader = lr_seed_thread(x->seed, x->p->threads.first);
	int r = 0;

	/* Its threads have what it may have. */
	if (x->p->flags & LR_SEED_TILES)
		image_op(ops, SYS_arch_prctl, 0, ARCH_REQ_XCOMP_PERM, LR_VECTORS_TILE_DATA_NUMBER,
			 0, 0, 0, 0);
	set_actions(x, ops);
	restore_limit(x, ops);
	for (uint32_t i = 1; r >= 0 && i < x->p->threads.count; i++)
		r = make_thread(x, ops, i, err);
	if (r < 0)
		return r;
	set_thread(x, ops, leader);
	if (x->p->subreaper)
		image_op(ops, SYS_prctl, 0, PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0, 0);
	image_op(ops, SYS_personality, 0, x->p->personality, 0, 0, 0, 0, 0);
	r = confine(x, ops, leader, err);
	if (r < 0)
		return r;
	image_op(ops, BLOB_GATHER, 0, x->p->threads.count - 1, 0, 0, 0, 0, 0);
	plan_locks(x, ops);
	plan_gate(x, ops);
	image_op(ops, BLOB_RENDEZVOUS, 0, x->image.at, x->image.size, 0, 0, 0, 0);
	plan_terminal(x, ops);
	queue(x, ops, &x->p->signals, 0);
	set_timers(x, ops);
	image_op(ops, SYS_prctl, 0, PR_SET_DUMPABLE, !x->r->opts.confine && x->p->dumpable == 1, 0,
		 0, 0, 0);
	image_op(ops, SYS_close_range, 0, (uint64_t)x->r->base, UINT32_MAX, 0, 0, 0, 0);
	image_op(ops, BLOB_GO, 0, 0, 0, 0, 0, 0, 0);
	return leave(x, ops, leader, err);
}
