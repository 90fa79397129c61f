/* SPDX-License-Identifier: Apache-2.0 */
/* cgroup: carrying out planned writes. System calls only; nothing is allocated. */
#define LR_ROOM "cgroup"

#include "src/cgroup/internal.h"

#include <fcntl.h>
#include <inttypes.h>
#include <unistd.h>

/* One open for consecutive writes to the same file (device rules: one rule per write(2)). */
struct writer {
	const char *file;
	int fd;
	struct lr_cgroup_batch *batch;
	const struct lr_cgroup_held *held;
};

static void writer_close(struct writer *w)
{
	if (!w->held || w->fd != w->held->fd)
		lr_cgroup_batch_add(w->batch, w->fd);
	w->fd = LR_NOFD;
}

static bool is_held(const struct lr_cgroup_held *h, const char *file)
{
	size_t len = h ? strlen(h->dir) : 0;

	return h && strncmp(file, h->dir, len) == 0 && file[len] == '/' &&
	       lr_streq(file + len + 1, h->file);
}

static int writer_open(struct writer *w, const char *file)
{
	if (w->file == file && w->fd >= 0)
		return 0;
	writer_close(w);
	w->file = file;
	w->fd = is_held(w->held, file) ? w->held->fd : lr_open(file, O_WRONLY | O_CLOEXEC);
	if (w->fd < 0) {
		int r = -errno;
		w->fd = LR_NOFD;
		return r;
	}
	return 0;
}

static void hint_missing(const struct lr_cgroup_write *w, bool v2, struct lr_err *err)
{
	if (lr_streq(w->where, "linux.resources.memory.swap"))
		lr_err_hint(err, "this kernel does not count swap: boot with swapaccount=1, or "
				 "remove the swap limit");
	else if (v2)
		lr_err_hint(err,
			    "the kernel lacks it, or the controller \"%s\" is not enabled in "
			    "the parent's cgroup.subtree_control",
			    lr_cgroup_ctrl_v2(w->ctrl) ? lr_cgroup_ctrl_v2(w->ctrl) : "?");
	else
		lr_err_hint(err, "this kernel lacks the file: remove the setting");
}

/* A memory limit below what is in use: say how much that is. */
static void say_usage(const struct lr_cgroup_write *w, struct lr_err *err)
{
	static const char *const names[][2] = {
		{"memory.limit_in_bytes", "memory.usage_in_bytes"},
		{"memory.memsw.limit_in_bytes", "memory.memsw.usage_in_bytes"},
		{"memory.max", "memory.current"},
	};
	const char *slash = strrchr(w->file, '/');
	char path[PATH_MAX], text[32];

	for (size_t i = 0; i < LR_ARRAY_SIZE(names); i++) {
		if (!lr_streq(slash + 1, names[i][0]))
			continue;
		snprintf(path, sizeof(path), "%.*s%s", (int)(slash + 1 - w->file), w->file,
			 names[i][1]);
		if (lr_read_file_at(AT_FDCWD, path, text, sizeof(text)) > 0)
			lr_err_hint(err, "%.*s bytes are in use", (int)strcspn(text, "\n"), text);
	}
}

static int explain(const struct lr_cgroup_write *w, const char *file, const char *value, int r,
		   struct lr_err *err)
{
	bool v2 = lr_has_suffix(file, ".max") || strstr(w->where, ".unified[");

	if (r == -ENOENT || (r == -EACCES && access(file, F_OK) < 0)) {
		r = lr_refuse(err, ENOENT, "there is no %s", file);
		hint_missing(w, v2, err);
	} else {
		r = lr_fail(err, -r, "cannot write \"%.100s\" to %s", value, file);
		if (r == -EBUSY && w->ctrl == LR_CTRL_MEMORY)
			say_usage(w, err);
		else if (r == -ENODEV && w->ctrl == LR_CTRL_BLKIO)
			lr_err_hint(err, "no such block device: compare with lsblk (a whole disk, "
					 "not a partition)");
		else if (r == -ERANGE && w->ctrl == LR_CTRL_CPUSET)
			lr_err_hint(err, "the host has no CPU or memory node of that number");
		else if (r == -EPERM || r == -EACCES)
			lr_err_hint(err,
				    "the runtime needs CAP_SYS_ADMIN, or a cgroup that is its own "
				    "to change");
		else if (r == -EINVAL && w->ctrl == LR_CTRL_CPU && strstr(w->where, "period"))
			lr_err_hint(
				err,
				"periods are 1000 to 1000000 microseconds, quotas at least 1000");
		else if (r == -EINVAL && w->ctrl == LR_CTRL_CPUSET)
			lr_err_hint(err,
				    "only CPUs and memory nodes of the parent cgroup can be given");
		else if (r == -EINVAL && w->ctrl == LR_CTRL_CPU && strstr(w->where, "realtime"))
			lr_err_hint(err, "the parent cgroups need a realtime budget first");
	}
	lr_err_at(err, "%s", w->where);
	return r;
}

static int check_usage(const struct lr_cgroup_write *w, struct lr_err *err)
{
	char text[32];
	uint64_t now, limit;
	ssize_t n = lr_read_file_at(AT_FDCWD, w->file, text, sizeof(text));

	if (n < 0)
		return explain(w, w->file, w->value, (int)n, err);
	text[strcspn(text, "\n")] = '\0';
	if (lr_parse_u64(text, &now) < 0 || lr_parse_u64(w->value, &limit) < 0 || now <= limit)
		return 0;
	lr_refuse(err, EBUSY, "%" PRIu64 " bytes are in use, more than the new limit of %s", now,
		  w->value);
	lr_err_hint(err, "memory.checkBeforeUpdate asks for this check");
	lr_err_at(err, "%s", w->where);
	return -EBUSY;
}

static bool may_fail(const struct lr_cgroup_write *w, int r, bool rootless)
{
	bool denied = r == -EPERM || r == -EACCES || r == -EROFS;

	if (denied && (w->flags & LR_W_EPERM_OK))
		return true;
	/* Missing: the hierarchy was left out. */
	return (denied || r == -ENOENT) && rootless && (w->flags & LR_W_DEVICE);
}

/* 0, -EINVAL untold for a write that may be retried, or -errno with *err filled. */
static int write_one(struct writer *wr, const struct lr_cgroup_write *w, bool rootless, bool last,
		     struct lr_err *err)
{
	const char *file = w->file, *value = w->value;
	int r;

	if (w->flags & LR_W_CHECK_USAGE)
		return check_usage(w, err);
	r = writer_open(wr, file);
	if (r == -ENOENT && w->alt_file) {
		file = w->alt_file;
		value = w->alt_value;
		r = writer_open(wr, file);
	}
	if (r == -ENOENT && (w->flags & LR_W_OPTIONAL))
		return 0;
	if (r == 0)
		r = lr_write_once(wr->fd, value, strlen(value));
	if (r == 0) {
		lr_debug("cgroup: %s < %s", file, value);
		return 0;
	}
	if (r == -EINVAL && (w->flags & LR_W_DEFER) && !last)
		return r;
	if (may_fail(w, r, rootless))
		return 0;
	if (w->flags & LR_W_TOLERATE) {
		lr_warn("%s is ignored: cannot write \"%s\" to %s: %s", w->where, value, file,
			lr_strerror(-r));
		return 0;
	}
	return explain(w, file, value, r, err);
}

/* A run of writes that depend on each other: what is refused is tried again after the others, as
 * long as that gets any further. */
static int write_run(struct writer *wr, const struct lr_cgroup_write *v, size_t n, bool rootless,
		     struct lr_err *err)
{
	uint64_t todo = n >= 64 ? UINT64_MAX : (UINT64_C(1) << n) - 1, before;
	bool last = false;

	do {
		before = todo;
		for (size_t i = 0; i < n && i < 64; i++) {
			int r;

			if (!(todo & UINT64_C(1) << i))
				continue;
			r = write_one(wr, &v[i], rootless, last, err);
			if (r == 0)
				todo &= ~(UINT64_C(1) << i);
			else if (last || r != -EINVAL)
				return r;
		}
		last = todo == before;
	} while (todo);
	return 0;
}

int lr_cgroup_write_all(const struct lr_cgroup_write *v, size_t n, bool rootless,
			struct lr_cgroup_batch *batch, const struct lr_cgroup_held *held,
			struct lr_err *err)
{
	struct writer wr = {.fd = LR_NOFD, .batch = batch, .held = held};
	int r = 0;

	for (size_t i = 0, run; i < n && r == 0; i += run) {
		for (run = 1; run < 64 && i + run < n && (v[i].flags & LR_W_DEFER) &&
			      (v[i + run].flags & LR_W_DEFER) && v[i + run].ctrl == v[i].ctrl;)
			run++;
		r = write_run(&wr, v + i, run, rootless, err);
	}
	writer_close(&wr);
	return r;
}
