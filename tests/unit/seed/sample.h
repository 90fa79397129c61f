/* SPDX-License-Identifier: Apache-2.0 */
/* A small seed with something in every section, for tests. */
#ifndef LR_SEED_SAMPLE_H
#define LR_SEED_SAMPLE_H

#include <arpa/inet.h>
#include <netinet/in.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>

#include "src/seed/seed.h"

#define SAMPLE_PAGES  (6 * (uint64_t)LR_SEED_PAGE)
#define SAMPLE_SOCKET "a/socket"
#define SAMPLE_DIR    "/run/a"
#define SAMPLE_ID     ((const uint8_t *)"0123456789abcdef")

/* The pages that an mm has: two in anonymous memory, one written of a file. */
static void sample_memory(struct lr_seed_writer *w)
{
	const uint64_t auxv[4] = {6, 4096, 0, 0};
	struct lr_seed_backing b = {
		.path = lr_seed_add_text(w, "/bin/prog"), .size = 8192, .sum = 7};
	struct lr_seed_mm mm = {.start_brk = 0x600000, .brk = 0x602000, .vmas = {0, 3}};

	mm.exe = b.path;
	mm.auxv = lr_seed_add_bytes(w, auxv, sizeof(auxv));
	mm.runs = (struct lr_seed_range){1, 2};
	lr_seed_add(w, LR_SEED_BACKING, &b);
	lr_seed_add(w, LR_SEED_VMA,
		    &(struct lr_seed_vma){.start = 0x400000,
					  .end = 0x402000,
					  .kind = LR_SEED_PRIVATE,
					  .prot = PROT_READ | PROT_WRITE,
					  .object = LR_SEED_NONE});
	lr_seed_add(w, LR_SEED_VMA,
		    &(struct lr_seed_vma){.start = 0x600000,
					  .end = 0x603000,
					  .kind = LR_SEED_ANON,
					  .prot = PROT_READ | PROT_WRITE,
					  .backing = LR_SEED_NONE,
					  .object = LR_SEED_NONE});
	lr_seed_add(w, LR_SEED_VMA,
		    &(struct lr_seed_vma){.start = 0x700000,
					  .end = 0x701000,
					  .kind = LR_SEED_SHARES,
					  .prot = PROT_READ,
					  .backing = LR_SEED_NONE});
	lr_seed_add(w, LR_SEED_RUN, &(struct lr_seed_run){0, 1, LR_SEED_PAGE});
	lr_seed_add(w, LR_SEED_RUN, &(struct lr_seed_run){0x401000, 1, 3 * LR_SEED_PAGE});
	lr_seed_add(w, LR_SEED_RUN, &(struct lr_seed_run){0x600000, 2, 4 * LR_SEED_PAGE});
	lr_seed_add(w, LR_SEED_OBJECT,
		    &(struct lr_seed_object){.kind = LR_SEED_MEMFD,
					     .size = 100,
					     .name = lr_seed_add_text(w, "memory"),
					     .runs = {0, 1}});
	lr_seed_add(w, LR_SEED_MM, &mm);
}

/* A tmpfs with a file in a directory, another name of it, and a link. */
static void sample_tmpfs(struct lr_seed_writer *w)
{
	const struct {
		struct lr_seed_attribute head;
		char name[7], value[2], zero[3];
	} attribute = {{7, 2}, "user.x", "v", ""};
	struct lr_seed_range none = {4, 0}, one = {3, 1};
	const struct lr_seed_node nodes[] = {
		{.parent = LR_SEED_NONE, .mode = S_IFDIR | 01777, .runs = {3, 0}},
		{.parent = 0,
		 .name = lr_seed_add_text(w, "dir"),
		 .mode = S_IFDIR | 0755,
		 .runs = {3, 0}},
		{.parent = 1,
		 .name = lr_seed_add_text(w, "file"),
		 .mode = S_IFREG | 0640,
		 .size = 100,
		 .attributes = lr_seed_add_bytes(w, &attribute, 8 + 12),
		 .runs = one},
		{.parent = 0,
		 .name = lr_seed_add_text(w, "same"),
		 .mode = S_IFREG | 0640,
		 .runs = none},
		{.parent = 0,
		 .name = lr_seed_add_text(w, "link"),
		 .target = lr_seed_add_text(w, "/etc"),
		 .mode = S_IFLNK | 0777,
		 .runs = none},
	};

	lr_seed_add(w, LR_SEED_RUN, &(struct lr_seed_run){0, 1, 2 * LR_SEED_PAGE});
	for (uint32_t i = 0; i < 5; i++) {
		struct lr_seed_node n = nodes[i];
		n.same = i == 3 ? 2 : LR_SEED_NONE;
		lr_seed_add(w, LR_SEED_NODE, &n);
	}
	lr_seed_add(w, LR_SEED_TMPFS,
		    &(struct lr_seed_tmpfs){.path = lr_seed_add_text(w, "/tmp"), .nodes = {0, 5}});
}

/* What a container has changed in its root: a directory that it has emptied and put a file in, and a
 * file that is gone. */
static void sample_changes(struct lr_seed_writer *w)
{
	const struct lr_seed_range none = {4, 0};
	const struct lr_seed_node nodes[] = {
		{.parent = LR_SEED_NONE, .mode = S_IFDIR | 0755, .runs = none},
		{.parent = 5,
		 .name = lr_seed_add_text(w, "opt"),
		 .mode = S_IFDIR | 0755,
		 .flags = LR_SEED_OPAQUE,
		 .runs = none},
		{.parent = 6,
		 .name = lr_seed_add_text(w, "new"),
		 .mode = S_IFREG | 0600,
		 .size = 7,
		 .runs = none},
		{.parent = 5,
		 .name = lr_seed_add_text(w, "gone"),
		 .mode = LR_SEED_WHITEOUT,
		 .runs = none},
	};

	for (uint32_t i = 0; i < 4; i++) {
		struct lr_seed_node n = nodes[i];
		n.same = LR_SEED_NONE;
		lr_seed_add(w, LR_SEED_NODE, &n);
	}
	lr_seed_add(w, LR_SEED_TMPFS,
		    &(struct lr_seed_tmpfs){.path = lr_seed_add_text(w, "/"),
					    .flags = LR_SEED_ROOT,
					    .nodes = {5, 4}});
	lr_seed_add(w, LR_SEED_CHANGED,
		    &(struct lr_seed_changed){.path = lr_seed_add_text(w, "/bin/changed")});
}

/* Two of them, as the numbers of both count together. */
static void sample_inotify(struct lr_seed_writer *w)
{
	const struct {
		uint32_t number, mask, type;
		const char *path;
	} all[] = {{1, 0x100, S_IFDIR, "/tmp"}, {300, 0x84000002, S_IFREG, "/tmp/dir/file"}};

	for (uint32_t i = 0; i < 2; i++) {
		lr_seed_add(w, LR_SEED_FILE,
			    &(struct lr_seed_file){.kind = LR_SEED_INOTIFY,
						   .object = LR_SEED_NONE,
						   .channel = LR_SEED_NONE,
						   .watches = {1 + 2 * i, i ? 1 : 2}});
		for (uint32_t k = i; k < 2; k++)
			lr_seed_add(
				w, LR_SEED_WATCH,
				&(struct lr_seed_watch){.number = all[k].number,
							.file = LR_SEED_NONE,
							.path = lr_seed_add_text(w, all[k].path),
							.mask = all[k].mask,
							.data = all[k].type});
	}
}

static void sample_files(struct lr_seed_writer *w)
{
	const uint32_t message[] = {4, 0x64636261};
	struct lr_seed_channel c = {.ends = 3 | LR_SEED_NO_WRITE(1),
				    .data = {lr_seed_add_bytes(w, message, sizeof(message))},
				    .set = {1U << LR_SEED_SNDBUF}};
	struct lr_seed_file f = {.kind = LR_SEED_REGULAR,
				 .pos = 17,
				 .path = lr_seed_add_text(w, "/etc/\"quoted\""),
				 .object = LR_SEED_NONE,
				 .channel = LR_SEED_NONE};

	c.options[0][LR_SEED_SNDBUF] = 70000;
	lr_seed_add(w, LR_SEED_CHANNEL, &c);
	lr_seed_add(w, LR_SEED_FILE, &f);
	f = (struct lr_seed_file){.kind = LR_SEED_SOCKET, .object = LR_SEED_NONE, .args = {1, 1}};
	lr_seed_add(w, LR_SEED_FILE, &f);
	f = (struct lr_seed_file){.kind = LR_SEED_EPOLL,
				  .object = LR_SEED_NONE,
				  .channel = LR_SEED_NONE,
				  .watches = {0, 1}};
	lr_seed_add(w, LR_SEED_FILE, &f);
	lr_seed_add(w, LR_SEED_WATCH, &(struct lr_seed_watch){.number = 4, .file = 1, .mask = 1});
	f = (struct lr_seed_file){.kind = LR_SEED_TERMINAL_FILE,
				  .object = LR_SEED_NONE,
				  .channel = LR_SEED_NONE,
				  .watches = {1, 0}};
	lr_seed_add(w, LR_SEED_FILE, &f);
	f.kind = LR_SEED_ENDPOINT_FILE;
	lr_seed_add(w, LR_SEED_FILE, &f);
	const struct sockaddr_in in = {.sin_family = AF_INET, .sin_port = htons(80)};
	lr_seed_add(w, LR_SEED_ENDPOINT,
		    &(struct lr_seed_endpoint){.state = LR_SEED_LISTENS,
					       .domain = AF_INET,
					       .type = SOCK_STREAM,
					       .protocol = IPPROTO_TCP,
					       .address = lr_seed_add_bytes(w, &in, sizeof(in)),
					       .backlog = 7,
					       .set = 1U << LR_SEED_REUSEADDR,
					       .options = {[LR_SEED_REUSEADDR] = 1},
					       .congestion = "reno"});
	f.args[0] = 1;
	lr_seed_add(w, LR_SEED_FILE, &f);
	const struct sockaddr_un un = {.sun_family = AF_UNIX, .sun_path = SAMPLE_SOCKET};
	lr_seed_add(w, LR_SEED_ENDPOINT,
		    &(struct lr_seed_endpoint){
			    .state = LR_SEED_LISTENS,
			    .domain = AF_UNIX,
			    .type = SOCK_SEQPACKET,
			    .address = lr_seed_add_bytes(w, &un, 2 + strlen(SAMPLE_SOCKET)),
			    .dir = lr_seed_add_text(w, SAMPLE_DIR),
			    .mode = 0660});
	f = (struct lr_seed_file){.kind = LR_SEED_MEMFD_FILE,
				  .channel = LR_SEED_NONE,
				  .watches = {1, 0},
				  .args = {1, 0640}};
	lr_seed_add(w, LR_SEED_FILE, &f);
	sample_inotify(w);
	f = (struct lr_seed_file){.kind = LR_SEED_PIDFD,
				  .object = LR_SEED_NONE,
				  .channel = LR_SEED_NONE,
				  .watches = {4, 0},
				  .args = {8}};
	lr_seed_add(w, LR_SEED_FILE, &f);
	for (uint32_t i = 0; i < 3; i++)
		lr_seed_add(w, LR_SEED_FD, &(struct lr_seed_fd){.number = 3 + i, .file = i});
}

static struct lr_seed_writer *sample_writer(struct lr_arena *a)
{
	struct lr_seed_writer *w = lr_seed_writer_new(a);
	uint8_t xsave[832] = {0};

	lr_seed_add(w, LR_SEED_HOST,
		    &(struct lr_seed_host){.machine = LR_SEED_X86_64,
					   .page = LR_SEED_PAGE,
					   .xfeatures = 7, /* with AVX, as large */
					   .xsave = sizeof(xsave),
					   .release = lr_seed_add_text(w, "6.18")});
	lr_seed_add(w, LR_SEED_PROCESS,
		    &(struct lr_seed_process){.pid = 7,
					      .sid = 7,
					      .parent = LR_SEED_NONE,
					      .threads = {0, 1},
					      .fds = {0, 3},
					      .limits = {0, 1},
					      .actions = {0, 1},
					      .signals = {0, 1},
					      .timers = {0, 1}});
	/* Where the ranges of a process without members would begin. */
	struct lr_seed_range t = {1, 0}, f = {3, 0};
	lr_seed_add(w, LR_SEED_PROCESS,
		    &(struct lr_seed_process){.pid = 8,
					      .flags = LR_SEED_ZOMBIE,
					      .mm = LR_SEED_NONE,
					      .fs = LR_SEED_NONE,
					      .threads = t,
					      .fds = f,
					      .limits = t,
					      .actions = t,
					      .signals = t,
					      .timers = t});
	lr_seed_add(w, LR_SEED_THREAD,
		    &(struct lr_seed_thread){.tid = 7,
					     .regs = {[LR_SEED_RIP] = 0x400123},
					     .xsave = lr_seed_add_bytes(w, xsave, sizeof(xsave)),
					     .signals = {1, 1},
					     .name = "prog"});
	sample_memory(w);
	sample_tmpfs(w);
	sample_changes(w);
	sample_files(w);
	lr_seed_add(w, LR_SEED_FS,
		    &(struct lr_seed_fs){.cwd = lr_seed_add_text(w, "/"), .umask = 022});
	lr_seed_add(w, LR_SEED_CRED, &(struct lr_seed_cred){.uids = {1, 2, 3, 4}});
	lr_seed_add(w, LR_SEED_LIMIT, &(struct lr_seed_limit){1, 2});
	lr_seed_add(w, LR_SEED_ACTION, &(struct lr_seed_action){.signal = 10, .handler = 0x400200});
	lr_seed_add(w, LR_SEED_SIGNAL, &(struct lr_seed_signal){{10}});
	lr_seed_add(w, LR_SEED_SIGNAL, &(struct lr_seed_signal){{12}});
	lr_seed_add(w, LR_SEED_TIMER, &(struct lr_seed_timer){.id = 3, .left = 5});
	lr_seed_add(w, LR_SEED_TERMINAL,
		    &(struct lr_seed_terminal){.session = 7, .rows = 24, .columns = 80});
	return w;
}

#endif
