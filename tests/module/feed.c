/* SPDX-License-Identifier: Apache-2.0 */
/* feed [NAME...]: seeds whose pages a program gives: a thread of the test. */
#define _GNU_SOURCE
#include "lib.h"

#include <poll.h>
#include <pthread.h>

#define N ((size_t)1024)

/* What the program does when it is asked. */
struct feeder {
	int fd;
	int error;   /* answer with it, if it is not 0 */
	size_t from; /* ... from this page on */
	size_t reads, pages;
	bool ended; /* the kernel said that there is no source any more */
};

static bool is_hole(size_t page)
{
	return page % 7 == 3;
}

static bool is_right(const char *m, size_t page, size_t number)
{
	return is_hole(number) ? is_zero(m, page) : is_seed(m, page, number);
}

static int make_feed(size_t pages)
{
	struct lean_seed_feed arg = {.pages = pages};
	int dev = device(), fd = ioctl(dev, LEAN_SEED_FEED, &arg);
	int error = errno;
	close(dev);
	errno = error;
	return fd;
}

static void answer(struct feeder *f, const struct lean_seed_want *w)
{
	static _Thread_local char pages[LEAN_SEED_WANT_MAX * 4096];
	struct lean_seed_fill fill = {.id = w->id, .count = w->count, .pages = (uintptr_t)pages};
	for (unsigned i = 0; i < w->count; i++) {
		char *at = pages + i * PAGE;
		CHECK(i == 0 || w->index[i] > w->index[i - 1]);
		memset(at, 0, PAGE);
		if (is_hole(w->index[i]))
			continue;
		*(uint64_t *)at = *(uint64_t *)(at + PAGE - 8) = mark(w->index[i]);
	}
	if (w->index[0] >= f->from)
		fill.error = f->error;
	/* Before who waits goes on, and looks at it. */
	f->reads++;
	f->pages += w->count;
	CHECK(ioctl(f->fd, LEAN_SEED_FILL, &fill) == 0);
}

static void *feed(void *arg)
{
	struct feeder *f = arg;
	struct lean_seed_want w;
	ssize_t n;
	while ((n = read(f->fd, &w, sizeof(w))) == (ssize_t)sizeof(w))
		answer(f, &w);
	f->ended = n == 0;
	return NULL;
}

/* A source of N pages, and who fills it. */
static int begin(struct feeder *f, pthread_t *t)
{
	f->fd = make_feed(N);
	CHECK(f->fd >= 0);
	int source = open_seed(f->fd, 0);
	CHECK(pthread_create(t, NULL, feed, f) == 0);
	return source;
}

static void contents(void)
{
	struct feeder f = {0};
	pthread_t t;
	int source = begin(&f, &t);
	char *m = map(source, N);
	for (size_t i = 0; i < N; i++)
		CHECK(is_right(m, i, i));
	struct lean_seed_status s = status(source);
	CHECK(s.pages == N && s.fetched == N && f.pages == N && f.reads <= N / 16);
	CHECK(s.batches == f.reads);
}

static void shared(void)
{
	struct feeder f = {0};
	pthread_t t;
	int source = begin(&f, &t);
	for (int child = 0; child < 3; child++) {
		pid_t pid = fork();
		if (pid == 0) {
			char *m = map(source, N);
			for (size_t i = 0; i < N; i++) {
				size_t k = i * 5 % N;
				CHECK(is_right(m, k, k));
			}
			memset(m, 1, N * PAGE); /* nobody else sees that */
			CHECK(madvise(m, PAGE, MADV_DONTNEED) == 0 && is_zero(m, 0));
			_exit(0);
		}
		CHECK(child_passes(pid));
	}
	CHECK(f.pages == N && status(source).fetched == N);
}

static void errors(void)
{
	struct feeder f = {.error = EIO, .from = 512};
	pthread_t t;
	int source = begin(&f, &t);
	char *m = map(source, N), byte;
	CHECK(is_right(m, 1, 1) && is_bus(m, 600) && is_bus(m, 601));
	int fds[2];
	CHECK(pipe(fds) == 0);
	CHECK(write(fds[1], m + 700 * PAGE, 1) < 0 && errno == EFAULT);
	struct lean_seed_status s = status(source);
	CHECK(s.reason == LEAN_SEED_READ && s.error == -EIO && !s.dead && s.failures >= 2);
	f.error = 0; /* it can be had again */
	CHECK(is_right(m, 600, 600));
	CHECK(write(fds[1], m + 700 * PAGE, 1) == 1 && read(fds[0], &byte, 1) == 1);
}

static void *touch(void *page)
{
	return (void *)(uintptr_t)is_bus(page, 0);
}

/* What a test reads in the place of a program. */
static struct lean_seed_want one_want(int fd)
{
	struct lean_seed_want w;
	CHECK(read(fd, &w, sizeof(w)) == (ssize_t)sizeof(w));
	return w;
}

/* Who waits, and who comes later, also when it was read of, and not answered. */
static void closed(void)
{
	for (int told = 0; told < 2; told++) {
		int fd = make_feed(N), source = open_seed(fd, 0);
		char *m = map(source, N);
		pthread_t t;
		void *bus;
		CHECK(pthread_create(&t, NULL, touch, m + 40 * PAGE) == 0);
		if (told)
			CHECK(one_want(fd).count > 0);
		else
			usleep(200000);
		close(fd);
		CHECK(pthread_join(t, &bus) == 0 && bus);
		CHECK(is_bus(m, 41) && is_bus(m, 700));
		struct lean_seed_status s = status(source);
		CHECK(s.dead && s.reason == LEAN_SEED_REVOKED);
		CHECK(mmap(NULL, PAGE, PROT_READ, MAP_PRIVATE, source, 0) == MAP_FAILED);
		/* What is discarded needs nobody. */
		CHECK(madvise(m, PAGE, MADV_DONTNEED) == 0 && is_zero(m, 0));
	}
}

/* A program that is killed has told the kernel nothing, and nobody has to do it in its place. */
static void killed(void)
{
	int pair[2];
	CHECK(pipe(pair) == 0);
	int fd = make_feed(N), source = open_seed(fd, 0);
	char *m = map(source, N);
	pid_t pid = fork();
	if (pid == 0) {
		struct feeder f = {.fd = fd};
		struct lean_seed_want w = one_want(fd);
		answer(&f, &w);
		one_want(fd);
		CHECK(write(pair[1], "", 1) == 1);
		for (;;)
			pause();
	}
	close(fd);
	CHECK(is_right(m, 0, 0));
	char byte;
	pthread_t t;
	void *bus;
	CHECK(pthread_create(&t, NULL, touch, m + 900 * PAGE) == 0);
	CHECK(read(pair[0], &byte, 1) == 1);
	end(pid);
	CHECK(pthread_join(t, &bus) == 0 && bus);
	CHECK(is_right(m, 0, 0)); /* it is here */
}

static void refuse(int fd, const struct lean_seed_want *w)
{
	struct lean_seed_fill fill = {.id = w->id, .count = w->count, .error = EIO};
	CHECK(ioctl(fd, LEAN_SEED_FILL, &fill) == 0);
}

/* Whoever waits can be killed, though nobody answers: also when it asks again, after a failure. */
static void killable(void)
{
	for (int again = 0; again < 2; again++) {
		int fd = make_feed(N), source = open_seed(fd, 0);
		pid_t pid = fork();
		if (pid == 0) {
			close(fd);
			char *m = map(source, N);
			_exit((int)word(m, 5, 0));
		}
		struct lean_seed_want w = one_want(fd);
		if (again) {
			refuse(fd, &w);
			w = one_want(fd);
		}
		end(pid);
		/* It still may be answered. */
		struct feeder f = {.fd = fd};
		answer(&f, &w);
		for (int i = 0; i < 100 && status(source).fetched < w.count; i++)
			usleep(50000);
		CHECK(status(source).fetched == w.count);
	}
}

static void cut(void)
{
	int fd = make_feed(N), source = open_seed(fd, 0), other = open_seed(fd, 0);
	char *m = map(source, N);
	pthread_t t;
	void *bus;
	CHECK(pthread_create(&t, NULL, touch, m) == 0);
	struct lean_seed_want w = one_want(fd);
	CHECK(ioctl(source, LEAN_SEED_CUT) == 0);
	CHECK(pthread_join(t, &bus) == 0 && bus);
	struct lean_seed_fill fill = {.id = w.id, .count = w.count, .error = EIO};
	CHECK(ioctl(fd, LEAN_SEED_FILL, &fill) < 0 && errno == ENOENT);
	/* The other source is another one. */
	struct feeder f = {.fd = fd};
	CHECK(pthread_create(&t, NULL, feed, &f) == 0);
	CHECK(is_right(map(other, N), 8, 8));
}

static void wrong_answers(void)
{
	static char pages[LEAN_SEED_WANT_MAX * 4096];
	int fd = make_feed(N), source = open_seed(fd, 0);
	char *m = map(source, N);
	pthread_t t;
	void *bus;
	struct lean_seed_fill fill = {.id = 1, .count = 16, .pages = (uintptr_t)pages};
	CHECK(ioctl(fd, LEAN_SEED_FILL, &fill) < 0 && errno == ENOENT); /* nobody asked */
	CHECK(pthread_create(&t, NULL, touch, m) == 0);
	struct lean_seed_want w = one_want(fd);
	fill.id = w.id + 1;
	CHECK(ioctl(fd, LEAN_SEED_FILL, &fill) < 0 && errno == ENOENT);
	fill.id = w.id;
	fill.count = w.count - 1;
	CHECK(ioctl(fd, LEAN_SEED_FILL, &fill) < 0 && errno == EINVAL);
	fill.count = w.count;
	fill.error = 4096;
	CHECK(ioctl(fd, LEAN_SEED_FILL, &fill) < 0 && errno == EINVAL);
	fill.error = 0;
	fill.pages = 4096; /* nothing is there: the read fails, and is answered */
	CHECK(ioctl(fd, LEAN_SEED_FILL, &fill) < 0 && errno == EFAULT);
	w = one_want(fd); /* a fault that waited is tried once more */
	refuse(fd, &w);
	CHECK(pthread_join(t, &bus) == 0 && bus);
	CHECK(ioctl(fd, LEAN_SEED_FILL, &fill) < 0 && errno == ENOENT);
	CHECK(ioctl(fd, LEAN_SEED_STATUS, &fill) < 0 && errno == ENOTTY);
	CHECK(read(fd, &w, sizeof(w) - 1) < 0 && errno == EINVAL);
	CHECK(make_feed(0) < 0 && errno == EINVAL);
	CHECK(make_feed((size_t)1 << 40) < 0 && errno == EINVAL);
}

/* A want that could not be told of is not lost. */
static void told_to_nobody(void)
{
	int fd = make_feed(N);
	char *m = map(open_seed(fd, 0), N);
	pthread_t t, u;
	void *bus;
	CHECK(pthread_create(&t, NULL, touch, m + 3 * PAGE) == 0);
	CHECK(poll(&(struct pollfd){fd, POLLIN, 0}, 1, 20000) == 1);
	CHECK(read(fd, (void *)4096, 1 << 20) < 0 && errno == EFAULT);
	struct feeder f = {.fd = fd};
	CHECK(pthread_create(&u, NULL, feed, &f) == 0);
	CHECK(pthread_join(t, &bus) == 0 && !bus);
	CHECK(is_right(m, 4, 4));
}

static short polled(int fd)
{
	struct pollfd p = {fd, POLLIN, 0};
	CHECK(poll(&p, 1, 0) >= 0);
	return p.revents;
}

/* The program learns when nobody can want anything any more, mapping or descriptor. */
static void last_one(void)
{
	struct feeder f = {0};
	pthread_t t;
	int source = begin(&f, &t);
	CHECK(!(polled(f.fd) & POLLHUP));
	char *m = map(source, N);
	close(source);
	CHECK(is_right(m, 0, 0) && !(polled(f.fd) & POLLHUP));
	munmap(m, N * PAGE);
	CHECK(pthread_join(t, NULL) == 0 && f.ended);
	CHECK(polled(f.fd) & POLLHUP);
	/* And there may be another. */
	CHECK(pthread_create(&t, NULL, feed, &f) == 0 && pthread_join(t, NULL) == 0);
	source = open_seed(f.fd, 0);
	CHECK(pthread_create(&t, NULL, feed, &f) == 0);
	CHECK(is_right(map(source, N), 9, 9));
}

static void many_at_once(void)
{
	struct feeder f = {0}, g;
	pthread_t t;
	int source = begin(&f, &t);
	g = (struct feeder){.fd = f.fd};
	CHECK(pthread_create(&t, NULL, feed, &g) == 0);
	pid_t pids[8];
	for (int child = 0; child < 8; child++) {
		pids[child] = fork();
		if (pids[child] == 0) {
			char *m = map(source, N);
			for (size_t i = 0; i < N; i++) {
				size_t k = (i * (2 * child + 3) + child) % N;
				CHECK(is_right(m, k, k));
			}
			_exit(0);
		}
	}
	for (int child = 0; child < 8; child++)
		CHECK(child_passes(pids[child]));
	CHECK(f.pages + g.pages == N);
}

static const struct test tests[] = {
	{"fed: all pages of a seed, in batches, and holes", contents},
	{"fed: children share what came, and write to what is theirs", shared},
	{"fed: what can't be had is SIGBUS, or EFAULT, and no zeros; later it may be had", errors},
	{"fed: a closed feed is SIGBUS, for who waits and for who comes", closed},
	{"fed: so is a program that was killed", killed},
	{"fed: who waits can be killed", killable},
	{"fed: a source that is cut, and another one that is not", cut},
	{"fed: answers that are none", wrong_answers},
	{"fed: a question that could not be told is asked again", told_to_nobody},
	{"fed: the program learns that there is no source any more", last_one},
	{"fed: many children, and two who answer", many_at_once},
	{"fed: nothing is left", nothing_is_left},
};

int main(int argc, char **argv)
{
	return run_tests(tests, sizeof(tests) / sizeof(tests[0]), argc, argv);
}
