/* SPDX-License-Identifier: Apache-2.0 */
/* rdt: see rdt.h. */
#define LR_ROOM "rdt"
#include "src/rdt/rdt.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "src/base/fd.h"
#include "src/base/log.h"
#include "src/base/str.h"
#include "src/sys/path.h"

#define RESCTRL_MAGIC 0x7655821 /* RDTGROUP_SUPER_MAGIC */

static bool is_dir_name(const char *s)
{
	static const char *const taken[] = {"", ".", "..", "info", "mon_groups", "mon_data"};

	for (size_t i = 0; i < LR_ARRAY_SIZE(taken); i++)
		if (lr_streq(s, taken[i]))
			return false;
	return !strpbrk(s, "/\n") && strlen(s) < 256;
}

int lr_rdt_plan(const struct oci_intel_rdt *rdt, const char *container_id, struct lr_arena *arena,
		struct lr_rdt_plan *ret, struct lr_err *err)
{
	struct lr_rdt_plan p = {.given = rdt};

	if (!rdt) {
		*ret = p;
		return 0;
	}
	p.own_group = !rdt->clos_id || !*rdt->clos_id;
	p.group = p.own_group ? container_id : rdt->clos_id;
	if (!p.own_group && lr_streq(p.group, "/")) {
		p.group = ".";
	} else if (!is_dir_name(p.group)) {
		lr_refuse(err, EINVAL, "\"%s\" is not a name for a resctrl group", p.group);
		return lr_err_at(err, "linux.intelRdt.closID");
	}
	int r = lr_rdt_combine(rdt->l3_cache_schema, rdt->mem_bw_schema, arena, &p.compare, err);
	if (r < 0)
		return r;

	char *all = NULL;
	for (size_t i = 0; i < rdt->schemata.n; i++) {
		all = lr_strf(arena, "%s%s\n", all ? all : "", rdt->schemata.v[i]);
		if (!all)
			return lr_fail(err, ENOMEM, "linux.intelRdt.schemata");
	}
	p.schemata = all;
	p.must_exist = !p.own_group && !p.compare && !p.schemata;
	if (rdt->enable_monitoring)
		p.monitor = container_id;
	*ret = p;
	return 0;
}

/* resctrl is usually on /sys/fs/resctrl, but may be mounted anywhere. */
static int open_elsewhere(void)
{
	char line[4096], path[1024];
	FILE *f = fopen("/proc/self/mountinfo", "re");
	int fd = -ENOENT;

	while (f && fd < 0 && fgets(line, sizeof(line), f))
		if (strstr(line, " - resctrl ") &&
		    sscanf(line, "%*d %*d %*s %*s %1023s", path) == 1) {
			lr_path_unescape(path);
			fd = lr_open(path, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
		}
	if (f)
		fclose(f);
	return fd;
}

int lr_rdt_open(struct lr_err *err)
{
	LR_CLEANUP_FD int fd = lr_open("/sys/fs/resctrl", O_RDONLY | O_DIRECTORY | O_CLOEXEC);

	if (fd < 0 || lr_fs_magic(fd) != RESCTRL_MAGIC) {
		lr_close(fd);
		fd = open_elsewhere();
	}
	if (fd < 0 || lr_fs_magic(fd) != RESCTRL_MAGIC) {
		lr_refuse(err, ENODEV, "no resctrl file system is mounted");
		lr_err_at(err, "linux.intelRdt");
		return lr_err_hint(err, "mount -t resctrl resctrl /sys/fs/resctrl; the CPU must "
					"support RDT, and the kernel CONFIG_X86_CPU_RESCTRL");
	}
	return lr_take_fd(&fd);
}

static int write_schemata(int rootfd, int group, const char *text, struct lr_err *err)
{
	char why[200] = "";
	int r = lr_write_file_at(group, "schemata", text);

	if (r == 0)
		return 0;
	if (lr_read_file_at(rootfd, "info/last_cmd_status", why, sizeof(why)) > 0)
		why[strcspn(why, "\n")] = '\0';
	lr_fail(err, -r, "cannot write the schemata \"%.*s\"", (int)strcspn(text, "\n"), text);
	lr_err_step(err, "schemata");
	lr_err_at(err, "linux.intelRdt");
	return *why ? lr_err_hint(err, "resctrl says: %s", why) : r;
}

static int compare_schemata(int group, const struct lr_rdt_plan *p, struct lr_err *err)
{
	char have[8192];
	ssize_t n = lr_read_file_at(group, "schemata", have, sizeof(have));

	if (n < 0) {
		lr_fail(err, (int)-n, "cannot read the schemata of group \"%s\"", p->group);
		return lr_err_at(err, "linux.intelRdt.closID");
	}
	if (lr_rdt_schema_within(p->compare, have))
		return 0;
	lr_refuse(err, EEXIST, "group \"%s\" exists with another schema than asked for", p->group);
	lr_err_at(err, "linux.intelRdt");
	return lr_err_hint(err, "compare l3CacheSchema and memBwSchema with its schemata file, or "
				"use another closID");
}

static int write_pid(int dirfd, const char *file, pid_t pid, struct lr_err *err)
{
	char text[16];

	snprintf(text, sizeof(text), "%d", pid);
	int r = lr_write_file_at(dirfd, file, text);
	if (r == 0)
		return 0;
	lr_fail(err, -r, "cannot put process %d into %s", pid, file);
	lr_err_step(err, "tasks");
	return lr_err_at(err, "linux.intelRdt");
}

static int fill_group(const struct lr_rdt_plan *p, int rootfd, int group, bool made,
		      struct lr_err *err)
{
	int r = 0;

	if (p->compare && !made && !p->own_group)
		r = compare_schemata(group, p, err);
	else if (p->compare)
		r = write_schemata(rootfd, group, p->compare, err);
	if (r == 0 && p->schemata)
		r = write_schemata(rootfd, group, p->schemata, err);
	return r;
}

static int monitor_path(const struct lr_rdt_plan *p, const char *file, char *buf, size_t size)
{
	int n = snprintf(buf, size, "mon_groups/%s%s", p->monitor, file);

	return n < 0 || (size_t)n >= size ? -ENAMETOOLONG : 0;
}

static int add_monitor(const struct lr_rdt_plan *p, int group, pid_t pid, int *made,
		       struct lr_err *err)
{
	char path[512];
	int r = monitor_path(p, "", path, sizeof(path));

	if (r == 0 && mkdirat(group, path, 0755) == 0)
		*made |= LR_RDT_MADE_MONITOR;
	else if (r == 0 && errno != EEXIST)
		r = -errno;
	if (r < 0) {
		lr_fail(err, -r, "cannot make monitoring group \"%s\"", p->monitor);
		lr_err_at(err, "linux.intelRdt.enableMonitoring");
		return r == -ENOSPC ? lr_err_hint(err, "the hardware has no monitoring id left")
				    : r;
	}
	r = monitor_path(p, "/tasks", path, sizeof(path));
	return r < 0 ? lr_fail(err, -r, "%s", p->monitor) : write_pid(group, path, pid, err);
}

/* Makes the group unless it is there or must be. 1 if it was made. */
static int make_group(const struct lr_rdt_plan *p, int rootfd, struct lr_err *err)
{
	if (lr_streq(p->group, ".") || p->must_exist)
		return 0;
	if (mkdirat(rootfd, p->group, 0755) == 0)
		return 1;
	if (errno == EEXIST)
		return 0;

	int code = errno;

	lr_fail(err, code, "cannot make resctrl group \"%s\"", p->group);
	lr_err_step(err, "mkdir");
	lr_err_at(err, "linux.intelRdt");
	return code == ENOSPC ? lr_err_hint(err, "the hardware has no class of service left")
			      : -code;
}

int lr_rdt_apply(const struct lr_rdt_plan *plan, int rootfd, pid_t pid, struct lr_err *err)
{
	struct lr_err ignored;

	if (!plan->given)
		return 0;

	int made = make_group(plan, rootfd, err);
	if (made < 0)
		return made;
	LR_CLEANUP_FD int group =
		openat(rootfd, plan->group, O_RDONLY | O_DIRECTORY | O_CLOEXEC | O_NOFOLLOW);
	if (group < 0) {
		lr_fail(err, errno, "resctrl group \"%s\"", plan->group);
		lr_err_at(err, "linux.intelRdt.closID");
		return lr_err_hint(err,
				   "a closID without any schema must have been prepared before");
	}
	int r = fill_group(plan, rootfd, group, made & LR_RDT_MADE_GROUP, err);
	if (r == 0)
		r = write_pid(group, "tasks", pid, err);
	if (r == 0 && plan->monitor)
		r = add_monitor(plan, group, pid, &made, err);
	if (r == 0) {
		lr_debug("rdt: process %d in group %s", pid, plan->group);
		return made;
	}
	/* It failed: a closID that this very call made has nobody else in it yet. */
	struct lr_rdt_plan undo = *plan;
	undo.own_group = true;
	if (lr_rdt_destroy(&undo, made, rootfd, &ignored) < 0)
		lr_debug("rdt: %s left behind", plan->group);
	return r;
}

int lr_rdt_update(const struct lr_rdt_plan *plan, const char *l3_cache_schema,
		  const char *mem_bw_schema, struct lr_arena *arena, int rootfd, struct lr_err *err)
{
	const char *text;
	int r = lr_rdt_combine(l3_cache_schema, mem_bw_schema, arena, &text, err);

	if (r < 0 || !text)
		return r;
	if (!plan->given) {
		lr_refuse(err, EINVAL, "the container was created without linux.intelRdt");
		return lr_err_hint(err,
				   "cache and bandwidth schemas can only be changed, not added");
	}
	LR_CLEANUP_FD int group =
		openat(rootfd, plan->group, O_RDONLY | O_DIRECTORY | O_CLOEXEC | O_NOFOLLOW);
	if (group < 0)
		return lr_fail(err, errno, "resctrl group \"%s\"", plan->group);
	return write_schemata(rootfd, group, text, err);
}

int lr_rdt_destroy(const struct lr_rdt_plan *plan, int made, int rootfd, struct lr_err *err)
{
	char path[1024];
	int n;

	if (made & LR_RDT_MADE_MONITOR) {
		n = snprintf(path, sizeof(path), "%s/mon_groups/%s", plan->group, plan->monitor);
		if (n > 0 && (size_t)n < sizeof(path) && unlinkat(rootfd, path, AT_REMOVEDIR) < 0 &&
		    errno != ENOENT)
			return lr_fail(err, errno, "cannot remove monitoring group \"%s\"",
				       plan->monitor);
	}
	if ((made & LR_RDT_MADE_GROUP) && plan->own_group &&
	    unlinkat(rootfd, plan->group, AT_REMOVEDIR) < 0 && errno != ENOENT)
		return lr_fail(err, errno, "cannot remove resctrl group \"%s\"", plan->group);
	return 0;
}
