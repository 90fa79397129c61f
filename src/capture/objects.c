/* SPDX-License-Identifier: Apache-2.0 */
/* capture: memory that is shared, and therefore not frozen by a twin: copied while all is held. */
#define LR_ROOM "capture"
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/sysmacros.h>
#include <unistd.h>

#include "src/base/fd.h"
#include "src/base/str.h"
#include "src/capture/state.h"
#include "src/sys/syscalls.h"

#define MEMFD   "/memfd:"
#define DELETED " (deleted)"

struct cap_object *cap_object_of(struct cap *c, uint64_t device, uint64_t inode)
{
	size_t i;

	return cap_index_find(&c->object_of, device, inode, &i) ? &c->objects[i] : NULL;
}

/* Takes fd. most: who is outside may have the file, too, and let it grow since it was counted. */
static int add(struct cap *c, int fd, const char *link, uint64_t most, struct lr_err *err)
{
	struct stat st;
	if (fstat(fd, &st) < 0) {
		lr_close(fd);
		return lr_fail(err, errno, "look at %s", link);
	}
	const bool memfd = st.st_dev == c->memory && lr_has_prefix(link, MEMFD);
	if (cap_object_of(c, st.st_dev, st.st_ino)) {
		lr_close(fd);
		return 0;
	}
	struct cap_object *v = lr_grow(c->a, c->objects, c->n_objects, sizeof(*v));
	if (!v || cap_index_put(c->a, &c->object_of, st.st_dev, st.st_ino, c->n_objects) < 0) {
		lr_close(fd);
		return lr_fail(err, ENOMEM, "list shared memory");
	}
	c->objects = v;
	v += c->n_objects++;
	*v = (struct cap_object){
		.device = st.st_dev, .inode = st.st_ino, .fd = fd, .here = LR_NOFD};
	v->seed.kind = memfd ? LR_SEED_MEMFD : LR_SEED_SHARED_ANON;
	v->seed.size = (uint64_t)st.st_size < most ? (uint64_t)st.st_size : most;
	if (v->seed.size > LR_SEED_TOP)
		cap_refuse(c, c->p, "shared memory that is too long (%s)", link);
	int seals = fcntl(fd, F_GET_SEALS);
	v->seed.seals = memfd && seals > 0 ? (uint32_t)seals : 0;
	v->name = lr_strdup(c->a, memfd ? link + strlen(MEMFD) : "");
	if (!v->name)
		return lr_fail(err, ENOMEM, "list shared memory");
	if (lr_has_suffix(v->name, DELETED))
		v->name[strlen(v->name) - strlen(DELETED)] = 0;
	return 0;
}

/* A file may be called as memory is; what is opened here, and copied, is what the kernel says. */
int cap_objects_begin(struct cap *c, struct lr_err *err)
{
	LR_CLEANUP_FD int fd = lr_memfd_create("capture", MFD_CLOEXEC);
	struct stat st;

	if (fd < 0 || fstat(fd, &st) < 0)
		return lr_fail(err, fd < 0 ? -fd : errno, "make shared memory");
	c->memory = st.st_dev;
	return 0;
}

bool cap_is_shared_memory(const struct cap *c, const struct cap_vma *v)
{
	const uint64_t device = makedev(v->major, v->minor);

	if (!v->inode || device == c->memory)
		return v->inode;
	return cap_tmpfs_has(c, device) && !cap_tmpfs_path(c, device, v->inode);
}

static int of_maps(struct cap *c, const struct cap_process *p, struct lr_err *err)
{
	for (size_t i = 0; i < p->maps.n; i++) {
		const struct cap_vma *v = &p->maps.v[i];
		if (!cap_is_shared_memory(c, v) ||
		    cap_object_of(c, makedev(v->major, v->minor), v->inode))
			continue;
		int fd = cap_open_mapping(p->pid, v);
		if (fd < 0)
			return cap_open_failed(lr_fail(err, errno,
						       "open shared memory of process %d at %llx",
						       p->pid, (unsigned long long)v->start),
					       err);
		int r = add(c, fd, v->name, UINT64_MAX, err);
		if (r < 0)
			return r;
	}
	return 0;
}

int cap_objects_find(struct cap *c, struct lr_err *err)
{
	char path[48];
	int r = 0;

	for (size_t i = 0; r >= 0 && i < c->n; i++)
		r = of_maps(c, &c->p[i], err);
	for (size_t i = 0; r >= 0 && i < c->n_files; i++) {
		const struct cap_file *f = c->files[i];
		if (f->seed.kind != LR_SEED_MEMFD_FILE)
			continue;
		snprintf(path, sizeof(path), "/proc/%d/fd/%d", f->pid, f->fd);
		int fd = cap_open(path, O_RDONLY);
		r = fd < 0 ? cap_open_failed(
				     lr_fail(err, errno, "open %s of process %d", f->path, f->pid),
				     err)
			   : add(c, fd, f->path, f->deleted ? f->size : UINT64_MAX, err);
	}
	return r;
}

static uint64_t page_above(uint64_t at)
{
	return (at + LR_SEED_PAGE - 1) & ~(uint64_t)(LR_SEED_PAGE - 1);
}

/* Less than n: that is the end of the file. */
static ssize_t read_at(int fd, uint8_t *to, size_t n, uint64_t at)
{
	size_t done = 0;

	while (done < n) {
		ssize_t got = pread(fd, to + done, n - done, (off_t)(at + done));
		if (got < 0 && errno == EINTR)
			continue;
		if (got < 0)
			return -1;
		if (!got)
			break;
		done += (size_t)got;
	}
	return (ssize_t)done;
}

/* What lies from `at`, where a page begins, to `end`, with no hole that counts. */
static int copy_data(struct cap *c, const struct cap_contents *from, uint64_t at, uint64_t end,
		     uint8_t *buffer, struct lr_err *err)
{
	const uint64_t batch = (uint64_t)CAP_BATCH * LR_SEED_PAGE;

	for (size_t pages; at < end; at += pages * LR_SEED_PAGE) {
		ssize_t got = read_at(from->fd, buffer,
				      (size_t)(end - at < batch ? end - at : batch), at);
		if (got <= 0)
			return got < 0 ? lr_fail(err, errno, "read shared memory") : 0;
		if (from->left && *from->left < (uint64_t)got)
			return lr_refuse(err, EFBIG, "there is more to copy than was counted");
		if (from->left)
			*from->left -= (uint64_t)got;
		pages = (size_t)(page_above((uint64_t)got) / LR_SEED_PAGE);
		memset(buffer + got, 0, pages * LR_SEED_PAGE - (size_t)got);
		if (!at && from->object)
			cap_here_copied(from->object, buffer);
		int r = cap_pages_put(c, buffer, at, pages, false, from->runs, from->n_runs, err);
		if (r < 0)
			return r;
	}
	return 0;
}

/* Holes are as long as their owner likes, and there are as many: none of them is read. */
int cap_runs_copy(struct cap *c, const struct cap_contents *from, uint8_t *buffer,
		  struct lr_err *err)
{
	int r = 0;

	c->first_run = 0;
	for (uint64_t at = 0; r >= 0 && at < from->size;) {
		const off_t data = lseek(from->fd, (off_t)at, SEEK_DATA);
		const off_t hole = data < 0 ? -1 : lseek(from->fd, data, SEEK_HOLE);
		if (hole < 0)
			return errno == ENXIO ? 0 : lr_fail(err, errno, "read shared memory");
		const uint64_t begin = (uint64_t)data & ~(uint64_t)(LR_SEED_PAGE - 1);
		at = page_above((uint64_t)hole);
		r = copy_data(c, from, begin, at < from->size ? at : from->size, buffer, err);
	}
	return r;
}

int cap_objects_copy(struct cap *c, struct lr_err *err)
{
	LR_CLEANUP_FREE uint8_t *buffer =
		c->n_objects ? malloc((size_t)CAP_BATCH * LR_SEED_PAGE) : NULL;
	int r = buffer || !c->n_objects ? 0 : lr_fail(err, ENOMEM, "copy shared memory");

	for (size_t i = 0; r >= 0 && i < c->n_objects; i++) {
		struct cap_object *o = &c->objects[i];
		r = cap_runs_copy(
			c,
			&(struct cap_contents){o->fd, o->seed.size, &o->runs, &o->n_runs, o, NULL},
			buffer, err);
		c->objects[i].fd = lr_close(c->objects[i].fd);
	}
	return r;
}
