/* SPDX-License-Identifier: Apache-2.0 */
/*
 * ns: id maps of a new user namespace. With privilege they are written to /proc/PID/uid_map and
 * gid_map. Without, the kernel takes just the caller's own id, and newuidmap(1) and newgidmap(1) do
 * the rest after a look at /etc/subuid and /etc/subgid.
 */
#define LR_ROOM "namespace"
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "src/base/fd.h"
#include "src/base/str.h"
#include "src/ns/ns.h"
#include "src/sys/procfs.h"
#include "src/sys/tool.h"

#define RANGES_MAX 340 /* what the kernel takes since Linux 4.15 */

static int write_map(int procfd, pid_t child, const char *file, const char *text,
		     struct lr_err *err)
{
	char path[64];

	snprintf(path, sizeof(path), "%d/%s", child, file);
	int r = lr_procfs_write(procfd, path, text, strlen(text));
	if (r < 0) {
		lr_fail(err, -r, "write the id mapping \"%.*s\" to %s", (int)strcspn(text, "\n"),
			text, file);
		if (r == -EPERM)
			lr_err_hint(
				err,
				"ids other than the caller's own need CAP_SETUID and CAP_SETGID");
		lr_err_at(err, "linux.%sMappings", file[0] == 'u' ? "uid" : "gid");
	}
	return r;
}

static int run_helper(const char *tool, pid_t child, const struct oci_id_mappings *m,
		      struct lr_err *err)
{
	char text[RANGES_MAX * 3 + 1][12], why[LR_TOOL_SAID];
	const char *argv[RANGES_MAX * 3 + 3];
	size_t n = 0;

	if (m->n > RANGES_MAX)
		return lr_refuse(err, E2BIG, "more than %d id ranges", RANGES_MAX);
	argv[0] = tool;
	snprintf(text[0], sizeof(text[0]), "%d", child);
	argv[1] = text[0];
	for (size_t i = 0; i < m->n; i++) {
		const uint32_t v[3] = {m->v[i].container_id, m->v[i].host_id, m->v[i].size};
		for (size_t j = 0; j < 3; j++) {
			snprintf(text[++n], sizeof(text[0]), "%u", v[j]);
			argv[n + 1] = text[n];
		}
	}
	argv[n + 2] = NULL;

	int r = lr_tool_run(argv, LR_NOFD, why);
	if (r == 0)
		return 0;
	if (r < 0) {
		lr_fail(err, -r, "run %s", tool);
		return lr_err_hint(
			err, "install it (package uidmap or shadow-utils) with its set-uid bit");
	}
	lr_refuse(err, EPERM, "%s refused the mapping of the user namespace%s%s", tool,
		  *why ? ": " : "", why);
	lr_err_hint(err, "the ranges must be granted in /etc/sub%s",
		    tool[3] == 'u' ? "uid" : "gid");
	return lr_err_at(err, "linux.%sMappings", tool[3] == 'u' ? "uid" : "gid");
}

static bool is_own_id(const struct oci_id_mappings *m, uint32_t own)
{
	return m->n == 1 && m->v[0].size == 1 && m->v[0].host_id == own;
}

int lr_ns_write_maps(const struct lr_ns_plan *p, pid_t child, struct lr_err *err)
{
	LR_CLEANUP_FD int procfd = lr_procfs_open(err);
	char path[64];
	int r;

	if (procfd < 0)
		return procfd;
	if (p->rootless_maps && !is_own_id(p->uids, geteuid()))
		r = run_helper("newuidmap", child, p->uids, err);
	else
		r = write_map(procfd, child, "uid_map", p->uid_map, err);
	if (r < 0)
		return r;
	if (p->rootless_maps && !is_own_id(p->gids, getegid()))
		return run_helper("newgidmap", child, p->gids, err);
	if (p->rootless_maps) {
		/* user_namespaces(7): without CAP_SETGID, setgroups(2) has to be given up first. */
		snprintf(path, sizeof(path), "%d/setgroups", child);
		r = lr_procfs_write(procfd, path, "deny", 4);
		if (r < 0 && r != -ENOENT)
			return lr_fail(err, -r, "deny setgroups in the user namespace");
	}
	return write_map(procfd, child, "gid_map", p->gid_map, err);
}
