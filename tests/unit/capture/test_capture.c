/* SPDX-License-Identifier: Apache-2.0 */
#include <errno.h>
#include <fcntl.h>
#include <linux/fs.h>
#include <signal.h>
#include <stdarg.h>
#include <stdlib.h>
#include <sys/inotify.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/sysmacros.h>
#include <sys/wait.h>
#include <unistd.h>

#include "src/base/fd.h"
#include "src/base/str.h"
#include "src/capture/state.h"
#include "src/capture/watches.h"
#include "src/seed/here.h"
#include "src/seed/seed.h"
#include "src/sys/syscalls.h"
#include "tests/unit/test.h"

#define LR_ROOM "test"
#define WORD    UINT64_C(0x7365656420746861)

struct seed_files {
	int descriptor, pages;
};

/* A child with a page of WORDs and nothing open, but what `more` opens. */
static pid_t begin(void (*more)(void))
{
	pid_t pid = fork();

	if (pid != 0) {
		usleep(100000);
		return pid;
	}
	(void)lr_close_range(0, ~0U, 0);
	uint64_t *page = mmap(NULL, LR_SEED_PAGE, PROT_READ | PROT_WRITE,
			      MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	if (page == MAP_FAILED)
		_exit(1);
	for (size_t i = 0; i < LR_SEED_PAGE / sizeof(*page); i++)
		page[i] = WORD;
	if (more)
		more();
	for (;;)
		pause();
}

static void end(pid_t pid)
{
	/* It lives until here. */
	CHECK_INT(waitpid(pid, NULL, WNOHANG), 0);
	kill(pid, SIGKILL);
	CHECK_INT(waitpid(pid, NULL, 0), pid);
}

static int capture(pid_t pid, struct seed_files *f, char **refusals, struct lr_err *err)
{
	f->descriptor = lr_memfd_create("descriptor", 0);
	f->pages = lr_memfd_create("pages", 0);
	const struct lr_capture c = {.pid = pid, .descriptor = f->descriptor, .pages = f->pages};
	struct lr_capture_stats stats = {0};

	int r = lr_capture(&c, &stats, refusals, err);
	if (r == 0)
		CHECK(stats.pages > 0 && stats.pause_ns > 0);
	return r;
}

static void *map(int fd, size_t *size)
{
	struct stat st;

	if (fstat(fd, &st) < 0 || st.st_size == 0)
		return NULL;
	*size = (size_t)st.st_size;
	void *at = mmap(NULL, *size, PROT_READ, MAP_PRIVATE, fd, 0);
	return at == MAP_FAILED ? NULL : at;
}

static bool has_page(const uint64_t *at, size_t size)
{
	for (size_t page = 0; page < size / LR_SEED_PAGE; page++) {
		const uint64_t *p = at + page * LR_SEED_PAGE / sizeof(*at);
		size_t i = 0;
		while (i < LR_SEED_PAGE / sizeof(*at) && p[i] == WORD)
			i++;
		if (i == LR_SEED_PAGE / sizeof(*at))
			return true;
	}
	return false;
}

static size_t compared; /* by kcmp(2) */

/* In place of libc's. */
long syscall(long nr, ...)
{
	long a[6], ret;
	va_list ap;

	va_start(ap, nr);
	for (int i = 0; i < 6; i++)
		a[i] = va_arg(ap, long);
	va_end(ap);
	compared += nr == SYS_kcmp;
	register long r10 __asm__("r10") = a[3];
	register long r8 __asm__("r8") = a[4];
	register long r9 __asm__("r9") = a[5];
	__asm__ volatile("syscall"
			 : "=a"(ret)
			 : "a"(nr), "D"(a[0]), "S"(a[1]), "d"(a[2]), "r"(r10), "r"(r8), "r"(r9)
			 : "rcx", "r11", "memory");
	if (ret >= 0 || ret <= -4096)
		return ret;
	errno = (int)-ret;
	return -1;
}

#define MANY 900

static void open_many(void)
{
	for (int i = 0; i < MANY - 3; i++)
		if (open("/dev/null", O_RDONLY) < 0)
			_exit(1);
	for (int i = 0; i < 3; i++)
		dup(MANY / 2);
}

/* It is looked at while it runs, and when it is held. */
TEST(many_files_of_one_inode_take_no_more_for_each)
{
	struct lr_err err = {0};
	struct seed_files f;
	struct lr_seed s;
	size_t size = 0, pages = 0;
	pid_t pid = begin(open_many);

	compared = 0;
	int r = capture(pid, &f, NULL, &err);
	end(pid);
	if (r == -EBUSY || r == -EPERM)
		SKIP("may not trace");
	CHECK_STR(err.msg, "");
	REQUIRE(r == 0);
	CHECK(compared > 2 * MANY && compared < (size_t)2 * MANY * 60);
	const void *descriptor = map(f.descriptor, &size);
	REQUIRE(descriptor && map(f.pages, &pages));
	REQUIRE(lr_seed_open(descriptor, size, pages, &s, &err) == 0);
	CHECK_INT(lr_seed_count(&s, LR_SEED_FD), MANY);
	CHECK_INT(lr_seed_count(&s, LR_SEED_FILE), MANY - 3);
	for (uint32_t i = 1; i <= 3; i++)
		CHECK_INT(lr_seed_fd(&s, MANY - i)->file, lr_seed_fd(&s, MANY / 2)->file);
	close(f.descriptor);
	close(f.pages);
}

TEST(a_process_becomes_a_seed_and_runs_on)
{
	struct lr_err err = {0};
	struct seed_files f;
	struct lr_seed s;
	size_t size = 0, pages = 0;
	pid_t pid = begin(NULL);

	int r = capture(pid, &f, NULL, &err);
	end(pid);
	if (r == -EBUSY || r == -EPERM)
		SKIP("may not trace");
	CHECK_STR(err.msg, "");
	REQUIRE(r == 0);
	const void *descriptor = map(f.descriptor, &size);
	const void *memory = map(f.pages, &pages);
	REQUIRE(descriptor && memory);
	CHECK_INT(lr_seed_open(descriptor, size, pages, &s, &err), 0);
	CHECK_INT(lr_seed_check_pages(&s, memory, LR_SEED_PAGE, &err), 0);
	CHECK_INT(lr_seed_count(&s, LR_SEED_PROCESS), 1);
	CHECK_INT(lr_seed_process(&s, 0)->pid, pid);
	CHECK_INT(lr_seed_count(&s, LR_SEED_THREAD), 1);
	CHECK_INT(lr_seed_count(&s, LR_SEED_FD), 0);
	CHECK(has_page(memory, pages));
	close(f.descriptor);
	close(f.pages);
}

#ifndef PAGEMAP_SCAN
#define PAGEMAP_SCAN _IOC(_IOC_READ | _IOC_WRITE, 'f', 16, 96)
#endif
#define RESERVED      ((uint8_t *)0x100000000000)
#define RESERVED_SIZE (UINT64_C(1) << 40)

/* Two pages of all that could be there. */
static void reserve(void)
{
	uint8_t *at =
		mmap(RESERVED, RESERVED_SIZE, PROT_READ | PROT_WRITE,
		     MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE | MAP_FIXED_NOREPLACE, -1, 0);

	if (at != RESERVED)
		_exit(1);
	at[RESERVED_SIZE / 3] = at[RESERVED_SIZE - 1] = 1;
}

static unsigned long reads(void)
{
	char text[256] = "";
	LR_CLEANUP_FD int fd = open("/proc/self/io", O_RDONLY);
	const char *at = read(fd, text, sizeof(text) - 1) > 0 ? strstr(text, "syscr: ") : NULL;

	return at ? strtoul(at + strlen("syscr: "), NULL, 10) : 0;
}

TEST(what_is_only_reserved_is_not_read_page_by_page)
{
	struct lr_err err = {0};
	struct seed_files f;
	struct lr_seed s;
	size_t size = 0, pages = 0, found = 0;
	const uint64_t first = (uintptr_t)RESERVED, last = first + RESERVED_SIZE - LR_SEED_PAGE;
	pid_t pid = begin(reserve);

	const unsigned long before = reads();
	int r = capture(pid, &f, NULL, &err);
	const unsigned long took = reads() - before;
	end(pid);
	if (r == -EBUSY || r == -EPERM)
		SKIP("may not trace");
	CHECK_STR(err.msg, "");
	REQUIRE(r == 0);
	const void *descriptor = map(f.descriptor, &size);
	REQUIRE(descriptor && map(f.pages, &pages));
	REQUIRE(lr_seed_open(descriptor, size, pages, &s, &err) == 0);
	for (uint32_t i = 0; i < lr_seed_count(&s, LR_SEED_RUN); i++) {
		const struct lr_seed_run *run = lr_seed_run(&s, i);
		if (run->start < first || run->start > last)
			continue;
		CHECK_INT(run->pages, 1);
		CHECK(run->start == last ||
		      run->start == first + RESERVED_SIZE / 3 / LR_SEED_PAGE * LR_SEED_PAGE);
		found++;
	}
	CHECK_INT(found, 2);
	close(f.descriptor);
	close(f.pages);
	LR_CLEANUP_FD int pagemap = open("/proc/self/pagemap", O_RDONLY);
	if (ioctl(pagemap, PAGEMAP_SCAN, NULL) < 0 && errno == ENOTTY)
		SKIP("the kernel has no PAGEMAP_SCAN (Linux 6.7)");
	CHECK(before > 0 && took < 10000);
}

static void watch(void)
{
	int fd = inotify_init1(0);

	/* 0 to 2 are attached anew, whatever they are. */
	char dir[] = "/tmp/watched.XXXXXX";
	if (!mkdtemp(dir) || inotify_add_watch(fd, dir, IN_DELETE_SELF) < 0 || rmdir(dir) < 0 ||
	    dup2(fd, 3) < 0 || close(fd) < 0)
		_exit(2);
}

TEST(what_cannot_be_carried_is_named_and_nothing_is_written)
{
	struct lr_err err = {0};
	struct seed_files f;
	struct stat st;
	char *refusals = NULL;
	pid_t pid = begin(watch);

	int r = capture(pid, &f, &refusals, &err);
	end(pid);
	if (r == -EBUSY || r == -EPERM)
		SKIP("may not trace");
	CHECK_INT(r, -ENOTSUP);
	CHECK_HAS(refusals, "inotify");
	CHECK(fstat(f.descriptor, &st) == 0 && st.st_size == 0);
	free(refusals);
	close(f.descriptor);
	close(f.pages);
}

TEST(a_watch_is_told_by_the_kernel_in_a_line)
{
	LR_CLEANUP_ARENA struct lr_arena *a = lr_arena_new();
	struct cap_told one, other;

	CHECK(cap_watch_told(a,
			     "inotify wd:1f ino:988034 sdev:fe00013 mask:84000004 ignored_mask:0 "
			     "fhandle-bytes:8 fhandle-type:1 f_handle:3480\ninotify wd:1 ino:7",
			     &one));
	CHECK_INT(one.number, 0x1f);
	CHECK_INT(one.inode, 0x988034);
	CHECK_INT(one.device, makedev(0xfe, 0x13));
	CHECK_INT(one.mask, 0x84000004);
	/* The same inode by another number and mask; and one that had its number before. */
	CHECK(cap_watch_told(a,
			     "inotify wd:2 ino:988034 sdev:fe00013 mask:4 ignored_mask:0 "
			     "fhandle-bytes:8 fhandle-type:1 f_handle:3480\n",
			     &other));
	CHECK_STR(other.key, one.key);
	CHECK(cap_watch_told(a,
			     "inotify wd:2 ino:988034 sdev:fe00013 mask:4 ignored_mask:0 "
			     "fhandle-bytes:8 fhandle-type:1 f_handle:3481\n",
			     &other));
	CHECK(strcmp(other.key, one.key) != 0);
	/* Some file systems have no handles. */
	CHECK(cap_watch_told(a, "inotify wd:2 ino:7 sdev:1 mask:4 ignored_mask:0 \n", &other));
	CHECK(!cap_watch_told(a, "inotify wd:2 ino:7", &other));
	CHECK(!cap_watch_told(a, "flags:\t02", &other));
}

TEST(who_is_gone_is_an_error)
{
	struct lr_err err = {0};
	struct seed_files f;
	pid_t pid = fork();

	if (pid == 0)
		_exit(0);
	waitpid(pid, NULL, 0);
	CHECK_INT(capture(pid, &f, NULL, &err), -ESRCH);
	close(f.descriptor);
	close(f.pages);
}

/* The page of a program that waits in lean_seed_here(3), as that program makes it. */
static void wait_here(void)
{
	int fd = lr_memfd_create(LR_HERE_NAME, 0);
	struct lr_here *h;

	if (fd < 0 || ftruncate(fd, LR_HERE_SIZE) < 0)
		_exit(3);
	h = mmap(NULL, LR_HERE_SIZE, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
	if (h == MAP_FAILED)
		_exit(4);
	*h = (struct lr_here){.version = LR_HERE_VERSION,
			      .waiting = 2,
			      .entered = 5,
			      .released = 3,
			      .generation = 1};
	memcpy(h->magic, LR_HERE_MAGIC, sizeof(h->magic));
	close(fd);
}

static void nobody_waits(void)
{
	wait_here();
	FILE *maps = fopen("/proc/self/maps", "re");
	char line[256];
	unsigned long at = 0;

	while (maps && fgets(line, sizeof(line), maps))
		if (strstr(line, LR_HERE_NAME))
			at = strtoul(line, NULL, 16);
	if (!at)
		_exit(5);
	((struct lr_here *)at)->waiting = 0;
	fclose(maps);
}

/* Of the process that runs on. */
static bool live_page(pid_t pid, struct lr_here *ret)
{
	char path[64], line[256];
	unsigned long at = 0;

	snprintf(path, sizeof(path), "/proc/%d/maps", pid);
	FILE *maps = fopen(path, "re");
	while (maps && fgets(line, sizeof(line), maps))
		if (strstr(line, LR_HERE_NAME))
			at = strtoul(line, NULL, 16);
	if (maps)
		fclose(maps);
	snprintf(path, sizeof(path), "/proc/%d/mem", pid);
	LR_CLEANUP_FD int fd = lr_open(path, O_RDONLY);
	return at && fd >= 0 && pread(fd, ret, sizeof(*ret), (off_t)at) == (ssize_t)sizeof(*ret);
}

/* The first one in a file of pages. */
static const struct lr_here *kept_page(const uint8_t *at, size_t size)
{
	for (size_t page = LR_SEED_PAGE; page + LR_SEED_PAGE <= size; page += LR_SEED_PAGE)
		if (memcmp(at + page, LR_HERE_MAGIC, strlen(LR_HERE_MAGIC)) == 0)
			return (const void *)(at + page);
	return NULL;
}

TEST(who_waits_for_its_seed_is_told_and_so_is_the_child)
{
	struct lr_err err = {0};
	struct lr_here live = {0};
	struct seed_files f;
	size_t pages = 0;
	pid_t pid = begin(wait_here);

	int awaited = lr_capture_is_awaited(pid, &err);
	int r = capture(pid, &f, NULL, &err);
	bool read = live_page(pid, &live);
	end(pid);
	if (r == -EBUSY || r == -EPERM)
		SKIP("may not trace");
	CHECK_STR(err.msg, "");
	CHECK_INT(awaited, 1);
	REQUIRE(r == 0 && read);
	CHECK_INT(live.released, 5);
	CHECK_INT(live.generation, 1);
	CHECK_INT(live.waiting, 2);
	const void *memory = map(f.pages, &pages);
	REQUIRE(memory);
	const struct lr_here *kept = kept_page(memory, pages);
	REQUIRE(kept);
	CHECK_INT(kept->released, 5);
	CHECK_INT(kept->generation, 2);
	CHECK_INT(kept->waiting, 2);
	close(f.descriptor);
	close(f.pages);
}

TEST(a_seed_that_is_to_be_awaited_is_not_made_of_who_does_not_wait)
{
	const int before = lr_memfd_create("descriptor", 0);
	struct lr_capture c = {.descriptor = before, .pages = before, .awaited = true};
	struct lr_here live = {0};
	struct lr_err err = {0};
	pid_t pid = begin(nobody_waits);

	c.pid = pid;
	int awaited = lr_capture_is_awaited(pid, &err);
	int r = lr_capture(&c, NULL, NULL, &err);
	bool read = live_page(pid, &live);
	end(pid);
	if (r == -EBUSY || r == -EPERM)
		SKIP("may not trace");
	CHECK_INT(awaited, 0);
	CHECK_INT(r, -ENOMSG);
	CHECK_HAS(err.msg, "lean_seed_here");
	CHECK(read);
	CHECK_INT(live.released, 3);
	close(before);
}

static int refuse(void *arg, struct lr_err *err)
{
	(void)arg;
	return lr_refuse(err, EIO, "not today");
}

TEST(a_seed_that_came_to_nothing_is_nobody_told_of)
{
	LR_CLEANUP_FD int descriptor = lr_memfd_create("descriptor", 0);
	LR_CLEANUP_FD int pages = lr_memfd_create("pages", 0);
	struct lr_capture c = {.descriptor = descriptor, .pages = pages, .written = refuse};
	struct lr_here live = {0};
	struct lr_err err = {0};
	pid_t pid = begin(wait_here);

	c.pid = pid;
	int r = lr_capture(&c, NULL, NULL, &err);
	bool read = live_page(pid, &live);
	end(pid);
	if (r == -EBUSY || r == -EPERM)
		SKIP("may not trace");
	CHECK_INT(r, -EIO);
	CHECK(read);
	CHECK_INT(live.released, 3);
	CHECK_INT(live.waiting, 2);
}

static uint32_t restart_of(const char *text, const char *wchan)
{
	struct cap_restart x = {.nr = 99};

	cap_restart_of(text, wchan, &x);
	return x.nr;
}

TEST(what_a_call_was_that_goes_on)
{
	static const char
		sleeps[] = "219 0x1 0x0 0x7ffe 0x0 0x0 0x6 0x7fff10 0x401000\n",
		waits[] = "219 0x7fca10 0x0 0x0 0x7fca20 0x0 0x6 0x7fff10 0x401000\n",
		cpu[] = "219 0xffffffffffffffee 0x0 0x7fca20 0x0 0x0 0x6 0x7fff10 0x401000\n",
		cpu_int[] = "219 0xffffffee 0x0 0x7fca20 0x0 0x0 0x6 0x7fff10 0x401000\n";

	CHECK_INT(restart_of(sleeps, "hrtimer_nanosleep"), SYS_clock_nanosleep);
	CHECK_INT(restart_of(sleeps, "alarmtimer_nsleep_restart"), SYS_clock_nanosleep);
	CHECK_INT(restart_of(sleeps, "do_syscall_64"), SYS_clock_nanosleep);
	CHECK_INT(restart_of(waits, "do_syscall_64"), SYS_nanosleep);
	/* The clock of a thread's processor time, as a long and as an int. */
	CHECK_INT(restart_of(cpu, "do_syscall_64"), SYS_clock_nanosleep);
	CHECK_INT(restart_of(cpu_int, "do_cpu_nanosleep"), SYS_clock_nanosleep);
	CHECK_INT(restart_of(cpu_int, "posix_cpu_nsleep_restart"), SYS_clock_nanosleep);
	CHECK_INT(restart_of(waits, "futex_do_wait"), SYS_futex);
	CHECK_INT(restart_of(waits, "poll_schedule_timeout.constprop.0"), SYS_poll);
	/* The kernel was built without these names, or it is none of them. */
	CHECK_INT(restart_of(waits, "0"), 0);
	CHECK_INT(restart_of(waits, "pipe_read"), 0);
	CHECK_INT(restart_of("35 0x1 0x0 0x7ffe 0x0 0x0 0x6 0x7fff10 0x401000\n", "futex"), 0);
	CHECK_INT(restart_of("running\n", "0"), 0);
	CHECK_INT(restart_of("219 0x1 0x0\n", "futex"), 0);
}

/* A file with a page of data at each `every` bytes, as many as n. */
static int holey(off_t every, unsigned n)
{
	const uint8_t page[LR_SEED_PAGE] = {1};
	int fd = lr_memfd_create("holey", 0);

	for (unsigned i = 0; i < n; i++)
		CHECK(pwrite(fd, page, sizeof(page), every * i) == (ssize_t)sizeof(page));
	CHECK(ftruncate(fd, every * n + 100) == 0);
	return fd;
}

/* left: NULL: no limit. What was put where is in *c and *runs. */
static int copy_of(int fd, uint64_t *left, struct cap *c, struct lr_seed_run **runs, size_t *n,
		   struct lr_err *err)
{
	static uint8_t buffer[CAP_BATCH * LR_SEED_PAGE];
	static struct lr_capture opts;
	struct stat st;

	opts.pages = lr_memfd_create("pages", 0);
	*c = (struct cap){.opts = &opts, .a = lr_arena_new(), .pages_at = LR_SEED_PAGE};
	*runs = NULL;
	*n = 0;
	CHECK(fstat(fd, &st) == 0);
	const struct cap_contents from = {fd, (uint64_t)st.st_size, runs, n, NULL, left};
	return cap_runs_copy(c, &from, buffer, err);
}

TEST(no_hole_of_a_file_is_read)
{
	const off_t every = 100 * LR_SEED_PAGE;
	struct lr_seed_run *runs;
	struct lr_err err = {0};
	struct cap c;
	size_t n;
	LR_CLEANUP_FD int fd = holey(every, 20);

	CHECK_INT(copy_of(fd, NULL, &c, &runs, &n, &err), 0);
	CHECK_INT(n, 20);
	for (size_t i = 0; i < n; i++) {
		CHECK_INT(runs[i].start, i * (uint64_t)every);
		CHECK_INT(runs[i].pages, 1);
		CHECK_INT(runs[i].at, (i + 1) * LR_SEED_PAGE);
	}
	CHECK_INT(c.zero_pages, 0);
	lr_close(c.opts->pages);
	lr_arena_free(c.a);
}

TEST(no_more_is_copied_than_may_be)
{
	uint64_t left = 20 * LR_SEED_PAGE;
	struct lr_seed_run *runs;
	struct lr_err err = {0};
	struct cap c;
	size_t n;
	LR_CLEANUP_FD int fd = holey(4 * LR_SEED_PAGE, 20);

	CHECK_INT(copy_of(fd, &left, &c, &runs, &n, &err), 0);
	CHECK_INT(left, 0);
	lr_close(c.opts->pages);
	lr_arena_free(c.a);
	left = 20 * LR_SEED_PAGE - 1;
	CHECK_INT(copy_of(fd, &left, &c, &runs, &n, &err), -EFBIG);
	CHECK_INT(c.pages_at, 20 * LR_SEED_PAGE);
	lr_close(c.opts->pages);
	lr_arena_free(c.a);
}

TEST(a_call_that_goes_on_is_known_by_where_it_is)
{
	struct user_regs_struct r = {.orig_rax = SYS_restart_syscall,
				     .rdi = 1,
				     .rdx = 3,
				     .rsp = 0x7fff10,
				     .rip = 0x401000};
	struct cap_restart x;

	cap_restart_of("219 0x1 0x0 0x3 0x0 0x0 0x0 0x7fff10 0x401000\n", "futex", &x);
	CHECK(cap_restart_is(&x, &r));
	r.rdx++;
	CHECK(!cap_restart_is(&x, &r));
	r.rdx--;
	r.rip++;
	CHECK(!cap_restart_is(&x, &r));
	r.rip--;
	r.rsp++;
	CHECK(!cap_restart_is(&x, &r));
	r.rsp--;
	r.orig_rax = SYS_futex;
	CHECK(!cap_restart_is(&x, &r));
}

TEST(a_path_leads_to_the_same)
{
	char text[] = "36 25 0:5 / /disk rw shared:1 - ext4 /dev/sda rw\n";
	const struct lr_capture opts = {.pid = getpid()};
	LR_CLEANUP_ARENA struct lr_arena *a = lr_arena_new();
	struct cap c = {.opts = &opts, .a = a, .mounts = text};
	struct stat dir, file, device;
	uint64_t mount, other;

	CHECK_INT(cap_stat_at(AT_FDCWD, "/proc", &dir, &mount), 0);
	CHECK_INT(cap_stat_at(AT_FDCWD, "/proc/version", &file, &other), 0);
	CHECK_INT(cap_stat("/dev/null", &device), 0);
	/* In one of its mounts the path is true. */
	CHECK(cap_path_leads(&c, "/elsewhere", &dir, 36));
	CHECK(!cap_path_leads(&c, "/elsewhere (deleted)", &dir, 36));
	/* Else it is looked up: a directory with its mount, a device by what it is. */
	CHECK(!cap_path_leads(&c, "/elsewhere", &dir, 37));
	CHECK(cap_path_leads(&c, "/proc", &dir, mount));
	CHECK(!cap_path_leads(&c, "/proc", &dir, mount + 1000000));
	CHECK(cap_path_leads(&c, "/proc/version", &file, mount + 1000000));
	CHECK(!cap_path_leads(&c, "/proc/uptime", &file, mount));
	device.st_ino++;
	CHECK(cap_path_leads(&c, "/dev/null", &device, mount));
	CHECK(!cap_path_leads(&c, "/dev/zero", &device, mount));
	cap_reached_close(&c);
}

/* Who reads there may wait for a program that is held. */
TEST(mounts_that_a_program_answers_for)
{
	char text[] = "36 25 0:5 / /disk rw shared:1 - ext4 /dev/sda rw\n"
		      "37 25 0:6 / /fuse rw - fuse.sshfs x rw\n"
		      "38 25 0:7 / /fuse.2 rw - fuseblk /dev/sdb rw\n"
		      "39 25 0:8 / /cut";
	const struct lr_capture opts = {.pid = getpid()};
	LR_CLEANUP_ARENA struct lr_arena *a = lr_arena_new();
	struct cap c = {.opts = &opts, .a = a, .mounts = text};

	CHECK(!cap_mount_may_wait(&c, 36));
	CHECK(cap_mount_may_wait(&c, 37));
	CHECK(cap_mount_may_wait(&c, 38));
	CHECK(cap_mount_may_wait(&c, 39));
	/* It is none of these. */
	CHECK(cap_mount_may_wait(&c, 6));
	CHECK(cap_mount_is_inside(&c, 36));
	CHECK(!cap_mount_is_inside(&c, 6));
}
