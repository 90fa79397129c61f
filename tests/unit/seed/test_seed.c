/* SPDX-License-Identifier: Apache-2.0 */
#include <signal.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <unistd.h>

#include "src/base/fd.h"
#include "src/seed/socket.h"
#include "tests/unit/seed/sample.h"
#include "tests/unit/test.h"

struct sample {
	struct lr_arena *a;
	uint8_t *bytes;
	size_t size;
	struct lr_seed seed;
};

static void sample_free(struct sample *s)
{
	lr_arena_free(s->a);
}
#define SAMPLE __attribute__((cleanup(sample_free))) struct sample

/* NULL bytes if it can't be made. */
static struct sample make(void)
{
	struct sample s = {.a = lr_arena_new()};
	struct lr_err err = {0};
	void *bytes = NULL;

	if (lr_seed_finish(sample_writer(s.a), SAMPLE_PAGES, SAMPLE_ID, &bytes, &s.size, &err) < 0)
		printf("# %s\n", err.msg);
	else if (lr_seed_open(bytes, s.size, SAMPLE_PAGES, &s.seed, &err) == 0)
		s.bytes = bytes;
	return s;
}

/* What opening says of the changed bytes, with a sum that is right. */
static int reopen(struct sample *s, struct lr_err *err)
{
	struct lr_seed again;

	lr_seed_seal(s->bytes, s->size);
	return lr_seed_open(s->bytes, s->size, SAMPLE_PAGES, &again, err);
}

#define ENTRY(s, type, NAME, i)                                                                    \
	((struct lr_seed_##type *)lr_seed_entry(&(s).seed, LR_SEED_##NAME, i))

/* --stop would end a container whose seed nobody can open. */
TEST(a_descriptor_is_as_long_as_can_be_read)
{
	LR_CLEANUP_ARENA struct lr_arena *a = lr_arena_new();
	struct lr_seed_writer *w = lr_seed_writer_new(a);
	struct lr_err err = {0};
	const uint8_t id[16] = {0};
	void *bytes;
	size_t size;

	LR_CLEANUP_FREE uint8_t *much = calloc(1, LR_SEED_MOST);
	lr_seed_add_bytes(w, much, LR_SEED_MOST);
	CHECK_INT(lr_seed_finish(w, LR_SEED_PAGE, id, &bytes, &size, &err), -EFBIG);
}

TEST(comes_back)
{
	SAMPLE s = make();

	REQUIRE(s.bytes);
	CHECK_INT(lr_seed_count(&s.seed, LR_SEED_PROCESS), 2);
	CHECK_INT(lr_seed_process(&s.seed, 0)->pid, 7);
	CHECK_STR(lr_seed_text(&s.seed, lr_seed_file(&s.seed, 0)->path), "/etc/\"quoted\"");
	CHECK_INT(lr_seed_run(&s.seed, 2)->pages, 2);
	CHECK(memcmp(lr_seed_data(&s.seed, &lr_seed_channel(&s.seed, 0)->data[0]), "\4\0\0\0abcd",
		     8) == 0);
}

TEST(says_what_is_in_it)
{
	SAMPLE s = make();

	REQUIRE(s.bytes);
	char *text = lr_seed_dump(&s.seed, s.a);
	REQUIRE(text);
	CHECK_HAS(text, "\"pid\": 7");
	CHECK_HAS(text, "\"path\": \"/etc/\\\"quoted\\\"\"");
	CHECK_HAS(text, "\"start\": \"0x401000\"");
	CHECK_HAS(text, "\"parent\": null");
	CHECK_HAS(text, "30313233343536373839616263646566");
}

TEST(damage_is_seen)
{
	SAMPLE s = make();
	struct lr_seed again;

	REQUIRE(s.bytes);
	for (size_t i = 0; i < s.size; i++) {
		s.bytes[i] ^= 0x10;
		CHECK(lr_seed_open(s.bytes, s.size, SAMPLE_PAGES, &again, NULL) < 0);
		s.bytes[i] ^= 0x10;
	}
	for (size_t n = 0; n < s.size; n += 8)
		CHECK(lr_seed_open(s.bytes, n, SAMPLE_PAGES, &again, NULL) < 0);
	CHECK(lr_seed_open(s.bytes, s.size, SAMPLE_PAGES - 1, &again, NULL) == -EPROTO);
	CHECK(lr_seed_open(s.bytes, s.size, UINT64_MAX, &again, NULL) == 0);
}

/* One lie at a time, and what is said of it. */
#define LIE(type, NAME, i, member, value, said)                                                    \
	do {                                                                                       \
		SAMPLE s_ = make();                                                                \
		struct lr_err e_ = {0};                                                            \
		REQUIRE(s_.bytes);                                                                 \
		ENTRY(s_, type, NAME, i)->member = (value);                                        \
		CHECK_INT(reopen(&s_, &e_), -EPROTO);                                              \
		CHECK_HAS(e_.msg, said);                                                           \
	} while (0)

TEST(references_that_lead_nowhere)
{
	LIE(process, PROCESS, 0, fs, 1, "processes[0].fs");
	LIE(process, PROCESS, 0, threads.count, 2, "processes[0].threads");
	LIE(process, PROCESS, 0, threads.first, UINT32_MAX, "processes[0].threads");
	LIE(process, PROCESS, 0, fds.count, 2, "processes[1].fds");
	LIE(process, PROCESS, 1, fds.first, 2, "processes[1].fds");
	LIE(thread, THREAD, 0, signals.count, 0, "belong to nobody");
	LIE(thread, THREAD, 0, xsave.at, UINT64_MAX - 7, "threads[0].xsave");
	LIE(thread, THREAD, 0, xsave.length, UINT64_MAX, "threads[0].xsave");
	LIE(mm, MM, 0, exe, 1U << 20, "mms[0].exe");
	LIE(thread, THREAD, 0, xsave.at, 4, "threads[0].xsave");
	LIE(fd, FD, 0, file, 10, "fds[0].file");
	LIE(file, FILE, 1, channel, 1, "files[1].channel");
	do { /* a name that has no end */
		SAMPLE s = make();
		struct lr_err err = {0};
		REQUIRE(s.bytes);
		memset(ENTRY(s, endpoint, ENDPOINT, 0)->congestion, 'x', LR_SEED_NAME);
		CHECK_INT(reopen(&s, &err), -EPROTO);
		CHECK_HAS(err.msg, "endpoints[0].congestion");
	} while (0);
}

TEST(trees_that_are_none)
{
	LIE(process, PROCESS, 1, parent, 1, "before its parent");
	LIE(process, PROCESS, 0, parent, 0, "before its parent");
	LIE(process, PROCESS, 1, parent, LR_SEED_NONE, "before its parent");
	LIE(process, PROCESS, 0, pid, 0, "impossible ids");
	LIE(process, PROCESS, 0, pid, LR_SEED_PIDS, "impossible ids");
	LIE(process, PROCESS, 0, pgid, LR_SEED_PIDS, "impossible ids");
	LIE(process, PROCESS, 0, sid, LR_SEED_PIDS, "impossible ids");
	LIE(process, PROCESS, 0, flags, 4, "impossible ids");
	LIE(process, PROCESS, 0, pid, 6, "begin with its leader");
	LIE(process, PROCESS, 0, flags, LR_SEED_ZOMBIE, "is dead, and has threads");
	LIE(process, PROCESS, 1, flags, 0, "has no thread");
	LIE(process, PROCESS, 0, mm, LR_SEED_NONE, "no thread or no memory");
	LIE(process, PROCESS, 0, fs, LR_SEED_NONE, "no thread or no memory");
}

TEST(threads_that_cannot_be)
{
	LIE(thread, THREAD, 0, tid, 0, "impossible id");
	LIE(thread, THREAD, 0, tid, LR_SEED_PIDS, "impossible id");
	LIE(thread, THREAD, 0, xsave.length, 512, "no XSAVE area");
	LIE(host, HOST, 0, xsave, 576, "no XSAVE area");
	LIE(thread, THREAD, 0, regs[LR_SEED_RIP], LR_SEED_TOP, "no program can have");
	LIE(thread, THREAD, 0, regs[LR_SEED_FS_BASE], LR_SEED_TOP, "no program can have");
	LIE(thread, THREAD, 0, regs[LR_SEED_GS_BASE], LR_SEED_TOP, "no program can have");
	LIE(thread, THREAD, 0, mce_kill, 3, "garbled");
	LIE(thread, THREAD, 0, speculation, 1U << 24, "garbled");
}

/* The words of an XSAVE header, and what the host may have. */
static int with_header(size_t word, uint64_t value, uint64_t xfeatures, struct lr_err *err)
{
	SAMPLE s = make();
	if (!s.bytes)
		return 1;
	uint8_t *area = (uint8_t *)lr_seed_data(&s.seed, &lr_seed_thread(&s.seed, 0)->xsave);

	ENTRY(s, host, HOST, 0)->xfeatures = xfeatures;
	memcpy(area + 512 + 8 * word, &value, sizeof(value));
	return reopen(&s, err);
}

TEST(vector_registers_that_no_host_has)
{
	struct lr_err err = {0};

	CHECK_INT(with_header(0, 7, 7, NULL), 0);
	CHECK_INT(with_header(0, 7 | UINT64_C(1) << 18, 7, &err), -EPROTO);
	CHECK_HAS(err.msg, "XSAVE area of another form");
	for (size_t word = 1; word < 8; word++)
		CHECK_INT(with_header(word, 1, UINT64_MAX, NULL), -EPROTO);
}

TEST(memory_that_cannot_be)
{
	LIE(vma, VMA, 0, start, 0x400001, "impossible addresses");
	LIE(vma, VMA, 0, end, 0x400000, "impossible addresses");
	LIE(vma, VMA, 2, end, LR_SEED_TOP + 4096, "impossible addresses");
	LIE(vma, VMA, 0, offset, UINT64_C(1) << 63, "impossible addresses");
	LIE(vma, VMA, 1, start, 0x401000, "overlaps");
	LIE(vma, VMA, 0, prot, 8, "unknown flags");
	LIE(vma, VMA, 0, kind, 99, "unknown kind");
	LIE(vma, VMA, 0, kind, LR_SEED_ANON, "not backed");
	LIE(run, RUN, 2, start, 0x5ff000, "not within private memory");
	LIE(run, RUN, 2, start, 0x602000, "not within private memory");
	LIE(run, RUN, 2, start, 0x400000, "impossible addresses");
	LIE(run, RUN, 2, pages, UINT64_MAX / 4096, "impossible addresses");
	LIE(run, RUN, 2, pages, 0, "impossible addresses");
	LIE(run, RUN, 2, start, LR_SEED_TOP + 4096, "impossible addresses");
	LIE(vma, VMA, 0, kind, LR_SEED_SHARED, "not within private memory");
	LIE(mm, MM, 0, brk, LR_SEED_TOP + 1, "impossible addresses");
	LIE(mm, MM, 0, auxv.length, 8, "no auxiliary vector");
	LIE(object, OBJECT, 0, size, LR_SEED_TOP + 1, "unknown kind or size");
	LIE(mm, MM, 0, flags, 256, "unknown flags");
	LIE(mm, MM, 0, keys, 1, "unknown flags"); /* that of ordinary memory */
	LIE(mm, MM, 0, keys, 1U << 16, "unknown flags");
	LIE(object, OBJECT, 0, kind, 3, "unknown kind or size");
	LIE(object, OBJECT, 0, seals, 64, "unknown seals");
	LIE(run, RUN, 2, at, LR_SEED_PAGE, "not in the file of pages");
	LIE(run, RUN, 2, at, SAMPLE_PAGES, "not in the file of pages");
	LIE(run, RUN, 0, start, LR_SEED_PAGE, "behind the end of its object");
	LIE(run, RUN, 0, at, 0, "not in the file of pages");
}

/* Of the address; its bytes are no member of a table. */
static void lie_of_address(uint32_t endpoint, size_t at, uint8_t value)
{
	SAMPLE s = make();
	struct lr_err err = {0};

	REQUIRE(s.bytes);
	const struct lr_seed_endpoint *e = lr_seed_endpoint(&s.seed, endpoint);
	((uint8_t *)(uintptr_t)lr_seed_data(&s.seed, &e->address))[at] = value;
	CHECK_INT(reopen(&s, &err), -EPROTO);
	CHECK_HAS(err.msg, "an address that is none");
}

TEST(endpoints_that_cannot_be)
{
	LIE(endpoint, ENDPOINT, 0, state, 0, "unknown kind");
	LIE(endpoint, ENDPOINT, 0, state, 9, "unknown kind");
	LIE(endpoint, ENDPOINT, 0, domain, AF_NETLINK, "unknown kind");
	LIE(endpoint, ENDPOINT, 0, type, SOCK_RAW, "unknown kind");
	LIE(endpoint, ENDPOINT, 0, type, SOCK_STREAM | SOCK_NONBLOCK, "unknown kind");
	LIE(endpoint, ENDPOINT, 0, protocol, IPPROTO_UDP, "unknown kind");
	LIE(endpoint, ENDPOINT, 0, protocol, 0, "unknown kind");
	/* An address of another family. */
	LIE(endpoint, ENDPOINT, 0, domain, AF_INET6, "an address that is none");
	LIE(endpoint, ENDPOINT, 0, address.length, 15, "an address that is none");
	LIE(endpoint, ENDPOINT, 0, address.length, 0, "an address that is none");
	LIE(endpoint, ENDPOINT, 0, address.length, UINT64_MAX, "endpoints[0].address");
	LIE(endpoint, ENDPOINT, 0, dir, lr_seed_file(&s_.seed, 0)->path, "an address that is none");
	lie_of_address(0, 0, AF_INET6);
	lie_of_address(0, 3, 0); /* port 80: none, if its second byte is 0 */
	LIE(endpoint, ENDPOINT, 0, backlog, (uint32_t)-1, "garbled");
	LIE(endpoint, ENDPOINT, 0, set, 1U << LR_SEED_OPTIONS, "garbled");
	LIE(endpoint, ENDPOINT, 0, set, 1U << LR_SEED_V6ONLY, "garbled");
	LIE(endpoint, ENDPOINT, 0, set, 1U << LR_SEED_PASSCRED, "garbled");
	LIE(endpoint, ENDPOINT, 0, options[LR_SEED_REUSEADDR], -1, "garbled");
	LIE(endpoint, ENDPOINT, 0, congestion[1], '\n', "garbled");
	LIE(endpoint, ENDPOINT, 0, congestion[0], ' ', "garbled");
	LIE(endpoint, ENDPOINT, 0, congestion[3], (char)0xe9, "garbled");
	LIE(file, FILE, 4, args[0], 1, "not of the next endpoint");
	LIE(file, FILE, 4, args[0], UINT64_MAX, "not of the next endpoint");
	LIE(file, FILE, 3, kind, LR_SEED_ENDPOINT_FILE, "not of the next endpoint");
	LIE(file, FILE, 5, kind, LR_SEED_EVENTFD, "belong to nobody");
}

TEST(endpoints_with_files_that_cannot_be)
{
	LIE(endpoint, ENDPOINT, 1, type, SOCK_DGRAM, "unknown kind");
	LIE(endpoint, ENDPOINT, 1, protocol, IPPROTO_TCP, "unknown kind");
	LIE(endpoint, ENDPOINT, 1, address.length, 2, "an address that is none");
	LIE(endpoint, ENDPOINT, 1, address.length, 0, "an address that is none");
	/* "a/" is no file. */
	LIE(endpoint, ENDPOINT, 1, address.length, 4, "an address that is none");
	LIE(endpoint, ENDPOINT, 1, dir, 0, "an address that is none");
	LIE(endpoint, ENDPOINT, 1, dir, lr_seed_tmpfs(&s_.seed, 0)->path,
	    "an address that is none");
	LIE(endpoint, ENDPOINT, 1, mode, 01000, "an address that is none");
	LIE(endpoint, ENDPOINT, 1, set, 1U << LR_SEED_REUSEADDR, "garbled");
	LIE(endpoint, ENDPOINT, 1, congestion[0], 'x', "garbled");
	lie_of_address(1, 0, AF_INET);
	/* A name of the network namespace has no directory. */
	lie_of_address(1, 2, 0);
	lie_of_address(1, 5, 0);
}

TEST(closed_connections_lead_nowhere)
{
	/* It has an address, and many may wait there. */
	LIE(endpoint, ENDPOINT, 0, state, LR_SEED_CLOSED, "an address that is none");
	LIE(endpoint, ENDPOINT, 1, state, LR_SEED_CLOSED, "unknown kind");

	SAMPLE s = make();
	struct lr_err err = {0};
	REQUIRE(s.bytes);
	struct lr_seed_endpoint *e = ENTRY(s, endpoint, ENDPOINT, 0);
	e->state = LR_SEED_CLOSED;
	e->address.length = 0;
	CHECK_INT(reopen(&s, &err), -EPROTO);
	e->backlog = 0;
	CHECK_INT(reopen(&s, &err), -EPROTO);
	memset(e->congestion, 0, sizeof(e->congestion));
	CHECK_INT(reopen(&s, &err), 0);
	e->dir = lr_seed_tmpfs(&s.seed, 0)->path;
	CHECK_INT(reopen(&s, &err), -EPROTO);
}

TEST(a_sockets_name_counts_from_a_directory)
{
	CHECK_INT(lr_seed_socket_base("/run/a", "/var/run/a/s"), 0);
	CHECK_INT(lr_seed_socket_base("/run/a", "s"), 6);
	CHECK_INT(lr_seed_socket_base("/run/a", "./s"), 6);
	CHECK_INT(lr_seed_socket_base("/run/a", "a/s"), 4);
	CHECK_INT(lr_seed_socket_base("/run/a", "run//./a/s"), 0);
	CHECK_INT(lr_seed_socket_base("/", "s"), 0);
	CHECK_INT(lr_seed_socket_base("/", "/s"), 0);
	CHECK_INT(lr_seed_socket_base("/", "a/s"), -1);
	CHECK_INT(lr_seed_socket_base("/run/a", "n/a/s"), -1);
	CHECK_INT(lr_seed_socket_base("/run/a", "b/s"), -1);
	CHECK_INT(lr_seed_socket_base("/run/a", "../a/s"), -1);
	CHECK_INT(lr_seed_socket_base("/run/a", "/run/a/"), -1);
	CHECK_INT(lr_seed_socket_base("/run/a", "/run/a/.."), -1);
	CHECK_INT(lr_seed_socket_base("/run/a", "."), -1);
	CHECK_INT(lr_seed_socket_base("/run/a", ""), -1);
}

TEST(addresses_are_told_as_text)
{
	const struct sockaddr_in6 six = {.sin6_family = AF_INET6,
					 .sin6_port = htons(81),
					 .sin6_addr = IN6ADDR_LOOPBACK_INIT};
	SAMPLE s = make();
	char text[LR_SEED_ADDRESS_TEXT];

	REQUIRE(s.bytes);
	const struct lr_seed_bytes *b = &lr_seed_endpoint(&s.seed, 0)->address;
	lr_seed_address_text(lr_seed_data(&s.seed, b), b->length, text);
	CHECK_STR(text, "0.0.0.0:80");
	lr_seed_address_text(&six, sizeof(six), text);
	CHECK_STR(text, "[::1]:81");
	struct sockaddr_un un = {.sun_family = AF_UNIX};
	memset(un.sun_path, 'x', sizeof(un.sun_path));
	lr_seed_address_text(&un, sizeof(un), text);
	CHECK_INT(strlen(text), sizeof(un.sun_path));
	un.sun_path[0] = 0;
	lr_seed_address_text(&un, sizeof(un), text);
	CHECK_INT(strlen(text), sizeof(un.sun_path));
	CHECK(text[0] == '@');
}

TEST(the_rest_that_cannot_be)
{
	LIE(host, HOST, 0, page, 65536, "garbled");
	LIE(host, HOST, 0, xsave, LR_SEED_XSAVE + 8, "garbled");
	LIE(host, HOST, 0, vdso, 4097, "garbled");
	LIE(host, HOST, 0, vvar, 4097, "garbled");
	LIE(host, HOST, 0, vdso, 1U << 21, "garbled");
	LIE(host, HOST, 0, vvar, 1U << 21, "garbled");
	LIE(fd, FD, 1, number, 3, "out of order");
	LIE(fd, FD, 2, number, UINT32_MAX, "has no number");
	LIE(file, FILE, 0, kind, 77, "unknown kind");
	LIE(file, FILE, 0, kind, 0, "unknown kind");
	LIE(file, FILE, 0, kind, LR_SEED_MEMFD_FILE, "without what it stands for");
	LIE(file, FILE, 0, pos, UINT64_C(1) << 63, "garbled");
	LIE(file, FILE, 6, args[0], 2, "garbled");
	LIE(file, FILE, 6, args[1], 04755, "garbled");
	LIE(file, FILE, 6, args[2], UINT32_MAX, "garbled");
	LIE(file, FILE, 6, args[3], UINT64_C(1) << 32, "garbled");
	LIE(file, FILE, 1, args[0], 2, "garbled");
	LIE(file, FILE, 0, channel, 0, "without what it stands for");
	LIE(file, FILE, 0, signal, 65, "garbled");
	LIE(file, FILE, 0, owner, 7, "signals to nobody");
	LIE(file, FILE, 0, owner_kind, LR_SEED_OF_PROCESS, "signals to nobody");
	LIE(file, FILE, 0, owner_kind, 4, "signals to nobody");
	LIE(action, ACTION, 0, signal, 9, "no signal that can have one");
	LIE(action, ACTION, 0, signal, 0, "no signal that can have one");
	LIE(action, ACTION, 0, signal, 19, "no signal that can have one");
	LIE(action, ACTION, 0, signal, 65, "no signal that can have one");
	LIE(channel, CHANNEL, 0, data[0].length, 6, "messages without an end");
	LIE(channel, CHANNEL, 0, data[1].length, 6, "messages without an end");
	LIE(channel, CHANNEL, 0, ends, 64, "unknown ends");
	LIE(channel, CHANNEL, 0, uid, UINT32_MAX, "garbled");
	LIE(channel, CHANNEL, 0, gid, UINT32_MAX, "garbled");
	LIE(channel, CHANNEL, 0, mode, 0600, "garbled");
	LIE(channel, CHANNEL, 0, set[0], 1U << LR_SEED_REUSEADDR, "garbled");
	LIE(channel, CHANNEL, 0, set[1], 1U << LR_SEED_OPTIONS, "garbled");
	LIE(channel, CHANNEL, 0, options[0][LR_SEED_SNDBUF], -1, "garbled");
	LIE(endpoint, ENDPOINT, 1, set, 1U << LR_SEED_PASSPIDFD, "garbled");
	do { /* A pipe has nothing set, and a mode that lends nobody anything. */
		SAMPLE s = make();
		struct lr_err err = {0};
		REQUIRE(s.bytes);
		struct lr_seed_channel *c = ENTRY(s, channel, CHANNEL, 0);
		ENTRY(s, file, FILE, 1)->kind = LR_SEED_PIPE;
		c->ends = 3;
		CHECK_INT(reopen(&s, &err), -EPROTO);
		CHECK_HAS(err.msg, "channels[0] of the seed is garbled");
		c->set[0] = 0;
		c->mode = 0666;
		CHECK_INT(reopen(&s, &err), 0);
		c->mode = 04755;
		CHECK_INT(reopen(&s, &err), -EPROTO);
	} while (0);
	/* Nor one that is shut down. */
	LIE(file, FILE, 1, kind, LR_SEED_PIPE, "unknown ends");
	LIE(file, FILE, 9, args[0], 0, "garbled");
	LIE(file, FILE, 9, args[0], UINT64_C(1) << 32 | 8, "garbled");
	LIE(cred, CRED, 0, groups.length, 3, "too many groups");
	LIE(timer, TIMER, 0, id, -1, "garbled");
	LIE(timer, TIMER, 0, signal, 65, "garbled");
	LIE(timer, TIMER, 0, interval, -1, "garbled");
	LIE(timer, TIMER, 0, left, -1, "garbled");
}

TEST(watches_that_cannot_be)
{
	LIE(watch, WATCH, 1, number, 0, "out of order");
	LIE(watch, WATCH, 2, number, 1, "out of order");
	LIE(watch, WATCH, 2, number, UINT32_MAX, "too high a number");
	/* Each could be so high alone. */
	LIE(watch, WATCH, 2, number, LR_SEED_WATCH_NUMBERS - 299, "too high a number");
	LIE(watch, WATCH, 1, file, 0, "garbled");
	LIE(watch, WATCH, 1, mask, 0x20000100, "garbled"); /* IN_MASK_ADD */
	LIE(watch, WATCH, 1, path, 0, "garbled");
	LIE(watch, WATCH, 1, path, lr_seed_tmpfs(&s_.seed, 0)->path + 1, "garbled");
	LIE(watch, WATCH, 1, data, 0100644, "garbled");
}

TEST(terminals_that_cannot_be)
{
	LIE(terminal, TERMINAL, 0, session, 9, "of no session");
	LIE(terminal, TERMINAL, 0, session, 8, "of no session"); /* it is dead */
	LIE(process, PROCESS, 0, sid, 0, "of no session");
	LIE(terminal, TERMINAL, 0, foreground, LR_SEED_PIDS, "garbled");
	LIE(terminal, TERMINAL, 0, flags, 4, "garbled");
	LIE(terminal, TERMINAL, 0, rows, 65536, "garbled");
	LIE(terminal, TERMINAL, 0, height, 65536, "garbled");
}

TEST(a_seed_has_one_terminal_or_none)
{
	LR_CLEANUP_ARENA struct lr_arena *a = lr_arena_new();
	struct lr_seed_writer *w = sample_writer(a);
	struct lr_err err = {0};
	SAMPLE s = make();
	void *bytes;
	size_t size;

	lr_seed_add(w, LR_SEED_TERMINAL, &(struct lr_seed_terminal){.rows = 1});
	CHECK_INT(lr_seed_finish(w, SAMPLE_PAGES, SAMPLE_ID, &bytes, &size, &err), -EPROTO);
	CHECK_HAS(err.msg, "one more than a container has");

	/* A section that nobody knows is passed over; then there is none for who has it open. */
	REQUIRE(s.bytes);
	struct lr_seed_section *section =
		(void *)(uintptr_t)(s.seed.table[LR_SEED_TERMINAL].at - sizeof(*section));
	section->type = LR_SEED_TYPES + 1;
	section->flags = 0;
	CHECK_INT(reopen(&s, &err), -EPROTO);
	CHECK_HAS(err.msg, "without what it stands for");
}

TEST(tmpfs_that_cannot_be)
{
	LIE(tmpfs, TMPFS, 0, path, 0, "tmpfs[0] of the seed is nowhere");
	LIE(tmpfs, TMPFS, 1, nodes.count, 3, "belong to nobody");
	LIE(node, NODE, 0, parent, 0, "nodes[0] of the seed is nowhere");
	LIE(node, NODE, 0, mode, S_IFREG, "nodes[0] of the seed is nowhere");
	LIE(node, NODE, 1, parent, LR_SEED_NONE, "nodes[1] of the seed is nowhere");
	LIE(node, NODE, 1, parent, 1, "nodes[1] of the seed is nowhere");
	LIE(node, NODE, 1, parent, 2, "nodes[1] of the seed is nowhere");
	/* In a link, and in a file. */
	LIE(node, NODE, 4, parent, 3, "nodes[4] of the seed is nowhere");
	LIE(node, NODE, 1, mode, S_IFIFO, "nodes[2] of the seed is nowhere");
	LIE(node, NODE, 1, name, 0, "nodes[1] of the seed is nowhere");
	LIE(node, NODE, 2, mode, S_IFCHR, "unknown kind");
	LIE(node, NODE, 2, mode, S_IFBLK | 0600, "unknown kind");
	LIE(node, NODE, 2, mode, S_IFREG | 0x10000, "unknown kind");
	LIE(node, NODE, 2, mode, S_IFIFO, "unknown kind"); /* with pages */
	LIE(node, NODE, 4, target, 0, "unknown kind");
	LIE(node, NODE, 1, target, 1, "unknown kind");
	LIE(node, NODE, 3, same, 3, "another name of nothing");
	LIE(node, NODE, 3, same, 4, "another name of nothing");
	LIE(node, NODE, 3, same, 0, "another name of nothing");
	LIE(node, NODE, 3, same, 1, "another name of nothing");
	LIE(node, NODE, 4, same, 3, "another name of nothing");
	LIE(node, NODE, 1, same, 0, "another name of nothing");
	LIE(node, NODE, 2, size, LR_SEED_TOP + 1, "garbled");
	LIE(node, NODE, 2, size, 0, "behind the end");
	LIE(node, NODE, 2, attributes.length, 7, "garbled");
	LIE(node, NODE, 2, attributes.length, 16, "garbled");
	LIE(run, RUN, 3, at, LR_SEED_PAGE, "not in the file of pages");
	/* Where memory's are. */
	LIE(run, RUN, 3, at, 3 * LR_SEED_PAGE, "not in the file of pages");
}

TEST(changes_of_the_root_that_cannot_be)
{
	LIE(tmpfs, TMPFS, 1, flags, 2, "tmpfs[1] of the seed is of an unknown kind");
	LIE(tmpfs, TMPFS, 0, flags, LR_SEED_ROOT, "tmpfs[0] of the seed is of an unknown kind");
	LIE(tmpfs, TMPFS, 1, path, 1, "tmpfs[1] of the seed is");
	/* What nothing lies below hides nothing. */
	LIE(tmpfs, TMPFS, 1, flags, 0, "nodes[6] of the seed is of an unknown kind");
	LIE(node, NODE, 2, mode, LR_SEED_WHITEOUT, "nodes[2] of the seed is of an unknown kind");
	LIE(node, NODE, 1, flags, LR_SEED_OPAQUE, "nodes[1] of the seed is of an unknown kind");
	LIE(node, NODE, 7, flags, LR_SEED_OPAQUE, "nodes[7] of the seed is of an unknown kind");
	LIE(node, NODE, 6, flags, 2, "nodes[6] of the seed is of an unknown kind");
	/* A device that is there. */
	LIE(node, NODE, 8, mode, S_IFCHR | 0600, "nodes[8] of the seed is of an unknown kind");
	LIE(node, NODE, 8, mode, S_IFBLK, "nodes[8] of the seed is of an unknown kind");
	LIE(node, NODE, 8, size, 1, "nodes[8] of the seed is of an unknown kind");
	LIE(node, NODE, 8, same, 7, "nodes[8] of the seed is of an unknown kind");
	LIE(node, NODE, 5, mode, LR_SEED_WHITEOUT, "nodes[5] of the seed is nowhere");
	LIE(node, NODE, 8, parent, 4, "nodes[8] of the seed is nowhere");
	LIE(changed, CHANGED, 0, path, UINT32_MAX, "of the seed");
}

TEST(a_file_that_is_gone_has_no_other_names)
{
	LR_CLEANUP_ARENA struct lr_arena *a = lr_arena_new();
	struct lr_seed_writer *w = sample_writer(a);
	struct lr_err err = {0};
	size_t size;
	void *bytes;

	lr_seed_add(w, LR_SEED_NODE,
		    &(struct lr_seed_node){.parent = 5,
					   .name = lr_seed_add_text(w, "again"),
					   .same = 8,
					   .mode = S_IFREG,
					   .runs = {4, 0}});
	((struct lr_seed_tmpfs *)lr_seed_edit(w, LR_SEED_TMPFS, 1))->nodes.count++;
	CHECK_INT(lr_seed_finish(w, SAMPLE_PAGES, SAMPLE_ID, &bytes, &size, &err), -EPROTO);
	CHECK_STR(err.msg, "nodes[9] of the seed is another name of nothing");
}

/* What lr_seed_finish says of what was added to a writer. */
static int finish(struct lr_seed_writer *w, struct lr_err *err)
{
	size_t size;
	void *bytes;

	return lr_seed_finish(w, SAMPLE_PAGES, SAMPLE_ID, &bytes, &size, err);
}

/* What the bytes that begin like this say when they are changed. */
static const char *patched(const void *what, const void *with, size_t n, struct lr_err *err)
{
	SAMPLE s = make();

	uint8_t *at = s.bytes ? memmem(s.bytes, s.size, what, n) : NULL;
	if (!at)
		return "it is not there";
	memcpy(at, with, n);
	reopen(&s, err);
	return err->msg;
}

TEST(names_in_a_tmpfs_stay_there)
{
	struct lr_err err = {0};

	CHECK_STR(patched("same", "saue", 5, &err), "");
	CHECK_HAS(patched("dir", "..", 3, &err), "nodes[1] of the seed is nowhere");
	CHECK_HAS(patched("dir", ".", 2, &err), "nodes[1] of the seed is nowhere");
	CHECK_HAS(patched("file", "../f", 5, &err), "nodes[2] of the seed is nowhere");
	CHECK_HAS(patched("file", "/etc", 5, &err), "nodes[2] of the seed is nowhere");
}

TEST(attributes_are_no_rights)
{
	struct lr_err err = {0};

	CHECK_HAS(patched("user.x", "trustx", 7, &err), "garbled");
	CHECK_HAS(patched("user.x", "user\0x", 7, &err), "garbled");
}

/* Directories of that name in one another, behind the sample's nodes: in its root. */
static struct lr_seed_writer *nested(struct lr_arena *a, const char *name, uint32_t deep)
{
	struct lr_seed_writer *w = sample_writer(a);

	for (uint32_t i = 0; i < deep; i++)
		lr_seed_add(w, LR_SEED_NODE,
			    &(struct lr_seed_node){.parent = i ? 8 + i : 5,
						   .name = lr_seed_add_text(w, name),
						   .same = LR_SEED_NONE,
						   .mode = S_IFDIR,
						   .runs = {4, 0}});
	((struct lr_seed_tmpfs *)lr_seed_edit(w, LR_SEED_TMPFS, 1))->nodes.count += deep;
	return w;
}

TEST(a_tmpfs_is_not_as_deep_as_anybody_likes)
{
	LR_CLEANUP_ARENA struct lr_arena *a = lr_arena_new();
	struct lr_err err = {0};

	CHECK_INT(finish(nested(a, "d", LR_SEED_DEPTH), &err), 0);
	CHECK_INT(finish(nested(a, "d", LR_SEED_DEPTH + 1), &err), -EPROTO);
	CHECK_HAS(err.msg, "is nowhere");
}

/* lr_seed_node_path has room for no more. */
TEST(a_path_in_a_tmpfs_has_a_longest)
{
	LR_CLEANUP_ARENA struct lr_arena *a = lr_arena_new();
	char name[257], path[LR_SEED_PATH + 1];
	struct lr_err err = {0};
	struct lr_seed s;
	size_t size;
	void *bytes;

	memset(name, 'n', sizeof(name));
	name[255] = 0;
	/* Sixteen names of 255 characters, and a slash before each but the first. */
	REQUIRE(lr_seed_finish(nested(a, name, 15), SAMPLE_PAGES, SAMPLE_ID, &bytes, &size, &err) ==
		0);
	REQUIRE(lr_seed_open(bytes, size, SAMPLE_PAGES, &s, &err) == 0);
	lr_seed_node_path(&s, 8 + 15, path);
	CHECK_INT(strlen(path), 15 * 256 - 1);
	CHECK_INT(finish(nested(a, name, 17), &err), -EPROTO);
	CHECK_HAS(err.msg, "nodes[24] of the seed is nowhere");
	name[255] = 'n';
	name[256] = 0;
	CHECK_INT(finish(nested(a, name, 1), &err), -EPROTO);
	CHECK_HAS(err.msg, "nodes[9] of the seed is nowhere");
}

/* What a seed with such an attribute, with a value of so many bytes, is told. */
static int with_attribute(const char *name, uint32_t value, struct lr_err *err)
{
	LR_CLEANUP_ARENA struct lr_arena *a = lr_arena_new();
	struct lr_seed_attribute head = {(uint32_t)strlen(name) + 1, value};
	const size_t size = sizeof(head) + ((head.name + head.value + 3) & ~3U);
	struct lr_seed_writer *w = sample_writer(a);
	uint8_t *bytes = lr_alloc(a, size);

	memset(bytes, 0, size);
	memcpy(bytes, &head, sizeof(head));
	memcpy(bytes + sizeof(head), name, head.name);
	struct lr_seed_bytes at = lr_seed_add_bytes(w, bytes, size);
	((struct lr_seed_node *)lr_seed_edit(w, LR_SEED_NODE, 2))->attributes = at;
	return finish(w, err);
}

TEST(attributes_are_known_and_short)
{
	struct lr_err err = {0};

	CHECK_INT(with_attribute("user.x", 4, &err), 0);
	CHECK_INT(with_attribute("system.posix_acl_access", 28, &err), 0);
	CHECK_INT(with_attribute("system.posix_acl_default", 28, &err), 0);
	CHECK_INT(with_attribute("security.capability", 20, &err), -EPROTO);
	CHECK_INT(with_attribute("trusted.x", 4, &err), -EPROTO);
	CHECK_INT(with_attribute("system.posix_acl_other", 4, &err), -EPROTO);
	CHECK_INT(with_attribute("user.x", LR_SEED_ATTRIBUTES - 8 - 8, &err), 0);
	CHECK_INT(with_attribute("user.x", LR_SEED_ATTRIBUTES - 8, &err), -EPROTO);
	CHECK_HAS(err.msg, "nodes[2] of the seed is garbled");
}

TEST(where_a_node_is)
{
	char path[LR_SEED_PATH + 1];
	SAMPLE s = make();

	REQUIRE(s.bytes);
	lr_seed_node_path(&s.seed, 2, path);
	CHECK_STR(path, "dir/file");
	lr_seed_node_path(&s.seed, 0, path);
	CHECK_STR(path, "");
	const uint8_t *at = lr_seed_data(&s.seed, &lr_seed_node(&s.seed, 2)->attributes);
	uint64_t left = lr_seed_node(&s.seed, 2)->attributes.length;
	struct lr_seed_attribute_at x;
	REQUIRE(lr_seed_next_attribute(&at, &left, &x));
	CHECK_STR(x.name, "user.x");
	CHECK_INT(x.size, 2);
	CHECK(memcmp(x.value, "v", 2) == 0);
	CHECK(!lr_seed_next_attribute(&at, &left, &x));
}

/* What is looked up by a number from the seed: a standard file, of three. */
TEST(standard_files_are_three)
{
	SAMPLE s = make();
	struct lr_err err = {0};

	REQUIRE(s.bytes);
	ENTRY(s, file, FILE, 0)->kind = LR_SEED_STDIO;
	CHECK_INT(reopen(&s, &err), 0);
	ENTRY(s, file, FILE, 0)->args[0] = 3;
	CHECK_INT(reopen(&s, &err), -EPROTO);
	CHECK_HAS(err.msg, "files[0] of the seed is garbled");
}

TEST(texts_have_an_end)
{
	SAMPLE s = make(), t = make();
	struct lr_err err = {0};

	REQUIRE(s.bytes && t.bytes);
	const struct lr_seed_table *strings = &s.seed.table[LR_SEED_STRING];
	((uint8_t *)(uintptr_t)strings->at)[strings->count - 1] = 'x';
	CHECK_INT(reopen(&s, &err), -EPROTO);
	CHECK_HAS(err.msg, "have no end");
	memset(ENTRY(t, thread, THREAD, 0)->name, 'x', LR_SEED_NAME);
	CHECK_INT(reopen(&t, &err), -EPROTO);
	CHECK_HAS(err.msg, "threads[0].name");
}

TEST(headers_are_whole)
{
	SAMPLE s = make();
	struct lr_err err = {0};

	REQUIRE(s.bytes);
	struct lr_seed_header *h = (void *)s.bytes;
	h->zero = 1;
	CHECK_INT(reopen(&s, &err), -EPROTO);
	CHECK_HAS(err.msg, "header is garbled");
	h->zero = 0;
	h->pages = SAMPLE_PAGES + 1;
	CHECK_INT(reopen(&s, &err), -EPROTO);
	CHECK_HAS(err.msg, "header is garbled");
	h->pages = 0;
	CHECK_INT(reopen(&s, &err), -EPROTO);
	CHECK_HAS(err.msg, "header is garbled");
}

/* Another section behind the others. */
static int open_with(uint32_t type, uint32_t flags, uint32_t stride, uint64_t count,
		     struct lr_err *err)
{
	SAMPLE s = make();
	struct lr_seed again;
	struct lr_seed_section extra = {
		.type = type, .flags = flags, .stride = stride, .count = count};

	if (!s.bytes)
		return -EIO;
	size_t size = s.size + sizeof(extra) + 16;
	uint8_t *longer = lr_alloc(s.a, size);
	memcpy(longer, s.bytes, s.size);
	memcpy(longer + s.size, &extra, sizeof(extra));
	struct lr_seed_header *h = (void *)longer;
	h->sections++;
	h->length = size;
	lr_seed_seal(longer, size);
	return lr_seed_open(longer, size, SAMPLE_PAGES, &again, err);
}

/* Of a type that this program does not know. */
static int open_with_section(uint32_t flags, uint32_t stride, uint64_t count, struct lr_err *err)
{
	return open_with(1000, flags, stride, count, err);
}

TEST(sections_of_later_versions)
{
	struct lr_err err = {0};

	CHECK_INT(open_with_section(0, 8, 2, &err), 0);
	CHECK_INT(open_with_section(0, 5, 3, &err), 0);
	CHECK_INT(open_with_section(LR_SEED_REQUIRED, 8, 2, &err), -ENOTSUP);
	CHECK_HAS(err.msg, "unknown type, 1000");
	CHECK_INT(open_with_section(0, 8, 3, &err), -EPROTO);
	CHECK_INT(open_with_section(0, 8, 1, &err), -EPROTO);
	CHECK_INT(open_with_section(0, 8, UINT64_MAX / 8, &err), -EPROTO);
	CHECK_INT(open_with_section(0, 0, 1, &err), -EPROTO);
}

TEST(a_section_is_there_once)
{
	struct lr_err err = {0};

	CHECK_INT(open_with(LR_SEED_LIMIT, LR_SEED_REQUIRED, 16, 1, &err), -EPROTO);
	CHECK_HAS(err.msg, "is there twice");
}

/* The first section's entry is longer by that much; room is made for whole words. */
static int open_longer(struct sample *s, uint32_t by, struct lr_seed *again, struct lr_err *err)
{
	const size_t at = sizeof(struct lr_seed_header), more = (by + 7) & ~7U;
	const struct lr_seed_section *host = (const void *)(s->bytes + at);
	size_t end = at + sizeof(*host) + host->stride;
	uint8_t *longer = lr_alloc(s->a, s->size + more);

	memcpy(longer, s->bytes, end);
	memcpy(longer + end + more, s->bytes + end, s->size - end);
	((struct lr_seed_section *)(longer + at))->stride += by;
	((struct lr_seed_header *)longer)->length += more;
	lr_seed_seal(longer, s->size + more);
	return lr_seed_open(longer, s->size + more, SAMPLE_PAGES, again, err);
}

/* Entries that are longer than what is known are those of a later version. */
TEST(longer_entries)
{
	SAMPLE s = make();
	struct lr_seed again;
	struct lr_err err = {0};

	REQUIRE(s.bytes);
	REQUIRE(open_longer(&s, 16, &again, &err) == 0);
	CHECK_INT(lr_seed_process(&again, 0)->pid, 7);
	/* What follows would not be aligned. */
	CHECK_INT(open_longer(&s, 4, &again, &err), -EPROTO);
	CHECK_HAS(err.msg, "has entries of 68 bytes");
}

/* A mapping that could write would be refused by the kernel when nothing can be said of it any more. */
TEST(nobody_writes_to_what_is_sealed)
{
	SAMPLE s = make();
	struct lr_err err = {0};

	REQUIRE(s.bytes);
	ENTRY(s, object, OBJECT, 0)->seals = LR_SEED_SEAL_WRITE;
	CHECK_INT(reopen(&s, &err), 0);
	ENTRY(s, vma, VMA, 2)->prot = PROT_READ | PROT_WRITE;
	CHECK_INT(reopen(&s, &err), -EPROTO);
	CHECK_HAS(err.msg, "may write to what is sealed");
	ENTRY(s, object, OBJECT, 0)->seals = LR_SEED_SEAL_FUTURE_WRITE;
	CHECK_INT(reopen(&s, &err), 0);
}

/* Who is signalled is a process, a thread or a group of the seed. */
TEST(owners_are_in_the_seed)
{
	SAMPLE s = make();
	struct lr_err err = {0};

	REQUIRE(s.bytes);
	ENTRY(s, process, PROCESS, 0)->pgid = 7;
	const uint32_t ids[] = {lr_seed_thread(&s.seed, 0)->tid, lr_seed_process(&s.seed, 0)->pid,
				lr_seed_process(&s.seed, 0)->pgid};
	for (uint32_t kind = LR_SEED_OF_THREAD; kind <= LR_SEED_OF_GROUP; kind++) {
		struct lr_seed_file *f = ENTRY(s, file, FILE, 0);
		f->owner_kind = kind;
		f->owner = ids[kind - 1];
		CHECK_INT(reopen(&s, &err), 0);
		f->owner = 4242;
		CHECK_INT(reopen(&s, &err), -EPROTO);
		CHECK_HAS(err.msg, "signals to nobody");
	}
}

TEST(other_versions)
{
	SAMPLE s = make();
	struct lr_err err = {0};

	REQUIRE(s.bytes);
	((struct lr_seed_header *)s.bytes)->version = LR_SEED_VERSION + 1;
	CHECK_INT(reopen(&s, &err), -ENOTSUP);
	CHECK_HAS(err.hint, "version of lean-runtime");
	/* Their entries are shorter than what is read of them. */
	((struct lr_seed_header *)s.bytes)->version = 1;
	CHECK_INT(reopen(&s, &err), -ENOTSUP);
	((struct lr_seed_header *)s.bytes)->version = LR_SEED_VERSION - 1;
	CHECK_INT(reopen(&s, &err), -ENOTSUP);
	CHECK_HAS(err.msg, "a seed of version 2; this program knows 3");
}

TEST(pages_of_another_seed)
{
	SAMPLE s = make();
	struct lr_seed_pages_header h;

	REQUIRE(s.bytes);
	lr_seed_pages_header(s.seed.header, &h);
	CHECK_INT(lr_seed_check_pages(&s.seed, &h, sizeof(h), NULL), 0);
	CHECK_INT(lr_seed_check_pages(&s.seed, &h, sizeof(h) - 1, NULL), -EPROTO);
	h.id[3] ^= 1;
	CHECK_INT(lr_seed_check_pages(&s.seed, &h, sizeof(h), NULL), -EPROTO);
}

/* What a writer got wrong is found before anybody gets it. */
TEST(finish_checks)
{
	LR_CLEANUP_ARENA struct lr_arena *a = lr_arena_new();
	struct lr_seed_writer *w = sample_writer(a);
	struct lr_err err = {0};
	size_t size;
	void *bytes;

	struct lr_seed_vma *v = lr_seed_edit(w, LR_SEED_VMA, 0);
	v->end = v->start;
	CHECK_INT(lr_seed_finish(w, SAMPLE_PAGES, SAMPLE_ID, &bytes, &size, &err), -EPROTO);
	CHECK_HAS(err.msg, "vmas[0]");
}

TEST(limits_are_as_many_as_there_can_be)
{
	LR_CLEANUP_ARENA struct lr_arena *a = lr_arena_new();
	struct lr_seed_writer *w = sample_writer(a);
	struct lr_err err = {0};
	size_t size;
	void *bytes;

	for (int i = 0; i < 64; i++)
		lr_seed_add(w, LR_SEED_LIMIT, &(struct lr_seed_limit){1, 2});
	((struct lr_seed_process *)lr_seed_edit(w, LR_SEED_PROCESS, 0))->limits.count = 65;
	((struct lr_seed_process *)lr_seed_edit(w, LR_SEED_PROCESS, 1))->limits.first = 65;
	CHECK_INT(lr_seed_finish(w, SAMPLE_PAGES, SAMPLE_ID, &bytes, &size, &err), -EPROTO);
	CHECK_HAS(err.msg, "too many limits");
}

TEST(groups_are_as_many_as_there_can_be)
{
	LR_CLEANUP_ARENA struct lr_arena *a = lr_arena_new();
	const size_t most = 65536 * sizeof(uint32_t);
	struct lr_err err = {0};

	for (size_t size = most; size <= most + 4; size += 4) {
		struct lr_seed_writer *w = sample_writer(a);
		void *groups = lr_alloc(a, size);
		memset(groups, 0, size);
		struct lr_seed_bytes at = lr_seed_add_bytes(w, groups, size);
		((struct lr_seed_cred *)lr_seed_edit(w, LR_SEED_CRED, 0))->groups = at;
		CHECK_INT(finish(w, &err), size > most ? -EPROTO : 0);
	}
	CHECK_HAS(err.msg, "too many groups");
}

/* The restorer exchanges one memory for another; two processes in one it could not make. */
TEST(each_process_has_its_own_memory)
{
	LR_CLEANUP_ARENA struct lr_arena *a = lr_arena_new();
	struct lr_seed_writer *w = sample_writer(a);
	struct lr_err err = {0};

	struct lr_seed_thread t = *(struct lr_seed_thread *)lr_seed_edit(w, LR_SEED_THREAD, 0);
	t.tid = 8;
	t.xsave = lr_seed_add_bytes(w, (uint8_t[832]){0}, 832);
	t.signals = (struct lr_seed_range){2, 0};
	lr_seed_add(w, LR_SEED_THREAD, &t);
	struct lr_seed_process *p = lr_seed_edit(w, LR_SEED_PROCESS, 1);
	p->flags = 0;
	p->mm = p->fs = 0;
	p->threads.count = 1;
	CHECK_INT(finish(w, &err), -EPROTO);
	CHECK_HAS(err.msg, "processes[1] of the seed does not have memory of its own");

	w = sample_writer(a);
	struct lr_seed_mm mm = *(struct lr_seed_mm *)lr_seed_edit(w, LR_SEED_MM, 0);
	mm.auxv = lr_seed_add_bytes(w, (uint8_t[32]){6}, 32);
	mm.vmas = (struct lr_seed_range){3, 0};
	mm.runs = (struct lr_seed_range){3, 0};
	lr_seed_add(w, LR_SEED_MM, &mm);
	CHECK_INT(finish(w, &err), -EPROTO);
	CHECK_HAS(err.msg, "memory that belongs to nobody");
}

/* Of a file with that byte at that place. */
static uint64_t sum_with(off_t at)
{
	uint64_t sum = 0;
	int fd = memfd_create("file", MFD_CLOEXEC);

	CHECK(fd >= 0 && ftruncate(fd, 3 * LR_SEED_PAGE) == 0 && pwrite(fd, "x", 1, at) == 1);
	CHECK_INT(lr_seed_sum_file(fd, 3 * LR_SEED_PAGE, &sum), 0);
	close(fd);
	return sum;
}

TEST(a_file_is_known_by_its_first_and_last_page)
{
	const uint64_t first = sum_with(0), last = sum_with(3 * LR_SEED_PAGE - 1);
	uint64_t sum;

	CHECK(first != last);
	CHECK(first != sum_with(1) && last != sum_with(2 * LR_SEED_PAGE));
	CHECK(sum_with(LR_SEED_PAGE) == sum_with(2 * LR_SEED_PAGE - 1));
	CHECK_INT(lr_seed_sum_file(-1, 1, &sum), -EBADF);
}

/* A process that is never made, or stops on its way, would be waited for. */
TEST(nobody_waits_for_ever)
{
	SAMPLE s = make();
	struct lr_err err = {0};
	const int32_t stop = SIGSTOP, none = 0;

	REQUIRE(s.bytes);
	struct lr_seed_signal *sig = ENTRY(s, signal, SIGNAL, 0);
	const struct lr_seed_signal was = *sig;
	memcpy(sig->info, &stop, sizeof(stop));
	CHECK_INT(reopen(&s, &err), -EPROTO);
	CHECK_HAS(err.msg, "signals[0]");
	memcpy(sig->info, &none, sizeof(none));
	CHECK_INT(reopen(&s, &err), -EPROTO);
	*sig = was;
	CHECK_INT(reopen(&s, &err), 0);
	/* Of a parent that is dead. */
	struct lr_seed_writer *w = sample_writer(s.a);
	const struct lr_seed_range t = {1, 0}, fds = {3, 0};
	struct lr_seed_process child = {.pid = 9,
					.flags = LR_SEED_ZOMBIE,
					.mm = LR_SEED_NONE,
					.fs = LR_SEED_NONE,
					.threads = t,
					.fds = fds,
					.limits = t,
					.actions = t,
					.signals = t,
					.timers = t};
	void *bytes;
	size_t size;
	lr_seed_add(w, LR_SEED_PROCESS, &child);
	CHECK_INT(lr_seed_finish(w, SAMPLE_PAGES, SAMPLE_ID, &bytes, &size, &err), 0);
	((struct lr_seed_process *)lr_seed_edit(w, LR_SEED_PROCESS, 2))->parent = 1;
	CHECK_INT(lr_seed_finish(w, SAMPLE_PAGES, SAMPLE_ID, &bytes, &size, &err), -EPROTO);
	CHECK_HAS(err.msg, "has a parent that is dead");
}

/* A file that is the sample's socket's, too: with more in its channel. */
static void add_socket(struct lr_seed_writer *w, const struct lr_seed_bytes *data)
{
	struct lr_seed_file f = {.kind = LR_SEED_SOCKET, .object = LR_SEED_NONE, .watches = {4, 0}};

	((struct lr_seed_channel *)lr_seed_edit(w, LR_SEED_CHANNEL, 0))->data[1] = *data;
	lr_seed_add(w, LR_SEED_FILE, &f);
}

/* A few megabytes that are looked at by each of a hundred thousand entries keep whoever reads a seed for hours. */
TEST(nothing_is_looked_at_without_an_end)
{
	LR_CLEANUP_ARENA struct lr_arena *a = lr_arena_new();
	static const uint32_t nothing[1024]; /* messages of no bytes; or groups */
	struct lr_err err = {0};

	/* Bytes that are another entry's. */
	SAMPLE s = make();
	REQUIRE(s.bytes);
	struct lr_seed_channel *c = ENTRY(s, channel, CHANNEL, 0);
	c->data[1] = (ENTRY(s, thread, THREAD, 0))->xsave;
	CHECK_INT(reopen(&s, &err), -EPROTO);
	CHECK_HAS(err.msg, "leads nowhere");
	/* A channel that many files have. */
	struct lr_seed_writer *w = sample_writer(a);
	struct lr_seed_bytes data = lr_seed_add_bytes(w, nothing, sizeof(nothing));
	add_socket(w, &data);
	CHECK_INT(finish(w, &err), 0);
	add_socket(w, &data);
	CHECK_INT(finish(w, &err), -EPROTO);
	CHECK_HAS(err.msg, "channels[0] of the seed has more than two ends");
	/* Rights that many threads have. */
	w = sample_writer(a);
	((struct lr_seed_cred *)lr_seed_edit(w, LR_SEED_CRED, 0))->groups =
		lr_seed_add_bytes(w, nothing, sizeof(nothing));
	CHECK_INT(finish(w, &err), 0);
	struct lr_seed_thread t = *(struct lr_seed_thread *)lr_seed_edit(w, LR_SEED_THREAD, 0);
	t.tid = 9;
	t.xsave = lr_seed_add_bytes(w, (uint8_t[832]){0}, 832);
	t.signals = (struct lr_seed_range){2, 0};
	lr_seed_add(w, LR_SEED_THREAD, &t);
	((struct lr_seed_process *)lr_seed_edit(w, LR_SEED_PROCESS, 0))->threads.count = 2;
	((struct lr_seed_process *)lr_seed_edit(w, LR_SEED_PROCESS, 1))->threads.first = 2;
	CHECK_INT(finish(w, &err), -EPROTO);
	CHECK_HAS(err.msg, "threads[1] of the seed has the groups of another one");
}

/* Else it would show where the resuming program's memory was. */
TEST(has_an_auxiliary_vector)
{
	SAMPLE s = make();
	struct lr_err err = {0};

	REQUIRE(s.bytes);
	ENTRY(s, mm, MM, 0)->auxv.length = 0;
	CHECK_INT(reopen(&s, &err), -EPROTO);
	CHECK_HAS(err.msg, "mms[0]");
}
