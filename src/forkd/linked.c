/* SPDX-License-Identifier: Apache-2.0 */
/* forkd: see linked.h. */
#define LR_ROOM "forkd"
#include "src/forkd/linked.h"

#include <errno.h>
#include <pthread.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/socket.h>

#include "src/base/arena.h"
#include "src/base/fd.h"
#include "src/forkd/addresses.h"
#include "src/forkd/exported.h"
#include "src/forkd/feed.h"
#include "src/forkd/forkd.h"
#include "src/forkd/link.h"
#include "src/seed/stretch.h"

#define TOKEN_S    10   /* to connect after ENTRY */
#define CONNECT_MS 3000 /* for each step of that */

_Static_assert(LEAN_SEED_TOKEN_SIZE == LR_WIRE_PROOF, "a token is carried as it is");

/* ---- whose seed it is ---------------------------------------------------------------------- */

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static struct addresses addresses;
static int listeners[ADDRESSES] = {[0 ... ADDRESSES - 1] = LR_NOFD};

static int listen_at(const struct sockaddr_storage *sa)
{
	const struct lean_seed_listen arg = {.address = (uint64_t)(uintptr_t)sa,
					     .length = sizeof(*sa)};
	LR_CLEANUP_FD int device = lr_open(FEED_DEVICE, O_RDWR | O_CLOEXEC);

	return device < 0 ? device : ioctl(device, LEAN_SEED_LISTEN, &arg);
}

/* Where the peer has reached us by TCP, at the same port: those of RDMA are others. Links that are there
 * outlive their listener. */
static bool listens(const struct sockaddr_storage *sa)
{
	size_t i;

	if (addresses_find(&addresses, sa, &i))
		return true;
	const int fd = listen_at(sa);
	if (fd < 0)
		return false;
	lr_close(listeners[i]);
	listeners[i] = fd;
	addresses_put(&addresses, i, sa);
	return true;
}

/* Whose children are on the host of the seed need no network. */
static bool is_elsewhere(int fd, const struct sockaddr_storage *ours)
{
	struct sockaddr_storage sa = {0};
	socklen_t size = sizeof(sa);

	if (getpeername(fd, (struct sockaddr *)&sa, &size) < 0)
		return false;
	address_clean(&sa);
	address_set_port(&sa, address_port(ours));
	return memcmp(&sa, ours, sizeof(sa)) != 0;
}

void linked_offer(const struct held *h, int fd, struct lr_wire_msg *answer)
{
	struct sockaddr_storage sa = {0};
	socklen_t size = sizeof(sa);

	/* What the module gives is held against no rate. */
	if (!h->exported || h->ended || forkd_config.rdma == FORKD_RDMA_OFF || forkd_config.rate ||
	    getsockname(fd, (struct sockaddr *)&sa, &size) < 0)
		return;
	address_clean(&sa);
	pthread_mutex_lock(&lock);
	const bool there = is_elsewhere(fd, &sa) && listens(&sa);
	pthread_mutex_unlock(&lock);
	if (there && exported_token(h->exported, TOKEN_S, answer->proof) == 0)
		answer->count = address_port(&sa);
}

/* ---- whose children are here --------------------------------------------------------------- */

static int may(int device, struct lr_err *err)
{
	struct lean_seed_info info = {0};

	if (forkd_config.rdma == FORKD_RDMA_OFF)
		return lr_refuse(err, ENOTSUP, "lean-forkd was started with --rdma=off");
	if (ioctl(device, LEAN_SEED_INFO, &info) < 0)
		return lr_fail(err, errno, "ask " FEED_DEVICE);
	return info.features & LEAN_SEED_RDMA ? 0
					      : lr_refuse(err, ENOTSUP, "a kernel without RDMA");
}

static int ask(struct remote *r, struct lean_seed_connect *arg, struct sockaddr_storage *where,
	       struct lr_err *err)
{
	struct lr_wire_msg got;
	int e = remote_ask(r, LR_WIRE_MODULE, LR_WIRE_ENTRY, &got, where, err);

	if (e < 0)
		return e;
	if (!got.count || got.count > UINT16_MAX)
		return lr_refuse(err, ENOTSUP, "the seed's host does not offer it");
	address_clean(where);
	address_set_port(where, (uint16_t)got.count);
	memcpy(arg->token, got.proof, sizeof(arg->token));
	link_forget(got.proof, sizeof(got.proof));
	return 0;
}

/* Its first pages are the spans of the seed, if its host numbers them as we do. */
static int has_pages(int source, const struct lr_seed *s, struct lr_err *err)
{
	LR_CLEANUP_ARENA struct lr_arena *a = lr_arena_new();
	struct lean_seed_status status = {0};
	struct lr_seed_stretches p;

	int r = lr_seed_stretches(s, a, &p);
	if (r < 0)
		return lr_fail(err, -r, "number the seed's pages");
	if (ioctl(source, LEAN_SEED_STATUS, &status) < 0)
		return lr_fail(err, errno, "look at the seed's pages");
	return status.pages == p.pages
		       ? 0
		       : lr_refuse(err, EPROTO, "the seed's host has %llu pages in place of %llu",
				   (unsigned long long)status.pages, (unsigned long long)p.pages);
}

int linked_source(struct remote *r, int device, int *ret, struct lr_err *err)
{
	struct sockaddr_storage where = {0};
	struct lean_seed_connect arg = {.address = (uint64_t)(uintptr_t)&where,
					.length = sizeof(where),
					.timeout = CONNECT_MS};

	int e = may(device, err);
	if (e == 0)
		e = ask(r, &arg, &where, err);
	if (e < 0)
		return e;
	LR_CLEANUP_FD int fd = ioctl(device, LEAN_SEED_CONNECT, &arg);
	link_forget(arg.token, sizeof(arg.token));
	if (fd < 0)
		return lr_fail(err, errno, "connect the kernel module to the seed's host by RDMA");
	e = has_pages(fd, &r->seed, err);
	if (e < 0)
		return e;
	*ret = lr_take_fd(&fd);
	return 0;
}
