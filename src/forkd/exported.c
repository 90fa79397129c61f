/* SPDX-License-Identifier: Apache-2.0 */
/* forkd: see exported.h. */
#define LR_ROOM "forkd"
#include "src/forkd/exported.h"

#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <unistd.h>

#include "src/base/arena.h"
#include "src/base/fd.h"
#include "src/forkd/feed.h"
#include "src/forkd/forkd.h"
#include "src/forkd/given.h"
#include "src/forkd/link.h"
#include "src/seed/stretch.h"

struct exported {
	struct lr_arena *arena;
	struct lr_seed_stretches p; /* as lr_seed_stretch_at wants them */
	pthread_mutex_t lock;
	pthread_cond_t idle;
	/* under the lock */
	int fd; /* LR_NOFD: it has ended */
	unsigned readers;
};

static int off(struct lr_err *err)
{
	return lr_refuse(err, ENOTSUP, "lean-forkd was started with --module=off");
}

int exported_may(struct lr_err *err)
{
	struct lean_seed_info info = {0};

	if (forkd_config.no_module)
		return lr_refuse(err, ENOTSUP, "lean-forkd was started with --module=off");
	LR_CLEANUP_FD int device = open(FEED_DEVICE, O_RDWR | O_CLOEXEC);
	if (device < 0 && errno == ENOENT)
		return lr_refuse(err, ENODEV, "the kernel module is not loaded");
	if (device < 0 || ioctl(device, LEAN_SEED_INFO, &info) < 0)
		return lr_fail(err, errno, "ask " FEED_DEVICE);
	return info.features & LEAN_SEED_AS_FILE
		       ? 0
		       : lr_refuse(err, ENOTSUP, "the kernel module is an older one");
}

/* Neither more nor less: it would be another seed's. */
static bool has_pages(int fd, uint64_t pages)
{
	const off_t end = (off_t)(pages * LR_SEED_PAGE);
	uint8_t byte;

	return pread(fd, &byte, 1, end - 1) == 1 && pread(fd, &byte, 1, end) == 0;
}

static int begin(struct exported *e, int fd, const struct lr_seed *s, struct lr_err *err)
{
	if (forkd_config.no_module)
		return off(err);
	e->arena = lr_arena_new();
	int r = lr_seed_stretches(s, e->arena, &e->p);
	if (r < 0)
		return lr_fail(err, -r, "number the seed's pages");
	if (!given_is_exported(fd) || !e->p.pages || !has_pages(fd, e->p.pages))
		return lr_refuse(err, EINVAL, "this is not the kernel module's part of the seed");
	lr_seed_stretches_sort(&e->p);
	e->fd = fcntl(fd, F_DUPFD_CLOEXEC, 0);
	return e->fd < 0 ? lr_fail(err, errno, "keep the seed of the kernel module") : 0;
}

int exported_new(int fd, const struct lr_seed *s, struct exported **ret, struct lr_err *err)
{
	struct exported *e = calloc(1, sizeof(*e));

	if (!e)
		return lr_fail(err, ENOMEM, "hold the seed");
	*e = (struct exported){
		.fd = LR_NOFD, .lock = PTHREAD_MUTEX_INITIALIZER, .idle = PTHREAD_COND_INITIALIZER};
	int r = begin(e, fd, s, err);
	if (r < 0) {
		exported_free(e);
		return r;
	}
	forkd_counts.exported += e->p.pages - e->p.zeros;
	*ret = e;
	return 0;
}

/* ---- use ---------------------------------------------------------------------------------- */

/* The descriptor is not closed, and its number nobody else's, until `leave`. */
static int enter(struct exported *e)
{
	pthread_mutex_lock(&e->lock);
	const int fd = e->fd;
	e->readers += fd >= 0;
	pthread_mutex_unlock(&e->lock);
	return fd;
}

static void leave(struct exported *e)
{
	pthread_mutex_lock(&e->lock);
	if (--e->readers == 0)
		pthread_cond_broadcast(&e->idle);
	pthread_mutex_unlock(&e->lock);
}

ssize_t exported_read(struct exported *e, uint64_t at, void *to, size_t *n)
{
	const struct lr_seed_stretch *x = lr_seed_stretch_at(&e->p, at);

	if (!x)
		return 0;
	if (at < x->at) {
		if (*n > x->at - at)
			*n = (size_t)(x->at - at);
		return 0;
	}
	const uint64_t inside = at - x->at, left = x->pages * LR_SEED_PAGE - inside;
	if (*n > left)
		*n = (size_t)left;
	const int fd = enter(e);
	if (fd < 0)
		return -ESTALE;
	ssize_t got;
	do
		got = pread(fd, to, *n, (off_t)(x->first * LR_SEED_PAGE + inside));
	while (got < 0 && errno == EINTR);
	const int code = errno;
	leave(e);
	return got > 0 ? got : got < 0 ? -code : -EIO;
}

int exported_token(struct exported *e, uint32_t seconds, uint8_t ret[LR_WIRE_PROOF])
{
	struct lean_seed_token arg = {.seconds = seconds};
	const int fd = enter(e);

	if (fd < 0)
		return -ESTALE;
	const int r = ioctl(fd, LEAN_SEED_TOKEN, &arg) < 0 ? -errno : 0;
	leave(e);
	memcpy(ret, arg.token, sizeof(arg.token));
	link_forget(arg.token, sizeof(arg.token));
	return r;
}

/* ---- the end ------------------------------------------------------------------------------ */

void exported_end(struct exported *e)
{
	if (!e)
		return;
	pthread_mutex_lock(&e->lock);
	const int fd = lr_take_fd(&e->fd);
	while (e->readers)
		pthread_cond_wait(&e->idle, &e->lock);
	pthread_mutex_unlock(&e->lock);
	if (fd < 0)
		return;
	close(fd);
	forkd_counts.exported -= e->p.pages - e->p.zeros;
}

void exported_free(struct exported *e)
{
	if (!e)
		return;
	exported_end(e);
	pthread_mutex_destroy(&e->lock);
	pthread_cond_destroy(&e->idle);
	lr_arena_free(e->arena);
	free(e);
}
