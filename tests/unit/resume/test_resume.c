/* SPDX-License-Identifier: Apache-2.0 */
#include <errno.h>
#include <linux/membarrier.h>
#include <linux/userfaultfd.h>
#include <signal.h>
#include <sys/auxv.h>
#include <sys/ioctl.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "src/base/fd.h"
#include "src/base/str.h"
#include "src/resume/resuming.h"
#include "tests/unit/seed/sample.h"
#include "tests/unit/test.h"

static int open_sample(struct lr_arena *a, struct lr_seed *s)
{
	void *bytes;
	size_t size;

	int r = lr_seed_finish(sample_writer(a), SAMPLE_PAGES, SAMPLE_ID, &bytes, &size, NULL);
	return r < 0 ? r : lr_seed_open(bytes, size, SAMPLE_PAGES, s, NULL);
}

static bool touches(uint64_t at, uint64_t size, uint64_t start, uint64_t end)
{
	return at < end && start < at + size;
}

TEST(a_hole_is_free_in_both)
{
	LR_CLEANUP_ARENA struct lr_arena *a = lr_arena_new();
	struct lr_seed s;
	struct own_range v[] = {
		{LR_RESUME_LOWEST - 4096, LR_RESUME_LOWEST + 4096, false, false},
		{LR_RESUME_LOWEST + (UINT64_C(1) << 30), LR_RESUME_LOWEST + (UINT64_C(2) << 30),
		 false, false},
	};
	struct own_memory own = {v, 2};
	const uint64_t size = UINT64_C(1) << 30;

	REQUIRE(open_sample(a, &s) == 0);
	/* The seed's own, where the first free place would be. */
	struct lr_seed_vma *seeds = (struct lr_seed_vma *)lr_seed_vma(&s, 2);
	seeds->start = LR_RESUME_LOWEST + (UINT64_C(2) << 30) + (UINT64_C(1) << 26);
	seeds->end = seeds->start + 4096;
	uint64_t at = layout_hole(&own, &s, lr_seed_mm(&s, 0), size);
	REQUIRE(at);
	CHECK_INT(at % 4096, 0);
	for (int i = 0; i < 2; i++)
		CHECK(!touches(at, size, v[i].start, v[i].end));
	CHECK(!touches(at, size, seeds->start, seeds->end));
	v[1].end = LR_RESUME_HIGHEST;
	CHECK_INT(layout_hole(&own, &s, lr_seed_mm(&s, 0), size), 0);
}

TEST(an_image_that_is_too_small_says_so)
{
	LR_CLEANUP_ARENA struct lr_arena *a = lr_arena_new();
	uint8_t bytes[256];
	struct image m = {.a = a, .at = 0x10000, .size = sizeof(bytes), .bytes = bytes};
	struct lr_err err = {0};

	CHECK_INT(image_put(&m, "abc", 3), 0x10000);
	CHECK_INT(image_put(&m, "def", 3), 0x10010);
	CHECK(memcmp(bytes + 16, "def", 3) == 0);
	CHECK_INT(image_check(&m, &err), 0);
	image_put(&m, bytes, 250);
	CHECK_INT(image_check(&m, &err), -ENOMEM);
	/* And goes on saying it. */
	image_put(&m, "x", 1);
	CHECK_INT(image_check(&m, &err), -ENOMEM);
}

/* The first call with that number in a list, or NULL. */
static const struct blob_op *find_op(const struct lr_resume_ops *ops, int nr, size_t *from)
{
	for (; *from < ops->n; ++*from)
		if (ops->v[*from].nr == nr)
			return &ops->v[(*from)++];
	return NULL;
}

/* The first one that has that argument. */
static const struct blob_op *op_with(const struct lr_resume_ops *ops, int nr, unsigned arg,
				     uint64_t value)
{
	size_t at = 0;
	const struct blob_op *op;

	while ((op = find_op(ops, nr, &at)) && op->a[arg] != value)
		;
	return op;
}

/* The sample's first process in the making. */
struct making {
	struct lr_seed seed;
	struct lr_resume r;
	struct one x;
	struct lr_resume_ops ops;
};

static bool making_begin(struct making *m, struct lr_arena *a)
{
	static uint8_t bytes[65536];
	static int fds[1] = {70}, readonly[1];

	*m = (struct making){0};
	readonly[0] = LR_NOFD;
	if (open_sample(a, &m->seed) < 0)
		return false;
	m->r = (struct lr_resume){.a = a,
				  .seed = &m->seed,
				  .base = 64,
				  .pages = 80,
				  .backings = fds,
				  .objects = fds,
				  .readonly = readonly,
				  .exes = fds};
	m->x = (struct one){
		.r = &m->r,
		.seed = &m->seed,
		.p = lr_seed_process(&m->seed, 0),
		.mm = lr_seed_mm(&m->seed, 0),
		.uffd = LR_NOFD,
		.park = 0x200000020000,
		.image = {.a = a, .at = 0x200000000000, .size = sizeof(bytes), .bytes = bytes}};
	m->ops = (struct lr_resume_ops){.image = &m->x.image};
	return true;
}

/* What a call is given by address. */
static const void *given(const struct making *m, uint64_t at)
{
	return m->x.image.bytes + (at - m->x.image.at);
}

/* Memory that is anonymous is made as such; what was written of a file is put over it. */
TEST(memory_is_what_it_was)
{
	LR_CLEANUP_ARENA struct lr_arena *a = lr_arena_new();
	struct lr_err err = {0};
	struct making m;
	size_t at = 0;

	REQUIRE(making_begin(&m, a));
	REQUIRE(plan_memory(&m.x, &m.ops, &err) == 0);
	const struct blob_op *op = find_op(&m.ops, SYS_mmap, &at);
	REQUIRE(op);
	CHECK_INT(op->a[0], 0x400000);
	CHECK_INT(op->a[4], 70);
	op = find_op(&m.ops, BLOB_READ, &at);
	REQUIRE(op);
	CHECK_INT(op->a[1], 0x401000);
	op = find_op(&m.ops, SYS_mmap, &at);
	REQUIRE(op);
	CHECK_INT(op->a[0], 0x600000);
	CHECK(op->a[3] & MAP_ANONYMOUS && op->a[3] & MAP_PRIVATE);
	CHECK(!(op->a[3] & (MAP_GROWSDOWN | MAP_NORESERVE)));
	op = find_op(&m.ops, BLOB_READ, &at);
	REQUIRE(op);
	CHECK_INT(op->a[2], 8192);
	op = find_op(&m.ops, SYS_mmap, &at);
	REQUIRE(op);
	CHECK(op->a[3] & MAP_SHARED);
	op = find_op(&m.ops, SYS_prctl, &at);
	REQUIRE(op);
	CHECK_INT(op->a[1], PR_SET_MM_MAP);
	CHECK(!find_op(&m.ops, SYS_prctl, &at));
	/* All of them may be written to. */
	CHECK(!op_with(&m.ops, SYS_mprotect, 0, 0x400000));
	CHECK(!op_with(&m.ops, SYS_madvise, 0, 0x600000));
}

/* What would be made page by page is made at once, by a call that older kernels do not have. */
TEST(many_pages_are_made_before_they_are_read)
{
	LR_CLEANUP_ARENA struct lr_arena *a = lr_arena_new();
	struct lr_err err = {0};
	struct making m;

	for (uint64_t pages = 3; pages <= 4; pages++) {
		REQUIRE(making_begin(&m, a));
		struct lr_seed_run *r = (struct lr_seed_run *)lr_seed_run(&m.seed, 2);
		REQUIRE(r->start == 0x600000);
		r->pages = pages;
		REQUIRE(plan_memory(&m.x, &m.ops, &err) == 0);
		const struct blob_op *made = op_with(&m.ops, SYS_madvise, 0, 0x600000);
		const struct blob_op *filled = op_with(&m.ops, BLOB_READ, 1, 0x600000);
		REQUIRE(filled);
		CHECK_INT(filled->a[2], pages * 4096);
		if (pages < 4) {
			CHECK(!made);
			continue;
		}
		REQUIRE(made && made < filled);
		CHECK_INT(made->a[1], 0x4000);
		CHECK_INT(made->a[2], 23); /* MADV_POPULATE_WRITE */
		CHECK_INT(made->flags, BLOB_MAY_FAIL);
	}
}

/* Nothing of ours stays, but where the restorer is. */
TEST(our_memory_goes)
{
	LR_CLEANUP_ARENA struct lr_arena *a = lr_arena_new();
	struct lr_err err = {0};
	struct making m;
	size_t at = 0;

	REQUIRE(making_begin(&m, a));
	m.x.park_size = 4096;
	REQUIRE(plan_memory(&m.x, &m.ops, &err) == 0);
	const struct blob_op *below = find_op(&m.ops, SYS_munmap, &at);
	const struct blob_op *above = find_op(&m.ops, SYS_munmap, &at);
	REQUIRE(below && above);
	CHECK_INT(below->a[0], 0);
	CHECK_INT(below->a[1], m.x.image.at);
	CHECK_INT(above->a[0], m.x.park + m.x.park_size);
	CHECK_INT(above->a[0] + above->a[1], 0x7ffffffff000);
}

/* It can be written to until it is filled. */
TEST(what_only_may_be_read_is_so_again)
{
	LR_CLEANUP_ARENA struct lr_arena *a = lr_arena_new();
	struct lr_err err = {0};
	struct making m;

	REQUIRE(making_begin(&m, a));
	((struct lr_seed_vma *)lr_seed_vma(&m.seed, 0))->prot = PROT_READ | PROT_EXEC;
	REQUIRE(plan_memory(&m.x, &m.ops, &err) == 0);
	const struct blob_op *made = op_with(&m.ops, SYS_mmap, 0, 0x400000);
	const struct blob_op *filled = op_with(&m.ops, BLOB_READ, 1, 0x401000);
	const struct blob_op *closed = op_with(&m.ops, SYS_mprotect, 0, 0x400000);
	REQUIRE(made && filled && closed);
	CHECK(made->a[2] & PROT_WRITE);
	CHECK(made < filled && filled < closed);
	CHECK_INT(closed->a[1], 0x2000);
	CHECK_INT(closed->a[2], PROT_READ | PROT_EXEC);
}

TEST(memory_has_the_advice_that_it_had)
{
	LR_CLEANUP_ARENA struct lr_arena *a = lr_arena_new();
	static const struct {
		uint32_t flag;
		int advice;
	} table[] = {
		{LR_SEED_WIPEONFORK, MADV_WIPEONFORK}, {LR_SEED_DONTDUMP, MADV_DONTDUMP},
		{LR_SEED_MERGEABLE, MADV_MERGEABLE},   {LR_SEED_HUGEPAGE, MADV_HUGEPAGE},
		{LR_SEED_NOHUGEPAGE, MADV_NOHUGEPAGE},
	};
	struct lr_err err = {0};
	struct making m;

	for (size_t i = 0; i < LR_ARRAY_SIZE(table); i++) {
		REQUIRE(making_begin(&m, a));
		((struct lr_seed_vma *)lr_seed_vma(&m.seed, 1))->flags =
			table[i].flag | LR_SEED_GROWSDOWN | LR_SEED_NORESERVE;
		((struct lr_seed_mm *)m.x.mm)->thp_disable = 1;
		REQUIRE(plan_memory(&m.x, &m.ops, &err) == 0);
		const struct blob_op *map = op_with(&m.ops, SYS_mmap, 0, 0x600000);
		const struct blob_op *advice = op_with(&m.ops, SYS_madvise, 0, 0x600000);
		REQUIRE(map && advice);
		CHECK(map->a[3] & MAP_GROWSDOWN && map->a[3] & MAP_NORESERVE);
		CHECK_INT(advice->a[1], 0x3000);
		CHECK_INT(advice->a[2], table[i].advice);
		CHECK(op_with(&m.ops, SYS_prctl, 0, PR_SET_THP_DISABLE));
	}
}

/* By the numbers of the kernel's commands. */
TEST(memory_is_registered_for_the_barriers_that_it_had)
{
	LR_CLEANUP_ARENA struct lr_arena *a = lr_arena_new();
	static const uint64_t registers[LR_SEED_BARRIERS] = {
		MEMBARRIER_CMD_REGISTER_GLOBAL_EXPEDITED, MEMBARRIER_CMD_REGISTER_PRIVATE_EXPEDITED,
		MEMBARRIER_CMD_REGISTER_PRIVATE_EXPEDITED_SYNC_CORE, 1 << 8};
	struct lr_err err = {0};
	struct making m;

	for (unsigned k = 0; k < LR_SEED_BARRIERS; k++) {
		REQUIRE(making_begin(&m, a));
		((struct lr_seed_mm *)m.x.mm)->flags = LR_SEED_BARRIER(k);
		REQUIRE(plan_memory(&m.x, &m.ops, &err) == 0);
		for (unsigned i = 0; i < LR_SEED_BARRIERS; i++)
			CHECK(!op_with(&m.ops, SYS_membarrier, 0, registers[i]) == (i != k));
	}
}

/* The first process's parent is whoever makes it, and may end right then. */
TEST(the_first_process_does_not_die_with_its_maker)
{
	LR_CLEANUP_ARENA struct lr_arena *a = lr_arena_new();
	struct lr_err err = {0};
	struct making m;

	REQUIRE(making_begin(&m, a));
	((struct lr_seed_thread *)lr_seed_thread(&m.seed, 0))->pdeathsig = SIGKILL;
	REQUIRE(plan_threads(&m.x, &m.ops, &err) == 0);
	CHECK(!op_with(&m.ops, SYS_prctl, 0, PR_SET_PDEATHSIG));
}

static void lock(const struct making *m, uint32_t flags)
{
	((struct lr_seed_vma *)lr_seed_vma(&m->seed, 1))->flags = flags;
}

static int last_but_one(void *arg, const struct lr_seed_thread *t, struct lr_resume_ops *ops,
			struct lr_err *err)
{
	(void)arg, (void)t, (void)err;
	return lr_resume_add(ops, SYS_setresuid, 1, 1, 1, 0, 0, 0);
}

/* With its own limits; and what comes when it is touched is not fetched for that. */
TEST(memory_is_locked_as_it_was)
{
	LR_CLEANUP_ARENA struct lr_arena *a = lr_arena_new();
	struct lr_err err = {0};
	struct making m;
	size_t at = 0;

	REQUIRE(making_begin(&m, a));
	lock(&m, LR_SEED_LOCKED);
	((struct lr_seed_mm *)m.x.mm)->flags = LR_SEED_LOCKS | LR_SEED_MDWE;
	m.r.opts.confine = last_but_one;
	REQUIRE(plan_threads(&m.x, &m.ops, &err) == 0);
	CHECK(find_op(&m.ops, SYS_setresuid, &at));
	const struct blob_op *op = find_op(&m.ops, SYS_mlock2, &at);
	REQUIRE(op);
	CHECK_INT(op->a[0], 0x600000);
	CHECK_INT(op->a[2], 1);
	CHECK_INT(op->flags, 0);
	CHECK(find_op(&m.ops, SYS_mlock, &at));
	CHECK(find_op(&m.ops, SYS_mlockall, &at));
	CHECK(find_op(&m.ops, BLOB_RENDEZVOUS, &at));
	for (int lazily = 0; lazily < 2; lazily++) {
		REQUIRE(making_begin(&m, a));
		lock(&m, LR_SEED_LOCKED | (lazily ? 0 : LR_SEED_LOCKONFAULT));
		m.x.uffd = lazily ? 90 : LR_NOFD;
		REQUIRE(plan_threads(&m.x, &m.ops, &err) == 0);
		CHECK(op_with(&m.ops, SYS_mlock2, 0, 0x600000));
		CHECK(!op_with(&m.ops, SYS_mlock, 0, 0x600000));
		CHECK(!op_with(&m.ops, SYS_mlockall, 0, MCL_FUTURE));
	}
}

/* Who gets the signals says so, when all are there; another one that has the file too does not. */
TEST(owners_are_set_when_all_are_made)
{
	LR_CLEANUP_ARENA struct lr_arena *a = lr_arena_new();
	struct lr_err err = {0};
	struct making m;
	size_t at = 0;

	REQUIRE(making_begin(&m, a));
	struct lr_seed_file *f =
		(struct lr_seed_file *)lr_seed_file(&m.seed, lr_seed_fd(&m.seed, 0)->file);
	f->kind = LR_SEED_REGULAR;
	f->flags = O_ASYNC | O_NONBLOCK;
	f->owner_kind = LR_SEED_OF_PROCESS;
	f->owner = m.x.p->pid;
	m.r.opts.confine = last_but_one;
	REQUIRE(resume_find_setters(&m.r, &err) == 0 && m.r.setters);
	m.r.gate[0] = 91;
	m.r.gate[1] = 92;
	REQUIRE(plan_threads(&m.x, &m.ops, &err) == 0);
	CHECK(find_op(&m.ops, SYS_setresuid, &at));
	CHECK(find_op(&m.ops, BLOB_GATHER, &at));
	const struct blob_op *op = find_op(&m.ops, SYS_close, &at);
	REQUIRE(op);
	CHECK_INT(op->a[0], 92);
	op = find_op(&m.ops, SYS_read, &at);
	REQUIRE(op);
	CHECK_INT(op->a[0], 91);
	op = find_op(&m.ops, SYS_fcntl, &at);
	REQUIRE(op);
	CHECK_INT(op->a[0], lr_seed_fd(&m.seed, 0)->number);
	CHECK_INT(((const int32_t *)given(&m, op->a[2]))[0], 1);
	CHECK_INT(((const int32_t *)given(&m, op->a[2]))[1], m.x.p->pid);
	op = find_op(&m.ops, SYS_fcntl, &at);
	REQUIRE(op);
	CHECK_INT(op->a[2], O_ASYNC | O_NONBLOCK);
	CHECK(!(find_op(&m.ops, SYS_fcntl, &at)));
}

/* By a descriptor that writes, it could be made writable. */
TEST(sealed_memory_is_mapped_by_one_that_reads)
{
	LR_CLEANUP_ARENA struct lr_arena *a = lr_arena_new();
	struct lr_err err = {0};
	struct making m;

	for (int writes = 0; writes < 2; writes++) {
		REQUIRE(making_begin(&m, a));
		m.r.readonly[0] = 71;
		((struct lr_seed_vma *)lr_seed_vma(&m.seed, 2))->prot =
			PROT_READ | (writes ? PROT_WRITE : 0);
		REQUIRE(plan_memory(&m.x, &m.ops, &err) == 0);
		const struct blob_op *map = op_with(&m.ops, SYS_mmap, 0, 0x700000);
		REQUIRE(map);
		CHECK_INT(map->a[4], writes ? 70 : 71);
	}
}

/* What comes when it is touched is not read; what is written of a file is. */
TEST(what_may_wait_is_not_read)
{
	LR_CLEANUP_ARENA struct lr_arena *a = lr_arena_new();
	struct lr_err err = {0};
	struct making m;

	REQUIRE(making_begin(&m, a));
	m.x.uffd = 90;
	REQUIRE(plan_memory(&m.x, &m.ops, &err) == 0);
	CHECK(op_with(&m.ops, BLOB_READ, 1, 0x401000));
	CHECK(!op_with(&m.ops, BLOB_READ, 1, 0x600000));
	const struct blob_op *op = op_with(&m.ops, SYS_ioctl, 1, UFFDIO_REGISTER);
	REQUIRE(op);
	CHECK_INT(op->a[0], 90);
	const struct uffdio_register *r = given(&m, op->a[2]);
	CHECK_INT(r->range.start, 0x600000);
	CHECK_INT(r->range.len, 0x3000);
	CHECK_INT(r->mode, UFFDIO_REGISTER_MODE_MISSING);
}

/* Of a thread, and of its process, what is not in registers. */
TEST(a_thread_is_what_it_was)
{
	LR_CLEANUP_ARENA struct lr_arena *a = lr_arena_new();
	struct lr_err err = {0};
	struct making m;

	REQUIRE(making_begin(&m, a));
	struct lr_seed_thread *t = (struct lr_seed_thread *)lr_seed_thread(&m.seed, 0);
	t->pdeathsig = SIGUSR2;
	t->mce_kill = 2;
	m.x.index = 1;
	t->nice = 5;
	t->timer_slack = 12345;
	struct lr_seed_timer *timer = (struct lr_seed_timer *)lr_seed_timer(&m.seed, 0);
	timer->left = 0;
	timer->interval = 7000000000;
	m.r.open_files[0] = 1000;
	m.r.open_files[1] = 2000;
	REQUIRE(plan_threads(&m.x, &m.ops, &err) == 0);
	const struct blob_op *op = op_with(&m.ops, SYS_prctl, 0, PR_SET_PDEATHSIG);
	REQUIRE(op);
	CHECK_INT(op->a[1], SIGUSR2);
	op = op_with(&m.ops, SYS_prctl, 0, PR_SET_TIMERSLACK);
	REQUIRE(op);
	CHECK_INT(op->a[1], 12345);
	op = op_with(&m.ops, SYS_prctl, 0, PR_MCE_KILL);
	REQUIRE(op);
	CHECK_INT(op->a[2], PR_MCE_KILL_EARLY);
	op = op_with(&m.ops, SYS_sched_setattr, 0, 0);
	REQUIRE(op);
	CHECK_INT(((const int32_t *)given(&m, op->a[1]))[4], 5);
	/* By what it had, or by what it gets: one of both has to do. */
	CHECK_INT(op->flags, BLOB_MAY_FAIL);
	size_t again = (size_t)(op - m.ops.v) + 1;
	op = find_op(&m.ops, SYS_sched_setattr, &again);
	REQUIRE(op);
	CHECK_INT(op->flags, 0);
	/* Signals that waited: the thread's, and the process's. */
	op = op_with(&m.ops, SYS_rt_tgsigqueueinfo, 1, t->tid);
	REQUIRE(op);
	CHECK_INT(op->a[2], 12);
	op = op_with(&m.ops, SYS_rt_sigqueueinfo, 0, m.x.p->pid);
	REQUIRE(op);
	CHECK_INT(op->a[1], 10);
	/* A timer that has just ended goes round again. */
	op = op_with(&m.ops, SYS_timer_settime, 0, (uint64_t)timer->id);
	REQUIRE(op);
	CHECK_INT(((const struct itimerspec *)given(&m, op->a[2]))->it_value.tv_sec, 7);
	/* The limit that was raised for the restorer. */
	op = op_with(&m.ops, SYS_prlimit64, 1, RLIMIT_NOFILE);
	REQUIRE(op);
	CHECK(memcmp(given(&m, op->a[2]), m.r.open_files, sizeof(m.r.open_files)) == 0);
}

/* Whatever the resuming program ignored or handled. */
TEST(signals_have_their_actions_and_no_others)
{
	LR_CLEANUP_ARENA struct lr_arena *a = lr_arena_new();
	uint64_t handlers[65] = {0};
	unsigned set[65] = {0};
	struct lr_err err = {0};
	const struct blob_op *op;
	struct making m;
	size_t at = 0;

	REQUIRE(making_begin(&m, a));
	REQUIRE(plan_threads(&m.x, &m.ops, &err) == 0);
	while ((op = find_op(&m.ops, SYS_rt_sigaction, &at))) {
		REQUIRE(op->a[0] >= 1 && op->a[0] <= 64);
		set[op->a[0]]++;
		handlers[op->a[0]] = *(const uint64_t *)given(&m, op->a[1]);
	}
	for (unsigned sig = 1; sig <= 64; sig++) {
		CHECK_INT(set[sig] > 0, sig != SIGKILL && sig != SIGSTOP);
		CHECK_INT(handlers[sig], sig == 10 ? 0x400200 : 0);
	}
}

/* The kernel module has its contents: it is mapped as it is, and nothing is read. */
TEST(memory_of_the_module_is_mapped_from_it)
{
	LR_CLEANUP_ARENA struct lr_arena *a = lr_arena_new();
	static uint8_t bytes[65536];
	struct lr_seed s;
	int fds[1] = {70}, readonly[1] = {LR_NOFD};
	struct lr_resume r = {.a = a,
			      .pages = 80,
			      .source = 90,
			      .backings = fds,
			      .objects = fds,
			      .readonly = readonly,
			      .exes = fds};
	struct lr_err err = {0};
	size_t at = 0, reads = 0;

	REQUIRE(open_sample(a, &s) == 0);
	/* So that it is not the first one of the source. */
	((struct lr_seed_vma *)lr_seed_vma(&s, 0))->kind = LR_SEED_ANON;
	((struct lr_seed_vma *)lr_seed_vma(&s, 1))->prot = PROT_READ;
	REQUIRE(lr_seed_spans(&s, a, &r.spans) == 0);
	r.seed = &s;
	struct one x = {
		.r = &r,
		.seed = &s,
		.p = lr_seed_process(&s, 0),
		.mm = lr_seed_mm(&s, 0),
		.uffd = LR_NOFD,
		.park = 0x200000020000,
		.image = {.a = a, .at = 0x200000000000, .size = sizeof(bytes), .bytes = bytes}};
	struct lr_resume_ops ops = {.image = &x.image};
	REQUIRE(plan_memory(&x, &ops, &err) == 0);
	for (uint64_t i = 0; i < 2; i++) {
		const struct blob_op *op = find_op(&ops, SYS_mmap, &at);
		REQUIRE(op);
		CHECK_INT(op->a[0], i ? 0x600000 : 0x400000);
		CHECK_INT(op->a[2], i ? PROT_READ : PROT_READ | PROT_WRITE);
		CHECK(op->a[3] & MAP_PRIVATE && !(op->a[3] & MAP_ANONYMOUS));
		CHECK_INT(op->a[4], 90);
		CHECK_INT(op->a[5], i * 2 * LR_SEED_PAGE);
	}
	for (at = 0; find_op(&ops, BLOB_READ, &at);)
		reads++;
	CHECK_INT(reads, 0);
}

struct runs {
	uint64_t at[8];
	size_t n;
	int answer;
};

static int note(void *arg, const struct lr_seed_run *run, struct lr_err *err)
{
	struct runs *x = arg;

	(void)err;
	x->at[x->n++] = run->at;
	return x->answer;
}

/* What is anonymous comes when it is touched; what is written of a file, and shared memory, before. */
TEST(what_can_not_come_later_is_told)
{
	LR_CLEANUP_ARENA struct lr_arena *a = lr_arena_new();
	struct lr_seed s;
	struct runs x = {0};
	struct lr_err err = {0};

	REQUIRE(open_sample(a, &s) == 0);
	CHECK_INT(lr_resume_in_place(&s, false, note, &x, &err), 0);
	CHECK_INT(x.n, 3);
	CHECK_INT(x.at[0], 3 * LR_SEED_PAGE);
	CHECK_INT(x.at[1], LR_SEED_PAGE);
	CHECK_INT(x.at[2], 2 * LR_SEED_PAGE);
	/* An error ends it. */
	x = (struct runs){.answer = -EIO};
	CHECK_INT(lr_resume_in_place(&s, false, note, &x, &err), -EIO);
	CHECK_INT(x.n, 1);
	/* A file's that nobody wrote to: only what is shared, and what is in a tmpfs. */
	((struct lr_seed_vma *)lr_seed_vma(&s, 0))->kind = LR_SEED_ANON;
	x = (struct runs){0};
	CHECK_INT(lr_resume_in_place(&s, false, note, &x, &err), 0);
	CHECK_INT(x.n, 2);
	CHECK_INT(x.at[0], LR_SEED_PAGE);
	/* Nothing maps a stack that grows: by the module it has to be there before. */
	((struct lr_seed_vma *)lr_seed_vma(&s, 1))->flags |= LR_SEED_GROWSDOWN;
	x = (struct runs){0};
	CHECK_INT(lr_resume_in_place(&s, true, note, &x, &err), 0);
	CHECK_INT(x.n, 3);
	CHECK_INT(x.at[0], 4 * LR_SEED_PAGE);
	x = (struct runs){0};
	CHECK_INT(lr_resume_in_place(&s, false, note, &x, &err), 0);
	CHECK_INT(x.n, 2);
}

static int very_last(void *arg, const struct lr_seed_thread *t, struct lr_resume_ops *ops,
		     struct lr_err *err)
{
	(void)arg, (void)t, (void)err;
	return lr_resume_add(ops, SYS_seccomp, 1, 0, 0, 0, 0, 0);
}

/* Rights go before anybody runs; a filter comes when nothing is left to do that it might refuse. */
TEST(rights_go_before_anybody_runs)
{
	LR_CLEANUP_ARENA struct lr_arena *a = lr_arena_new();
	struct lr_err err = {0};
	size_t at = 0, from = 0;
	struct making m;

	REQUIRE(making_begin(&m, a));
	m.r.opts.confine = last_but_one;
	m.r.opts.filter = very_last;
	((struct lr_seed_process *)m.x.p)->dumpable = 1;
	REQUIRE(plan_threads(&m.x, &m.ops, &err) == 0);
	const int order[] = {SYS_setresuid,   BLOB_GATHER, BLOB_RENDEZVOUS, SYS_timer_create,
			     SYS_close_range, BLOB_GO,     SYS_seccomp,     BLOB_RETURN};
	for (size_t i = 0; i < sizeof(order) / sizeof(order[0]); i++)
		CHECK(find_op(&m.ops, order[i], &at));
	CHECK_INT(at, m.ops.n);
	/* Nor may anybody look at it yet. */
	for (const struct blob_op *op; (op = find_op(&m.ops, SYS_prctl, &from));)
		CHECK(op->a[0] != PR_SET_DUMPABLE || op->a[1] == 0);
}

/* A source of the kernel module has all memory of a seed, that of other processes, too. */
TEST(nobody_runs_with_what_the_restorer_had)
{
	LR_CLEANUP_ARENA struct lr_arena *a = lr_arena_new();
	static uint8_t bytes[65536];
	struct lr_seed s;
	struct lr_resume r = {.a = a, .base = 64};
	struct lr_err err = {0};
	size_t at = 0;

	REQUIRE(open_sample(a, &s) == 0);
	r.seed = &s;
	r.source = resume_keep(&r, fcntl(0, F_DUPFD_CLOEXEC, 3), &err);
	CHECK(r.source >= 64);
	struct one x = {
		.r = &r,
		.seed = &s,
		.p = lr_seed_process(&s, 0),
		.mm = lr_seed_mm(&s, 0),
		.image = {.a = a, .at = 0x200000000000, .size = sizeof(bytes), .bytes = bytes}};
	struct lr_resume_ops ops = {.image = &x.image};
	REQUIRE(plan_threads(&x, &ops, &err) == 0);
	const struct blob_op *op = find_op(&ops, SYS_close_range, &at);
	REQUIRE(op);
	CHECK_INT(op->a[0], 64);
	CHECK_INT(op->a[1], UINT32_MAX);
	CHECK(!(op->flags & BLOB_MAY_FAIL));
	CHECK(find_op(&ops, BLOB_GO, &at)); /* the other threads */
	CHECK(find_op(&ops, BLOB_RETURN, &at));
	lr_close(r.source);
}

/* The same kind of machine, what its processor has, and what its kernel maps. */
TEST(some_machines_continue_none)
{
	LR_CLEANUP_ARENA struct lr_arena *a = lr_arena_new();
	const void *vdso = (const void *)getauxval(AT_SYSINFO_EHDR);
	struct lr_err err = {0};
	struct lr_seed s;

	REQUIRE(open_sample(a, &s) == 0);
	struct lr_seed_host *h = (struct lr_seed_host *)(uintptr_t)lr_seed_host(&s, 0);
	CHECK_INT(resume_check_host(&s, &err), 0);
	h->machine = 183;
	CHECK_INT(resume_check_host(&s, &err), -ENOTSUP);
	CHECK_HAS(err.msg, "another kind of machine");
	h->machine = LR_SEED_X86_64;
	h->xfeatures = UINT64_C(1) << 62;
	CHECK_INT(resume_check_host(&s, &err), -ENOTSUP);
	CHECK_HAS(err.msg, "features of the processor");
	h->xfeatures = 7;
	h->xsave += 64;
	CHECK_INT(resume_check_host(&s, &err), -ENOTSUP);
	CHECK_HAS(err.msg, "lays its registers out in another way");
	h->xsave -= 64;
	h->vdso = 8192;
	CHECK_INT(resume_check_host(&s, &err), -ENOTSUP);
	CHECK_HAS(err.msg, "another vDSO");
	if (!vdso)
		return;
	h->vdso_sum = lr_hash(LR_HASH, vdso, LR_SEED_PAGE);
	CHECK_INT(resume_check_host(&s, &err), 0);
}

/* ---- the caller's side ----------------------------------------------------------------------- */

/* Nobody tells of a process that is killed before it has said anything; the others wait for it. */
TEST(who_is_missing_is_not_waited_for)
{
	LR_CLEANUP_ARENA struct lr_arena *a = lr_arena_new();
	const struct blob_report in_place = {.a = {0x1000, 4096}};
	struct lr_resume_left left[2] = {{0}};
	struct lr_err err = {0};
	struct lr_seed s;
	int pair[2];

	REQUIRE(open_sample(a, &s) == 0);
	REQUIRE(socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, pair) == 0);
	/* Both live; the second is no child of ours. */
	((struct lr_seed_process *)lr_seed_process(&s, 1))->flags = 0;
	CHECK_INT(write(pair[1], &in_place, sizeof(in_place)), sizeof(in_place));
	alarm(20);
	CHECK_INT(lr_resume_wait(&s, getpid(), pair[0], NULL, NULL, left, &err), -ESRCH);
	alarm(0);
	CHECK_HAS(err.msg, "process 8 ended before it was in place");
	CHECK_INT(left[0].start, 0x1000);
	close(pair[0]);
	close(pair[1]);
}

/* What a process or a thread says went wrong, and where. */
TEST(a_failure_is_told_with_its_call)
{
	LR_CLEANUP_ARENA struct lr_arena *a = lr_arena_new();
	const struct blob_report call = {.error = ENOMEM, .nr = SYS_mmap, .op = 5, .a = {0x400000}};
	struct {
		struct blob_report head;
		char text[8];
	} words = {{.error = ENOENT, .nr = BLOB_NO_CALL}, "no file"};
	struct lr_resume_left left[2];
	struct lr_err err = {0};
	struct lr_seed s;
	int pair[2];

	REQUIRE(open_sample(a, &s) == 0);
	REQUIRE(socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, pair) == 0);
	CHECK_INT(write(pair[1], &call, sizeof(call)), sizeof(call));
	CHECK_INT(lr_resume_wait(&s, getpid(), pair[0], NULL, NULL, left, &err), -ENOMEM);
	CHECK_HAS(err.msg, "process 7: step 5 of thread 0, system call 9 (0x400000");
	CHECK_INT(write(pair[1], &words, sizeof(words.head) + 7), sizeof(words.head) + 7);
	CHECK_INT(lr_resume_wait(&s, getpid(), pair[0], NULL, NULL, left, &err), -ENOENT);
	CHECK_STR(err.msg, "process 7: no file");
	close(pair[0]);
	close(pair[1]);
}

/* Nobody is held who has not closed its end. */
TEST(those_who_leave_are_waited_for)
{
	uint32_t *closed =
		mmap(NULL, LR_SEED_PAGE, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
	int pair[2];

	REQUIRE(closed != MAP_FAILED);
	REQUIRE(socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, pair) == 0);
	pid_t pid = fork();
	if (pid == 0) {
		usleep(2000);
		__atomic_store_n(closed, 1, __ATOMIC_SEQ_CST);
		_exit(0);
	}
	close(pair[1]);
	/* On a busy machine the other one may take longer than the wait does: so it is begun again. One that is none is
	 * over long before. */
	for (int i = 0; i < 50 && !__atomic_load_n(closed, __ATOMIC_SEQ_CST); i++)
		lr_resume_let_leave(pair[0]);
	CHECK_INT(__atomic_load_n(closed, __ATOMIC_SEQ_CST), 1);
	waitpid(pid, NULL, 0);
	close(pair[0]);
	munmap(closed, LR_SEED_PAGE);
	/* But not for ever. */
	REQUIRE(socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, pair) == 0);
	alarm(20);
	lr_resume_let_leave(pair[0]);
	alarm(0);
	close(pair[0]);
	close(pair[1]);
}

/* ---- what is left of the restorer ------------------------------------------------------------ */

#define LEFT UINT64_C(0x300000000000)

/* mov byte [rdi], 1; and round and round. */
static const uint8_t again[] = {0xc6, 0x07, 0x01, 0xeb, 0xfe};
#define ROUND (LEFT + 3)

/* A process that runs there, until somebody changes its code. */
static pid_t stays_inside(void)
{
	volatile uint8_t *inside =
		mmap(NULL, LR_SEED_PAGE, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
	pid_t pid = inside == MAP_FAILED ? -1 : fork();

	if (pid == 0) {
		void *at = mmap((void *)(uintptr_t)LEFT, LR_SEED_PAGE,
				PROT_READ | PROT_WRITE | PROT_EXEC,
				MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED, -1, 0);
		if (at == MAP_FAILED)
			_exit(1);
		memcpy(at, again, sizeof(again));
		((void (*)(volatile uint8_t *))(uintptr_t)LEFT)(inside);
		for (;;)
			pause();
	}
	for (unsigned i = 0; pid > 0 && !*inside && i < 10000; i++)
		usleep(1000);
	if (pid > 0)
		munmap((void *)(uintptr_t)inside, LR_SEED_PAGE);
	return pid;
}

static bool has_restorer(pid_t pid)
{
	char path[32], line[256];
	bool found = false;

	snprintf(path, sizeof(path), "/proc/%d/maps", pid);
	FILE *f = fopen(path, "re");
	while (f && fgets(line, sizeof(line), f))
		found = found || strncmp(line, "300000000000-", 13) == 0;
	if (f)
		fclose(f);
	return found;
}

TEST(the_restorer_is_taken_away_when_nobody_is_in_it)
{
	const struct lr_resume_left left = {LEFT, LR_SEED_PAGE};
	const uint8_t leave = 0xc3;
	struct lr_err err = {0};
	char path[32];
	pid_t pid = stays_inside();

	int r = lr_resume_clean(pid, &left, false, &err);
	snprintf(path, sizeof(path), "/proc/%d/mem", pid);
	LR_CLEANUP_FD int mem = lr_open(path, O_RDWR | O_CLOEXEC);
	if (mem >= 0 && r == -EBUSY && !strstr(err.msg, "hold thread")) {
		CHECK_HAS(err.msg, "does not leave the restorer");
		CHECK(has_restorer(pid));
		CHECK_INT(pwrite(mem, &leave, 1, (off_t)ROUND), 1);
		CHECK_INT(lr_resume_clean(pid, &left, false, &err), 0);
		CHECK(!has_restorer(pid));
		/* It is not there any more, and nobody minds. */
		CHECK_INT(lr_resume_clean(pid, &left, false, &err), 0);
	}
	CHECK_INT(waitpid(pid, NULL, WNOHANG), 0);
	kill(pid, SIGKILL);
	waitpid(pid, NULL, 0);
	if (mem < 0 || strstr(err.msg, "hold thread"))
		SKIP("may not trace");
	CHECK_INT(r, -EBUSY);
	CHECK_INT(lr_resume_clean(pid, &left, false, &err), 0);
}
