/* SPDX-License-Identifier: Apache-2.0 */
/*
 * traps [NAME...|--hold]: does a mapping of a seed behave as anonymous memory that holds the seed's pages, on this
 * kernel? Seed and children are on one host. Needs the module, root, swap and a cgroup v2 tree.
 */
#define _GNU_SOURCE
#include "lib.h"

#include <pthread.h>
#include <sys/stat.h>
#include <sys/time.h>

#ifndef MADV_PAGEOUT
#define MADV_PAGEOUT 21
#endif
#define HUGE (512) /* pages of 2 MiB */
#define N    ((size_t)1024)

static void contents(void)
{
	int source = open_seed(make_seed(N), 0);
	char *m = map(source, N);
	for (size_t i = 0; i < N; i++)
		CHECK(is_seed(m, i, i));
	struct lean_seed_status s = status(source);
	CHECK(s.fetched == N && s.cached == N && s.pages == N);
	/* Read in batches, and not page by page. */
	CHECK(s.batches <= N / 16);
}

static void holes(void)
{
	char *memory = anonymous(N);
	CHECK(madvise(memory, N * PAGE, MADV_NOHUGEPAGE) == 0);
	fill(memory, 2);
	fill(memory + 8 * PAGE, 1);
	pid_t pid = twin();
	struct lean_seed_export result;
	int seed = export_range(pid, memory, N, &result);
	CHECK(seed >= 0);
	CHECK(result.pages == N && result.holes == N - 3);
	CHECK(info().referenced == 3);
	end(pid);
	char *m = map(open_seed(seed, 0), N);
	CHECK(is_seed(m, 1, 1) && is_seed(m, 8, 0));
	CHECK(is_zero(m, 2) && is_zero(m, 9) && is_zero(m, N - 1));
}

static void writes_are_private(void)
{
	int source = open_seed(make_seed(N), 0);
	char *one = map(source, N), *other = map(source, N);
	memset(one, 1, N * PAGE); /* of pages that nobody has read */
	for (size_t i = 0; i < N; i++)
		CHECK(is_seed(other, i, i) && one[i * PAGE] == 1);
}

static void at_an_offset(void)
{
	int source = open_seed(make_seed(N), 0);
	char *m = mmap(NULL, 16 * PAGE, PROT_READ, MAP_PRIVATE, source, 100 * PAGE);
	CHECK(m != MAP_FAILED);
	CHECK(is_seed(m, 0, 100) && is_seed(m, 15, 115));
}

/* mov $42, %eax; ret */
static const char code[] = {(char)0xb8, 42, 0, 0, 0, (char)0xc3};

static void executable(void)
{
	int source = open_seed(make_seed(N), 0);
	char *m = map(source, N);
	memcpy(m + 5 * PAGE, code, sizeof(code));
	CHECK(mprotect(m, 10 * PAGE, PROT_READ | PROT_EXEC) == 0);
	CHECK(((int (*)(void))(uintptr_t)(m + 5 * PAGE))() == 42);
	CHECK(is_seed(m, 4, 4));
	m = mmap(NULL, 4 * PAGE, PROT_READ | PROT_WRITE | PROT_EXEC, MAP_PRIVATE, source, 0);
	CHECK(m != MAP_FAILED && is_seed(m, 3, 3));
	memcpy(m, code, sizeof(code));
	CHECK(((int (*)(void))(uintptr_t)m)() == 42);
}

static void refused_mappings(void)
{
	int source = open_seed(make_seed(N), 0);
	CHECK(mmap(NULL, PAGE, PROT_READ, MAP_SHARED, source, 0) == MAP_FAILED && errno == EINVAL);
	CHECK(mmap(NULL, 2 * PAGE, PROT_READ, MAP_PRIVATE, source, (N - 1) * PAGE) == MAP_FAILED &&
	      errno == EINVAL);
	CHECK(mmap(NULL, PAGE, PROT_READ, MAP_PRIVATE, source, (off_t)1 << 60) == MAP_FAILED);
}

static void discard_untouched(void)
{
	char *m = map(open_seed(make_seed(N), 0), N);
	CHECK(madvise(m + 10 * PAGE, 5 * PAGE, MADV_DONTNEED) == 0);
	for (size_t i = 10; i < 15; i++)
		CHECK(is_zero(m, i));
	CHECK(is_seed(m, 9, 9) && is_seed(m, 15, 15));
}

static void discard_touched(void)
{
	char *m = map(open_seed(make_seed(N), 0), N);
	CHECK(is_seed(m, 3, 3));
	m[4 * PAGE] = 1;
	CHECK(madvise(m + 3 * PAGE, 2 * PAGE, MADV_DONTNEED) == 0);
	CHECK(is_zero(m, 3) && is_zero(m, 4) && is_seed(m, 5, 5));
	/* And again, of what was written since. */
	m[3 * PAGE] = 7;
	CHECK(madvise(m + 3 * PAGE, PAGE, MADV_DONTNEED) == 0);
	CHECK(is_zero(m, 3));
}

/* A VMA that is split sends what a discard sends, for the 2 MiB around the place. */
static void split_is_no_discard(void)
{
	size_t pages = 4 * HUGE;
	char *m = map(open_seed(make_seed(pages), 0), pages);
	CHECK(mprotect(m + 5 * PAGE, 3 * PAGE, PROT_READ) == 0);
	CHECK(madvise(m + 600 * PAGE, 7 * PAGE, MADV_DONTFORK) == 0);
	CHECK(munmap(m + 1300 * PAGE, 3 * PAGE) == 0);
	CHECK(madvise(m + 1600 * PAGE, 3 * PAGE, MADV_COLD) == 0);
	CHECK(mlock(m + 1700 * PAGE, 3 * PAGE) == 0);
	for (size_t i = 0; i < pages; i++)
		CHECK((i >= 1300 && i < 1303) || is_seed(m, i, i));
}

/* Reclaim walks the page tables of relatives, and sends the same before it looks. */
static void pageout_is_no_discard(void)
{
	char *m = map(open_seed(make_seed(N), 0), N);
	int go[2], done[2];
	char c;
	m[0] = m[0]; /* so that parent and child have an anon_vma in common */
	CHECK(pipe(go) == 0 && pipe(done) == 0);
	pid_t pid = fork();
	if (pid == 0) {
		CHECK(read(go[0], &c, 1) == 1);
		for (size_t i = 1; i < N; i++)
			CHECK(is_seed(m, i, i));
		_exit(0);
	}
	for (size_t i = 1; i < N; i++)
		m[i * PAGE + 8] = 1;
	CHECK(madvise(m, N * PAGE, MADV_PAGEOUT) == 0);
	CHECK(write(go[1], "", 1) == 1);
	CHECK(child_passes(pid));
}

static size_t resident(const char *m, size_t pages)
{
	unsigned char *in = malloc(pages);
	size_t count = 0;
	CHECK(mincore((void *)m, pages * PAGE, in) == 0);
	for (size_t i = 0; i < pages; i++)
		count += in[i] & 1;
	free(in);
	return count;
}

static long swapped(void)
{
	FILE *f = fopen("/proc/self/status", "r");
	char line[200];
	long kb = -1;
	while (f && fgets(line, sizeof(line), f))
		sscanf(line, "VmSwap: %ld", &kb);
	fclose(f);
	return kb;
}

static void written_pages_swap(void)
{
	char *m = map(open_seed(make_seed(N), 0), N);
	for (size_t i = 0; i < N; i++)
		m[i * PAGE + 8] = (char)i;
	CHECK(resident(m, N) > 0);
	for (int i = 0; i < 20 && swapped() < (long)(N * PAGE / 1024 / 2); i++)
		CHECK(madvise(m, N * PAGE, MADV_PAGEOUT) == 0);
	CHECK(swapped() > 0);
	for (size_t i = 0; i < N; i++)
		CHECK(m[i * PAGE + 8] == (char)i && is_seed(m, i, i));
	/* A swapped page that is discarded reads zero as well. */
	CHECK(madvise(m, N * PAGE, MADV_PAGEOUT) == 0);
	CHECK(madvise(m, N * PAGE, MADV_DONTNEED) == 0);
	CHECK(is_zero(m, 0) && is_zero(m, N - 1));
}

static void forks_go_their_way(void)
{
	char *m = map(open_seed(make_seed(N), 0), N);
	CHECK(madvise(m + PAGE, PAGE, MADV_DONTNEED) == 0);
	CHECK(mprotect(m + 50 * PAGE, PAGE, PROT_READ) == 0); /* several VMAs */
	pid_t pid = fork();
	if (pid == 0) {
		CHECK(is_zero(m, 1) && is_seed(m, 2, 2) && is_seed(m, 50, 50) &&
		      is_seed(m, 99, 99));
		CHECK(madvise(m + 60 * PAGE, PAGE, MADV_DONTNEED) == 0);
		CHECK(is_zero(m, 60));
		pid_t grandchild = fork();
		if (grandchild == 0) {
			CHECK(is_zero(m, 1) && is_zero(m, 60) && is_seed(m, 61, 61));
			_exit(0);
		}
		CHECK(child_passes(grandchild));
		_exit(0);
	}
	CHECK(child_passes(pid));
	CHECK(is_seed(m, 60, 60));
	CHECK(madvise(m + 70 * PAGE, PAGE, MADV_DONTNEED) == 0);
	CHECK(is_zero(m, 70));
}

static void nothing(int sig)
{
	(void)sig;
}

/* The first notifier of a process can't be made while a signal is pending. */
static void forks_under_signals(void)
{
	char *m = map(open_seed(make_seed(64), 0), 64);
	struct sigaction act = {.sa_handler = nothing, .sa_flags = SA_RESTART};
	struct itimerval often = {{0, 2000}, {0, 2000}};
	uint64_t untracked = info().untracked;
	CHECK(madvise(m + PAGE, PAGE, MADV_DONTNEED) == 0);
	sigaction(SIGALRM, &act, NULL);
	setitimer(ITIMER_REAL, &often, NULL);
	for (int i = 0; i < 40; i++) {
		pid_t pid = fork();
		CHECK(pid >= 0);
		if (pid == 0) {
			CHECK(is_zero(m, 1) && is_seed(m, 2, 2));
			CHECK(madvise(m + 3 * PAGE, PAGE, MADV_DONTNEED) == 0);
			CHECK(is_zero(m, 3) && is_seed(m, 4, 4));
			_exit(0);
		}
		int code;
		while (waitpid(pid, &code, 0) < 0)
			CHECK(errno == EINTR);
		CHECK(code == 0);
	}
	setitimer(ITIMER_REAL, &(struct itimerval){0}, NULL);
	CHECK(info().untracked == untracked);
}

static void moves(void)
{
	char *m = map(open_seed(make_seed(N), 0), N);
	char *place = anonymous(2 * N);
	CHECK(is_seed(m, 3, 3));
	CHECK(madvise(m + 5 * PAGE, PAGE, MADV_DONTNEED) == 0);
	char *new = mremap(m, N * PAGE, N * PAGE, MREMAP_MAYMOVE | MREMAP_FIXED, place);
	CHECK(new == place);
	for (size_t i = 0; i < N; i++)
		CHECK(i == 5 ? is_zero(new, i) : is_seed(new, i, i));
	CHECK(madvise(new + 6 * PAGE, PAGE, MADV_DONTNEED) == 0);
	CHECK(is_zero(new, 6) && is_seed(new, 7, 7));
}

static void a_part_moves_and_comes_back(void)
{
	char *m = map(open_seed(make_seed(N), 0), N);
	char *place = anonymous(16);
	char *new =
		mremap(m + 100 * PAGE, 16 * PAGE, 16 * PAGE, MREMAP_MAYMOVE | MREMAP_FIXED, place);
	CHECK(new == place &&is_seed(new, 0, 100));
	CHECK(madvise(new + PAGE, PAGE, MADV_DONTNEED) == 0);
	CHECK(is_seed(m, 99, 99) && is_seed(m, 116, 116));
	char *back =
		mremap(new, 16 * PAGE, 16 * PAGE, MREMAP_MAYMOVE | MREMAP_FIXED, m + 100 * PAGE);
	CHECK(back == m + 100 * PAGE);
	for (size_t i = 90; i < 120; i++)
		CHECK(i == 101 ? is_zero(m, i) : is_seed(m, i, i));
}

static void moved_from_reads_zero(void)
{
	char *m = map(open_seed(make_seed(N), 0), N);
	CHECK(is_seed(m, 1, 1));
	char *new = mremap(m, N * PAGE, N * PAGE, MREMAP_MAYMOVE | 4 /* MREMAP_DONTUNMAP */, NULL);
	CHECK(new != MAP_FAILED);
	for (size_t i = 0; i < N; i++)
		CHECK(is_seed(new, i, i) && is_zero(m, i));
}

/* What is behind the part is in the seed, and neither moved nor the new memory's. */
static void part_grows(void)
{
	char *m = map(open_seed(make_seed(N), 0), N);
	CHECK(is_seed(m, 56, 56)); /* it is there */
	char *new = mremap(m + 48 * PAGE, 8 * PAGE, 16 * PAGE, MREMAP_MAYMOVE);
	CHECK(new != MAP_FAILED &&new != m + 48 * PAGE);
	for (size_t i = 0; i < 16; i++)
		CHECK(i < 8 ? is_seed(new, i, 48 + i) : is_zero(new, i));
	CHECK(is_seed(m, 47, 47) && is_seed(m, 56, 56) && is_seed(m, 60, 60));
	char *again = mremap(new + 2 * PAGE, 4 * PAGE, 30 * PAGE, MREMAP_MAYMOVE);
	CHECK(again != MAP_FAILED);
	for (size_t i = 0; i < 30; i++)
		CHECK(i < 4 ? is_seed(again, i, 50 + i) : is_zero(again, i));
	CHECK(is_seed(new, 7, 55) && is_zero(new, 8));
}

static void grows(void)
{
	char *room = anonymous(3 * N);
	int source = open_seed(make_seed(N), 0);
	char *m = mmap(room, N / 2 * PAGE, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_FIXED, source,
		       0);
	CHECK(m == room && munmap(m + N / 2 * PAGE, N * PAGE) == 0);
	/* The seed has more pages, but the mapping has not. */
	CHECK(mremap(m, N / 2 * PAGE, N * PAGE, 0) == m);
	CHECK(is_seed(m, N / 2 - 1, N / 2 - 1) && is_zero(m, N / 2) && is_zero(m, N - 1));
	char *new = mremap(m, N * PAGE, 2 * N * PAGE, MREMAP_MAYMOVE);
	CHECK(new != MAP_FAILED);
	CHECK(is_seed(new, 7, 7) && is_zero(new, N / 2) && is_zero(new, 2 * N - 1));
}

static void shrinks_and_grows(void)
{
	char *m = map(open_seed(make_seed(N), 0), N);
	CHECK(mremap(m, N * PAGE, 8 * PAGE, 0) == m);
	CHECK(mremap(m, 8 * PAGE, 16 * PAGE, 0) == m);
	CHECK(is_seed(m, 7, 7) && is_zero(m, 8) && is_zero(m, 15));
}

static int vmas(void)
{
	FILE *f = fopen("/proc/self/maps", "r");
	char line[400];
	int count = 0;
	while (f && fgets(line, sizeof(line), f))
		count += strstr(line, "lean-seed") != NULL;
	fclose(f);
	return count;
}

static void parts_are_merged(void)
{
	char *m = map(open_seed(make_seed(N), 0), N);
	CHECK(vmas() == 1);
	for (size_t i = 0; i < N; i += 2)
		CHECK(mprotect(m + i * PAGE, PAGE, PROT_READ) == 0);
	CHECK(vmas() > 500);
	CHECK(mprotect(m, N * PAGE, PROT_READ | PROT_WRITE) == 0);
	CHECK(vmas() == 1);
	for (size_t i = 0; i < N; i++)
		CHECK(is_seed(m, i, i));
}

struct race {
	char *memory;
	volatile bool stop;
};

static void *reader(void *arg)
{
	struct race *r = arg;
	while (!r->stop)
		for (size_t i = 0; i < 8 && !r->stop; i++)
			(void)word(r->memory, i, 0);
	return NULL;
}

/* A fault that began before a discard must not bring back what was discarded. */
static void faults_against_discards(void)
{
	int source = open_seed(make_seed(8), 1);
	for (int i = 0; i < 150; i++) {
		struct race r = {.memory = map(source, 8)};
		pthread_t thread;
		CHECK(pthread_create(&thread, NULL, reader, &r) == 0);
		if (i & 1)
			sched_yield();
		CHECK(madvise(r.memory, 8 * PAGE, MADV_DONTNEED) == 0);
		for (size_t p = 0; p < 8; p++)
			CHECK(is_zero(r.memory, p));
		r.stop = true;
		pthread_join(thread, NULL);
		for (size_t p = 0; p < 8; p++)
			CHECK(is_zero(r.memory, p));
		munmap(r.memory, 8 * PAGE);
	}
}

static void children_share(void)
{
	int source = open_seed(make_seed(N), 0);
	for (int i = 0; i < 5; i++) {
		pid_t pid = fork();
		if (pid == 0) {
			char *m = map(source, N);
			for (size_t p = 0; p < N; p++)
				CHECK(is_seed(m, p, p));
			_exit(0);
		}
		CHECK(child_passes(pid));
	}
	struct lean_seed_status s = status(source);
	CHECK(s.fetched == N && s.shared >= 4 * N);
}

static void fetched_before(void)
{
	int source = open_seed(make_seed(N), 0);
	struct lean_seed_fetch all = {.first = 0, .count = N}, more = {.first = 1, .count = N};
	CHECK(ioctl(source, LEAN_SEED_FETCH, &all) == 0);
	CHECK(status(source).cached == N);
	CHECK(ioctl(source, LEAN_SEED_FETCH, &more) == -1 && errno == EINVAL);
	char *m = map(source, N);
	for (size_t p = 0; p < N; p++)
		CHECK(is_seed(m, p, p));
	CHECK(status(source).fetched == N);
}

static void put(const char *file, const char *text)
{
	int fd = open(file, O_WRONLY);
	CHECK(fd >= 0 && write(fd, text, strlen(text)) == (ssize_t)strlen(text));
	close(fd);
}

/* Mapped pages, too; what is read afterwards is the seed, and what was discarded stays so. */
static void dropped_and_read_again(void)
{
	int source = open_seed(make_seed(N), 0);
	char *m = map(source, N);
	CHECK(madvise(m + 7 * PAGE, PAGE, MADV_DONTNEED) == 0);
	m[8 * PAGE + 8] = 1;
	for (size_t i = 9; i < N; i++)
		CHECK(is_seed(m, i, i));
	for (int i = 0; i < 20 && status(source).dropped < N / 2; i++)
		put("/proc/sys/vm/drop_caches", "2");
	CHECK(status(source).dropped >= N / 2);
	for (size_t i = 9; i < N; i++)
		CHECK(is_seed(m, i, i));
	CHECK(is_zero(m, 7) && is_seed(m, 8, 8) && m[8 * PAGE + 8] == 1);
	CHECK(status(source).fetched > N);
}

/* A child that reads more than its limit: pages go, and the child lives. */
static void limited_memory(void)
{
	size_t pages = 16 * N; /* 64 MiB */
	int source = open_seed(make_seed(pages), 0);
	mkdir("/sys/fs/cgroup/lean-test", 0755);
	put("/sys/fs/cgroup/lean-test/memory.max", "20M");
	put("/sys/fs/cgroup/lean-test/memory.swap.max", "0");
	pid_t pid = fork();
	if (pid == 0) {
		put("/sys/fs/cgroup/lean-test/cgroup.procs", "0");
		char *m = map(source, pages);
		for (int round = 0; round < 2; round++)
			for (size_t i = 0; i < pages; i++)
				CHECK(is_seed(m, i, i));
		_exit(0);
	}
	CHECK(child_passes(pid));
	struct lean_seed_status s = status(source);
	CHECK(s.dropped > pages / 2);
	CHECK(s.cached <= 20 * 256);
	CHECK(rmdir("/sys/fs/cgroup/lean-test") == 0);
}

static void revoked(void)
{
	int seed = make_seed(N), source = open_seed(seed, 1);
	char *m = map(source, N);
	CHECK(is_seed(m, 0, 0));
	CHECK(status(source).reason == LEAN_SEED_FINE);
	close(seed);
	CHECK(info().referenced == 0);
	CHECK(is_bus(m, 1));
	struct lean_seed_status s = status(source);
	CHECK(s.reason == LEAN_SEED_REVOKED && s.dead && s.error != 0 && s.failures == 1 &&
	      s.page == 1);
	CHECK(is_seed(m, 0, 0)); /* what has come stays */
	int null = open("/dev/zero", O_RDONLY);
	CHECK(read(null, m + 2 * PAGE, 8) == -1 && errno == EFAULT);
	/* Never zeros instead: only what the child itself discards. */
	CHECK(madvise(m + 3 * PAGE, PAGE, MADV_DONTNEED) == 0);
	CHECK(is_zero(m, 3));
	CHECK(mmap(NULL, PAGE, PROT_READ, MAP_PRIVATE, source, 0) == MAP_FAILED && errno == EIO);
}

static void cut(void)
{
	int source = open_seed(make_seed(N), 1);
	char *m = map(source, N);
	CHECK(ioctl(source, LEAN_SEED_CUT) == 0);
	CHECK(is_bus(m, 1));
	CHECK(status(source).reason == LEAN_SEED_REVOKED);
}

static void refused_exports(void)
{
	char *memory = anonymous(4);
	fill(memory, 4);
	char *shared = mmap(NULL, PAGE, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
	shared[0] = 1;
	munmap(memory + 2 * PAGE, PAGE);
	pid_t pid = twin();
	CHECK(export_range(pid, memory, 2, NULL) >= 0);
	CHECK(export_range(pid, memory, 4, NULL) == -1 && errno == EFAULT);
	CHECK(export_range(pid, shared, 1, NULL) == -1 && errno == EINVAL);
	CHECK(export_range(pid, memory + 1, 1, NULL) == -1 && errno == EINVAL);
	CHECK(export_range(pid, memory, 0, NULL) == -1 && errno == EINVAL);
	CHECK(export_range(pid, memory, SIZE_MAX / PAGE, NULL) == -1 && errno == EINVAL);
	CHECK(export_range(0x7ffffff0, memory, 1, NULL) == -1 && errno == ESRCH);
	end(pid);
	CHECK(info().seeds == 1 && info().referenced == 2);
	pid = fork();
	if (pid == 0) {
		CHECK(setuid(1000) == 0);
		CHECK(open("/dev/lean-seed", O_RDWR) == -1);
		_exit(0);
	}
	CHECK(child_passes(pid));
}

static void limit_of_a_user(void)
{
	char *memory = anonymous(100);
	fill(memory, 100);
	pid_t pid = twin();
	put("/sys/module/lean_seed/parameters/user_pages", "150");
	int seed = export_range(pid, memory, 100, NULL);
	CHECK(seed >= 0);
	CHECK(export_range(pid, memory, 100, NULL) == -1 && errno == EDQUOT);
	close(seed);
	seed = export_range(pid, memory, 100, NULL);
	put("/sys/module/lean_seed/parameters/user_pages", "0");
	CHECK(seed >= 0);
	end(pid);
}

/* A child becomes a seed itself: pages that it never touched come from the first seed. */
static void seed_of_a_child(void)
{
	char *m = map(open_seed(make_seed(N), 0), N);
	m[PAGE + 8] = 1;
	CHECK(madvise(m + 2 * PAGE, PAGE, MADV_DONTNEED) == 0);
	pid_t pid = twin();
	int seed = export_range(pid, m, N, NULL);
	CHECK(seed >= 0);
	end(pid);
	char *second = map(open_seed(seed, 0), N);
	CHECK(is_seed(second, 0, 0) && second[PAGE + 8] == 1 && is_zero(second, 2));
	for (size_t i = 3; i < N; i++)
		CHECK(is_seed(second, i, i));
}

/* A structure may be older (shorter) or newer (longer, the rest zero) than the module's. */
static void other_versions(void)
{
	struct {
		struct lean_seed_info info;
		uint64_t more;
	} newer;
	uint32_t older = 0;
	int dev = device();
	memset(&newer, 0xff, sizeof(newer));
	CHECK(ioctl(dev, _IOC(_IOC_READ, 0xEA, 0, sizeof(newer)), &newer) == 0);
	CHECK(newer.info.abi == LEAN_SEED_ABI && newer.more == 0);
	CHECK(ioctl(dev, _IOC(_IOC_READ, 0xEA, 0, sizeof(older)), &older) == 0 &&
	      older == LEAN_SEED_ABI);
	struct {
		struct lean_seed_open open;
		uint64_t more;
	} unknown = {.more = 1};
	CHECK(ioctl(dev, _IOC(_IOC_WRITE, 0xEA, 2, sizeof(unknown)), &unknown) == -1 &&
	      errno == E2BIG);
	CHECK(ioctl(dev, _IO(0xEA, 0x7f)) == -1 && errno == ENOTTY);
}

/* A parameter of the module. */
static void set(const char *name, const char *value)
{
	char file[100];
	snprintf(file, sizeof(file), "/sys/module/lean_seed/parameters/%s", name);
	put(file, value);
}

static void failing_reads(void)
{
	int source = open_seed(make_seed(N), 1);
	char *m = map(source, N);
	set("fault_reads", "1");
	bool bus = is_bus(m, 5);
	struct lean_seed_status s = status(source);
	set("fault_reads", "0");
	CHECK(bus && s.reason == LEAN_SEED_READ && s.error != 0 && !s.dead && s.page == 5);
	for (size_t i = 0; i < N; i++)
		CHECK(is_seed(m, i, i));
	set("fault_reads", "3");
	source = open_seed(make_seed(N), 1);
	m = map(source, N);
	size_t failures = 0;
	for (size_t i = 0; i < N; i++)
		while (is_bus(m, i))
			failures++;
	set("fault_reads", "0");
	for (size_t i = 0; i < N; i++)
		CHECK(is_seed(m, i, i));
	CHECK(failures == status(source).failures);
}

/* Nobody knows what such a child discards: it gets SIGBUS, and its own children, too. */
static void forks_that_cannot_be_tracked(void)
{
	char *m = map(open_seed(make_seed(N), 1), N);
	CHECK(is_seed(m, 0, 0));
	set("fault_views", "1");
	pid_t pid = fork();
	if (pid == 0) {
		set("fault_views", "0");
		CHECK(madvise(m + PAGE, PAGE, MADV_DONTNEED) == 0);
		CHECK(is_bus(m, 1) && is_bus(m, 2));
		CHECK(mprotect(m + 3 * PAGE, PAGE, PROT_READ) == 0 && is_bus(m, 3) && is_bus(m, 4));
		char *place = anonymous(8);
		CHECK(mremap(m + 8 * PAGE, 8 * PAGE, 8 * PAGE, MREMAP_MAYMOVE | MREMAP_FIXED,
			     place) == place);
		CHECK(is_bus(place, 0));
		pid_t grandchild = fork();
		if (grandchild == 0) {
			CHECK(is_bus(m, 5));
			_exit(0);
		}
		CHECK(child_passes(grandchild));
		_exit(0);
	}
	bool passes = child_passes(pid);
	set("fault_views", "0");
	CHECK(passes && is_seed(m, 5, 5));
}

/* A place whose page tables have to be made first. */
static char *far_away(size_t pages)
{
	char *place = (char *)0x200000000000;
	CHECK(mmap(place, pages * PAGE, PROT_READ,
		   MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED_NOREPLACE, -1, 0) == place);
	return place;
}

/*
 * In a cgroup that has no memory left, and whose only process must not be killed for that, the page tables can't be
 * made: the kernel brings back what it has moved. Nobody tells the module of that, if it has no view there.
 */
static void move_without_memory(void)
{
	const size_t pages = 64, wasted = 256;
	char *m = map(open_seed(make_seed(pages), 1), pages), *place = far_away(pages);
	char *waste = anonymous(wasted);
	put("/proc/self/oom_score_adj", "-1000");
	put("/sys/fs/cgroup/lean-test/cgroup.procs", "0");
	for (size_t i = 1; i < pages; i += 2)
		CHECK(is_seed(m, i, i));
	memset(waste, 1, wasted * PAGE);
	set("fault_views", "1");
	put("/sys/fs/cgroup/lean-test/memory.max", "4096");
	char *new = mremap(m, pages * PAGE, pages * PAGE, MREMAP_MAYMOVE | MREMAP_FIXED, place);
	int error = errno;
	put("/sys/fs/cgroup/lean-test/memory.max", "max");
	set("fault_views", "0");
	printf("# the move: %s\n", new == MAP_FAILED ? strerror(error) : "done");
	CHECK(new == MAP_FAILED &&error == ENOMEM);
	for (size_t i = 0; i < pages; i++)
		CHECK(is_bus(m, i) || is_seed(m, i, i));
	/* What is discarded there is zero, whatever was in doubt. */
	CHECK(madvise(m, pages * PAGE, MADV_DONTNEED) == 0);
	CHECK(is_zero(m, 0) && is_zero(m, pages - 1));
}

static void failed_moves(void)
{
	mkdir("/sys/fs/cgroup/lean-test", 0755);
	put("/sys/fs/cgroup/lean-test/memory.swap.max", "0");
	pid_t pid = fork();
	if (pid == 0) {
		move_without_memory();
		_exit(0);
	}
	CHECK(child_passes(pid));
	CHECK(rmdir("/sys/fs/cgroup/lean-test") == 0);
}

static void moves_that_cannot_be_tracked(void)
{
	char *m = map(open_seed(make_seed(N), 1), N), *place = anonymous(8);
	set("fault_views", "1");
	char *new = mremap(m + 8 * PAGE, 8 * PAGE, 8 * PAGE, MREMAP_MAYMOVE | MREMAP_FIXED, place);
	set("fault_views", "0");
	CHECK(new == place &&is_bus(new, 0));
	CHECK(mremap(new, 8 * PAGE, 8 * PAGE, MREMAP_MAYMOVE | MREMAP_FIXED, m + 8 * PAGE) ==
	      m + 8 * PAGE);
	CHECK(is_bus(m, 8) && is_bus(m, 15) && is_seed(m, 7, 7) && is_seed(m, 16, 16));
	/* All of the new mapping, so also what it has more; what stays is unharmed. */
	set("fault_views", "1");
	new = mremap(m + 24 * PAGE, 8 * PAGE, 16 * PAGE, MREMAP_MAYMOVE);
	set("fault_views", "0");
	CHECK(new != MAP_FAILED &&is_seed(m, 23, 23) && is_seed(m, 32, 32));
	for (size_t i = 0; i < 16; i++)
		CHECK(is_bus(new, i));
}

/* Children that read, fork and discard without end, for who loads and unloads the module meanwhile. */
static void hold(void)
{
	int source = open_seed(make_seed(N), 0);
	for (int i = 0; i < 2; i++) {
		if (fork() != 0)
			continue;
		for (;;) {
			char *m = map(source, N);
			if (fork() == 0) {
				CHECK(madvise(m, 16 * PAGE, MADV_DONTNEED) == 0 && is_zero(m, 5));
				_exit(!is_seed(m, 20, 20));
			}
			for (size_t p = 0; p < N; p++)
				CHECK(is_seed(m, p, p));
			while (wait(NULL) > 0)
				;
			munmap(m, N * PAGE);
		}
	}
	pause();
}

static const struct test tests[] = {
	{"the seed's pages are there, though its process is gone", contents},
	{"holes read zero, and no page is referenced for them", holes},
	{"a child's writes are its own", writes_are_private},
	{"a part of the seed is mapped", at_an_offset},
	{"code is executed in it, as in anonymous memory", executable},
	{"shared mappings, and what is beyond the end, are refused", refused_mappings},
	{"untouched pages that are discarded read zero", discard_untouched},
	{"touched and written pages that are discarded read zero", discard_touched},
	{"splitting a VMA discards nothing", split_is_no_discard},
	{"paging out a relative's page discards nothing", pageout_is_no_discard},
	{"written pages are swapped, and come back", written_pages_swap},
	{"a fork has its own discards, and its parent's of before", forks_go_their_way},
	{"forks under signals are tracked", forks_under_signals},
	{"mremap moves what was touched and what was not", moves},
	{"a part that moves and comes back is what it was", a_part_moves_and_comes_back},
	{"what mremap leaves mapped reads zero", moved_from_reads_zero},
	{"what mremap adds reads zero", grows},
	{"what mremap adds to a part that it moves reads zero", part_grows},
	{"what was cut off and is added again reads zero", shrinks_and_grows},
	{"parts with equal rights are merged again", parts_are_merged},
	{"faults do not bring back what is discarded meanwhile", faults_against_discards},
	{"children share what they read", children_share},
	{"pages are fetched before they are touched", fetched_before},
	{"pages are dropped, and read again", dropped_and_read_again},
	{"a child with little memory reads a large seed", limited_memory},
	{"a revoked seed: SIGBUS, with a reason, and no zeros", revoked},
	{"a source that is cut", cut},
	{"what can't be exported is refused", refused_exports},
	{"a user's pages are limited", limit_of_a_user},
	{"a child becomes a seed", seed_of_a_child},
	{"reads that fail end with SIGBUS, and the next one may not", failing_reads},
	{"a fork that can't be tracked gets SIGBUS and no guess", forks_that_cannot_be_tracked},
	{"a move that can't be tracked neither", moves_that_cannot_be_tracked},
	{"a move that lacks memory leaves what was there, or SIGBUS", failed_moves},
	{"structures of other versions", other_versions},
	{"nothing is left", nothing_is_left},
};

int main(int argc, char **argv)
{
	if (argc == 2 && strcmp(argv[1], "--hold") == 0)
		hold();
	return run_tests(tests, sizeof(tests) / sizeof(tests[0]), argc, argv);
}
