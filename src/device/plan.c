/* SPDX-License-Identifier: Apache-2.0 */
/* device: the plan; see device.h. */
#define LR_ROOM "device"
#include <errno.h>
#include <limits.h>
#include <sys/stat.h>
#include <sys/sysmacros.h>

#include "src/base/str.h"
#include "src/device/device.h"

#define DEFAULT_MODE 0666
/* What the kernel's dev_t holds: 12 and 20 bits. */
#define MAJOR_MAX 0xfff
#define MINOR_MAX 0xfffff

static const struct {
	const char *path;
	unsigned major, minor;
} defaults[] = {
	{"/dev/null", 1, 3},   {"/dev/zero", 1, 5},    {"/dev/full", 1, 7},
	{"/dev/random", 1, 8}, {"/dev/urandom", 1, 9}, {"/dev/tty", 5, 0},
};

static bool is_bind(const struct oci_mount *m)
{
	if (m->type && lr_streq(m->type, "bind"))
		return true;
	for (size_t i = 0; i < m->options.n; i++) {
		if (lr_streq(m->options.v[i], "bind") || lr_streq(m->options.v[i], "rbind"))
			return true;
	}
	return false;
}

bool lr_device_needs_dev(const struct oci_mounts *mounts)
{
	char clean[PATH_MAX + 2];

	for (size_t i = 0; mounts && i < mounts->n; i++) {
		const struct oci_mount *m = &mounts->v[i];
		if (!m->destination || strlen(m->destination) > PATH_MAX || !is_bind(m))
			continue;
		lr_path_clean(m->destination, clean);
		if (lr_streq(clean, "/dev"))
			return false;
	}
	return true;
}

/* Splits a clean path into where it lies and its name. */
static int set_path(struct lr_device *d, const char *path, struct lr_arena *arena)
{
	const char *slash = strrchr(path, '/');
	const char *dir = path;

	d->path = path;
	d->name = slash + 1;
	d->in_dev = lr_has_prefix(path, "/dev/");
	if (d->in_dev)
		dir += strlen("/dev");
	d->dir = slash > dir ? lr_strndup(arena, dir + 1, (size_t)(slash - dir - 1)) : "";
	return d->dir ? 0 : -ENOMEM;
}

static int check_number(const struct oci_device *in, struct lr_device *d, struct lr_err *err)
{
	if (S_ISFIFO(d->mode))
		return 0;
	if (in->major < 0 || in->major > MAJOR_MAX)
		return lr_refuse(err, EINVAL, "%s: major number %lld is not in 0..%d", in->path,
				 (long long)in->major, MAJOR_MAX);
	if (in->minor < 0 || in->minor > MINOR_MAX)
		return lr_refuse(err, EINVAL, "%s: minor number %lld is not in 0..%d", in->path,
				 (long long)in->minor, MINOR_MAX);
	d->rdev = makedev((unsigned)in->major, (unsigned)in->minor);
	return 0;
}

static int set_type(const struct oci_device *in, struct lr_device *d, struct lr_err *err)
{
	const char *type = in->type ? in->type : "";

	if (lr_streq(type, "c") || lr_streq(type, "u"))
		d->mode = S_IFCHR;
	else if (lr_streq(type, "b"))
		d->mode = S_IFBLK;
	else if (lr_streq(type, "p"))
		d->mode = S_IFIFO;
	else
		return lr_refuse(err, EINVAL, "%s: \"%s\" is no device type: c, b, u or p",
				 in->path, type);
	return 0;
}

static int plan_one(const struct oci_device *in, struct lr_device *d, struct lr_arena *arena,
		    struct lr_err *err)
{
	if (!in->path || in->path[0] != '/')
		return lr_refuse(err, EINVAL, "\"%s\" is not an absolute path",
				 in->path ? in->path : "");
	char *clean = lr_alloc(arena, strlen(in->path) + 2);
	if (!clean)
		return lr_fail(err, ENOMEM, "planning devices");
	lr_path_clean(in->path, clean);
	if (lr_streq(clean, "/") || lr_streq(clean, "/dev"))
		return lr_refuse(err, EINVAL, "%s is a directory, not a device", clean);

	int r = set_type(in, d, err);
	if (r == 0)
		r = check_number(in, d, err);
	if (r < 0)
		return r;
	/* File type bits in fileMode are dropped: Docker sends them. */
	d->mode |= in->file_mode ? *in->file_mode & 07777 : DEFAULT_MODE;
	d->uid = in->uid ? *in->uid : 0;
	d->gid = in->gid ? *in->gid : 0;
	return set_path(d, clean, arena) < 0 ? lr_fail(err, ENOMEM, "planning devices") : 0;
}

static bool to_host(const struct oci_id_mappings *map, uint32_t id, uint32_t *ret)
{
	for (size_t i = 0; map && i < map->n; i++) {
		const struct oci_id_mapping *m = &map->v[i];
		if (id < m->container_id || id - m->container_id >= m->size)
			continue;
		*ret = m->host_id + (id - m->container_id);
		return true;
	}
	return false;
}

static struct lr_device *find(struct lr_device *v, size_t n, const char *path)
{
	for (size_t i = 0; i < n; i++) {
		if (lr_streq(v[i].path, path))
			return &v[i];
	}
	return NULL;
}

static int add_configured(const struct oci_devices *devices, struct lr_device *v, size_t *n,
			  struct lr_arena *arena, struct lr_err *err)
{
	for (size_t i = 0; i < devices->n; i++) {
		struct lr_device d = {.index = (ssize_t)i};
		int r = plan_one(&devices->v[i], &d, arena, err);
		if (r < 0)
			return lr_err_at(err, "linux.devices[%zu]", i);
		/* Always a link to the container's own devpts (config-linux.md, Default
		 * Devices). */
		if (lr_streq(d.path, "/dev/ptmx"))
			continue;

		struct lr_device *same = find(v, *n, d.path);
		if (!same) {
			v[(*n)++] = d;
			continue;
		}
		if ((same->mode & S_IFMT) != (d.mode & S_IFMT) || same->rdev != d.rdev) {
			lr_refuse(err, EEXIST, "%s is asked for twice, as two different devices",
				  d.path);
			return lr_err_at(err, "linux.devices[%zu]", i);
		}
		*same = d;
	}
	return 0;
}

int lr_device_plan(const struct oci_devices *devices, const struct lr_device_opts *opts,
		   struct lr_arena *arena, const struct lr_device_plan **ret, struct lr_err *err)
{
	static const struct oci_devices none;
	struct lr_device_plan *plan = lr_new(arena, struct lr_device_plan);

	if (!devices)
		devices = &none;
	struct lr_device *v =
		lr_new_n(arena, devices->n + LR_ARRAY_SIZE(defaults), struct lr_device);
	if (!plan || !v)
		return lr_fail(err, ENOMEM, "planning devices");

	size_t n = 0;
	int r = add_configured(devices, v, &n, arena, err);
	if (r < 0)
		return r;
	for (size_t i = 0; i < LR_ARRAY_SIZE(defaults); i++) {
		if (find(v, n, defaults[i].path))
			continue;
		struct lr_device *d = &v[n++];
		*d = (struct lr_device){
			.mode = S_IFCHR | DEFAULT_MODE,
			.rdev = makedev(defaults[i].major, defaults[i].minor),
			.index = -1,
		};
		if (set_path(d, defaults[i].path, arena) < 0)
			return lr_fail(err, ENOMEM, "planning devices");
	}
	for (size_t i = 0; opts->userns && i < n; i++)
		v[i].ours = v[i].index >= 0 && !S_ISFIFO(v[i].mode) &&
			    to_host(opts->uid_map, v[i].uid, &v[i].host_uid) &&
			    to_host(opts->gid_map, v[i].gid, &v[i].host_gid);
	plan->v = v;
	plan->n = opts->needs_dev ? n : 0;
	plan->bind = opts->userns;
	*ret = plan;
	return 0;
}
