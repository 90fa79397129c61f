/* SPDX-License-Identifier: Apache-2.0 */
/*
 * seccomp: programs by policy.
 *
 * The directory is the runtime's own (0700); a file that isn't ours, is writable by others, or
 * does not hold exactly this policy is as good as absent, and is replaced by rename(2). Writing is
 * best effort: a full disk costs time, nothing else.
 */
#define LR_ROOM "seccomp"
#include "src/seccomp/internal.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "src/base/fd.h"
#include "src/base/log.h"

#define CACHE_DIR   ".seccomp"
#define CACHE_FILES 256 /* policies; beyond that the cache starts anew */
#define COMPILER    2u /* version of what turns policies into programs: raise it with every change */

/* ---- canonical bytes --------------------------------------------------------------------- */

struct bytes {
	unsigned char *v;
	size_t n;
};

static void put(struct bytes *b, const void *p, size_t n)
{
	if (b->v)
		memcpy(b->v + b->n, p, n);
	b->n += n;
}

static void put_u64(struct bytes *b, uint64_t x)
{
	put(b, &x, sizeof(x));
}

static void put_all(struct bytes *b, const struct lr_seccomp_plan *p)
{
	put_u64(b, COMPILER);
	put_u64(b, lr_seccomp_numbers_digest());
	put_u64(b, p->default_action);
	put_u64(b, p->flags);
	put_u64(b, (uint64_t)p->fail_unknown << 1 | p->notify);
	put_u64(b, p->n_archs);
	for (size_t i = 0; i < p->n_archs; i++)
		put_u64(b, p->archs[i]);
	put_u64(b, p->n_rules);
	for (size_t i = 0; i < p->n_rules; i++) {
		const struct lr_seccomp_rule *r = &p->rules[i];

		put_u64(b, r->action);
		put_u64(b, (uint64_t)r->separate << 1 | r->counts);
		put_u64(b, r->n_conds);
		for (size_t k = 0; k < r->n_conds; k++) {
			put_u64(b, (uint64_t)r->conds[k].arg << 8 | r->conds[k].op);
			put_u64(b, r->conds[k].value);
			put_u64(b, r->conds[k].value_two);
		}
		put_u64(b, r->n_names);
		for (size_t k = 0; k < r->n_names; k++)
			put(b, r->names[k], strlen(r->names[k]) + 1);
	}
}

const void *lr_seccomp_canonical(const struct lr_seccomp_plan *plan, struct lr_arena *arena,
				 size_t *len)
{
	struct bytes b = {0};

	put_all(&b, plan); /* measures */
	b.v = lr_alloc(arena, b.n);
	b.n = 0;
	if (!b.v)
		return NULL;
	put_all(&b, plan);
	*len = b.n;
	return b.v;
}

/* A name for the bytes. Not a proof of anything: the bytes themselves are compared. */
static void name_of(const unsigned char *p, size_t n, char name[40])
{
	uint64_t a = 0xcbf29ce484222325u, b = 0x9ae16a3b2f90404fu;

	for (size_t i = 0; i < n; i++) {
		a = (a ^ p[i]) * 0x100000001b3u;
		b = (b ^ p[i]) * 0xc2b2ae3d27d4eb4fu;
		b ^= b >> 31;
	}
	snprintf(name, 40, "%016jx%016jx.bpf", (uintmax_t)a, (uintmax_t)b);
}

/* ---- files -------------------------------------------------------------------------------- */

static bool ours_alone(const struct stat *st)
{
	return st->st_uid == geteuid() && (st->st_mode & 077) == 0;
}

int lr_seccomp_cache_open(int rootfd)
{
	struct stat st;
	const int flags = O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC;
	LR_CLEANUP_FD int fd = openat(rootfd, CACHE_DIR, flags);

	if (fd < 0 && errno == ENOENT) {
		if (mkdirat(rootfd, CACHE_DIR, 0700) < 0 && errno != EEXIST)
			return -errno;
		fd = openat(rootfd, CACHE_DIR, flags);
	}
	if (fd < 0 || fstat(fd, &st) < 0)
		return -errno;
	return ours_alone(&st) ? lr_take_fd(&fd) : -EPERM;
}

static int look_up(int dirfd, const char *name, const void *policy, size_t policy_len,
		   struct lr_arena *arena, struct lr_seccomp_prog *ret)
{
	struct stat st;
	LR_CLEANUP_FD int fd = openat(dirfd, name, O_RDONLY | O_NOFOLLOW | O_CLOEXEC | O_NONBLOCK);

	if (fd < 0 || fstat(fd, &st) < 0)
		return -errno;
	if (!S_ISREG(st.st_mode) || !ours_alone(&st) || st.st_size <= 0 ||
	    st.st_size > (off_t)LR_SECCOMP_FILE_MAX)
		return -EPERM;
	void *bytes = lr_alloc(arena, (size_t)st.st_size);
	if (!bytes)
		return -ENOMEM;
	ssize_t n = lr_read_full(fd, bytes, (size_t)st.st_size);
	return n < 0 ? (int)n : lr_seccomp_unpack(bytes, (size_t)n, policy, policy_len, ret);
}

/* Keeps the directory from growing for ever: somebody may generate a profile per container. */
static void prune(int dirfd)
{
	LR_CLEANUP_DIR DIR *d = lr_opendir_at(dirfd, ".");
	size_t n = 0;

	if (!d)
		return;
	for (struct dirent *e; (e = readdir(d));)
		n += e->d_name[0] != '.';
	if (n < CACHE_FILES)
		return;
	rewinddir(d);
	for (struct dirent *e; (e = readdir(d));)
		if (e->d_name[0] != '.')
			unlinkat(dirfd, e->d_name, 0);
}

static void store(int dirfd, const char *name, const struct lr_seccomp_prog *prog,
		  const void *policy, size_t policy_len, struct lr_arena *arena)
{
	char temp[64];
	size_t len;
	/* Where the listener is belongs to a container, not to a policy. */
	struct lr_seccomp_prog bare = *prog;

	bare.listener_path = bare.listener_metadata = NULL;
	void *bytes = lr_seccomp_pack(&bare, policy, policy_len, arena, &len);
	if (!bytes || len > LR_SECCOMP_FILE_MAX) /* that would not be read back */
		return;
	prune(dirfd);
	snprintf(temp, sizeof(temp), ".new-%d-%.32s", getpid(), name);
	LR_CLEANUP_FD int fd =
		openat(dirfd, temp, O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, 0600);
	if (fd < 0 && errno == EEXIST) {
		/* Left by a process of the same number that was killed. */
		unlinkat(dirfd, temp, 0);
		fd = openat(dirfd, temp, O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC,
			    0600);
	}
	if (fd < 0)
		return;
	if (fchmod(fd, 0600) < 0 || lr_write_full(fd, bytes, len) != (ssize_t)len ||
	    renameat(dirfd, temp, dirfd, name) < 0) {
		lr_debug("seccomp: program not cached: errno %d", errno);
		unlinkat(dirfd, temp, 0);
	}
}

int lr_seccomp_get(const struct lr_seccomp_plan *plan, int cachefd, struct lr_arena *arena,
		   struct lr_seccomp_prog *ret, struct lr_err *err)
{
	size_t len;
	char name[40];

	if (cachefd < 0 || plan->bpf_data)
		return lr_seccomp_compile(plan, arena, ret, err);

	const void *policy = lr_seccomp_canonical(plan, arena, &len);
	if (!policy)
		return lr_fail(err, ENOMEM, "system call filter");
	name_of(policy, len, name);

	int r = look_up(cachefd, name, policy, len, arena, ret);
	if (r == 0) {
		ret->listener_path = plan->listener_path;
		ret->listener_metadata = plan->listener_metadata;
		lr_debug("seccomp: %u instructions from the cache", ret->n);
		return 0;
	}
	r = lr_seccomp_compile(plan, arena, ret, err);
	if (r == 0)
		store(cachefd, name, ret, policy, len, arena);
	return r;
}
