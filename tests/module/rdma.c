/* SPDX-License-Identifier: Apache-2.0 */
/*
 * rdma [NAME...]: seeds that are read by RDMA, in one machine: soft-RoCE on eth0, connected to itself.
 * rdma --serve ADDRESS PAGES: makes a seed, gives a token to each who connects by TCP, until one says to end.
 * rdma --read ADDRESS PAGES: on another machine: children continue that seed; at the end the seed is revoked.
 */
#define _GNU_SOURCE
#include "rdma.h"

#define N ((size_t)1500) /* more than two chunks, and no whole number of them */

static const char *host = "192.0.2.1";

static void contents(void)
{
	int listener = listen_at(host, 7472), seed = make_seed(N);
	int source = connect_to(host, 7472, token_of(seed), 0);
	char *m = map(source, N);
	for (size_t i = 0; i < N; i++)
		CHECK(is_seed(m, i, i));
	struct lean_seed_status s = status(source);
	CHECK(s.pages == N && s.fetched == N && s.batches < N / 8);
	CHECK(info().connections == 2); /* both ends are here */
	close(listener);
}

static void random_pages(void)
{
	int listener = listen_at(host, 7472), seed = make_seed(N);
	char *m = map(connect_to(host, 7472, token_of(seed), 1), N);
	CHECK(madvise(m + 700 * PAGE, 20 * PAGE, MADV_DONTNEED) == 0);
	for (size_t i = 7; i != 0; i = (i + 7) % N)
		CHECK(i >= 700 && i < 720 ? is_zero(m, i) : is_seed(m, i, i));
	close(listener);
}

/* Pages that nobody reads ahead: each is one read of one page. */
static void a_read_a_fault(void)
{
	int listener = listen_at(host, 7472), seed = make_seed(N);
	int source = connect_to(host, 7472, token_of(seed), 1);
	char *m = map(source, N);
	for (size_t i = 0; i < 50; i++) {
		CHECK(is_seed(m, i * 7, i * 7) && is_seed(m, i * 7, i * 7));
		struct lean_seed_status s = status(source);
		CHECK(s.fetched == i + 1 && s.batches == i + 1);
	}
	close(listener);
}

/* Packets that the adapter got, of both ends, as they are one. */
static unsigned long on_the_wire(void)
{
	char text[32] = "";
	usleep(50000); /* the kernel tells the same figures again for ten milliseconds */
	int fd = open("/sys/class/infiniband/rxe0/ports/1/hw_counters/rcvd_pkts",
		      O_RDONLY | O_CLOEXEC);
	CHECK(fd >= 0 && read(fd, text, sizeof(text) - 1) > 0);
	close(fd);
	return strtoul(text, NULL, 10);
}

/* Counted twice: by the module, and by the adapter, which may have a few packets of connections that end. */
static void second_child(void)
{
	int listener = listen_at(host, 7472), seed = make_seed(N);
	int source = connect_to(host, 7472, token_of(seed), 0);
	unsigned long before = on_the_wire(), packets[2];
	struct lean_seed_status s[2];
	for (int child = 0; child < 2; child++) {
		pid_t pid = fork();
		if (pid == 0) {
			char *m = map(source, N);
			for (size_t i = 0; i < N; i++)
				CHECK(is_seed(m, i, i));
			_exit(0);
		}
		CHECK(child_passes(pid));
		s[child] = status(source);
		packets[child] = on_the_wire() - before;
		before += packets[child];
	}
	printf("# the first child: %llu pages in %llu reads, %lu packets; the second: %llu, %llu, "
	       "%lu\n",
	       (unsigned long long)s[0].fetched, (unsigned long long)s[0].batches, packets[0],
	       (unsigned long long)(s[1].fetched - s[0].fetched),
	       (unsigned long long)(s[1].batches - s[0].batches), packets[1]);
	CHECK(s[0].fetched == N && packets[0] >= N);
	CHECK(s[1].fetched == N && s[1].batches == s[0].batches && packets[1] < N / 10);
	CHECK(s[1].shared >= s[0].shared + N);
	close(listener);
}

static void holes(void)
{
	char *memory = anonymous(N);
	CHECK(madvise(memory, N * PAGE, MADV_NOHUGEPAGE) == 0);
	fill(memory, 3);
	pid_t pid = twin();
	int seed = export_range(pid, memory, N, NULL), listener = listen_at(host, 7472);
	CHECK(seed >= 0);
	end(pid);
	char *m = map(connect_to(host, 7472, token_of(seed), 0), N);
	CHECK(is_seed(m, 2, 2) && is_zero(m, 3) && is_zero(m, N - 1));
	close(listener);
}

/* So many keys that it takes several messages to tell them. */
static void many_chunks(void)
{
	int fd = open("/sys/module/lean_seed/parameters/chunk_pages", O_WRONLY);
	CHECK(fd >= 0 && write(fd, "2", 1) == 1);
	int listener = listen_at(host, 7472), seed = make_seed(N);
	char *m = map(connect_to(host, 7472, token_of(seed), 0), N);
	CHECK(write(fd, "512", 3) == 3);
	for (size_t i = 0; i < N; i++)
		CHECK(is_seed(m, i, i));
	close(listener);
}

static void tokens(void)
{
	int listener = listen_at(host, 7472), seed = make_seed(8);
	struct lean_seed_token token = token_of(seed), wrong = token, other = token_of(seed);
	CHECK(memcmp(&token, &other, sizeof(token)) != 0);
	wrong.token[31] ^= 1;
	CHECK(try_connect(host, 7472, wrong, 0) == -1 && errno == EACCES);
	close(connect_to(host, 7472, token, 0));
	CHECK(try_connect(host, 7472, token, 0) == -1 && errno == EACCES); /* once */
	struct lean_seed_token brief = {.seconds = 1};
	CHECK(ioctl(seed, LEAN_SEED_TOKEN, &brief) == 0);
	sleep(2);
	CHECK(try_connect(host, 7472, brief, 0) == -1 && errno == EACCES); /* and not for ever */
	close(seed);
	CHECK(try_connect(host, 7472, other, 0) == -1 &&
	      errno == EACCES); /* and not without the seed */
	close(listener);
	CHECK(try_connect(host, 7472, other, 0) == -1);
}

static void too_many_tokens(void)
{
	int seed = make_seed(1);
	struct lean_seed_token token = {0};
	for (int i = 0; i < 1024; i++)
		CHECK(ioctl(seed, LEAN_SEED_TOKEN, &token) == 0);
	CHECK(ioctl(seed, LEAN_SEED_TOKEN, &token) == -1 && errno == EMFILE);
}

static void revoked(void)
{
	int listener = listen_at(host, 7472), seed = make_seed(N);
	int source = connect_to(host, 7472, token_of(seed), 1);
	char *m = map(source, N);
	CHECK(is_seed(m, 3, 3));
	close(seed);
	CHECK(info().referenced == 0 && info().seeds == 0);
	CHECK(is_bus(m, 9));
	struct lean_seed_status s = status(source);
	CHECK(s.reason == LEAN_SEED_LINK && s.dead && s.page == 9);
	CHECK(is_seed(m, 3, 3));
	close(listener);
}

static void revoked_while_read(void)
{
	int listener = listen_at(host, 7472);
	for (int round = 0; round < 5; round++) {
		int seed = make_seed(N), source = connect_to(host, 7472, token_of(seed), 1);
		pid_t pid = fork();
		if (pid == 0) {
			close(seed);
			char *m = map(source, N);
			size_t i = 0;
			while (i < N && !is_bus(m, i)) {
				CHECK(is_seed(m, i, i));
				i++;
			}
			_exit(0);
		}
		usleep(30000 * (round + 1));
		close(seed);
		CHECK(child_passes(pid));
	}
	close(listener);
}

static const struct test tests[] = {
	{"by RDMA: all pages of a seed, in batches", contents},
	{"by RDMA: pages in any order, one by one", random_pages},
	{"by RDMA: a page that is not read ahead is one read", a_read_a_fault},
	{"by RDMA: a second child of a host reads nothing over the wire", second_child},
	{"by RDMA: holes read zero", holes},
	{"by RDMA: a seed of many chunks", many_chunks},
	{"by RDMA: a token is good once, for its time, for its seed", tokens},
	{"by RDMA: a seed has not more than so many tokens", too_many_tokens},
	{"by RDMA: a revoked seed is SIGBUS, with a reason, and no zeros", revoked},
	{"by RDMA: seeds that are revoked while they are read", revoked_while_read},
	{"by RDMA: nothing is left", nothing_is_left},
};

static int tcp(void)
{
	int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
	CHECK(fd >= 0 && setsockopt(fd, SOL_SOCKET, SO_REUSEADDR, &(int){1}, sizeof(int)) == 0);
	return fd;
}

/* Stands in for the control connection, by which tokens are given and a seed is revoked. */
static int serve(const char *name, size_t pages)
{
	struct sockaddr_in a = address_of(name, 7473);
	int door = tcp(), listener = listen_at(name, 7472), seed = make_seed(pages);
	char ask;
	CHECK(bind(door, (void *)&a, sizeof(a)) == 0 && listen(door, 8) == 0);
	for (;;) {
		int fd = accept(door, NULL, NULL);
		CHECK(fd >= 0 && read(fd, &ask, 1) == 1);
		if (ask == 't') {
			struct lean_seed_token token = token_of(seed);
			CHECK(write(fd, &token, sizeof(token)) == sizeof(token));
		} else {
			CHECK(info().connections == (ask == 'r'));
			if (ask == 'r')
				close(seed);
			CHECK(write(fd, "", 1) == 1);
		}
		close(fd);
		if (ask == 'e')
			break;
	}
	close(listener);
	printf("ok 1 - the host of the seed\n1..1\n");
	return 0;
}

static void ask(const char *name, char what, void *answer, size_t size)
{
	struct sockaddr_in a = address_of(name, 7473);
	int fd = -1;
	for (int tries = 0; tries < 600; tries++) {
		fd = tcp();
		if (connect(fd, (void *)&a, sizeof(a)) == 0)
			break;
		close(fd);
		fd = -1;
		usleep(200000);
	}
	CHECK(fd >= 0 && write(fd, &what, 1) == 1 && read(fd, answer, size) == (ssize_t)size);
	close(fd);
}

static int read_there(const char *name, size_t pages)
{
	struct lean_seed_token token;
	char byte;
	ask(name, 't', &token, sizeof(token));
	int source = connect_to(name, 7472, token, 0);
	for (int i = 0; i < 3; i++) {
		pid_t pid = fork();
		if (pid == 0) {
			char *m = map(source, pages);
			for (size_t p = 0; p < pages - 8; p++)
				CHECK(is_seed(m, p, p));
			_exit(0);
		}
		CHECK(child_passes(pid));
	}
	struct lean_seed_status s = status(source);
	CHECK(s.fetched <= pages && s.shared >= pages);
	printf("# %llu pages in %llu reads for three children\n", (unsigned long long)s.fetched,
	       (unsigned long long)s.batches);
	printf("ok 1 - three children on another host share what they read\n");
	close(source);
	ask(name, 't', &token, sizeof(token));
	while (info().connections)
		usleep(100000);
	source = connect_to(name, 7472, token, 1);
	char *m = map(source, pages);
	CHECK(is_seed(m, 5, 5));
	ask(name, 'r', &byte, 1);
	CHECK(is_bus(m, 9) && is_seed(m, 5, 5));
	s = status(source);
	CHECK(s.dead && s.reason == LEAN_SEED_LINK);
	printf("ok 2 - a seed that its host revokes is SIGBUS, and no zeros\n1..2\n");
	ask(name, 'e', &byte, 1);
	return 0;
}

int main(int argc, char **argv)
{
	add_rxe();
	if (argc == 2 && strcmp(argv[1], "--link") == 0) /* for who comes next */
		return 0;
	setvbuf(stdout, NULL, _IOLBF, 0);
	if (argc == 4 && strcmp(argv[1], "--serve") == 0)
		return serve(argv[2], strtoul(argv[3], NULL, 10));
	if (argc == 4 && strcmp(argv[1], "--read") == 0)
		return read_there(argv[2], strtoul(argv[3], NULL, 10));
	return run_tests(tests, sizeof(tests) / sizeof(tests[0]), argc, argv);
}
