/* SPDX-License-Identifier: Apache-2.0 */
/* hook: one list of hooks, in order; see hook.h. */
#define LR_ROOM "hook"
#include <fcntl.h>
#include <stdio.h>
#include <sys/mman.h>
#include <unistd.h>

#include "src/base/log.h"
#include "src/base/str.h"
#include "src/hook/internal.h"
#include "src/sys/proc.h"
#include "src/sys/syscalls.h"

#define FORMAT_MAX 1200 /* a whole lr_err in one line */

/* Where the state does not fit a pipe: a file the hook reads from its start. */
static int state_memfd(const char *text, size_t len)
{
	int fd = lr_memfd_create("state", MFD_CLOEXEC | MFD_NOEXEC_SEAL);
	if (fd == -EINVAL) /* MFD_NOEXEC_SEAL is Linux 6.3 */
		fd = lr_memfd_create("state", MFD_CLOEXEC);
	if (fd < 0)
		return fd;
	ssize_t n = lr_write_full(fd, text, len);
	if (n < 0 || lseek(fd, 0, SEEK_SET) < 0) {
		int r = n < 0 ? (int)n : -errno;
		lr_close(fd);
		return r;
	}
	return fd;
}

/*
 * A descriptor to read the state from. All of it is in the pipe before anybody reads: 64 KiB fit
 * by default, the kernel lets a pipe grow to 1 MiB (fs.pipe-max-size), and a state beyond that, or
 * a user who is out of pipe pages, gets a memfd. O_NONBLOCK is for the writing here; a reader of a
 * pipe without writers never waits.
 */
static int open_state(const char *text, size_t len)
{
	int p[2];

	if (pipe2(p, O_CLOEXEC | O_NONBLOCK) < 0)
		return -errno;
	LR_CLEANUP_FD int in = p[0], out = p[1];
	if (len > 65536 && fcntl(out, F_SETPIPE_SZ, (int)(len < INT32_MAX ? len : INT32_MAX)) < 0)
		return state_memfd(text, len);
	ssize_t n = write(out, text, len);
	if (n < 0 || (size_t)n < len)
		return state_memfd(text, len);
	return lr_take_fd(&in);
}

/* One line of the end of what the hook said, to go into the message. */
static const char *last_words(struct lr_hook_output *o, size_t max)
{
	size_t n = o->n;

	while (n && (unsigned char)o->buf[n - 1] <= ' ')
		n--;
	size_t start = n > max ? n - max : 0;
	/* Neither blanks nor the rest of a UTF-8 character in front. */
	while (start < n && ((unsigned char)o->buf[start] <= ' ' ||
			     (start && ((unsigned char)o->buf[start] & 0xc0) == 0x80)))
		start++;
	o->buf[n] = '\0';
	for (size_t i = start; i < n; i++) {
		if ((unsigned char)o->buf[i] < ' ' || o->buf[i] == 0x7f)
			o->buf[i] = ' ';
	}
	return o->buf + start;
}

static int report(const struct lr_hook_job *job, struct lr_hook_output *o, struct lr_err *err)
{
	const struct oci_hook *h = job->hook;
	char who[192];

	snprintf(who, sizeof(who), "hook #%zu of %s (%.120s)", job->number + 1, job->kind, h->path);
	if (job->why.code) {
		lr_refuse(err, job->why.code, "%s: %s", who, job->why.msg);
		return lr_err_hint(err, "%s", job->why.hint);
	}
	if (job->error) {
		lr_fail(err, job->error, "%s: %s", who, job->failed_step);
		if (job->error == ENOENT || job->error == EACCES || job->error == ENOEXEC)
			lr_err_hint(err, "the path must be an executable where %s hooks run",
				    job->kind);
		return -job->error;
	}
	if (job->timed_out)
		return lr_err_hint(
			(lr_refuse(err, ETIMEDOUT, "%s timed out after %d s", who, *h->timeout),
			 err),
			"it was killed; give it more time, or see what it waits for");
	if (WIFEXITED(job->status) && WEXITSTATUS(job->status) == 0)
		return 0;

	const char *words = last_words(o, 300);
	const char *colon = words[0] ? ": " : "";
	if (WIFEXITED(job->status))
		return lr_refuse(err, ECANCELED, "%s exited with status %d%s%s", who,
				 WEXITSTATUS(job->status), colon, words);
	const char *name = lr_signal_name(WTERMSIG(job->status));
	return lr_refuse(err, ECANCELED, "%s was killed by signal %d (SIG%s)%s%s", who,
			 WTERMSIG(job->status), name ? name : "?", colon, words);
}

static int run_one(struct lr_hook_job *job, const char *state, size_t len, struct lr_err *err)
{
	struct lr_hook_output o = {.fd = LR_NOFD, .tee_fd = job->opts->tee_fd};
	int p[2] = {LR_NOFD, LR_NOFD};

	LR_CLEANUP_FD int in = open_state(state, len);
	if (in < 0)
		return lr_fail(err, -in, "handing the state to a hook");
	bool capture = job->opts->stdout_fd < 0 || job->opts->stderr_fd < 0;
	if (capture && pipe2(p, O_CLOEXEC) < 0)
		return lr_fail(err, errno, "a pipe for the output of a hook");
	LR_CLEANUP_FD int out_read = p[0], out_write = p[1];
	o.fd = out_read;

	job->fds[0] = in;
	job->fds[1] = job->opts->stdout_fd < 0 ? out_write : job->opts->stdout_fd;
	job->fds[2] = job->opts->stderr_fd < 0 ? out_write : job->opts->stderr_fd;
	lr_debug("hook: %s #%zu %s", job->kind, job->number + 1, job->hook->path);
	int r = lr_hook_spawn(job);
	if (r < 0)
		return lr_fail(err, -r, "starting hook #%zu of %s (%.120s)", job->number + 1,
			       job->kind, job->hook->path);
	out_write = lr_close(out_write);
	r = lr_hook_wait(job, &o);
	job->pidfd = lr_close(job->pidfd);
	if (r < 0)
		return lr_fail(err, -r, "waiting for hook #%zu of %s (%.120s)", job->number + 1,
			       job->kind, job->hook->path);
	return report(job, &o, err);
}

int lr_hook_run(const struct oci_hook_list *hooks, const char *kind, const char *state_json,
		size_t len, const struct lr_hook_opts *opts, struct lr_err *err)
{
	static const struct lr_hook_opts standard = LR_HOOK_OPTS_INIT;
	LR_CLEANUP_WAITING bool waiting = false;
	int result = 0;

	if (!hooks || hooks->n == 0)
		return 0;
	if (!opts)
		opts = &standard;
	waiting = lr_proc_waiting();
	for (size_t i = 0; i < hooks->n; i++) {
		struct lr_hook_job job = {
			.hook = &hooks->v[i],
			.kind = kind,
			.number = i,
			.opts = opts,
			.pidfd = LR_NOFD,
		};
		int r = run_one(&job, state_json, len, err);
		if (r == 0)
			continue;
		lr_err_add_path(err, "hooks.%s[%zu]", kind, i);
		if (!opts->keep_going) {
			result = r;
			break;
		}
		char line[FORMAT_MAX];
		lr_warn("%s", err ? lr_err_format(err, line, sizeof(line)) : lr_strerror(-r));
		lr_err_clear(err);
	}
	return result;
}

static int check_list(const struct oci_hook_list *list, const char *kind, struct lr_err *err)
{
	for (size_t i = 0; i < list->n; i++) {
		const struct oci_hook *h = &list->v[i];
		if (!h->path || h->path[0] != '/') {
			lr_refuse(err, EINVAL, "\"%s\" is not an absolute path",
				  h->path ? h->path : "");
			return lr_err_at(err, "hooks.%s[%zu].path", kind, i);
		}
		if (h->timeout && *h->timeout <= 0) {
			lr_refuse(err, EINVAL, "a timeout of %d seconds is not above zero",
				  *h->timeout);
			return lr_err_at(err, "hooks.%s[%zu].timeout", kind, i);
		}
	}
	return 0;
}

int lr_hook_check(const struct oci_hooks *hooks, struct lr_err *err)
{
	if (!hooks)
		return 0;
	const struct {
		const struct oci_hook_list *list;
		const char *kind;
	} lists[] = {
		{&hooks->prestart, "prestart"},
		{&hooks->create_runtime, "createRuntime"},
		{&hooks->create_container, "createContainer"},
		{&hooks->start_container, "startContainer"},
		{&hooks->poststart, "poststart"},
		{&hooks->poststop, "poststop"},
	};
	int r = 0;
	for (size_t i = 0; i < LR_ARRAY_SIZE(lists) && r == 0; i++)
		r = check_list(lists[i].list, lists[i].kind, err);
	return r;
}

int lr_hook_open_output(const char *path, struct lr_err *err)
{
	int fd = lr_open(path, O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC | O_NOCTTY, 0600);
	return fd < 0 ? lr_fail(err, errno, "opening %s for the output of hooks", path) : fd;
}
