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
	for (size_t i = 0; i < c->n_objects; i++)
		if (c->objects[i].device == device && c->objects[i].inode == inode)
			return &c->objects[i];
	return NULL;
}

/* Takes fd. */
static int add(struct cap *c, int fd, const char *link, struct lr_err *err)
{
	struct stat st;
	bool memfd = lr_has_prefix(link, MEMFD);

	if (fstat(fd, &st) < 0) {
		lr_close(fd);
		return lr_fail(err, errno, "look at %s", link);
	}
	if (cap_object_of(c, st.st_dev, st.st_ino)) {
		lr_close(fd);
		return 0;
	}
	struct cap_object *v = lr_grow(c->a, c->objects, c->n_objects, sizeof(*v));
	if (!v) {
		lr_close(fd);
		return lr_fail(err, ENOMEM, "list shared memory");
	}
	c->objects = v;
	v += c->n_objects++;
	*v = (struct cap_object){
		.device = st.st_dev, .inode = st.st_ino, .fd = fd, .here = LR_NOFD};
	v->seed.kind = memfd ? LR_SEED_MEMFD : LR_SEED_SHARED_ANON;
	v->seed.size = (uint64_t)st.st_size;
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
		int r = add(c, fd, v->name, err);
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
			   : add(c, fd, f->path, err);
	}
	return r;
}

int cap_runs_copy(struct cap *c, const struct cap_contents *from, uint8_t *buffer,
		  struct lr_err *err)
{
	const size_t batch = (size_t)CAP_BATCH * LR_SEED_PAGE;
	const uint64_t size = from->size;

	c->first_run = 0;
	for (off_t at = 0; (uint64_t)at < size;) {
		/* Holes are as long as they like. */
		at = lseek(from->fd, at, SEEK_DATA);
		if (at < 0)
			return errno == ENXIO ? 0 : lr_fail(err, errno, "read shared memory");
		at &= ~(off_t)(LR_SEED_PAGE - 1);
		if ((uint64_t)at >= size)
			return 0;
		size_t most = size - (uint64_t)at < batch ? (size_t)(size - (uint64_t)at) : batch;
		ssize_t got = pread(from->fd, buffer, most, at);
		if (got < 0)
			return lr_fail(err, errno, "read shared memory");
		size_t pages = ((size_t)got + LR_SEED_PAGE - 1) / LR_SEED_PAGE;
		memset(buffer + got, 0, pages * LR_SEED_PAGE - (size_t)got);
		if (!at && got && from->object)
			cap_here_copied(from->object, buffer);
		int r = cap_pages_put(c, buffer, (uint64_t)at, pages, false, from->runs,
				      from->n_runs, err);
		if (r < 0 || !got)
			return r;
		at += got;
	}
	return 0;
}

int cap_objects_copy(struct cap *c, struct lr_err *err)
{
	LR_CLEANUP_FREE uint8_t *buffer =
		c->n_objects ? malloc((size_t)CAP_BATCH * LR_SEED_PAGE) : NULL;
	int r = buffer || !c->n_objects ? 0 : lr_fail(err, ENOMEM, "copy shared memory");

	for (size_t i = 0; r >= 0 && i < c->n_objects; i++) {
		struct cap_object *o = &c->objects[i];
		r = cap_runs_copy(
			c, &(struct cap_contents){o->fd, o->seed.size, &o->runs, &o->n_runs, o},
			buffer, err);
		c->objects[i].fd = lr_close(c->objects[i].fd);
	}
	return r;
}
