/* SPDX-License-Identifier: Apache-2.0 */
/* resume: everything is opened before anybody is born; see resume.h. */
#define LR_ROOM "resume"
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <unistd.h>

#include "src/base/fd.h"
#include "src/resume/resuming.h"
#include "src/sys/syscalls.h"

int resume_keep(struct lr_resume *r, int fd, struct lr_err *err)
{
	int kept = fd < 0 ? fd : fcntl(fd, F_DUPFD_CLOEXEC, r->base);
	int rc = kept < 0 ? lr_fail(err, errno, "keep a descriptor at %d or above", r->base) : kept;

	lr_close(fd);
	return rc;
}

int resume_open_path(const char *path, int flags)
{
	const struct open_how how = {
		.flags = (uint64_t)(flags | O_CLOEXEC |
				    (flags & O_PATH ? 0 : O_NONBLOCK | O_NOCTTY)),
		.resolve = RESOLVE_NO_SYMLINKS | RESOLVE_NO_MAGICLINKS,
	};

	/* The kernel's paths begin at the root; an empty one would be our own directory. */
	int fd = path[0] == '/' ? lr_openat2(AT_FDCWD, path, &how) : -ENOENT;
	if (fd >= 0)
		return fd;
	errno = -fd;
	return -1;
}

int resume_open_again(const struct lr_resume *r, int fd, uint32_t flags)
{
	char path[48];

	/* An image may have files in /proc. */
	snprintf(path, sizeof(path), "%sself/fd/%d", r->proc < 0 ? "/proc/" : "", fd);
	return openat(r->proc, path, (int)flags | O_CLOEXEC);
}

int resume_hint_changed(const struct lr_resume *r, struct lr_err *err)
{
	const uint32_t n = lr_seed_count(r->seed, LR_SEED_CHANGED);
	char names[160] = "";
	size_t at = 0;
	uint32_t i;

	if (!n)
		return lr_err_hint(err, "use the root file system that the seed was made with");
	for (i = 0; i < n; i++) {
		const char *path = lr_seed_text(r->seed, lr_seed_changed(r->seed, i)->path);
		if (i && strlen(path) + 3 > sizeof(names) - at)
			break;
		at += (size_t)snprintf(names + at, sizeof(names) - at, "%s%s", i ? ", " : "", path);
		at = at < sizeof(names) ? at : sizeof(names) - 1;
	}
	return lr_err_hint(err, "its container had changed %s%s: checkpoint --with-changes", names,
			   i < n ? " and more" : "");
}

/* The first number that no process uses; and room for ours. */
static int find_base(struct lr_resume *r, struct lr_err *err)
{
	const struct lr_seed *s = r->seed;
	uint64_t ours = 64 + (uint64_t)lr_seed_count(s, LR_SEED_FILE) +
			2 * (uint64_t)lr_seed_count(s, LR_SEED_OBJECT) +
			lr_seed_count(s, LR_SEED_BACKING) +
			2 * (uint64_t)lr_seed_count(s, LR_SEED_FS) + lr_seed_count(s, LR_SEED_MM);
	struct rlimit64 l;

	r->base = 64;
	for (uint32_t i = 0; i < lr_seed_count(s, LR_SEED_FD); i++)
		if ((int)lr_seed_fd(s, i)->number >= r->base)
			r->base = (int)lr_seed_fd(s, i)->number + 1;
	if (getrlimit64(RLIMIT_NOFILE, &l) < 0)
		return lr_fail(err, errno, "read the limit of open files");
	r->open_files[0] = l.rlim_cur;
	r->open_files[1] = l.rlim_max;
	if (l.rlim_cur < (uint64_t)r->base + ours) {
		l.rlim_cur = (uint64_t)r->base + ours;
		if (l.rlim_max < l.rlim_cur)
			l.rlim_max = l.rlim_cur;
		if (setrlimit64(RLIMIT_NOFILE, &l) < 0)
			return lr_fail(err, errno, "raise the limit of open files to %llu",
				       (unsigned long long)l.rlim_cur);
	}
	return 0;
}

static int check_pages(const struct lr_resume *r, struct lr_err *err)
{
	struct lr_seed_pages_header h;

	return pread(r->pages, &h, sizeof(h), 0) == (ssize_t)sizeof(h)
		       ? lr_seed_check_pages(r->seed, &h, sizeof(h), err)
		       : lr_fail(err, errno ? errno : ENODATA, "read the file of pages");
}

/* Memory that comes later, by whoever it does. */
static int open_lazy(struct lr_resume *r, int fd, struct lr_err *err)
{
	struct stat st;

	r->lazy = r->source = LR_NOFD;
	if (fd < 0)
		return 0;
	int kept = resume_keep(r, fcntl(fd, F_DUPFD_CLOEXEC, 3), err);
	if (kept < 0)
		return kept;
	if (fstat(kept, &st) < 0)
		return lr_fail(err, errno, "look at what memory comes from");
	if (S_ISSOCK(st.st_mode)) {
		r->lazy = kept;
		return 0;
	}
	r->source = kept;
	int rc = lr_seed_spans(r->seed, r->a, &r->spans);
	return rc < 0 ? lr_fail(err, -rc, "number the seed's pages") : 0;
}

static int open_all(struct lr_resume *r, struct lr_err *err)
{
	/* With all rights: these files have the owners that the seed names, whoever opens files later. */
	int rc = resume_fill_tmpfs(r, err);

	if (rc >= 0 && r->opts.lower)
		rc = r->opts.lower(r->opts.arg, err);
	if (rc >= 0)
		rc = resume_change_root(r, err);
	if (rc >= 0)
		rc = resume_open_places(r, false, err);
	if (rc >= 0)
		rc = resume_open_backings(r, err);
	if (rc >= 0)
		rc = resume_open_objects(r, err);
	if (rc >= 0)
		rc = resume_open_files(r, err);
	if (rc >= 0)
		rc = resume_watch_files(r, err);
	if (rc >= 0 && r->opts.raise)
		rc = r->opts.raise(r->opts.arg, err);
	if (rc >= 0)
		rc = resume_open_pairs(r, err);
	if (rc >= 0)
		rc = resume_own_pipes(r, err);
	if (rc >= 0)
		rc = resume_open_places(r, true, err);
	if (rc >= 0)
		rc = resume_own_objects(r, err);
	if (rc >= 0)
		rc = resume_seal_objects(r, err);
	if (rc >= 0)
		rc = resume_prepare_gate(r, err);
	return rc < 0 ? rc : resume_own_endpoints(r, err);
}

int lr_resume_open(const struct lr_resume_opts *o, struct lr_arena *a, struct lr_resume **ret,
		   struct lr_err *err)
{
	const struct lr_seed *s = o->seed;
	struct lr_resume *r = lr_new(a, struct lr_resume);

	if (!r)
		return lr_fail(err, ENOMEM, "resume");
	*r = (struct lr_resume){.opts = *o, .seed = s, .a = a, .gate = {LR_NOFD, LR_NOFD}};
	r->files = lr_new_n(a, lr_seed_count(s, LR_SEED_FILE) + 1, int);
	r->objects = lr_new_n(a, lr_seed_count(s, LR_SEED_OBJECT) + 1, int);
	r->readonly = lr_new_n(a, lr_seed_count(s, LR_SEED_OBJECT) + 1, int);
	r->backings = lr_new_n(a, lr_seed_count(s, LR_SEED_BACKING) + 1, int);
	r->exes = lr_new_n(a, lr_seed_count(s, LR_SEED_MM) + 1, int);
	r->places = lr_new_n(a, lr_seed_count(s, LR_SEED_FS) + 1, struct resume_place);
	if (!r->files || !r->objects || !r->readonly || !r->backings || !r->exes || !r->places)
		return lr_fail(err, ENOMEM, "resume");
	int rc = resume_check_host(s, err);
	if (rc >= 0)
		rc = find_base(r, err);
	if (rc >= 0)
		rc = r->pages = resume_keep(r, fcntl(o->pages, F_DUPFD_CLOEXEC, 3), err);
	if (rc >= 0)
		rc = r->report = resume_keep(r, fcntl(o->report, F_DUPFD_CLOEXEC, 3), err);
	if (rc >= 0)
		rc = open_lazy(r, o->lazy, err);
	if (rc >= 0)
		rc = resume_keep_terminal(r, err);
	r->proc = LR_NOFD;
	if (rc >= 0 && o->proc >= 0)
		rc = r->proc = resume_keep(r, fcntl(o->proc, F_DUPFD_CLOEXEC, 3), err);
	if (rc >= 0)
		rc = check_pages(r, err);
	if (rc >= 0)
		rc = open_all(r, err);
	if (rc < 0)
		return rc;
	*ret = r;
	return 0;
}
