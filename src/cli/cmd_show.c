/* SPDX-License-Identifier: Apache-2.0 */
/* cli: state, list, ps: what there is. */
#define LR_ROOM ""
#include <errno.h>
#include <fcntl.h>
#include <pwd.h>
#include <spawn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "libocispec/ocispec.h"
#include "src/base/fd.h"
#include "src/base/str.h"
#include "src/cli/buf.h"
#include "src/cli/commands.h"
#include "src/cli/runtime.h"

static bool as_json(const struct lr_cli_args *args)
{
	const char *format = lr_cli_str(args, LR_OPT_FORMAT);
	return format && lr_streq(format, "json");
}

int lr_cmd_state(const struct lr_cli_args *args, struct lr_err *err)
{
	LR_CLEANUP_ARENA struct lr_arena *arena = lr_arena_new();
	LR_CLEANUP_BUF struct lr_cli_buf out = {0};
	struct lr_cli_runtime run;
	struct lr_container c;

	if (!arena)
		return lr_fail(err, ENOMEM, "state");
	int r = lr_cli_runtime(args, &run, err);
	if (r == 0)
		r = lr_lifecycle_state(&run.rt, lr_cli_id(args), arena, &c, err);
	if (r < 0)
		return r;
	const char *text = oci_state_encode(&c.oci, true, arena, NULL);
	if (!text)
		return lr_fail(err, ENOMEM, "state");
	lr_cli_put(&out, "%s\n", text);
	return lr_cli_flush(&out, err);
}

/* ---- list -------------------------------------------------------------------------------- */

enum { ID, PID, STATUS, BUNDLE, CREATED, OWNER, COLUMNS };

/* The name of a user by the host's passwd file alone: a static program has no NSS. "#1000" is how
 * runc shows one that has none. */
static const char *owner_name(uid_t uid, struct lr_arena *a)
{
	const char *name = NULL;
	const struct passwd *p;

	if (uid == 0)
		return "root";
	FILE *f = fopen("/etc/passwd", "re");
	while (f && !name && (p = fgetpwent(f)))
		if (p->pw_uid == uid)
			name = lr_strdup(a, p->pw_name);
	if (f)
		fclose(f);
	return name ? name : lr_strf(a, "#%u", uid);
}

static void list_table(const struct lr_container *v, size_t n, struct lr_arena *a,
		       struct lr_cli_buf *out)
{
	static const char *const heads[COLUMNS] = {"ID",     "PID",     "STATUS",
						   "BUNDLE", "CREATED", "OWNER"};
	/* Three spaces between columns, none narrower than twelve: scripts cut by these. */
	size_t width[COLUMNS] = {12, 12, 12, 12, 12, 0};
	const char **cells = lr_new_n(a, n * COLUMNS + COLUMNS, const char *);

	if (!cells) {
		out->failed = true;
		return;
	}
	memcpy(cells, heads, sizeof(heads));
	for (size_t i = 0; i < n; i++) {
		const char **row = &cells[(i + 1) * COLUMNS];
		row[ID] = v[i].oci.id;
		row[PID] = lr_strf(a, "%lld", (long long)v[i].oci.pid);
		row[STATUS] = v[i].oci.status;
		row[BUNDLE] = v[i].oci.bundle;
		row[CREATED] = v[i].oci.created;
		row[OWNER] = v[i].oci.owner;
	}
	for (size_t i = 0; i < (n + 1) * COLUMNS; i++) {
		if (!cells[i])
			cells[i] = "";
		size_t len = strlen(cells[i]) + 3, column = i % COLUMNS;
		if (column != OWNER && len > width[column])
			width[column] = len;
	}
	for (size_t i = 0; i < (n + 1) * COLUMNS; i++)
		lr_cli_put(out, "%-*s%s", (int)width[i % COLUMNS], cells[i],
			   i % COLUMNS == OWNER ? "\n" : "");
}

static void list_json(const struct lr_container *v, size_t n, struct lr_arena *a,
		      struct lr_cli_buf *out)
{
	/* An empty list is [] and not runc's null: jq '.[]' fails on that. */
	lr_cli_puts(out, "[");
	for (size_t i = 0; i < n; i++) {
		const char *text = oci_state_encode(&v[i].oci, false, a, NULL);
		if (!text)
			out->failed = true;
		lr_cli_put(out, "%s%s", i ? "," : "", text ? text : "");
	}
	lr_cli_puts(out, "]\n");
}

int lr_cmd_list(const struct lr_cli_args *args, struct lr_err *err)
{
	LR_CLEANUP_ARENA struct lr_arena *arena = lr_arena_new();
	LR_CLEANUP_BUF struct lr_cli_buf out = {0};
	struct lr_cli_runtime run;
	struct lr_container *v;
	size_t n;

	if (!arena)
		return lr_fail(err, ENOMEM, "list");
	int r = lr_cli_runtime(args, &run, err);
	if (r == 0)
		r = lr_lifecycle_list(&run.rt, arena, &v, &n, err);
	/* As runc: the default one is made by the first container, another one may be misspelt. */
	if (r == -ENOENT && !lr_cli_str(args, LR_OPT_ROOT)) {
		lr_err_clear(err);
		n = 0;
		r = 0;
	}
	if (r < 0)
		return r;
	if (!lr_cli_flag(args, LR_OPT_QUIET))
		for (size_t i = 0; i < n; i++)
			v[i].oci.owner = owner_name(v[i].owner_uid, arena);
	if (lr_cli_flag(args, LR_OPT_QUIET))
		for (size_t i = 0; i < n; i++)
			lr_cli_put(&out, "%s\n", v[i].oci.id);
	else if (as_json(args))
		list_json(v, n, arena, &out);
	else
		list_table(v, n, arena, &out);
	return lr_cli_flush(&out, err);
}

/* ---- ps ---------------------------------------------------------------------------------- */

static bool has_pid(const pid_t *v, size_t n, long pid)
{
	for (size_t i = 0; i < n; i++)
		if (v[i] == pid)
			return true;
	return false;
}

/* The word of that number in a line, or NULL. */
static const char *word(const char *line, size_t number)
{
	for (;;) {
		line += strspn(line, " \t");
		if (!*line)
			return NULL;
		if (number-- == 0)
			return line;
		line += strcspn(line, " \t");
	}
}

/* The header, and the lines whose word under "PID" is one of the container's. Cuts up `text`. */
static int filter_ps(char *text, const pid_t *v, size_t n, struct lr_cli_buf *out,
		     struct lr_err *err)
{
	char *save = NULL, *line = strtok_r(text, "\n", &save);
	size_t column = 0;
	const char *w;

	for (; line && (w = word(line, column)); column++)
		if (lr_has_prefix(w, "PID") && (!w[3] || w[3] == ' '))
			break;
	if (!line || !w)
		return lr_refuse(err, EINVAL, "ps: no PID column in the output of ps(1)");
	lr_cli_put(out, "%s\n", line);
	while ((line = strtok_r(NULL, "\n", &save)))
		if ((w = word(line, column)) && has_pid(v, n, strtol(w, NULL, 10)))
			lr_cli_put(out, "%s\n", line);
	return 0;
}

static int read_all(int fd, struct lr_cli_buf *text, struct lr_err *err)
{
	char chunk[4096];
	ssize_t n;

	while ((n = lr_read_full(fd, chunk, sizeof(chunk) - 1)) > 0) {
		chunk[n] = '\0';
		lr_cli_puts(text, chunk);
	}
	if (n < 0)
		return lr_fail(err, (int)-n, "ps: output of ps(1)");
	return text->failed ? lr_fail(err, ENOMEM, "ps") : 0;
}

/* Runs ps(1), which gets our environment and standard error. */
static int run_ps(char **ps_args, struct lr_cli_buf *text, struct lr_err *err)
{
	posix_spawn_file_actions_t actions;
	int fds[2], status;
	pid_t pid;

	if (pipe2(fds, O_CLOEXEC) < 0)
		return lr_fail(err, errno, "ps: pipe");
	posix_spawn_file_actions_init(&actions);
	posix_spawn_file_actions_adddup2(&actions, fds[1], STDOUT_FILENO);
	int r = posix_spawnp(&pid, "ps", &actions, NULL, ps_args, environ);
	posix_spawn_file_actions_destroy(&actions);
	lr_close(fds[1]);
	LR_CLEANUP_FD int out = fds[0];
	if (r != 0) {
		lr_fail(err, r, "ps: execute ps(1)");
		return lr_err_hint(err, "--format json needs no ps");
	}
	r = read_all(out, text, err);
	while (waitpid(pid, &status, 0) < 0 && errno == EINTR)
		;
	if (r == 0 && status != 0)
		r = lr_refuse(err, EINVAL, "ps: ps(1) failed with status %d",
			      WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status));
	return r;
}

static int ps_table(const struct lr_cli_args *args, const pid_t *v, size_t n, struct lr_arena *a,
		    struct lr_cli_buf *out, struct lr_err *err)
{
	LR_CLEANUP_BUF struct lr_cli_buf text = {0};
	char **ps_args = lr_new_n(a, args->n_operands + 3, char *);
	char *const *more = args->operands + 1;
	size_t count = 0;

	if (!ps_args)
		return lr_fail(err, ENOMEM, "ps");
	ps_args[count++] = (char *)"ps";
	if (!*more)
		ps_args[count++] = (char *)"-ef";
	while (*more)
		ps_args[count++] = *more++;
	int r = run_ps(ps_args, &text, err);
	return r < 0 ? r : filter_ps(text.data ? text.data : (char[]){""}, v, n, out, err);
}

int lr_cmd_ps(const struct lr_cli_args *args, struct lr_err *err)
{
	LR_CLEANUP_ARENA struct lr_arena *arena = lr_arena_new();
	LR_CLEANUP_BUF struct lr_cli_buf out = {0};
	struct lr_cli_runtime run;
	pid_t *v;
	size_t n;

	if (!arena)
		return lr_fail(err, ENOMEM, "ps");
	int r = lr_cli_runtime(args, &run, err);
	if (r == 0)
		r = lr_lifecycle_pids(&run.rt, lr_cli_id(args), arena, &v, &n, err);
	if (r < 0)
		return r;
	if (as_json(args)) {
		for (size_t i = 0; i < n; i++)
			lr_cli_put(&out, "%s%d", i ? "," : "[", v[i]);
		lr_cli_puts(&out, n ? "]\n" : "[]\n");
	} else {
		r = ps_table(args, v, n, arena, &out, err);
	}
	return r < 0 ? r : lr_cli_flush(&out, err);
}
