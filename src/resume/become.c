/* SPDX-License-Identifier: Apache-2.0 */
/* resume: from a process with a library to one of the seed's; and its descendants before. */
#define LR_ROOM "resume"
#include <errno.h>
#include <fcntl.h>
#include <linux/sched.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/uio.h>
#include <sys/wait.h>
#include <unistd.h>

#include "src/base/fd.h"
#include "src/base/str.h"
#include "src/resume/blob_bytes.h"
#include "src/resume/resuming.h"
#include "src/sys/syscalls.h"

#ifndef MAP_FIXED_NOREPLACE
#define MAP_FIXED_NOREPLACE 0x100000
#endif

#define LEADER_STACK 8192

static int become(struct lr_resume *r, uint32_t index, struct lr_err *err);

/* ---- descendants ----------------------------------------------------------------------------- */

_Noreturn static void be_dead(uint32_t status)
{
	int sig = status & 0x7f;

	if (sig) {
		lr_signal_default(sig);
		sigset_t none;
		sigemptyset(&none);
		sigprocmask(SIG_SETMASK, &none, NULL);
		kill(getpid(), sig);
	}
	_exit((int)(status >> 8) & 0xff);
}

static void tell_failure(const struct lr_resume *r, uint32_t index, const struct lr_err *e)
{
	struct blob_report report = {
		.index = index, .error = (uint32_t)e->code, .nr = BLOB_NO_CALL};
	struct iovec iov[2] = {{&report, sizeof(report)}, {(void *)e->msg, strlen(e->msg)}};

	(void)!writev(r->report, iov, 2);
}

static int make_child(struct lr_resume *r, uint32_t index, struct lr_err *err)
{
	const struct lr_seed_process *p = lr_seed_process(r->seed, index);
	const pid_t want = (pid_t)p->pid;
	struct clone_args c = {
		.exit_signal = SIGCHLD, .set_tid = (uint64_t)(uintptr_t)&want, .set_tid_size = 1};

	pid_t pid = lr_clone3(&c, sizeof(c));
	if (pid < 0) {
		lr_fail(err, -pid, "make process %d", want);
		return lr_err_hint(err, "its id must be free in a pid namespace of its own");
	}
	if (pid == 0) {
		struct lr_err why = {0};
		if (p->flags & LR_SEED_ZOMBIE) {
			resume_enter_groups_dead(r, index);
			be_dead(p->status);
		}
		become(r, index, &why);
		tell_failure(r, index, &why);
		_exit(BLOB_FAILED);
	}
	if (!(p->flags & LR_SEED_ZOMBIE))
		return 0;
	siginfo_t info;
	while (waitid(P_PID, (id_t)pid, &info, WEXITED | WNOWAIT) < 0 && errno == EINTR)
		;
	return 0;
}

static int make_children(struct lr_resume *r, uint32_t index, struct lr_err *err)
{
	int rc = 0;

	for (uint32_t i = index + 1; rc >= 0 && i < lr_seed_count(r->seed, LR_SEED_PROCESS); i++)
		if (lr_seed_process(r->seed, i)->parent == index)
			rc = make_child(r, i, err);
	return rc;
}

/* ---- the exchange ---------------------------------------------------------------------------- */

/* How much memory the lists need: each mapping some calls, each run two, each thread its own. */
static uint64_t bound(const struct one *x)
{
	const struct lr_seed_process *p = x->p;
	uint64_t ops = 512 + 10 * (uint64_t)x->mm->vmas.count + 2 * (uint64_t)x->mm->runs.count +
		       2 * (uint64_t)p->fds.count + lr_seed_count(x->seed, LR_SEED_OBJECT) +
		       2 * (uint64_t)p->actions.count + 4 * (uint64_t)p->timers.count +
		       p->signals.count;
	uint64_t bytes = sizeof(blob) + LEADER_STACK + 65536 + ops * 2 * sizeof(struct blob_op) +
			 p->signals.count * UINT64_C(256);

	for (uint32_t i = 0; i < p->threads.count; i++) {
		const struct lr_seed_thread *t = lr_seed_thread(x->seed, p->threads.first + i);
		bytes += 8192 + 8192 + t->xsave.length + t->signals.count * UINT64_C(512) +
			 x->r->opts.confine_room;
	}
	return (bytes + LR_SEED_PAGE - 1) & ~(uint64_t)(LR_SEED_PAGE - 1);
}

static int lay_out(struct one *x, struct lr_err *err)
{
	int r = own_memory_read(x->r->proc, x->r->a, &x->own, err);

	if (r < 0)
		return r;
	x->park_size = 0;
	for (size_t i = 0; i < x->own.n; i++)
		x->park_size += x->own.v[i].special ? x->own.v[i].end - x->own.v[i].start : 0;
	uint64_t size = bound(x);
	uint64_t at = layout_hole(&x->own, x->seed, x->mm, size + x->park_size);
	if (!at)
		return lr_refuse(err, ENOMEM, "there is no room for the restorer");
	x->image = (struct image){.a = x->r->a, .at = at, .size = size};
	x->park = at + size;
	x->image.bytes = mmap((void *)(uintptr_t)at, size, PROT_READ | PROT_WRITE | PROT_EXEC,
			      MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED_NOREPLACE, -1, 0);
	if (x->image.bytes == MAP_FAILED)
		return lr_fail(err, errno, "map the restorer");
	return 0;
}

_Static_assert(sizeof(blob) >= RESUME_BLOB_HEAD, "it has a head");

bool resume_is_blob(const void *head)
{
	return memcmp(head, blob, RESUME_BLOB_HEAD) == 0;
}

static int plan(struct one *x, uint64_t *list, uint64_t *stack, struct lr_err *err)
{
	struct lr_resume_ops ops = {.image = &x->image};
	const struct blob_head head = {.report = x->r->report, .index = x->index};

	/* The code first: it is page-aligned then, and entered at its beginning. */
	image_put(&x->image, blob, sizeof(blob));
	x->head = image_put(&x->image, &head, sizeof(head));
	*stack = image_room(&x->image, LEADER_STACK, 16, NULL) + LEADER_STACK;
	plan_root(x, &ops);
	int r = plan_memory(x, &ops, err);
	if (r >= 0) {
		plan_keys(x, &ops);
		r = plan_threads(x, &ops, err);
	}
	*list = image_list(&ops, x->head, 0);
	return r < 0 ? r : image_check(&x->image, err);
}

_Noreturn static void enter(const struct one *x, uint64_t list, uint64_t stack)
{
	register uint64_t rdi __asm__("rdi") = list;
	register uint64_t rsi __asm__("rsi") = stack;

	__asm__ volatile("jmp *%0" : : "r"(x->image.at), "r"(rdi), "r"(rsi) : "memory");
	__builtin_unreachable();
}

static int become(struct lr_resume *r, uint32_t index, struct lr_err *err)
{
	struct one x = {
		.r = r, .seed = r->seed, .p = lr_seed_process(r->seed, index), .index = index};
	uint64_t list, stack;

	x.mm = lr_seed_mm(r->seed, x.p->mm);
	/* Until each thread has the mask it had. */
	syscall(SYS_rt_sigprocmask, SIG_SETMASK, &(uint64_t){UINT64_MAX}, NULL, 8);
	int rc = index ? 0 : resume_set_terminal(r, err);
	if (rc >= 0)
		rc = resume_enter_groups(r, index, err);
	if (rc >= 0)
		rc = resume_own_terminal(r, x.p, err);
	if (rc >= 0)
		rc = resume_front_group(r, index, err);
	if (rc >= 0)
		rc = make_children(r, index, err);
	if (rc >= 0)
		rc = resume_enter_place(r, x.p, err);
	if (rc >= 0)
		rc = resume_take_fds(r, x.p, err);
	if (rc >= 0)
		rc = lay_out(&x, err);
	if (rc >= 0)
		rc = lazy_begin(&x, err);
	if (rc >= 0)
		rc = plan(&x, &list, &stack, err);
	if (rc >= 0)
		enter(&x, list, stack);
	return rc;
}

int lr_resume_become(struct lr_resume *r, struct lr_err *err)
{
	const struct lr_seed_process *p = lr_seed_process(r->seed, 0);

	if (getpid() != (pid_t)p->pid)
		return lr_refuse(err, EINVAL, "this is process %d, and the seed's is %u", getpid(),
				 p->pid);
	int rc = resume_open_gate(r, err);
	if (rc >= 0)
		rc = become(r, 0, err);
	tell_failure(r, 0, err);
	return rc;
}
