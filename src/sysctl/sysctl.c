/* SPDX-License-Identifier: Apache-2.0 */
/* sysctl: see sysctl.h. */
#define LR_ROOM "sysctl"
#include "src/sysctl/sysctl.h"

#include <errno.h>
#include <string.h>

#include "src/base/log.h"
#include "src/base/str.h"
#include "src/sys/procfs.h"

/* Per-IPC-namespace parameters, ipc/ipc_sysctl.c of the kernel. */
static const char *const ipc_keys[] = {
	"kernel/auto_msgmni",     "kernel/msg_next_id", "kernel/msgmax",      "kernel/msgmnb",
	"kernel/msgmni",          "kernel/sem",         "kernel/sem_next_id", "kernel/shm_next_id",
	"kernel/shm_rmid_forced", "kernel/shmall",      "kernel/shmmax",      "kernel/shmmni",
};

static bool is_ipc(const char *path)
{
	if (lr_has_prefix(path, "fs/mqueue/"))
		return true;
	for (size_t i = 0; i < LR_ARRAY_SIZE(ipc_keys); i++)
		if (lr_streq(path, ipc_keys[i]))
			return true;
	return false;
}

/* Turns the key into a path of components, or NULL if it has empty, "." or ".." ones. */
static char *key_to_path(const char *key, struct lr_arena *arena)
{
	char *path = lr_strf(arena, "sys/%s", key);
	if (!path)
		return NULL;

	char *p = path + 4;
	char *first = strpbrk(p, "./");

	if (first && *first == '.')
		for (char *c = p; *c; c++)
			if (*c == '.' || *c == '/')
				*c = *c == '.' ? '/' : '.';
	return path;
}

static bool is_clean(const char *path)
{
	for (;;) {
		size_t n = strcspn(path, "/");

		if (n == 0 || (n == 1 && path[0] == '.') ||
		    (n == 2 && path[0] == '.' && path[1] == '.'))
			return false;
		if (!path[n])
			return true;
		path += n + 1;
	}
}

static int need(unsigned own, unsigned flag, const char *type, const char *key, struct lr_err *err)
{
	if (own & flag)
		return 0;
	lr_refuse(err, EINVAL,
		  "%s would change the host: the container has no %s namespace of its own", key,
		  type);
	lr_err_at(err, "linux.sysctl[\"%s\"]", key);
	return lr_err_hint(err, "add a \"%s\" namespace to linux.namespaces", type);
}

static int check(const char *path, const char *key, unsigned own, struct lr_err *err)
{
	if (is_ipc(path))
		return need(own, LR_SYSCTL_IPC, "ipc", key, err);
	if (lr_has_prefix(path, "net/"))
		return need(own, LR_SYSCTL_NET, "network", key, err);
	if (lr_has_prefix(path, "user/"))
		return need(own, LR_SYSCTL_USER, "user", key, err);
	if (lr_streq(path, "kernel/domainname"))
		return need(own, LR_SYSCTL_UTS, "uts", key, err);
	if (lr_streq(path, "kernel/hostname")) {
		lr_refuse(err, EINVAL, "%s has a property of its own", key);
		lr_err_at(err, "linux.sysctl[\"%s\"]", key);
		return lr_err_hint(err, "use \"hostname\" of config.json");
	}
	lr_refuse(err, EINVAL, "%s belongs to no namespace: setting it would change the host", key);
	lr_err_at(err, "linux.sysctl[\"%s\"]", key);
	return lr_err_hint(err, "only net.*, user.*, fs.mqueue.*, the System V IPC limits and "
				"kernel.domainname can be set per container");
}

int lr_sysctl_plan(const struct oci_map *sysctl, unsigned own, struct lr_arena *arena,
		   struct lr_sysctl_plan *ret, struct lr_err *err)
{
	struct lr_sysctl_plan p = {0};

	if (sysctl->n) {
		p.v = lr_new_n(arena, sysctl->n, struct lr_sysctl_entry);
		if (!p.v)
			return lr_fail(err, ENOMEM, "linux.sysctl");
	}
	for (size_t i = 0; i < sysctl->n; i++) {
		const char *key = sysctl->v[i].key;
		char *path = key_to_path(key, arena);

		if (!path)
			return lr_fail(err, ENOMEM, "linux.sysctl");
		if (!is_clean(path + 4)) {
			lr_refuse(err, EINVAL, "\"%s\" is not the name of a kernel parameter", key);
			return lr_err_at(err, "linux.sysctl");
		}
		int r = check(path + 4, key, own, err);
		if (r < 0)
			return r;
		p.v[p.n++] = (struct lr_sysctl_entry){.key = key,
						      .path = path,
						      .value = sysctl->v[i].value,
						      .len = strlen(sysctl->v[i].value)};
	}
	*ret = p;
	return 0;
}

int lr_sysctl_apply(const struct lr_sysctl_plan *plan, int procfd, struct lr_err *err)
{
	for (size_t i = 0; i < plan->n; i++) {
		const struct lr_sysctl_entry *e = &plan->v[i];
		int r = lr_procfs_write(procfd, e->path, e->value, e->len);

		if (r < 0) {
			lr_fail(err, -r, "cannot set %s to \"%s\"", e->key, e->value);
			lr_err_step(err, "write");
			lr_err_at(err, "linux.sysctl[\"%s\"]", e->key);
			return r == -ENOENT ? lr_err_hint(err, "this kernel has no %s", e->path)
			       : r == -EINVAL
				       ? lr_err_hint(err, "the kernel does not take that value")
				       : r;
		}
		lr_debug("sysctl: %s = %s", e->key, e->value);
	}
	return 0;
}
