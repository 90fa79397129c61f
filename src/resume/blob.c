/* SPDX-License-Identifier: Apache-2.0 */
/*
 * resume: the restorer: a program without a library that runs anywhere in memory, on a stack of its
 * own, while everything else of its process goes and comes. It makes the system calls of a list,
 * and looks at what they return.
 */
#include "src/resume/blob.h"

#include <errno.h>
#include <linux/futex.h>
#include <sys/socket.h>
#include <sys/syscall.h>

#include "src/sys/vectors.h"

static long call(long nr, uint64_t a, uint64_t b, uint64_t c, uint64_t d, uint64_t e, uint64_t f)
{
	register uint64_t r10 __asm__("r10") = d;
	register uint64_t r8 __asm__("r8") = e;
	register uint64_t r9 __asm__("r9") = f;
	long r;

	__asm__ volatile("syscall"
			 : "=a"(r)
			 : "0"(nr), "D"(a), "S"(b), "d"(c), "r"(r10), "r"(r8), "r"(r9)
			 : "rcx", "r11", "memory");
	return r;
}

__attribute__((noreturn)) static void end(const struct blob_list *l, uint64_t i, long r)
{
	const struct blob_head *h = (const void *)l->head;
	const struct blob_op *op = (const struct blob_op *)l->ops + i;
	struct blob_report report;

	report.index = h->index;
	report.error = (uint32_t)(r < 0 ? -r : EIO);
	report.nr = op->nr;
	report.which = (uint32_t)l->which;
	report.op = i;
	report.a[0] = op->a[0];
	report.a[1] = op->a[1];
	call(SYS_write, (uint64_t)h->report, (uint64_t)&report, sizeof(report), 0, 0, 0);
	for (;;)
		call(SYS_exit_group, BLOB_FAILED, 0, 0, 0, 0, 0);
}

static long read_pages(const struct blob_op *op)
{
	uint64_t done = 0;

	while (done < op->a[2]) {
		long n = call(SYS_pread64, op->a[0], op->a[1] + done, op->a[2] - done,
			      op->a[3] + done, 0, 0);
		if (n == -EINTR)
			continue;
		if (n <= 0)
			return n ? n : -ENODATA;
		done += (uint64_t)n;
	}
	return 0;
}

static void wait_while(uint32_t *word, uint32_t value)
{
	while (__atomic_load_n(word, __ATOMIC_ACQUIRE) == value)
		call(SYS_futex, (uint64_t)word, FUTEX_WAIT_PRIVATE, value, 0, 0, 0);
}

static void wake(uint32_t *word)
{
	call(SYS_futex, (uint64_t)word, FUTEX_WAKE_PRIVATE, INT32_MAX, 0, 0, 0);
}

static long gather(struct blob_head *h, uint32_t threads)
{
	for (;;) {
		uint32_t have = __atomic_load_n(&h->arrived, __ATOMIC_ACQUIRE);
		if (have >= threads)
			return 0;
		wait_while(&h->arrived, have);
	}
}

static long rendezvous(const struct blob_head *h, const struct blob_op *op)
{
	struct blob_report report;
	char word;

	report.index = h->index;
	report.error = 0;
	report.nr = 0;
	report.which = 0;
	report.op = 0;
	report.a[0] = op->a[0];
	report.a[1] = op->a[1];
	long r = call(SYS_write, (uint64_t)h->report, (uint64_t)&report, sizeof(report), 0, 0, 0);
	if (r < 0)
		return r;
	/* The word is one for all, and stays for the others (lr_resume_wait). */
	r = call(SYS_recvfrom, (uint64_t)h->report, (uint64_t)&word, 1, MSG_PEEK, 0, 0);
	return r == 1 ? 0 : r < 0 ? r : -EPIPE;
}

static void run(const struct blob_list *l);

/* The newborn comes back from the same call on a stack of its own, where nothing is: it may not
 * touch ours. */
static long make_thread(const struct blob_op *op)
{
	const uint64_t which = op->a[2];
	register uint64_t list __asm__("rbx") = which;
	long r;

	__asm__ volatile("syscall\n\t"
			 "test %%eax, %%eax\n\t"
			 "jnz 1f\n\t"
			 "xor %%ebp, %%ebp\n\t"
			 "mov %%rbx, %%rdi\n\t"
			 "call blob_run\n\t"
			 "1:"
			 : "=a"(r)
			 : "0"(SYS_clone3), "D"(op->a[0]), "S"(op->a[1]), "r"(list)
			 : "rcx", "r11", "memory");
	return r;
}

static void sigreturn(uint64_t frame)
{
	__asm__ volatile("mov %0, %%rsp\n\tmov %1, %%eax\n\tsyscall\n\tud2"
			 :
			 : "r"(frame), "i"(SYS_rt_sigreturn)
			 : "memory");
}

/* By this the kernel makes room for them: the frame alone would not bring them. */
static void load_tiles(uint64_t area)
{
	__asm__ volatile("xrstor64 (%0)"
			 :
			 : "r"(area), "a"((uint32_t)LR_VECTORS_TILES), "d"(0)
			 : "memory");
}

static long special(const struct blob_list *l, const struct blob_op *op)
{
	struct blob_head *h = (void *)l->head;

	if (op->nr == BLOB_THREAD)
		return make_thread(op);
	if (op->nr == BLOB_READ)
		return read_pages(op);
	if (op->nr == BLOB_GATHER)
		return gather(h, (uint32_t)op->a[0]);
	if (op->nr == BLOB_RENDEZVOUS)
		return rendezvous(h, op);
	if (op->nr == BLOB_ARRIVE) {
		__atomic_fetch_add(&h->arrived, 1, __ATOMIC_RELEASE);
		wake(&h->arrived);
		wait_while(&h->go, 0);
	} else if (op->nr == BLOB_GO) {
		__atomic_store_n(&h->go, 1, __ATOMIC_RELEASE);
		wake(&h->go);
	} else if (op->nr == BLOB_TILES) {
		load_tiles(op->a[0]);
	} else if (op->nr == BLOB_RETURN) {
		sigreturn(op->a[0]);
	}
	return 0;
}

static void run(const struct blob_list *l)
{
	const struct blob_op *ops = (const void *)l->ops;

	for (uint64_t i = 0; i < l->n; i++) {
		const struct blob_op *op = &ops[i];
		long r = op->nr < 0 ? special(l, op)
				    : call(op->nr, op->a[0], op->a[1], op->a[2], op->a[3], op->a[4],
					   op->a[5]);
		if (op->flags & BLOB_MAY_FAIL)
			continue;
		if ((r < 0 && r > -4096) || (op->flags & BLOB_IS_FIRST && r != (long)op->a[0]) ||
		    (op->flags & BLOB_IS_FIFTH && r != (long)op->a[4]))
			end(l, i, r);
	}
	end(l, l->n - 1, -ENODATA);
}

__attribute__((used)) static void blob_run(const struct blob_list *l)
{
	run(l);
}

/* rdi: the leader's list; rsi: the stack. */
__asm__(".pushsection .text.first, \"ax\"\n"
	".globl start\n"
	"start:\n"
	"	mov %rsi, %rsp\n"
	"	xor %ebp, %ebp\n"
	"	call blob_run\n"
	"	ud2\n"
	".popsection\n");
