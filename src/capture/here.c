/* SPDX-License-Identifier: Apache-2.0 */
/* capture: programs that wait in lean_seed_here(3): which they are, and to tell them. */
#define LR_ROOM "capture"
#include "src/seed/here.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <linux/futex.h>
#include <stddef.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "src/base/fd.h"
#include "src/base/log.h"
#include "src/base/str.h"
#include "src/capture/state.h"

#define MAPPED "/memfd:" LR_HERE_NAME " (deleted)" /* as all of them are */

/* Whatever the program has made of it: 1: it is such a page; 0: it is none; or a negative errno. */
static int read_page(int fd, struct lr_here *ret)
{
	ssize_t n = pread(fd, ret, sizeof(*ret), 0);

	return n < 0 ? -errno : n == (ssize_t)sizeof(*ret) && lr_here_is_valid(ret);
}

/* ---- before ---------------------------------------------------------------------------------- */

static bool is_page(const struct cap *c, const struct cap_vma *v)
{
	return v->shared && !v->offset && lr_streq(v->name, MAPPED) && cap_is_shared_memory(c, v);
}

static bool waits_in(const struct cap_process *p, const struct cap_vma *v)
{
	struct lr_here h;

	LR_CLEANUP_FD int fd = cap_open_mapping(p->pid, v);
	return fd >= 0 && read_page(fd, &h) > 0 && h.waiting;
}

/* Who ends meanwhile does not wait. */
static bool waits(struct cap *c, struct cap_process *p)
{
	if (p->seed.flags & LR_SEED_ZOMBIE ||
	    cap_maps_read(c->a, p->pid, "maps", &p->maps, NULL) < 0)
		return false;
	for (size_t i = 0; i < p->maps.n; i++)
		if (is_page(c, &p->maps.v[i]) && waits_in(p, &p->maps.v[i]))
			return true;
	return false;
}

int lr_capture_is_awaited(pid_t pid, struct lr_err *err)
{
	LR_CLEANUP_ARENA struct lr_arena *a = lr_arena_new();
	const struct lr_capture opts = {.pid = pid};
	struct cap c = {.opts = &opts, .a = a};

	int r = cap_objects_begin(&c, err);
	if (r >= 0)
		r = cap_tree_look(&c, err);
	for (size_t i = 0; r >= 0 && i < c.n; i++)
		if (waits(&c, &c.p[i]))
			return 1;
	/* Those that it has read about may have ended. */
	return r < 0 && r != -ENOENT && r != -ESRCH ? r : 0;
}

/* ---- while all is held ----------------------------------------------------------------------- */

/* What it takes to tell, as nothing may fail then: a descriptor to write to it, since mappings are
 * opened for reading; and a mapping to wake who sleeps on it, which is never touched, as the page
 * may be gone by then. */
static int remember(struct cap_object *o, struct lr_err *err)
{
	o->is_here = true;
	o->here = cap_open_again(o->fd, O_RDWR);
	if (o->here < 0)
		return cap_open_failed(lr_fail(err, errno, "open the page of lean_seed_here"), err);
	void *page = mmap(NULL, LR_HERE_SIZE, PROT_READ, MAP_SHARED, o->here, 0);
	if (page == MAP_FAILED)
		return lr_fail(err, errno, "map the page of lean_seed_here");
	o->here_page = page;
	return 0;
}

int cap_here_take(struct cap *c, struct lr_err *err)
{
	bool waited = false;

	for (size_t i = 0; i < c->n_objects; i++) {
		struct cap_object *o = &c->objects[i];
		struct lr_here h;
		if (o->seed.kind != LR_SEED_MEMFD || !lr_streq(o->name, LR_HERE_NAME))
			continue;
		int r = read_page(o->fd, &h);
		if (r < 0)
			return lr_fail(err, -r, "read the page of lean_seed_here");
		if (r > 0) {
			r = remember(o, err);
			if (r < 0)
				return r;
			waited = waited || h.waiting;
		}
	}
	return waited || !c->opts->awaited
		       ? 0
		       : lr_refuse(err, ENOMSG, "no process waits in lean_seed_here");
}

void cap_here_copied(const struct cap_object *o, uint8_t *page)
{
	struct lr_here h;

	memcpy(&h, page, sizeof(h));
	if (!o->is_here || !lr_here_is_valid(&h))
		return;
	lr_here_become_child(&h);
	memcpy(page, &h, sizeof(h));
}

/* ---- afterwards ------------------------------------------------------------------------------ */

/* Also calls that began since all was let go: a signal may have ended the one that was in the seed, and
 * its program has called again. In a child such a call ends at once, too. */
static int tell(const struct cap_object *o)
{
	struct lr_here h;

	int r = read_page(o->here, &h);
	if (r <= 0 || lr_here_has_seed(h.released, h.entered))
		return r;
	while (pwrite(o->here, &h.entered, sizeof(h.entered), offsetof(struct lr_here, released)) <
	       0)
		if (errno != EINTR)
			return -errno;
	syscall(SYS_futex, o->here_page + offsetof(struct lr_here, released), FUTEX_WAKE, INT_MAX,
		NULL, NULL, 0);
	return 0;
}

void cap_here_tell(const struct cap *c)
{
	for (size_t i = 0; i < c->n_objects; i++) {
		int r = c->objects[i].here < 0 ? 0 : tell(&c->objects[i]);
		/* They would wait for ever: what fails for want of memory is tried again. */
		for (unsigned k = 0; r < 0 && k < 3; k++)
			r = tell(&c->objects[i]);
		if (r < 0)
			lr_warn("who waits in lean_seed_here can't be told of the seed: %s",
				lr_strerror(-r));
	}
}

void cap_here_close(struct cap_object *o)
{
	if (o->here_page)
		munmap(o->here_page, LR_HERE_SIZE);
	o->here_page = NULL;
	o->here = lr_close(o->here);
}
