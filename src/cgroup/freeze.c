/* SPDX-License-Identifier: Apache-2.0 */
/*
 * cgroup: pause and resume. v1 has freezer.state, which passes FREEZING on its way and may stay
 * there while tasks fork or sleep uninterruptibly; v2 has cgroup.freeze and tells by
 * cgroup.events, which can be polled.
 */
#define LR_ROOM "cgroup"

#include "src/cgroup/internal.h"

#include <fcntl.h>
#include <poll.h>
#include <unistd.h>

/* v1: after so many looks, thaw for a moment: a task caught in vfork(2) may hold another. */
#define V1_LOOKS 50

struct freezer {
	const char *dir;
	bool v2;
};

static bool find(const struct lr_cgroup_ref *ref, struct freezer *f)
{
	int i = lr_cgroup_find(ref, LR_CTRL_FREEZER);

	f->v2 = i < 0;
	if (i < 0)
		i = lr_cgroup_find_v2(ref);
	f->dir = i < 0 ? NULL : ref->v[i].path;
	return i >= 0;
}

/* 1: frozen, 0: not yet, or -errno. */
static int v1_state(const char *dir)
{
	char text[32];
	ssize_t n = lr_cgroup_read(dir, "freezer.state", text, sizeof(text));

	if (n < 0)
		return (int)n;
	return lr_has_prefix(text, "FROZEN");
}

/* What is asked for. AGAIN: and stays so, if it does not finish. */
enum want { THAWED, FROZEN, FROZEN_AGAIN };

static int freeze_v1(const char *dir, enum want want)
{
	int64_t end = lr_now_ms() + LR_CGROUP_WAIT_MS;
	int r = 0;

	if (want == THAWED)
		return lr_cgroup_put(dir, "freezer.state", "THAWED");
	for (unsigned i = 0; lr_now_ms() < end; i++) {
		if (i % V1_LOOKS == V1_LOOKS - 1) {
			(void)lr_cgroup_put(dir, "freezer.state", "THAWED");
			lr_sleep_us(1000);
		}
		/* Written again each time: the kernel tries again for tasks it missed. */
		r = lr_cgroup_put(dir, "freezer.state", "FROZEN");
		if (r == 0)
			r = v1_state(dir);
		if (r == 1)
			return 0;
		if (r < 0 && r != -EBUSY)
			break;
		lr_sleep_us(i < 20 ? 20 : 500);
		r = -ETIMEDOUT;
	}
	(void)lr_cgroup_put(dir, "freezer.state", want == FROZEN ? "THAWED" : "FROZEN");
	return r == 0 ? -ETIMEDOUT : r;
}

static int freeze_v2(const char *dir, enum want want)
{
	int64_t end = lr_now_ms() + LR_CGROUP_WAIT_MS, now;
	uint64_t value;
	LR_CLEANUP_FD int fd = LR_NOFD;
	char path[PATH_MAX], text[256];
	int r = lr_cgroup_put(dir, "cgroup.freeze", want == THAWED ? "0" : "1");

	/* Thawing is done when it is asked for; processes continue by themselves. */
	if (r < 0 || want == THAWED)
		return r;
	r = lr_cgroup_path(path, dir, "cgroup.events");
	if (r < 0)
		return r;
	fd = lr_open(path, O_RDONLY | O_CLOEXEC);
	r = fd < 0 ? -errno : -ETIMEDOUT;
	while (fd >= 0) {
		struct pollfd p = {.fd = fd, .events = POLLPRI};
		ssize_t n = pread(fd, text, sizeof(text) - 1, 0);

		if (n < 0) {
			r = -errno;
			break;
		}
		text[n] = '\0';
		if (lr_cgroup_flat_get(text, "frozen", &value) && value)
			return 0;
		now = lr_now_ms();
		/* Not longer than 100 ms each: a change may come between read and poll on old
		 * kernels. */
		if (now >= end ||
		    (poll(&p, 1, end - now > 100 ? 100 : (int)(end - now)) < 0 && errno != EINTR))
			break;
	}
	if (want == FROZEN)
		(void)lr_cgroup_put(dir, "cgroup.freeze", "0");
	return r;
}

static int freeze(const struct lr_cgroup_ref *ref, enum want want, struct lr_err *err)
{
	struct freezer f;
	int r = lr_cgroup_ref_check(ref, err);

	if (r < 0)
		return r;
	if (!find(ref, &f)) {
		lr_refuse(err, EOPNOTSUPP, "the container has no cgroup that could be frozen");
		return lr_err_hint(err, "pausing needs the v1 controller \"freezer\" or cgroup v2");
	}
	r = f.v2 ? freeze_v2(f.dir, want) : freeze_v1(f.dir, want);
	if (r == 0)
		return 0;
	if (r == -ENOENT && f.v2 && access(f.dir, F_OK) == 0) {
		lr_refuse(err, EOPNOTSUPP, "there is no cgroup.freeze in %s", f.dir);
		return lr_err_hint(err, "pausing on cgroup v2 needs Linux 5.2");
	}
	lr_fail(err, -r, "cannot %s %s", want == THAWED ? "thaw" : "freeze", f.dir);
	if (r == -ETIMEDOUT)
		lr_err_hint(err, "a process does not stop (see its wchan)%s",
			    want == FROZEN ? "; all were thawed again" : "");
	return r;
}

int lr_cgroup_freeze(const struct lr_cgroup_ref *ref, bool frozen, struct lr_err *err)
{
	return freeze(ref, frozen ? FROZEN : THAWED, err);
}

int lr_cgroup_freeze_again(const struct lr_cgroup_ref *ref, struct lr_err *err)
{
	return freeze(ref, FROZEN_AGAIN, err);
}

static int thaw_dir(int dirfd, void *arg)
{
	int r = lr_write_file_at(dirfd, "freezer.state", "THAWED");

	/* The others are thawed nevertheless. ENODEV: removed meanwhile. */
	if (r < 0 && r != -ENOENT && r != -ENODEV)
		*(int *)arg = r;
	return 0;
}

void lr_cgroup_let_die(const struct lr_cgroup_ref *ref)
{
	struct freezer f;
	int failed = 0;

	if (lr_cgroup_ref_check(ref, NULL) < 0 || !find(ref, &f) || f.v2)
		return;
	int r = lr_cgroup_each_dir(f.dir, thaw_dir, &failed);
	if (r < 0 || failed < 0)
		lr_debug("cgroup: cannot thaw all in %s: %s", f.dir,
			 lr_strerror(-(r < 0 ? r : failed)));
}

int lr_cgroup_is_frozen(const struct lr_cgroup_ref *ref)
{
	struct freezer f;
	char text[32];
	ssize_t n;

	if (!find(ref, &f))
		return 0;
	n = lr_cgroup_read(f.dir, f.v2 ? "cgroup.freeze" : "freezer.state", text, sizeof(text));
	if (n < 0)
		return n == -ENOENT || n == -ENODEV ? 0 : (int)n;
	/* FREEZING counts: it was asked for, and resume must undo it. */
	return f.v2 ? text[0] == '1' : lr_has_prefix(text, "FR");
}
