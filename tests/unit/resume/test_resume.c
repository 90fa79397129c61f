/* SPDX-License-Identifier: Apache-2.0 */
#include <errno.h>
#include <sys/auxv.h>
#include <sys/prctl.h>
#include <sys/syscall.h>

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

/* Memory that is anonymous is made as such; what was written of a file is put over it. */
TEST(memory_is_what_it_was)
{
	LR_CLEANUP_ARENA struct lr_arena *a = lr_arena_new();
	static uint8_t bytes[65536];
	struct lr_seed s;
	int fds[1] = {70};
	struct lr_resume r = {.a = a, .pages = 80, .backings = fds, .objects = fds, .exes = fds};
	struct lr_err err = {0};
	size_t at = 0;

	REQUIRE(open_sample(a, &s) == 0);
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
	const struct blob_op *op = find_op(&ops, SYS_mmap, &at);
	REQUIRE(op);
	CHECK_INT(op->a[0], 0x400000);
	CHECK_INT(op->a[4], 70);
	op = find_op(&ops, BLOB_READ, &at);
	REQUIRE(op);
	CHECK_INT(op->a[1], 0x401000);
	op = find_op(&ops, SYS_mmap, &at);
	REQUIRE(op);
	CHECK_INT(op->a[0], 0x600000);
	CHECK(op->a[3] & MAP_ANONYMOUS && op->a[3] & MAP_PRIVATE);
	op = find_op(&ops, BLOB_READ, &at);
	REQUIRE(op);
	CHECK_INT(op->a[2], 8192);
	op = find_op(&ops, SYS_mmap, &at);
	REQUIRE(op);
	CHECK(op->a[3] & MAP_SHARED);
	CHECK(find_op(&ops, SYS_prctl, &at) != NULL);
}

/* The kernel module has its contents: it is mapped as it is, and nothing is read. */
TEST(memory_of_the_module_is_mapped_from_it)
{
	LR_CLEANUP_ARENA struct lr_arena *a = lr_arena_new();
	static uint8_t bytes[65536];
	struct lr_seed s;
	int fds[1] = {70};
	struct lr_resume r = {
		.a = a, .pages = 80, .source = 90, .backings = fds, .objects = fds, .exes = fds};
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
	CHECK_INT(lr_resume_eager(&s, false, note, &x, &err), 0);
	CHECK_INT(x.n, 3);
	CHECK_INT(x.at[0], 3 * LR_SEED_PAGE);
	CHECK_INT(x.at[1], LR_SEED_PAGE);
	CHECK_INT(x.at[2], 2 * LR_SEED_PAGE);
	/* An error ends it. */
	x = (struct runs){.answer = -EIO};
	CHECK_INT(lr_resume_eager(&s, false, note, &x, &err), -EIO);
	CHECK_INT(x.n, 1);
	/* A file's that nobody wrote to: only what is shared, and what is in a tmpfs. */
	((struct lr_seed_vma *)lr_seed_vma(&s, 0))->kind = LR_SEED_ANON;
	x = (struct runs){0};
	CHECK_INT(lr_resume_eager(&s, false, note, &x, &err), 0);
	CHECK_INT(x.n, 2);
	CHECK_INT(x.at[0], LR_SEED_PAGE);
	/* Nothing maps a stack that grows: by the module it has to be there before. */
	((struct lr_seed_vma *)lr_seed_vma(&s, 1))->flags |= LR_SEED_GROWSDOWN;
	x = (struct runs){0};
	CHECK_INT(lr_resume_eager(&s, true, note, &x, &err), 0);
	CHECK_INT(x.n, 3);
	CHECK_INT(x.at[0], 4 * LR_SEED_PAGE);
	x = (struct runs){0};
	CHECK_INT(lr_resume_eager(&s, false, note, &x, &err), 0);
	CHECK_INT(x.n, 2);
}

static int last_but_one(void *arg, const struct lr_seed_thread *t, struct lr_resume_ops *ops,
			struct lr_err *err)
{
	(void)arg, (void)t, (void)err;
	return lr_resume_add(ops, SYS_setresuid, 1, 1, 1, 0, 0, 0);
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
	static uint8_t bytes[65536];
	struct lr_seed s;
	struct lr_resume r = {
		.a = a, .base = 64, .opts.confine = last_but_one, .opts.filter = very_last};
	struct lr_err err = {0};
	size_t at = 0, from = 0;

	REQUIRE(open_sample(a, &s) == 0);
	r.seed = &s;
	struct one x = {
		.r = &r,
		.seed = &s,
		.p = lr_seed_process(&s, 0),
		.mm = lr_seed_mm(&s, 0),
		.image = {.a = a, .at = 0x200000000000, .size = sizeof(bytes), .bytes = bytes}};
	((struct lr_seed_process *)x.p)->dumpable = 1;
	struct lr_resume_ops ops = {.image = &x.image};
	REQUIRE(plan_threads(&x, &ops, &err) == 0);
	const int order[] = {SYS_setresuid,   BLOB_GATHER, BLOB_RENDEZVOUS, SYS_timer_create,
			     SYS_close_range, BLOB_GO,     SYS_seccomp,     BLOB_RETURN};
	for (size_t i = 0; i < sizeof(order) / sizeof(order[0]); i++)
		CHECK(find_op(&ops, order[i], &at));
	CHECK_INT(at, ops.n);
	/* Nor may anybody look at it yet. */
	for (const struct blob_op *op; (op = find_op(&ops, SYS_prctl, &from));)
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
	h->xfeatures = 1;
	h->vdso = 8192;
	CHECK_INT(resume_check_host(&s, &err), -ENOTSUP);
	CHECK_HAS(err.msg, "another vDSO");
	if (!vdso)
		return;
	h->vdso_sum = lr_hash(LR_HASH, vdso, LR_SEED_PAGE);
	CHECK_INT(resume_check_host(&s, &err), 0);
}
