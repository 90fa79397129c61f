/* SPDX-License-Identifier: Apache-2.0 */
/*
 * faults [NAME...]: each allocation of memory by which the kernel serves a call of the module fails once. The call then
 * fails, too, or a page ends with SIGBUS, or it is done without: no memory is ever another than it should be, and
 * nothing is left. Needs a kernel that can let allocations fail (`kasan`), the module, root, and soft-RoCE.
 *
 * There are two ways. The kernel counts the allocations of one thread (/proc/thread-self/fail-nth), whoever asks for
 * them. And it counts those that the module asks for, of all threads, its workers and those of RDMA among them.
 */
#define _GNU_SOURCE
#include "rdma.h"

#include <limits.h>
#include <poll.h>
#include <pthread.h>
#include <stdarg.h>
#include <sys/rseq.h>
#include <sys/syscall.h>

#define N ((size_t)64)
/* Seconds for a test: hundreds of rounds, some with RDMA's own timeouts, in emulation. */
#define PATIENCE 3000
#define FAULTS   "/sys/kernel/debug/"
#define FAILNTH  "/proc/thread-self/fail-nth"
#define MODULE   "/modules/lean_seed.ko"

static const char *const kinds[] = {"failslab", "fail_page_alloc"};

/* ---- which allocation fails ------------------------------------------------ */

static unsigned nth;           /* it is this one, of a round, */
static bool hit;               /* and it did */
static int thread_file = -1;   /* of those of this thread, if it is open */
static unsigned thread_left;   /* how many are left until then */
static const char *all_kind;   /* else of this kind, and the module's */
static unsigned errors, buses; /* what came of it */

__attribute__((format(printf, 2, 3))) static void put(const char *file, const char *format, ...)
{
	va_list ap;
	va_start(ap, format);
	int fd = open(file, O_WRONLY | O_CLOEXEC);
	CHECK(fd >= 0 && vdprintf(fd, format, ap) > 0);
	va_end(ap);
	close(fd);
}

static void knob(const char *kind, const char *name, unsigned long value)
{
	char file[100];
	snprintf(file, sizeof(file), FAULTS "%s/%s", kind, name);
	put(file, "%#lx", value);
}

/* Does the one that was asked for still have to fail? */
static bool is_due(const char *kind)
{
	char file[100], text[16] = "";
	snprintf(file, sizeof(file), FAULTS "%s/times", kind);
	int fd = open(file, O_RDONLY | O_CLOEXEC);
	CHECK(fd >= 0 && read(fd, text, sizeof(text) - 1) > 0);
	close(fd);
	return atoi(text) != 0;
}

static void count_on(void)
{
	if (hit)
		return;
	if (thread_file >= 0)
		CHECK(dprintf(thread_file, "%u", thread_left) > 0);
	else
		knob(all_kind, "times", 1);
}

static void count_off(void)
{
	char text[16] = "";
	if (hit)
		return;
	if (thread_file >= 0) {
		CHECK(pread(thread_file, text, sizeof(text) - 1, 0) > 0);
		CHECK(pwrite(thread_file, "0", 1, 0) == 1);
		thread_left = (unsigned)atoi(text);
		hit = thread_left == 0;
	} else {
		hit = !is_due(all_kind);
		knob(all_kind, "times", 0);
	}
}

/* The value of a call, whose allocations are counted. */
#define COUNTED(call)                                                                              \
	({                                                                                         \
		count_on();                                                                        \
		__typeof__(call) value_ = (call);                                                  \
		int error_ = errno;                                                                \
		count_off();                                                                       \
		errno = error_;                                                                    \
		value_;                                                                            \
	})

static void prepare_kinds(void)
{
	for (size_t i = 0; i < sizeof(kinds) / sizeof(kinds[0]); i++) {
		knob(kinds[i], "verbose", 0);
		knob(kinds[i], "times", 0);
		knob(kinds[i], "probability", 0);
		knob(kinds[i], "ignore-gfp-wait", 0);
		knob(kinds[i], "require-start", 0);
		knob(kinds[i], "require-end", ULONG_MAX);
	}
	knob("fail_page_alloc", "ignore-gfp-highmem", 0);
	knob("fail_page_alloc", "min-order", 0);
}

/*
 * The kernel writes to a thread's area (rseq(2)) when the thread gets another processor. Just after a fork that page has
 * to be copied, and a thread whose area can't be written to is killed.
 */
static void do_without_rseq(void)
{
	struct rseq *area = (struct rseq *)((char *)__builtin_thread_pointer() + __rseq_offset);
	CHECK(syscall(SYS_rseq, area, sizeof(*area), RSEQ_FLAG_UNREGISTER, RSEQ_SIG) == 0);
}

/* From the first allocation of this thread on, until a round has fewer. */
static void of_this_thread(void (*round)(void), bool takes_memory)
{
	unsigned failed = 0;
	alarm(PATIENCE);
	do_without_rseq();
	prepare_kinds();
	thread_file = open(FAILNTH, O_RDWR | O_CLOEXEC);
	CHECK(thread_file >= 0);
	/* How many there are varies a little: slabs are filled now and then. */
	for (unsigned quiet = 0; quiet < 3; nth++) {
		thread_left = nth + 1;
		hit = false;
		round();
		nothing_is_left();
		failed += hit;
		quiet = hit ? 0 : quiet + 1;
	}
	CHECK(failed > 0 || !takes_memory);
	printf("# %u allocations failed: %u errors, %u SIGBUS\n", failed, errors, buses);
}

/* Those that have a function of the module among their callers. */
static void of_the_module_only(const char *kind)
{
	unsigned long size, start = 0;
	char line[300];
	FILE *f = fopen("/proc/modules", "r");
	while (f && fgets(line, sizeof(line), f))
		if (sscanf(line, "lean_seed %lu %*s %*s %*s %lx", &size, &start) == 2)
			break;
	CHECK(f && start != 0);
	fclose(f);
	knob(kind, "require-start", start);
	knob(kind, "require-end", start + size);
	knob(kind, "probability", 100);
}

static bool one_round(void (*round)(void))
{
	hit = false;
	round();
	nothing_is_left();
	return hit;
}

/*
 * The kernel lets each so manyth fail, and begins to count when the last one has failed: so it has to fail once, at
 * whatever place, before the place of the next one is known.
 */
static void of_the_module(void (*round)(void))
{
	unsigned all = 0;
	alarm(PATIENCE);
	for (size_t i = 0; i < sizeof(kinds) / sizeof(kinds[0]); i++) {
		unsigned failed = 0, tries;
		prepare_kinds();
		all_kind = kinds[i];
		of_the_module_only(all_kind);
		for (nth = 1;; nth++) {
			knob(all_kind, "interval", nth);
			for (tries = 0; nth > 1 && tries <= nth && !one_round(round); tries++)
				;
			if (tries > nth || !one_round(round))
				break;
			failed++;
		}
		printf("# %s: %u allocations failed: %u errors, %u SIGBUS\n", all_kind, failed,
		       errors, buses);
		all += failed;
	}
	CHECK(all > 0);
	prepare_kinds();
}

/* ---- what is looked at ------------------------------------------------------ */

/* Has a call failed, as it may? */
static bool is_refused(long value)
{
	if (value >= 0)
		return false;
	CHECK(hit && (errno == ENOMEM || errno == EAGAIN || errno == EFAULT));
	errors++;
	return true;
}

static char *frozen_memory;
static pid_t frozen;
static int dev;

/* Whose memory becomes a seed in each round. */
static void freeze(void)
{
	frozen_memory = anonymous(N);
	CHECK(madvise(frozen_memory, N * PAGE, MADV_NOHUGEPAGE) == 0);
	fill(frozen_memory, N);
	frozen = twin();
	dev = device();
}

static int a_seed(void)
{
	int seed = export_range(frozen, frozen_memory, N, NULL);
	CHECK(seed >= 0);
	return seed;
}

/* Of four pages the first is untouched, the second was read, the third written, and the fourth discarded. */
static bool is_as_it_was(const char *m, size_t page, size_t number)
{
	if (number % 4 == 3)
		return is_zero(m, page);
	return is_seed(m, page, number) && word(m, page, 8) == (number % 4 == 2 ? number : 0);
}

static char *used_mapping(int source)
{
	char *m = map(source, N);
	for (size_t i = 0; i < N; i++) {
		if (i % 4 == 1)
			CHECK(is_seed(m, i, i));
		else if (i % 4 == 2)
			*(uint64_t *)(m + i * PAGE + 8) = i;
		else if (i % 4 == 3)
			CHECK(madvise(m + i * PAGE, PAGE, MADV_DONTNEED) == 0);
	}
	return m;
}

/* How many of these pages end with SIGBUS. All others are what they were; number: that of the first one. */
static size_t lost(const char *m, size_t pages, size_t number)
{
	size_t count = 0;
	for (size_t i = 0; i < pages; i++) {
		if (is_bus(m, i))
			count++;
		else
			CHECK(is_as_it_was(m, i, number + i));
	}
	return count;
}

static void end_mapping(char *m, int source, int seed)
{
	if (m)
		CHECK(munmap(m, N * PAGE) == 0);
	close(source);
	close(seed);
}

/* Who lost pages is a mapping that can't be tracked, and the module says so. */
static void lost_in(size_t count, uint64_t untracked_before)
{
	if (count == 0)
		return;
	CHECK(hit && info().untracked > untracked_before);
	buses++;
}

/* ---- rounds ---------------------------------------------------------------- */

static char bytes[N * 4096];

static void read_all(int seed, size_t first, size_t pages)
{
	CHECK(pread(seed, bytes, pages * PAGE, (off_t)(first * PAGE)) == (ssize_t)(pages * PAGE));
	for (size_t i = 0; i < pages; i++)
		CHECK(is_seed(bytes, i, i));
}

static void export_one(void)
{
	struct lean_seed_range range = {(uintptr_t)frozen_memory, N * PAGE};
	struct lean_seed_export arg = {.pid = frozen, .count = 1, .ranges = (uintptr_t)&range};
	int seed = COUNTED(ioctl(dev, LEAN_SEED_EXPORT, &arg));
	if (is_refused(seed))
		return;
	read_all(seed, 0, N);
	CHECK(COUNTED(close(seed)) == 0);
}

/* Pages that were never written, too, for which page tables are made. */
static void export_several(void)
{
	char *empty = anonymous(4);
	pid_t other = twin();
	const struct lean_seed_range ranges[] = {{LEAN_SEED_HOLE, PAGE},
						 {(uintptr_t)frozen_memory, 3 * PAGE},
						 {(uintptr_t)empty, 4 * PAGE}};
	const int32_t pids[] = {0, frozen, other};
	struct lean_seed_export arg = {
		.count = 3, .ranges = (uintptr_t)ranges, .pids = (uintptr_t)pids};
	int seed = COUNTED(ioctl(dev, LEAN_SEED_EXPORT, &arg));
	if (!is_refused(seed)) {
		CHECK(arg.pages == 8 && arg.holes == 5);
		read_all(seed, 1, 3);
		close(seed);
	}
	end(other);
	munmap(empty, 4 * PAGE);
}

static void open_local(void)
{
	int seed = a_seed();
	struct lean_seed_open arg = {.seed = seed};
	int source = COUNTED(ioctl(dev, LEAN_SEED_OPEN, &arg));
	if (!is_refused(source)) {
		char *m = map(source, N);
		CHECK(is_seed(m, 7, 7));
		munmap(m, N * PAGE);
		CHECK(COUNTED(close(source)) == 0);
	}
	CHECK(COUNTED(close(seed)) == 0);
}

static void make_token(void)
{
	int seed = a_seed();
	struct lean_seed_token token = {0};
	(void)is_refused(COUNTED(ioctl(seed, LEAN_SEED_TOKEN, &token)));
	close(seed);
}

static void map_source(void)
{
	int seed = a_seed(), source = open_seed(seed, 1);
	char *m = COUNTED(mmap(NULL, N * PAGE, PROT_READ, MAP_PRIVATE, source, 0));
	if (is_refused(m == MAP_FAILED ? -1 : 0)) {
		end_mapping(NULL, source, seed);
		return;
	}
	for (size_t i = 0; i < N; i++)
		CHECK(is_seed(m, i, i));
	/* Also this may lack memory, for the kernel's notes of what is mapped; then nothing is gone. */
	if (is_refused(COUNTED(munmap(m, N * PAGE)))) {
		for (size_t i = 0; i < N; i++)
			CHECK(is_seed(m, i, i));
	} else {
		m = NULL;
	}
	end_mapping(m, source, seed);
}

/* Reads by the processor, of pages that are not here, and of discarded ones. */
static void read_faults(void)
{
	int seed = a_seed(), source = open_seed(seed, 16);
	char *m = map(source, N);
	CHECK(madvise(m + 40 * PAGE, PAGE, MADV_DONTNEED) == 0);
	buses += COUNTED(is_bus(m, 5)) + COUNTED(is_bus(m, 40)) + COUNTED(is_bus(m, 41));
	/* The next one gets it. */
	for (size_t i = 0; i < N; i++)
		CHECK(i == 40 ? is_zero(m, i) : is_seed(m, i, i));
	end_mapping(m, source, seed);
}

static char *to_write; /* for written() */
static long written(void)
{
	*(volatile uint64_t *)(to_write + 8) = 77;
	return 0;
}

static void write_faults(void)
{
	int seed = a_seed(), source = open_seed(seed, 1);
	char *m = map(source, N);
	to_write = m + 9 * PAGE;
	CHECK(COUNTED(written()) == 0);
	CHECK(is_seed(m, 9, 9) && word(m, 9, 8) == 77 && is_seed(m, 10, 10));
	CHECK(pread(seed, bytes, PAGE, 9 * PAGE) == (ssize_t)PAGE && word(bytes, 0, 8) == 0);
	end_mapping(m, source, seed);
}

/* The kernel's own accesses: a system call whose memory is not here. */
static void faults_of_the_kernel(void)
{
	int seed = a_seed(), source = open_seed(seed, 1), fds[2];
	char *m = map(source, N);
	uint64_t first = 0;
	CHECK(pipe(fds) == 0);
	if (!is_refused(COUNTED(write(fds[1], m + 9 * PAGE, 8))))
		CHECK(read(fds[0], &first, 8) == 8 && first == mark(9));
	CHECK(write(fds[1], m + 11 * PAGE, 8) == 8);
	(void)is_refused(COUNTED(read(fds[0], m + 13 * PAGE + 8, 8)));
	for (size_t i = 0; i < N; i++)
		CHECK(is_seed(m, i, i));
	CHECK(word(m, 13, 8) == 0 || word(m, 13, 8) == mark(11));
	close(fds[0]);
	close(fds[1]);
	end_mapping(m, source, seed);
}

static void fetch_pages(void)
{
	int seed = a_seed(), source = open_seed(seed, 0);
	struct lean_seed_fetch all = {.first = 0, .count = N};
	(void)is_refused(COUNTED(ioctl(source, LEAN_SEED_FETCH, &all)));
	CHECK(!status(source).dead);
	char *m = map(source, N);
	for (size_t i = 0; i < N; i++)
		CHECK(is_seed(m, i, i));
	end_mapping(m, source, seed);
}

/* What a fork finds: 0, or 2 if some of it is SIGBUS. */
static int looks(char *m)
{
	bool some = lost(m, N, 0) > 0;
	CHECK(madvise(m + 4 * PAGE, PAGE, MADV_DONTNEED) == 0);
	CHECK(is_bus(m, 4) || is_zero(m, 4));
	return some ? 2 : 0;
}

static void fork_mapping(void)
{
	int seed = a_seed(), source = open_seed(seed, 1), code;
	uint64_t untracked = info().untracked;
	char *m = used_mapping(source);
	CHECK(mprotect(m + 32 * PAGE, 4 * PAGE, PROT_READ) == 0); /* several VMAs */
	fflush(stdout);
	count_on();
	pid_t pid = fork();
	if (pid == 0)
		_exit(looks(m));
	int error = errno;
	count_off();
	errno = error;
	if (!is_refused(pid)) {
		CHECK(waitpid(pid, &code, 0) == pid && WIFEXITED(code));
		CHECK(WEXITSTATUS(code) == 0 || WEXITSTATUS(code) == 2);
		lost_in(WEXITSTATUS(code), untracked);
	}
	CHECK(lost(m, N, 0) == 0);
	end_mapping(m, source, seed);
}

static void move_all(void)
{
	int seed = a_seed(), source = open_seed(seed, 1);
	uint64_t untracked = info().untracked;
	char *m = used_mapping(source), *place = anonymous(N);
	char *new = COUNTED(mremap(m, N * PAGE, N * PAGE, MREMAP_MAYMOVE | MREMAP_FIXED, place));
	if (is_refused(new == MAP_FAILED ? -1 : 0))
		CHECK(lost(m, N, 0) == 0);
	else
		lost_in(lost(new, N, 0), untracked);
	munmap(place, N * PAGE);
	end_mapping(m, source, seed);
}

/* Sixteen pages, which get sixteen more; what is around them stays. */
static void move_a_part(void)
{
	int seed = a_seed(), source = open_seed(seed, 1);
	uint64_t untracked = info().untracked;
	char *m = used_mapping(source);
	char *new = COUNTED(mremap(m + 16 * PAGE, 16 * PAGE, 32 * PAGE, MREMAP_MAYMOVE));
	if (is_refused(new == MAP_FAILED ? -1 : 0)) {
		CHECK(lost(m, N, 0) == 0);
	} else {
		lost_in(lost(new, 16, 16), untracked);
		/* What can't be tracked is lost as a whole, so what was added, too. */
		for (size_t i = 16; i < 32; i++)
			CHECK((info().untracked > untracked && is_bus(new, i)) || is_zero(new, i));
		CHECK(lost(m, 16, 0) == 0 && lost(m + 32 * PAGE, N - 32, 32) == 0);
		munmap(new, 32 * PAGE);
	}
	end_mapping(m, source, seed);
}

/* The move can't be tracked, and then fails: what had been moved comes back as it was, or is SIGBUS. */
static void move_untracked(void)
{
	int seed = a_seed(), source = open_seed(seed, 1);
	char *m = used_mapping(source), *place = anonymous(N);
	put("/sys/module/lean_seed/parameters/fault_views", "1");
	char *new = COUNTED(mremap(m, N * PAGE, N * PAGE, MREMAP_MAYMOVE | MREMAP_FIXED, place));
	put("/sys/module/lean_seed/parameters/fault_views", "0");
	if (is_refused(new == MAP_FAILED ? -1 : 0))
		buses += lost(m, N, 0) > 0;
	else
		CHECK(lost(new, N, 0) > 0);
	munmap(place, N * PAGE);
	end_mapping(m, source, seed);
}

/* Old memory that stays where it was reads zero. */
static void move_and_leave(void)
{
	int seed = a_seed(), source = open_seed(seed, 1);
	uint64_t untracked = info().untracked;
	char *m = used_mapping(source);
	char *new = COUNTED(
		mremap(m, N * PAGE, N * PAGE, MREMAP_MAYMOVE | 4 /* MREMAP_DONTUNMAP */, NULL));
	if (is_refused(new == MAP_FAILED ? -1 : 0)) {
		CHECK(lost(m, N, 0) == 0);
	} else {
		lost_in(lost(new, N, 0), untracked);
		for (size_t i = 0; i < N; i++)
			CHECK((info().untracked > untracked && is_bus(m, i)) || is_zero(m, i));
		munmap(new, N * PAGE);
	}
	end_mapping(m, source, seed);
}

/* Splitting a mapping takes memory; so do discards, in what they split. */
static void split_mapping(void)
{
	int seed = a_seed(), source = open_seed(seed, 1);
	char *m = used_mapping(source);
	(void)is_refused(COUNTED(mprotect(m + 8 * PAGE, 4 * PAGE, PROT_READ)));
	(void)is_refused(COUNTED(madvise(m + 20 * PAGE, 4 * PAGE, MADV_DONTFORK)));
	CHECK(lost(m, N, 0) == 0);
	bool gone = !is_refused(COUNTED(madvise(m + 24 * PAGE, 4 * PAGE, MADV_DONTNEED)));
	for (size_t i = 24; i < 28; i++)
		CHECK(gone ? is_zero(m, i) : is_as_it_was(m, i, i));
	gone = !is_refused(COUNTED(munmap(m + 32 * PAGE, 4 * PAGE)));
	CHECK(lost(m, 24, 0) == 0 && lost(m + 36 * PAGE, N - 36, 36) == 0);
	if (!gone)
		CHECK(lost(m + 32 * PAGE, 4, 32) == 0);
	end_mapping(m, source, seed);
}

/* A child's memory becomes a seed: what it has not touched is read for that. */
static void export_mapping(void)
{
	int first = a_seed(), source = open_seed(first, 1);
	char *m = used_mapping(source);
	pid_t pid = twin();
	struct lean_seed_range range = {(uintptr_t)m, N * PAGE};
	struct lean_seed_export arg = {.pid = pid, .count = 1, .ranges = (uintptr_t)&range};
	int seed = COUNTED(ioctl(dev, LEAN_SEED_EXPORT, &arg));
	if (!is_refused(seed)) {
		CHECK(pread(seed, bytes, N * PAGE, 0) == (ssize_t)(N * PAGE));
		for (size_t i = 0; i < N; i++)
			CHECK(is_as_it_was(bytes, i, i));
		close(seed);
	}
	end(pid);
	end_mapping(m, source, first);
}

static void *feed(void *arg)
{
	static char pages[LEAN_SEED_WANT_MAX * 4096];
	struct lean_seed_want w;
	int fd = *(int *)arg;
	while (read(fd, &w, sizeof(w)) == (ssize_t)sizeof(w)) {
		struct lean_seed_fill f = {.id = w.id, .count = w.count, .pages = (uintptr_t)pages};
		for (size_t i = 0; i < w.count; i++) {
			uint64_t *at = (uint64_t *)(pages + i * PAGE);
			at[0] = at[PAGE / 8 - 1] = mark(w.index[i]);
		}
		CHECK(ioctl(fd, LEAN_SEED_FILL, &f) == 0);
	}
	return NULL;
}

static void feed_source(void)
{
	struct lean_seed_feed arg = {.pages = N};
	pthread_t thread;
	int fd = COUNTED(ioctl(dev, LEAN_SEED_FEED, &arg));
	if (is_refused(fd))
		return;
	struct lean_seed_open open_it = {.seed = fd};
	int source = COUNTED(ioctl(dev, LEAN_SEED_OPEN, &open_it));
	if (!is_refused(source)) {
		CHECK(pthread_create(&thread, NULL, feed, &fd) == 0);
		char *m = map(source, N);
		for (size_t i = 0; i < N; i += 20)
			buses += COUNTED(is_bus(m, i));
		for (size_t i = 0; i < N; i++)
			CHECK(is_seed(m, i, i));
		munmap(m, N * PAGE);
		CHECK(COUNTED(close(source)) == 0);
		pthread_join(thread, NULL);
	}
	close(fd);
}

/* A program that reads what is wanted, answers and polls, while another thread waits. */
static void *touch(void *page)
{
	return (void *)(uintptr_t)is_bus(page, 0);
}

static void answer_wants(void)
{
	struct lean_seed_feed arg = {.pages = N};
	int fd = ioctl(dev, LEAN_SEED_FEED, &arg), source = open_seed(fd, 1);
	char *m = map(source, N);
	pthread_t thread;
	void *bus;
	struct lean_seed_want w;
	struct lean_seed_fill f = {.count = 1, .pages = (uintptr_t)frozen_memory};
	struct pollfd p = {.fd = fd, .events = POLLIN};
	CHECK(pthread_create(&thread, NULL, touch, m) == 0);
	while (is_refused(COUNTED(poll(&p, 1, 60000))))
		;
	CHECK(p.revents & POLLIN);
	while (is_refused(COUNTED(read(fd, &w, sizeof(w)))))
		;
	f.id = w.id;
	while (is_refused(COUNTED(ioctl(fd, LEAN_SEED_FILL, &f))))
		;
	CHECK(pthread_join(thread, &bus) == 0 && !bus && is_seed(m, 0, 0));
	end_mapping(m, source, fd);
}

/* ---- RDMA: whatever fails, it says so in its own words ---------------------- */

static const char *host = "192.0.2.1";

static bool is_refused_somehow(long value)
{
	if (value >= 0)
		return false;
	CHECK(hit && errno != 0);
	errors++;
	return true;
}

static void read_by_rdma(int source)
{
	char *m = map(source, N);
	for (size_t i = 0; i < N; i++) {
		if (COUNTED(is_bus(m, i))) {
			CHECK(hit && status(source).reason != LEAN_SEED_FINE);
			buses++;
		} else {
			CHECK(is_seed(m, i, i));
		}
	}
	munmap(m, N * PAGE);
	CHECK(COUNTED(close(source)) == 0);
}

static void connect_and_read(void)
{
	struct sockaddr_in a = address_of(host, 7474);
	struct lean_seed_listen where = {.address = (uintptr_t)&a, .length = sizeof(a)};
	int listener = COUNTED(ioctl(dev, LEAN_SEED_LISTEN, &where));
	if (is_refused_somehow(listener))
		return;
	int seed = a_seed();
	struct lean_seed_token token = token_of(seed);
	/* Where the other side has failed, all of it passes. */
	struct lean_seed_connect arg = {
		.address = (uintptr_t)&a, .length = sizeof(a), .timeout = 5000};
	memcpy(arg.token, token.token, sizeof(arg.token));
	int source = COUNTED(ioctl(dev, LEAN_SEED_CONNECT, &arg));
	if (!is_refused_somehow(source))
		read_by_rdma(source);
	close(listener);
	close(seed);
}

/* ---- loading --------------------------------------------------------------- */

/* It is loaded before, and after. */
static void load(void)
{
	int file = open(MODULE, O_RDONLY | O_CLOEXEC);
	CHECK(file >= 0 && syscall(SYS_delete_module, "lean_seed", O_NONBLOCK) == 0);
	if (is_refused(COUNTED(syscall(SYS_finit_module, file, "", 0))))
		CHECK(syscall(SYS_finit_module, file, "", 0) == 0);
	close(file);
}

/* ---- tests ----------------------------------------------------------------- */

#define OF_THREAD(name)                                                                            \
	static void thread_##name(void)                                                            \
	{                                                                                          \
		freeze();                                                                          \
		of_this_thread(name, true);                                                        \
	}
#define OF_MODULE(name)                                                                            \
	static void module_##name(void)                                                            \
	{                                                                                          \
		freeze();                                                                          \
		of_the_module(name);                                                               \
	}

static void thread_load(void)
{
	of_this_thread(load, true);
}
/* All memory that it takes was had when the page was asked for; the kernel may take some to look at itself. */
static void thread_answer_wants(void)
{
	freeze();
	of_this_thread(answer_wants, false);
}
OF_THREAD(export_one)
OF_THREAD(export_several)
OF_THREAD(export_mapping)
OF_THREAD(open_local)
OF_THREAD(make_token)
OF_THREAD(map_source)
OF_THREAD(read_faults)
OF_THREAD(write_faults)
OF_THREAD(faults_of_the_kernel)
OF_THREAD(fetch_pages)
OF_THREAD(fork_mapping)
OF_THREAD(move_all)
OF_THREAD(move_a_part)
OF_THREAD(move_untracked)
OF_THREAD(move_and_leave)
OF_THREAD(split_mapping)
OF_THREAD(feed_source)
OF_THREAD(connect_and_read)
OF_MODULE(fork_mapping)
OF_MODULE(read_faults)
OF_MODULE(feed_source)
OF_MODULE(connect_and_read)

static const struct test tests[] = {
	{"no memory: the module is loaded", thread_load},
	{"no memory: a seed is made", thread_export_one},
	{"no memory: a seed of several processes is made", thread_export_several},
	{"no memory: a seed of a child is made", thread_export_mapping},
	{"no memory: a source is made", thread_open_local},
	{"no memory: a token is made", thread_make_token},
	{"no memory: a source is mapped", thread_map_source},
	{"no memory: pages are read", thread_read_faults},
	{"no memory: pages are written", thread_write_faults},
	{"no memory: pages are touched by system calls", thread_faults_of_the_kernel},
	{"no memory: pages are fetched", thread_fetch_pages},
	{"no memory: a child forks", thread_fork_mapping},
	{"no memory: a mapping is moved", thread_move_all},
	{"no memory: a part of a mapping is moved", thread_move_a_part},
	{"no memory: a mapping is moved, and can't be tracked", thread_move_untracked},
	{"no memory: a mapping is moved, and what was there stays", thread_move_and_leave},
	{"no memory: a mapping is split", thread_split_mapping},
	{"no memory: a feed's source is read", thread_feed_source},
	{"no memory: a feed is answered", thread_answer_wants},
	{"no memory: a seed is read by RDMA", thread_connect_and_read},
	{"no memory for the module: a child forks", module_fork_mapping},
	{"no memory for the module: pages are read", module_read_faults},
	{"no memory for the module: a feed's source is read", module_feed_source},
	{"no memory for the module: a seed is read by RDMA", module_connect_and_read},
	{"no memory: nothing is left", nothing_is_left},
};

int main(int argc, char **argv)
{
	setvbuf(stdout, NULL, _IOLBF, 0);
	if (access(FAILNTH, W_OK) != 0 || access(FAULTS "failslab/require-start", W_OK) != 0) {
		printf("ok 1 - no memory # SKIP this kernel lets no allocations fail (no "
		       "fail-nth)\n1..1\n");
		return 0;
	}
	add_rxe();
	return run_tests(tests, sizeof(tests) / sizeof(tests[0]), argc, argv);
}
