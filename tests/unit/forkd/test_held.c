/* SPDX-License-Identifier: Apache-2.0 */
/* Seeds that are held: how long, for whom, and what stays of one that ended. */
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "src/base/clock.h"
#include "src/base/fd.h"
#include "src/forkd/forkd.h"
#include "src/forkd/handover.h"
#include "src/forkd/held.h"
#include "tests/unit/seed/sample.h"
#include "tests/unit/test.h"

#define HOUR 3600000

struct forkd_config forkd_config = {.descriptor = 1 << 20};

/* The sample's two files, with an id of their own. */
static int files(uint8_t which, int *pages)
{
	LR_CLEANUP_ARENA struct lr_arena *a = lr_arena_new();
	const uint8_t id[16] = {which};
	struct lr_seed_pages_header h;
	size_t size = 0;
	void *bytes = NULL;
	int descriptor = memfd_create("descriptor", MFD_CLOEXEC);

	*pages = memfd_create("pages", MFD_CLOEXEC | MFD_ALLOW_SEALING);
	if (descriptor < 0 || *pages < 0 ||
	    lr_seed_finish(sample_writer(a), SAMPLE_PAGES, id, &bytes, &size, NULL) < 0)
		return -1;
	lr_seed_pages_header(bytes, &h);
	return pwrite(descriptor, bytes, size, 0) == (ssize_t)size &&
			       pwrite(*pages, &h, sizeof(h), 0) == (ssize_t)sizeof(h) &&
			       ftruncate(*pages, SAMPLE_PAGES) == 0
		       ? descriptor
		       : -1;
}

/* 0, and a user's pointer to it. */
static int hold(uint8_t which, struct held **ret, struct lr_err *err)
{
	int pages = -1, descriptor = files(which, &pages);
	int r = descriptor < 0 ? -EIO : held_add(descriptor, pages, HOUR, ret, err);

	close(descriptor);
	close(pages);
	return r;
}

/* The row is in shared memory, and the lock is not. */
TEST(whoever_is_killed_leaves_a_row_that_is_taken)
{
	const struct handover_row *row = NULL;
	struct handover_seed s = {0}, got;
	struct held *h = NULL;
	struct lr_err err = {0};
	int refused = 0;

	REQUIRE(handover_begin("/nowhere", 0, &err) == 0 && hold(77, &h, &err) == 0);
	for (size_t i = 0; i < HELD_MAX; i++)
		if (handover_row(i)->used)
			row = handover_row(i);
	REQUIRE(row != NULL);
	for (int i = 0; i < 400; i++) {
		pid_t pid = fork();
		for (uint64_t n = 0; pid == 0; n++)
			held_extend(h->id, n % 2 ? HOUR : 1000);
		usleep(1000 + (unsigned)i % 97);
		REQUIRE(pid > 0 && kill(pid, SIGKILL) == 0 && waitpid(pid, NULL, 0) == pid);
		s.lease = row->lease;
		s.until = row->until;
		refused += handover_get_seed(&s, sizeof(s), 2, lr_now_ms(), &got) != 0;
	}
	CHECK_INT(refused, 0);
	held_revoke(h->id);
	held_put(h);
}

TEST(a_seed_is_held_once)
{
	struct held *h = NULL, *again = NULL;
	struct lr_err err = {0};

	REQUIRE(hold(1, &h, &err) == 0);
	CHECK_INT(held_count(), 1);
	CHECK_INT(hold(1, &again, &err), -EEXIST);
	CHECK(held_get(h->id) == h);
	held_put(h);
	const uint8_t other[LR_WIRE_ID] = {99};
	CHECK(!held_get(other));
	CHECK_INT(held_revoke(other), -ENOENT);
	CHECK_INT(held_revoke(h->id), 0);
	CHECK_INT(held_revoke(h->id), -ENOENT);
	CHECK_INT(held_count(), 0);
	held_put(h);
}

/* Who reads by RDMA is told of no page that is missing. */
TEST(a_seed_is_whole_when_nothing_of_it_changes_any_more)
{
	struct lr_wire_msg m = {0};
	struct lr_err err = {0};
	struct held *h = NULL;
	int pages = -1, descriptor = files(11, &pages);

	REQUIRE(descriptor >= 0 && held_add_filling(descriptor, pages, HOUR, &h, &err) == 0);
	CHECK(!held_is_whole(h));
	CHECK_INT(held_fill(h, 4096, SAMPLE_PAGES - 4096, &m), 0);
	CHECK(!held_is_whole(h)); /* it can still be written to */
	CHECK(fcntl(pages, F_ADD_SEALS, F_SEAL_WRITE | F_SEAL_GROW | F_SEAL_SHRINK) == 0);
	CHECK_INT(held_fill(h, 4096, 0, &m), 0);
	CHECK(held_is_whole(h));
	CHECK_INT(held_revoke(h->id), 0);
	CHECK(!held_is_whole(h));
	held_put(h);
	REQUIRE(hold(12, &h, &err) == 0);
	CHECK(held_is_whole(h));
	CHECK_INT(held_revoke(h->id), 0);
	held_put(h);
	close(descriptor);
	close(pages);
}

/* Its pages go when nobody reads them; that it ended is remembered. */
TEST(what_ended_is_kept_for_readers_alone)
{
	struct lr_wire_msg m = {0};
	struct held *h = NULL;
	struct lr_err err = {0};

	REQUIRE(hold(2, &h, &err) == 0);
	CHECK_INT(held_read(h), 0);
	CHECK_INT(held_revoke(h->id), 0);
	CHECK(h->fd >= 0 && h->descriptor);
	CHECK_INT(held_read(h), LR_WIRE_REVOKED);
	held_unread(h);
	CHECK(h->fd < 0 && !h->descriptor);
	CHECK_INT(held_list(h->id, 0, &m), 1);
	CHECK_INT(m.seeds[0].ended, LR_WIRE_REVOKED);
	CHECK_INT(m.seeds[0].lease, 0);
	held_put(h);
}

/* Who still looks at the one that ended does not keep its name. */
TEST(another_takes_its_place)
{
	struct held *old = NULL, *h = NULL;
	struct lr_err err = {0};

	REQUIRE(hold(3, &old, &err) == 0);
	CHECK_INT(held_revoke(old->id), 0);
	REQUIRE(hold(3, &h, &err) == 0);
	CHECK(h != old && old->replaced);
	CHECK(memcmp(h->secret, old->secret, sizeof(h->secret)) != 0);
	held_put(old);
	CHECK(held_get(h->id) == h);
	held_put(h);
	CHECK_INT(held_revoke(h->id), 0);
	held_put(h);
}

TEST(a_lease_begins_anew_with_each_use)
{
	struct held *h = NULL;
	struct lr_err err = {0};

	REQUIRE(hold(4, &h, &err) == 0);
	h->until = 0;
	CHECK_INT(held_left(h), 0);
	CHECK_INT(held_read(h), 0);
	CHECK(held_left(h) > HOUR / 2);
	h->until = 0;
	held_use(h);
	CHECK(held_left(h) > HOUR / 2);
	/* With another length, or as long as it is. */
	CHECK_INT(held_extend(h->id, 3 * HOUR), 0);
	CHECK(held_left(h) > 2 * HOUR);
	h->until = 0;
	CHECK_INT(held_extend(h->id, 0), 0);
	CHECK(held_left(h) > 2 * HOUR);
	held_expire();
	CHECK_INT(h->ended, 0);
	h->until = 0;
	held_expire();
	CHECK_INT(h->ended, LR_WIRE_EXPIRED);
	/* What ended is not begun again. */
	held_use(h);
	CHECK_INT(held_left(h), 0);
	CHECK_INT(held_extend(h->id, HOUR), -ENOENT);
	held_unread(h);
	held_put(h);
}

TEST(files_that_are_no_seed)
{
	struct held *h = NULL;
	struct lr_err err = {0};
	int pages = -1, other = -1, descriptor = files(5, &pages), another = files(6, &other);

	REQUIRE(descriptor >= 0 && another >= 0);
	CHECK_INT(held_add(descriptor, other, HOUR, &h, &err), -EPROTO);
	CHECK_HAS(err.msg, "belongs to another seed");
	CHECK_INT(ftruncate(pages, SAMPLE_PAGES - 4096), 0);
	CHECK_INT(held_add(descriptor, pages, HOUR, &h, &err), -EPROTO);
	CHECK_INT(held_add(pages, pages, HOUR, &h, &err), -EPROTO);
	CHECK_INT(held_add(descriptor, STDIN_FILENO, HOUR, &h, &err) < 0, 1);
	forkd_config.descriptor = 64;
	CHECK_INT(held_add(another, other, HOUR, &h, &err), -EFBIG);
	forkd_config.descriptor = 1 << 20;
	CHECK(!h);
	CHECK_INT(held_count(), 0);
	close(descriptor);
	close(another);
	close(pages);
	close(other);
}

/* Who could write there would choose what children run. */
TEST(a_directory_that_others_may_write_to)
{
	char dir[] = "/tmp/held.XXXXXX", path[64];
	struct held *h = NULL;
	struct lr_err err = {0};

	REQUIRE(mkdtemp(dir));
	CHECK_INT(chmod(dir, 0770), 0);
	CHECK_INT(held_add_directory(dir, HOUR, &h, &err), -EPERM);
	CHECK_HAS(err.msg, "others may write");
	CHECK_INT(chmod(dir, 0700), 0);
	CHECK_INT(held_add_directory(dir, HOUR, &h, &err), -ENOENT);
	snprintf(path, sizeof(path), "%s/descriptor", dir);
	int fd = open(path, O_CREAT | O_WRONLY | O_CLOEXEC, 0600);
	CHECK_INT(fchmod(fd, 0602), 0);
	CHECK_INT(held_add_directory(dir, HOUR, &h, &err), -EPERM);
	CHECK_INT(fchmod(fd, 0600), 0);
	CHECK_INT(held_add_directory(dir, HOUR, &h, &err), -ENOENT); /* pages */
	CHECK_INT(unlink(path), 0);
	CHECK_INT(symlink("/etc/passwd", path), 0);
	CHECK_INT(held_add_directory(dir, HOUR, &h, &err), -ELOOP);
	close(fd);
	unlink(path);
	rmdir(dir);
}

static int inherit(const struct handover_seed *s, int descriptor, int pages, struct lr_err *err)
{
	const int fds[HANDOVER_FILES] = {descriptor, pages};

	*err = (struct lr_err){0};
	return held_inherit(s, fds, err);
}

static bool seal(int fd)
{
	return fcntl(fd, F_ADD_SEALS, F_SEAL_WRITE | F_SEAL_GROW | F_SEAL_SHRINK) == 0;
}

/* From the daemon before: it has its secret, and what is left of its lease. */
TEST(a_seed_of_the_daemon_before)
{
	struct handover_seed s = {.id = {21},
				  .secret = {1, 2, 3},
				  .lease = HOUR,
				  .until = lr_now_ms() + 5000,
				  .sent = 77};
	struct lr_wire_msg m = {0};
	struct lr_err err = {0};
	struct held *first = NULL;
	int pages = -1, other = -1, plain = files(21, &pages), another = files(22, &other);

	/* A daemon keeps a copy of its own of what was not sealed. */
	REQUIRE(plain >= 0 && another >= 0 && held_add(plain, pages, HOUR, &first, &err) == 0);
	int sealed = fcntl(first->file, F_DUPFD_CLOEXEC, 0);
	REQUIRE(sealed >= 0 && seal(pages));
	CHECK_INT(held_revoke(first->id), 0);
	held_put(first);
	CHECK_INT(inherit(&s, plain, pages, &err), -EPERM);
	CHECK_INT(inherit(&s, sealed, other, &err), -EPERM);
	CHECK(seal(other));
	CHECK_INT(inherit(&s, sealed, other, &err), -EPROTO);
	s.id[0] = 99;
	CHECK_INT(inherit(&s, sealed, pages, &err), -EPROTO);
	CHECK_HAS(err.msg, "another seed");
	s.id[0] = 21;
	CHECK_INT(held_count(), 0);
	CHECK_INT(inherit(&s, sealed, pages, &err), 0);
	CHECK_INT(inherit(&s, sealed, pages, &err), -EEXIST);
	struct held *h = held_get(s.id);
	REQUIRE(h);
	CHECK(memcmp(h->secret, s.secret, sizeof(h->secret)) == 0);
	CHECK(held_left(h) <= 5000 && held_is_whole(h));
	CHECK_INT(held_list(h->id, 0, &m), 1);
	CHECK_INT(m.seeds[0].sent, 77);
	CHECK_INT(held_revoke(h->id), 0);
	held_put(h);
	close(sealed);
	close(plain);
	close(another);
	close(pages);
	close(other);
}

TEST(a_seed_that_ended_before_stays_ended)
{
	struct handover_seed s = {.id = {23}, .secret = {4}, .ended = LR_WIRE_REVOKED};
	struct lr_err err = {0};

	CHECK_INT(inherit(&s, LR_NOFD, LR_NOFD, &err), 0);
	struct held *h = held_get(s.id);
	REQUIRE(h);
	CHECK_INT(held_read(h), LR_WIRE_REVOKED);
	CHECK_INT(held_extend(h->id, HOUR), -ENOENT);
	CHECK_INT(held_count(), 0);
	held_put(h);
}
/* As long as the module's part of the sample would be: whoever gave it could change it for ever. */
TEST(what_is_no_seed_of_the_module)
{
	struct held *h = NULL;
	struct lr_err err = {0};
	int pages = -1, descriptor = files(13, &pages);
	int other = memfd_create("exported", MFD_CLOEXEC);

	REQUIRE(descriptor >= 0 && ftruncate(other, 4 * 4096) == 0);
	CHECK_INT(held_add_exported(descriptor, pages, other, HOUR, &h, &err), -EINVAL);
	CHECK_HAS(err.msg, "not the kernel module's");
	CHECK_INT(held_add_exported(descriptor, pages, pages, HOUR, &h, &err), -EINVAL);
	forkd_config.no_module = true;
	CHECK_INT(held_add_exported(descriptor, pages, other, HOUR, &h, &err), -ENOTSUP);
	forkd_config.no_module = false;
	CHECK(!h);
	CHECK_INT(held_count(), 0);
	close(descriptor);
	close(pages);
	close(other);
}
