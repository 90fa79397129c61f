/* SPDX-License-Identifier: Apache-2.0 */
/* forkd: see held.h. */
#define LR_ROOM "forkd"
#include "src/forkd/held.h"

#include <errno.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "src/base/clock.h"
#include "src/base/fd.h"
#include "src/base/str.h"
#include "src/forkd/exported.h"
#include "src/forkd/forkd.h"
#include "src/forkd/given.h"
#include "src/forkd/link.h"
#include "src/forkd/outlet.h"
#include "src/seed/seed.h"

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static pthread_cond_t changed = PTHREAD_COND_INITIALIZER; /* a page has come, or a seed ended */
static struct held *table[HELD_MAX];

/* ---- files -------------------------------------------------------------------------------- */

static int whole_file(int fd, uint64_t most, uint8_t **ret, uint64_t *size, struct lr_err *err)
{
	struct stat st;

	if (fstat(fd, &st) < 0)
		return lr_fail(err, errno, "look at the descriptor");
	if (!S_ISREG(st.st_mode) || st.st_size < (off_t)sizeof(struct lr_seed_header))
		return lr_refuse(err, EPROTO, "this is not the descriptor of a seed");
	if ((uint64_t)st.st_size > most)
		return lr_refuse(err, EFBIG, "the descriptor has %lld bytes; %llu are the most",
				 (long long)st.st_size, (unsigned long long)most);
	uint8_t *bytes = malloc((size_t)st.st_size);
	if (!bytes)
		return lr_fail(err, ENOMEM, "read the descriptor");
	for (off_t at = 0; at < st.st_size;) {
		ssize_t n = pread(fd, bytes + at, (size_t)(st.st_size - at), at);
		if (n <= 0) {
			free(bytes);
			return lr_fail(err, n < 0 ? errno : EIO, "read the descriptor");
		}
		at += n;
	}
	*ret = bytes;
	*size = (uint64_t)st.st_size;
	return 0;
}

static int check(struct held *h, int exported, struct lr_err *err)
{
	struct lr_seed_pages_header head;
	struct lr_seed s;
	struct stat st;

	if (fstat(h->fd, &st) < 0 || !S_ISREG(st.st_mode))
		return lr_refuse(err, EINVAL, "the pages are in no regular file");
	int r = lr_seed_open(h->descriptor, h->length, (uint64_t)st.st_size, &s, err);
	if (r < 0)
		return r;
	if (pread(h->fd, &head, sizeof(head), 0) != (ssize_t)sizeof(head))
		return lr_refuse(err, EIO, "the file of pages can't be read");
	r = lr_seed_check_pages(&s, &head, sizeof(head), err);
	if (r < 0)
		return r;
	h->pages = s.header->pages;
	memcpy(h->id, s.header->id, sizeof(h->id));
	return exported < 0 ? 0 : exported_new(exported, &s, &h->exported, err);
}

static void drop(struct held *h)
{
	lr_close(h->fd);
	lr_close(h->file);
	exported_free(h->exported);
	free(h->descriptor);
	free(h->there);
	link_forget(h->secret, sizeof(h->secret));
	free(h);
}

/* What is not needed to say why it ended. */
static void shrink(struct held *h)
{
	for (size_t i = 0; h->row && i < HANDOVER_FILES; i++)
		h->row->files[i] = LR_NOFD;
	h->fd = lr_close(h->fd);
	h->file = lr_close(h->file);
	free(h->descriptor);
	h->descriptor = NULL;
	free(h->there);
	h->there = NULL;
}

/* ---- the table ---------------------------------------------------------------------------- */

static struct held **find(const uint8_t id[LR_WIRE_ID])
{
	for (size_t i = 0; i < HELD_MAX; i++)
		if (table[i] && memcmp(table[i]->id, id, LR_WIRE_ID) == 0)
			return &table[i];
	return NULL;
}

/* Another one has its place. Whoever asks for it, without having proved anything, may still look at
 * it. */
static void replace(struct held *h)
{
	h->row = NULL;
	if (h->users)
		h->replaced = true;
	else
		drop(h);
}

/* A free place, or that of the one that ended first. */
static struct held **place(void)
{
	struct held **oldest = NULL;

	for (size_t i = 0; i < HELD_MAX; i++) {
		if (!table[i])
			return &table[i];
		if (table[i]->ended && (!oldest || table[i]->until < (*oldest)->until))
			oldest = &table[i];
	}
	return oldest;
}

/* What changes with each use. */
static void tell_keeper(const struct held *h)
{
	struct handover_row *row = h->row;

	if (!row)
		return;
	/* The daemon may be killed between any two of these, and nobody takes a row that lasts longer
	 * than a lease. */
	if (h->lease > row->lease)
		row->lease = h->lease;
	row->until = h->until;
	row->lease = h->lease;
	row->sent = h->sent;
}

/* The keeper may look at any instant: at no row, or at a whole one. */
static void give_row(struct held *h, struct handover_row *row)
{
	if (!row)
		return;
	row->used = false;
	memcpy(row->id, h->id, sizeof(row->id));
	memcpy(row->secret, h->secret, sizeof(row->secret));
	row->ended = h->ended;
	/* The next daemon has no descriptor of the module's: there would be zeros. */
	row->whole = !h->there && !h->exported;
	row->files[0] = h->file;
	row->files[1] = h->fd;
	h->row = row;
	tell_keeper(h);
	row->used = true;
}

static int keep(struct held *h, struct lr_err *err)
{
	int r = 0;

	pthread_mutex_lock(&lock);
	struct held **at = find(h->id);
	if (at && !(*at)->ended)
		r = lr_refuse(err, EEXIST, "this seed is held already");
	if (r == 0 && !at)
		at = place();
	if (r == 0 && !at)
		r = lr_refuse(err, ENOSPC, "%d seeds are held already", HELD_MAX);
	if (r == 0) {
		if (*at)
			replace(*at);
		*at = h;
		give_row(h, handover_row((size_t)(at - table)));
	}
	pthread_mutex_unlock(&lock);
	return r;
}

/* The first page is the header, and was looked at. */
static int begin_filling(struct held *h, struct lr_err *err)
{
	if (h->pages <= LR_WIRE_PAGE)
		return 0;
	h->there = calloc(1, h->pages / LR_WIRE_PAGE / 8 + 1);
	if (!h->there)
		return lr_fail(err, ENOMEM, "hold the seed");
	h->there[0] = 1;
	h->missing = h->pages - LR_WIRE_PAGE;
	return 0;
}

static struct held *begin(uint64_t lease, int64_t until)
{
	struct held *h = calloc(1, sizeof(*h));

	if (!h)
		return NULL;
	h->users = 1;
	h->lease = lease;
	h->until = until;
	h->fd = h->file = LR_NOFD;
	return h;
}

static int take_files(struct held *h, int descriptor, int pages, int exported, struct lr_err *err)
{
	h->fd = fcntl(pages, F_DUPFD_CLOEXEC, 0);
	if (h->fd < 0)
		return lr_fail(err, errno, "keep the file of pages");
	int r = whole_file(descriptor, forkd_config.descriptor, &h->descriptor, &h->length, err);
	if (r == 0)
		r = check(h, exported, err);
	if (r < 0)
		return r;
	if (!given_is_sealed(descriptor))
		r = h->file = given_make(h->descriptor, h->length, err);
	else if ((h->file = fcntl(descriptor, F_DUPFD_CLOEXEC, 0)) < 0)
		r = lr_fail(err, errno, "keep the descriptor");
	return r < 0 ? r : 0;
}

static int add(int descriptor, int pages, int exported, bool filling, uint64_t lease,
	       struct held **ret, struct lr_err *err)
{
	struct held *h = begin(lease, lr_now_ms() + (int64_t)lease);

	if (!h)
		return lr_fail(err, ENOMEM, "hold the seed");
	int r = take_files(h, descriptor, pages, exported, err);
	if (r == 0 && filling)
		r = begin_filling(h, err);
	if (r == 0 && link_random(h->secret, sizeof(h->secret)) < 0)
		r = lr_refuse(err, EIO, "no random bytes for a secret");
	if (r == 0)
		r = keep(h, err);
	if (r < 0) {
		drop(h);
		return r;
	}
	*ret = h;
	return 0;
}

int held_add(int descriptor, int pages, uint64_t lease, struct held **ret, struct lr_err *err)
{
	return add(descriptor, pages, LR_NOFD, false, lease, ret, err);
}

int held_add_filling(int descriptor, int pages, uint64_t lease, struct held **ret,
		     struct lr_err *err)
{
	return add(descriptor, pages, LR_NOFD, true, lease, ret, err);
}

int held_add_exported(int descriptor, int pages, int exported, uint64_t lease, struct held **ret,
		      struct lr_err *err)
{
	return add(descriptor, pages, exported, false, lease, ret, err);
}

/* Whose it is, and who else may write there. */
static int trust(int fd, const char *what, struct lr_err *err)
{
	struct stat st;

	if (fstat(fd, &st) < 0)
		return lr_fail(err, errno, "look at the seed's %s", what);
	if ((st.st_uid && st.st_uid != geteuid()) || (st.st_mode & (S_IWGRP | S_IWOTH)))
		return lr_refuse(err, EPERM, "others may write the seed's %s", what);
	return 0;
}

static int open_trusted(int dir, const char *name, int flags, struct lr_err *err)
{
	LR_CLEANUP_FD int fd = openat(dir, name, flags | O_RDONLY | O_CLOEXEC | O_NOFOLLOW);

	if (fd < 0)
		return lr_fail(err, errno, "open the seed's %s", name);
	int r = trust(fd, name, err);
	return r < 0 ? r : lr_take_fd(&fd);
}

int held_add_directory(const char *path, uint64_t lease, struct held **ret, struct lr_err *err)
{
	LR_CLEANUP_FD int dir = lr_open(path, O_DIRECTORY | O_RDONLY | O_CLOEXEC);

	if (dir < 0)
		return lr_fail(err, errno, "open the seed's directory %s", path);
	int r = trust(dir, "directory", err);
	if (r < 0)
		return r;
	LR_CLEANUP_FD int descriptor = open_trusted(dir, "descriptor", O_NONBLOCK, err);
	if (descriptor < 0)
		return descriptor;
	LR_CLEANUP_FD int pages = open_trusted(dir, "pages", O_NONBLOCK, err);
	return pages < 0 ? pages : held_add(descriptor, pages, lease, ret, err);
}

/* Nobody can change what was checked: it is sealed, or in a file as one of a directory. */
static int inherit_files(struct held *h, const struct handover_seed *s,
			 const int files[HANDOVER_FILES], struct lr_err *err)
{
	if (!given_is_sealed(files[0]))
		return lr_refuse(err, EPERM, "its descriptor can still be changed");
	int r = given_is_sealed(files[1]) ? 0 : trust(files[1], "pages", err);
	if (r == 0)
		r = take_files(h, files[0], files[1], LR_NOFD, err);
	if (r == 0 && memcmp(h->id, s->id, sizeof(h->id)) != 0)
		r = lr_refuse(err, EPROTO, "its files are another seed's");
	return r;
}

int held_inherit(const struct handover_seed *s, const int files[HANDOVER_FILES], struct lr_err *err)
{
	struct held *h = begin(s->lease, s->until);

	if (!h)
		return lr_fail(err, ENOMEM, "hold the seed");
	memcpy(h->id, s->id, sizeof(h->id));
	memcpy(h->secret, s->secret, sizeof(h->secret));
	h->ended = s->ended;
	h->sent = s->sent;
	int r = s->ended ? 0 : inherit_files(h, s, files, err);
	if (r == 0)
		r = keep(h, err);
	if (r < 0)
		drop(h);
	else
		held_put(h);
	return r;
}

/* ---- use ---------------------------------------------------------------------------------- */

struct held *held_get(const uint8_t id[LR_WIRE_ID])
{
	pthread_mutex_lock(&lock);
	struct held **at = find(id);
	struct held *h = at ? *at : NULL;
	if (h)
		h->users++;
	pthread_mutex_unlock(&lock);
	return h;
}

void held_put(struct held *h)
{
	if (!h)
		return;
	pthread_mutex_lock(&lock);
	if (--h->users == 0 && h->replaced)
		drop(h);
	pthread_mutex_unlock(&lock);
}

static void use(struct held *h)
{
	h->until = lr_now_ms() + (int64_t)h->lease;
	tell_keeper(h);
}

enum lr_wire_code held_read(struct held *h)
{
	pthread_mutex_lock(&lock);
	enum lr_wire_code ended = h->ended;
	if (!ended) {
		h->readers++;
		use(h);
	}
	pthread_mutex_unlock(&lock);
	return ended;
}

void held_unread(struct held *h)
{
	pthread_mutex_lock(&lock);
	if (--h->readers == 0 && h->ended)
		shrink(h);
	pthread_mutex_unlock(&lock);
}

ssize_t held_pread(const struct held *h, void *to, size_t n, uint64_t at)
{
	ssize_t got = h->exported ? exported_read(h->exported, at, to, &n) : 0;

	if (got)
		return got;
	got = pread(h->fd, to, n, (off_t)at);
	return got < 0 ? -errno : got;
}

void held_use(struct held *h)
{
	pthread_mutex_lock(&lock);
	if (!h->ended)
		use(h);
	pthread_mutex_unlock(&lock);
}

static uint64_t left(const struct held *h)
{
	int64_t ms = h->ended ? 0 : h->until - lr_now_ms();

	return ms > 0 ? (uint64_t)ms : 0;
}

uint64_t held_left(const struct held *h)
{
	pthread_mutex_lock(&lock);
	uint64_t r = left(h);
	pthread_mutex_unlock(&lock);
	return r;
}

static void finish(struct held *h, enum lr_wire_code why)
{
	if (h->row)
		h->row->ended = why;
	h->ended = why;
	pthread_cond_broadcast(&changed);
	if (!h->readers)
		shrink(h);
}

/* ---- pages that come later ---------------------------------------------------------------- */

static bool has(const struct held *h, uint64_t page)
{
	return h->there[page / 8] >> page % 8 & 1;
}

static int fill(struct held *h, uint64_t at, uint64_t length)
{
	const uint64_t first = at / LR_WIRE_PAGE, end = first + length / LR_WIRE_PAGE;
	uint64_t n = 0;

	if (h->ended || !h->there)
		return -ESTALE;
	if ((at | length) % LR_WIRE_PAGE || at > h->pages || length > h->pages - at)
		return -EINVAL;
	for (uint64_t i = first; i < end; i++) {
		n += !has(h, i);
		h->there[i / 8] |= (uint8_t)(1 << i % 8);
	}
	h->missing -= n * LR_WIRE_PAGE;
	if (!h->missing && given_is_sealed(h->fd)) {
		free(h->there);
		h->there = NULL;
		if (h->row)
			h->row->whole = true;
	}
	pthread_cond_broadcast(&changed);
	return 0;
}

/* As many as a message takes, and who waits for others is told of later. */
static void give_wanted(struct held *h, struct lr_wire_msg *m)
{
	size_t left = LR_WIRE_CHUNK / LR_WIRE_PAGE;

	m->n = 0;
	while (h->n_wanted && h->wanted[h->n_wanted - 1].pages <= left) {
		m->ranges[m->n] = h->wanted[--h->n_wanted];
		left -= m->ranges[m->n++].pages;
	}
}

int held_fill(struct held *h, uint64_t at, uint64_t length, struct lr_wire_msg *m)
{
	pthread_mutex_lock(&lock);
	int r = fill(h, at, length);
	give_wanted(h, m);
	pthread_mutex_unlock(&lock);
	return r;
}

bool held_is_whole(struct held *h)
{
	pthread_mutex_lock(&lock);
	const bool whole = !h->ended && !h->there;
	pthread_mutex_unlock(&lock);
	return whole;
}

void held_abandon(struct held *h)
{
	pthread_mutex_lock(&lock);
	if (!h->ended && h->there)
		finish(h, LR_WIRE_DAMAGED);
	pthread_mutex_unlock(&lock);
}

static bool is_there(const struct held *h, const struct lr_wire_range *r)
{
	const uint64_t first = r->at / LR_WIRE_PAGE;

	for (uint64_t i = first; h->there && i < first + r->pages; i++)
		if (!has(h, i))
			return false;
	return true;
}

bool held_wait(struct held *h, const struct lr_wire_range *r, int64_t ms)
{
	struct timespec until;

	if (!h->missing)
		return true;
	clock_gettime(CLOCK_MONOTONIC, &until);
	until.tv_sec += ms / 1000;
	pthread_mutex_lock(&lock);
	bool there = is_there(h, r);
	/* Without room it comes when its turn has come. */
	if (!there && !h->ended && h->n_wanted < LR_WIRE_RANGES)
		h->wanted[h->n_wanted++] = *r;
	while (!there && !h->ended &&
	       pthread_cond_clockwait(&changed, &lock, CLOCK_MONOTONIC, &until) == 0)
		there = is_there(h, r);
	there = there && !h->ended;
	pthread_mutex_unlock(&lock);
	return there;
}

/* ---- to its end --------------------------------------------------------------------------- */

/* From who reads without asking us. Without the lock, as to let go of many pages takes a while. */
static void take_away(const struct held *h)
{
	outlets_end(h);
	exported_end(h->exported);
}

/* Whether it had not ended before. */
static bool end(struct held *h, enum lr_wire_code why)
{
	pthread_mutex_lock(&lock);
	bool first = !h->ended;
	if (first)
		finish(h, why);
	pthread_mutex_unlock(&lock);
	if (first)
		take_away(h);
	return first;
}

int held_revoke(const uint8_t id[LR_WIRE_ID])
{
	struct held *h = held_get(id);
	const bool there = h && end(h, LR_WIRE_REVOKED);

	held_put(h);
	return there ? 0 : -ENOENT;
}

int held_extend(const uint8_t id[LR_WIRE_ID], uint64_t lease)
{
	int r = -ENOENT;

	pthread_mutex_lock(&lock);
	struct held **at = find(id);
	if (at && !(*at)->ended) {
		(*at)->lease = lease ? lease : (*at)->lease;
		use(*at);
		r = 0;
	}
	pthread_mutex_unlock(&lock);
	return r;
}

/* Who looks after leases has other things to do, too. */
static void *end_aside(void *arg)
{
	take_away(arg);
	held_put(arg);
	return NULL;
}

void held_expire(void)
{
	const int64_t now = lr_now_ms();
	struct held *over[16]; /* more of them in a second */
	size_t n = 0;

	pthread_mutex_lock(&lock);
	for (size_t i = 0; i < HELD_MAX && n < LR_ARRAY_SIZE(over); i++)
		if (table[i] && !table[i]->ended && table[i]->until <= now) {
			finish(table[i], LR_WIRE_EXPIRED);
			table[i]->users++;
			over[n++] = table[i];
		}
	pthread_mutex_unlock(&lock);
	for (size_t i = 0; i < n; i++)
		if (forkd_thread(end_aside, over[i]) < 0)
			end_aside(over[i]);
}

size_t held_count(void)
{
	size_t n = 0;

	pthread_mutex_lock(&lock);
	for (size_t i = 0; i < HELD_MAX; i++)
		n += table[i] && !table[i]->ended;
	pthread_mutex_unlock(&lock);
	return n;
}

static void tell(const struct held *h, struct lr_wire_seed *ret)
{
	*ret = (struct lr_wire_seed){.users = h->readers,
				     .ended = h->ended,
				     .length = h->length,
				     .pages = h->pages,
				     .lease = left(h),
				     .sent = h->sent,
				     .missing = h->missing};
	memcpy(ret->id, h->id, sizeof(ret->id));
}

uint32_t held_list(const uint8_t *id, uint32_t skip, struct lr_wire_msg *m)
{
	uint32_t all = 0;

	m->n = 0;
	pthread_mutex_lock(&lock);
	for (size_t i = 0; i < HELD_MAX; i++) {
		if (!table[i] || (id && memcmp(table[i]->id, id, LR_WIRE_ID) != 0))
			continue;
		if (all++ >= skip && m->n < LR_WIRE_SEEDS)
			tell(table[i], &m->seeds[m->n++]);
	}
	pthread_mutex_unlock(&lock);
	return all;
}
