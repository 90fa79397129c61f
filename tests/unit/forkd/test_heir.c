/* SPDX-License-Identifier: Apache-2.0 */
/* What the next daemon gets of a seed whose pages the kernel module has. The module's part is a stand-in here, so that
 * it can be tried where there is no module. */
#define LR_ROOM "test"
#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

#include "src/base/clock.h"
#include "src/base/fd.h"
#include "src/forkd/exported.h"
#include "src/forkd/forkd.h"
#include "src/forkd/handover.h"
#include "src/forkd/heir.h"
#include "src/forkd/held.h"
#include "tests/unit/seed/sample.h"
#include "tests/unit/test.h"

#define HOUR 3600000
#define KEPT 1 /* an id */
#define GONE 2

struct forkd_config forkd_config = {.descriptor = 1 << 20};

/* ---- in place of exported.c ----------------------------------------------------------------- */

struct exported {
	bool ended;
};

int exported_may(struct lr_err *err)
{
	(void)err;
	return 0;
}

int exported_new(int fd, const struct lr_seed *s, struct exported **ret, struct lr_err *err)
{
	(void)fd;
	(void)s;
	*ret = calloc(1, sizeof(**ret));
	return *ret ? 0 : lr_fail(err, ENOMEM, "hold the seed");
}

ssize_t exported_read(struct exported *e, uint64_t at, void *to, size_t *n)
{
	(void)at;
	memset(to, 'm', *n);
	return e->ended ? -ESTALE : (ssize_t)*n;
}

int exported_token(struct exported *e, uint32_t seconds, uint8_t ret[LR_WIRE_PROOF])
{
	(void)e;
	(void)seconds;
	(void)ret;
	return -ESTALE;
}

void exported_end(struct exported *e)
{
	if (e)
		e->ended = true;
}

void exported_free(struct exported *e)
{
	free(e);
}

/* ---- two daemons ----------------------------------------------------------------------------- */

static int sealed(const char *name, const void *bytes, size_t n, uint64_t size)
{
	int fd = memfd_create(name, MFD_CLOEXEC | MFD_ALLOW_SEALING);

	return pwrite(fd, bytes, n, 0) == (ssize_t)n && ftruncate(fd, (off_t)size) == 0 &&
			       fcntl(fd, F_ADD_SEALS, F_SEAL_WRITE | F_SEAL_GROW | F_SEAL_SHRINK) ==
				       0
		       ? fd
		       : -1;
}

/* The sample; exported: its pages are the module's, and the file of pages has zeros in their place. */
static int hold(uint8_t which, bool exported)
{
	LR_CLEANUP_ARENA struct lr_arena *a = lr_arena_new();
	const uint8_t id[16] = {which};
	struct lr_seed_pages_header h;
	struct lr_err err = {0};
	struct held *held;
	size_t size = 0;
	void *bytes = NULL;

	if (lr_seed_finish(sample_writer(a), SAMPLE_PAGES, id, &bytes, &size, NULL) < 0)
		return -EIO;
	lr_seed_pages_header(bytes, &h);
	int descriptor = sealed("descriptor", bytes, size, size);
	int pages = sealed("pages", &h, sizeof(h), SAMPLE_PAGES);
	int r = exported ? held_add_exported(descriptor, pages, 0, HOUR, &held, &err)
			 : held_add(descriptor, pages, HOUR, &held, &err);
	close(descriptor);
	close(pages);
	return r;
}

/* Of the next daemon: what it says of the seed, or -1: it does not know it. */
static int known(uint8_t which)
{
	const uint8_t id[LR_WIRE_ID] = {which};
	struct held *h = held_get(id);

	return h ? (int)held_read(h) : -1;
}

/* The next daemon, in a process of its own: it has nothing yet. 0: all is as it should be. */
static int begin_anew(const char *control, int begins)
{
	struct lr_err err = {0};
	int sock = LR_NOFD;
	size_t rows = 0;
	char c;

	if (read(begins, &c, 1) != 1 || heir_ask(control, &sock, &rows, &err) < 0 || rows != 2)
		return 1;
	if (heir_take(sock, rows, &err) != 2)
		return 2;
	heir_done(sock);
	return known(KEPT) != 0 ? 3 : known(GONE) != LR_WIRE_DAMAGED ? 4 : 0;
}

TEST(what_the_module_had_is_damaged_for_the_next_daemon)
{
	char dir[] = "/tmp/heir.XXXXXX", control[64], path[80];
	struct lr_err err = {0};
	int begins[2], status = -1;
	uint8_t page[16] = {0};

	REQUIRE(mkdtemp(dir) && pipe(begins) == 0);
	snprintf(control, sizeof(control), "%s/c", dir);
	pid_t pid = fork();
	if (pid == 0)
		_exit(begin_anew(control, begins[0]));
	REQUIRE(pid > 0 && handover_begin(control, HOUR, &err) == 0);
	REQUIRE(hold(GONE, true) == 0);
	/* As long as its daemon lives it has the module's pages, and no zeros. */
	const uint8_t id[LR_WIRE_ID] = {GONE};
	struct held *h = held_get(id);
	REQUIRE(h && held_read(h) == 0);
	CHECK_INT(held_pread(h, page, sizeof(page), LR_SEED_PAGE), sizeof(page));
	CHECK_INT(page[0], 'm');
	/* We are the keeper now. */
	REQUIRE(handover_listen(&err) == 0 && handover_enter(&err) == 0);
	CHECK(handover_waits(lr_now_ms())); /* to say so, though there is nothing else */
	CHECK(!handover_waits(lr_now_ms() - HOUR));
	REQUIRE(hold(KEPT, false) == 0);
	REQUIRE(write(begins[1], "", 1) == 1);
	handover_give(10000);
	CHECK(waitpid(pid, &status, 0) == pid);
	CHECK_INT(WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status), 0);
	snprintf(path, sizeof(path), "%s.keeper", control);
	CHECK(access(path, F_OK) < 0 && rmdir(dir) == 0);
}
