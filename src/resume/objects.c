/* SPDX-License-Identifier: Apache-2.0 */
/* resume: shared memory, made and filled once for all processes; mapped files, and whether they are
 * still what they were. */
#define LR_ROOM "resume"
#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include "src/base/fd.h"
#include "src/base/str.h"
#include "src/resume/resuming.h"
#include "src/sys/syscalls.h"

#ifndef MFD_ALLOW_SEALING
#define MFD_ALLOW_SEALING 2U
#endif

/* Of each backing: a shared mapping may be written to, or become so. For all of them at once, as a forged
 * seed may have hundreds of thousands, and as many mappings. */
static bool *find_written(const struct lr_resume *r)
{
	bool *ret = lr_new_n(r->a, lr_seed_count(r->seed, LR_SEED_BACKING) + 1, bool);

	for (uint32_t i = 0; ret && i < lr_seed_count(r->seed, LR_SEED_VMA); i++) {
		const struct lr_seed_vma *v = lr_seed_vma(r->seed, i);
		if (v->kind == LR_SEED_SHARED && v->prot & PROT_WRITE)
			ret[v->backing] = true;
	}
	return ret;
}

static int open_backing(struct lr_resume *r, uint32_t i, bool writes, struct lr_err *err)
{
	const struct lr_seed_backing *b = lr_seed_backing(r->seed, i);
	const char *path = lr_seed_text(r->seed, b->path);
	struct stat st;

	int fd = resume_open_path(path, writes ? O_RDWR : O_RDONLY);
	if (fd < 0 || fstat(fd, &st) < 0) {
		lr_close(fd);
		lr_fail(err, errno, "open %s, which the seed has mapped", path);
		return resume_hint_changed(r, err);
	}
	/* What is shared goes on changing, here as there; and what is in a tmpfs has come with us. */
	bool carried = resume_is_in_tmpfs(r, st.st_dev);
	uint64_t sum = b->sum;
	int rc = writes || carried ? 0 : lr_seed_sum_file(fd, b->size, &sum);
	if (rc < 0) {
		lr_close(fd);
		return lr_fail(err, -rc, "read %s, which the seed has mapped", path);
	}
	if (!writes && !carried && ((uint64_t)st.st_size != b->size || sum != b->sum)) {
		lr_close(fd);
		lr_refuse(err, ENOTSUP, "%s is not the file that the seed has mapped", path);
		return resume_hint_changed(r, err);
	}
	r->backings[i] = resume_keep(r, fd, err);
	return r->backings[i];
}

int resume_open_backings(struct lr_resume *r, struct lr_err *err)
{
	const bool *written = find_written(r);
	int rc = written ? 0 : lr_fail(err, ENOMEM, "open mapped files");

	for (uint32_t i = 0; rc >= 0 && i < lr_seed_count(r->seed, LR_SEED_BACKING); i++)
		rc = open_backing(r, i, written[i], err);
	for (uint32_t i = 0; rc >= 0 && i < lr_seed_count(r->seed, LR_SEED_MM); i++) {
		const char *exe = lr_seed_text(r->seed, lr_seed_mm(r->seed, i)->exe);
		int fd = resume_open_path(exe, O_RDONLY);
		if (fd < 0) {
			lr_fail(err, errno, "open %s, which the seed executes", exe);
			return resume_hint_changed(r, err);
		}
		rc = r->exes[i] = resume_keep(r, fd, err);
	}
	return rc < 0 ? rc : 0;
}

#define BATCH (256 * (size_t)LR_SEED_PAGE)

static int fill_run(const struct lr_resume *r, const struct lr_seed_run *run, uint64_t size, int fd)
{
	for (uint64_t done = 0; done < size;) {
		size_t some = size - done < BATCH ? (size_t)(size - done) : BATCH;
		ssize_t n = pread(r->pages, r->buffer, some, (off_t)(run->at + done));
		if (n <= 0)
			return n < 0 ? -errno : -ENODATA;
		n = pwrite(fd, r->buffer, (size_t)n, (off_t)(run->start + done));
		if (n <= 0)
			return n < 0 ? -errno : -ENOSPC;
		done += (uint64_t)n;
	}
	return 0;
}

int resume_fill_file(struct lr_resume *r, const struct lr_seed_range *runs, uint64_t size, int fd)
{
	int rc = ftruncate(fd, (off_t)size) < 0 ? -errno : 0;

	if (!r->buffer && !(r->buffer = lr_alloc(r->a, BATCH)))
		return -ENOMEM;
	for (uint32_t i = 0; rc >= 0 && i < runs->count; i++) {
		const struct lr_seed_run *run = lr_seed_run(r->seed, runs->first + i);
		uint64_t bytes = run->pages * LR_SEED_PAGE;
		/* The seed has the last page as a whole. */
		rc = fill_run(r, run, bytes < size - run->start ? bytes : size - run->start, fd);
	}
	return rc;
}

static int open_object(struct lr_resume *r, uint32_t i, struct lr_err *err)
{
	const struct lr_seed_object *o = lr_seed_object(r->seed, i);
	const char *name = o->kind == LR_SEED_MEMFD ? lr_seed_text(r->seed, o->name) : "shared";

	int fd = lr_memfd_create(name, MFD_CLOEXEC | MFD_ALLOW_SEALING);
	if (fd < 0)
		return lr_fail(err, -fd, "make shared memory");
	fd = resume_keep(r, fd, err);
	r->objects[i] = fd;
	if (fd < 0)
		return fd;
	int rc = resume_fill_file(r, &o->runs, o->size, fd);
	return rc < 0 ? lr_fail(err, -rc, "fill shared memory") : 0;
}

int resume_open_objects(struct lr_resume *r, struct lr_err *err)
{
	int rc = 0;

	for (uint32_t i = 0; rc >= 0 && i < lr_seed_count(r->seed, LR_SEED_OBJECT); i++)
		rc = open_object(r, i, err);
	return rc;
}

static int own(const struct lr_seed_file *f, int fd)
{
	const uid_t uid = (uid_t)f->args[2];
	const gid_t gid = (gid_t)f->args[3];
	struct stat st;

	if (fstat(fd, &st) < 0 ||
	    ((st.st_uid != uid || st.st_gid != gid) && fchown(fd, uid, gid) < 0))
		return -errno;
	return (st.st_mode ^ f->args[1]) & 0777 && fchmod(fd, (mode_t)f->args[1]) < 0 ? -errno : 0;
}

int resume_own_objects(const struct lr_resume *r, struct lr_err *err)
{
	int rc = 0;

	for (uint32_t i = 0; rc >= 0 && i < lr_seed_count(r->seed, LR_SEED_FILE); i++) {
		const struct lr_seed_file *f = lr_seed_file(r->seed, i);
		if (f->kind == LR_SEED_MEMFD_FILE && f->args[0])
			rc = own(f, r->files[i]);
	}
	return rc < 0 ? lr_fail(err, -rc, "give shared memory its owner and mode") : 0;
}

/* ---- seals ----------------------------------------------------------------------------------- */

bool resume_seals_late(const struct lr_resume *r, uint32_t object)
{
	return r->late && r->late[object];
}

static int find_late(struct lr_resume *r, struct lr_err *err)
{
	r->late = lr_new_n(r->a, lr_seed_count(r->seed, LR_SEED_OBJECT) + 1, bool);
	if (!r->late)
		return lr_fail(err, ENOMEM, "seal shared memory");
	for (uint32_t i = 0; i < lr_seed_count(r->seed, LR_SEED_VMA); i++) {
		const struct lr_seed_vma *v = lr_seed_vma(r->seed, i);
		if (v->kind != LR_SEED_SHARES || !(v->prot & PROT_WRITE))
			continue;
		const struct lr_seed_object *o = lr_seed_object(r->seed, v->object);
		r->late[v->object] =
			o->seals & LR_SEED_SEAL_FUTURE_WRITE && o->kind == LR_SEED_MEMFD;
	}
	return 0;
}

/* To a file that may be executed the kernel gives, with that seal, all others that keep its contents. The seed's had
 * not all of them, so nobody could execute it. */
static int take_execution(const struct lr_seed_object *o, int fd)
{
	const uint32_t kept = LR_SEED_SEAL_SHRINK | LR_SEED_SEAL_GROW | LR_SEED_SEAL_WRITE |
			      LR_SEED_SEAL_FUTURE_WRITE;
	struct stat st;

	if (!(o->seals & LR_SEED_SEAL_EXEC) || (o->seals & kept) == kept)
		return 0;
	return fstat(fd, &st) < 0 || fchmod(fd, st.st_mode & 0666) < 0 ? -errno : 0;
}

/* What a seal keeps from being written is mapped by a descriptor that only reads (object_fd): by another one, the
 * mapping could be made writable. */
static int seal(struct lr_resume *r, uint32_t i, struct lr_err *err)
{
	const struct lr_seed_object *o = lr_seed_object(r->seed, i);
	/* What was no memfd took no seals from anybody, and takes none here. */
	const uint32_t seals = o->kind == LR_SEED_MEMFD ? o->seals : LR_SEED_SEAL_SEAL;

	r->readonly[i] = LR_NOFD;
	if (seals & (LR_SEED_SEAL_WRITE | LR_SEED_SEAL_FUTURE_WRITE)) {
		int fd = resume_open_again(r, r->objects[i], O_RDONLY);
		if (fd < 0)
			return lr_fail(err, errno, "open shared memory again");
		r->readonly[i] = resume_keep(r, fd, err);
		if (r->readonly[i] < 0)
			return r->readonly[i];
	}
	int rc = take_execution(o, r->objects[i]);
	if (rc >= 0 && seals && !resume_seals_late(r, i) &&
	    fcntl(r->objects[i], F_ADD_SEALS, (int)seals) < 0)
		rc = -errno;
	return rc < 0 ? lr_fail(err, -rc, "seal shared memory") : 0;
}

int resume_seal_objects(struct lr_resume *r, struct lr_err *err)
{
	int rc = find_late(r, err);

	for (uint32_t i = 0; rc >= 0 && i < lr_seed_count(r->seed, LR_SEED_OBJECT); i++)
		rc = seal(r, i, err);
	return rc;
}
