/* SPDX-License-Identifier: Apache-2.0 */
/* resume: shared memory, made and filled once for all processes; mapped files, and whether they are
 * still what they were. */
#define LR_ROOM "resume"
#include <errno.h>
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

/* A shared mapping may be written to, or become so. */
static bool wants_writing(const struct lr_seed *s, uint32_t backing)
{
	for (uint32_t i = 0; i < lr_seed_count(s, LR_SEED_VMA); i++) {
		const struct lr_seed_vma *v = lr_seed_vma(s, i);
		if (v->backing == backing && v->kind == LR_SEED_SHARED && v->prot & PROT_WRITE)
			return true;
	}
	return false;
}

static int open_backing(struct lr_resume *r, uint32_t i, struct lr_err *err)
{
	const struct lr_seed_backing *b = lr_seed_backing(r->seed, i);
	const char *path = lr_seed_text(r->seed, b->path);
	bool writes = wants_writing(r->seed, i);
	struct stat st;

	int fd = resume_open_path(path, writes ? O_RDWR : O_RDONLY);
	if (fd < 0 || fstat(fd, &st) < 0) {
		lr_close(fd);
		lr_fail(err, errno, "open %s, which the seed has mapped", path);
		return lr_err_hint(err, "use the root file system that the seed was made with");
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
		return lr_err_hint(err, "use the root file system that the seed was made with");
	}
	r->backings[i] = resume_keep(r, fd, err);
	return r->backings[i];
}

int resume_open_backings(struct lr_resume *r, struct lr_err *err)
{
	int rc = 0;

	for (uint32_t i = 0; rc >= 0 && i < lr_seed_count(r->seed, LR_SEED_BACKING); i++)
		rc = open_backing(r, i, err);
	for (uint32_t i = 0; rc >= 0 && i < lr_seed_count(r->seed, LR_SEED_MM); i++) {
		const char *exe = lr_seed_text(r->seed, lr_seed_mm(r->seed, i)->exe);
		int fd = resume_open_path(exe, O_RDONLY);
		if (fd < 0)
			return lr_fail(err, errno, "open %s, which the seed executes", exe);
		rc = r->exes[i] = resume_keep(r, fd, err);
	}
	return rc < 0 ? rc : 0;
}

static int fill(const struct lr_resume *r, const struct lr_seed_object *o, int fd,
		struct lr_err *err)
{
	const size_t most = 256 * (size_t)LR_SEED_PAGE;
	LR_CLEANUP_FREE uint8_t *buffer = malloc(most);

	if (!buffer)
		return lr_fail(err, ENOMEM, "fill shared memory");
	for (uint32_t i = 0; i < o->runs.count; i++) {
		const struct lr_seed_run *run = lr_seed_run(r->seed, o->runs.first + i);
		uint64_t size = run->pages * LR_SEED_PAGE;
		for (uint64_t done = 0; done < size;) {
			size_t n = size - done < most ? (size_t)(size - done) : most;
			if (pread(r->pages, buffer, n, (off_t)(run->at + done)) != (ssize_t)n ||
			    pwrite(fd, buffer, n, (off_t)(run->start + done)) != (ssize_t)n)
				return lr_fail(err, errno ? errno : ENODATA, "fill shared memory");
			done += n;
		}
	}
	/* The last page was whole. */
	return ftruncate(fd, (off_t)o->size) < 0 ? lr_fail(err, errno, "size shared memory") : 0;
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
	/* It gets none of its seals: mappings of it have yet to be made and filled. */
	return ftruncate(fd, (off_t)o->size) < 0 ? lr_fail(err, errno, "size shared memory")
						 : fill(r, o, fd, err);
}

int resume_open_objects(struct lr_resume *r, struct lr_err *err)
{
	int rc = 0;

	for (uint32_t i = 0; rc >= 0 && i < lr_seed_count(r->seed, LR_SEED_OBJECT); i++)
		rc = open_object(r, i, err);
	return rc;
}
