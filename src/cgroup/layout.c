/* SPDX-License-Identifier: Apache-2.0 */
/*
 * cgroup: what is mounted. By convention everything is below /sys/fs/cgroup, one directory per
 * hierarchy, named after its controllers: listing it costs 9 µs here, however many mounts the host
 * has, where reading mountinfo costs 13 µs with 40 mounts and 350 µs with 340. Each entry's file
 * system is verified; only when nothing is found is mountinfo read.
 */
#define LR_ROOM "cgroup"

#include "src/cgroup/internal.h"

#include <dirent.h>
#include <fcntl.h>
#include <limits.h>
#include <linux/magic.h>
#include <sys/vfs.h>
#include <unistd.h>

#include "src/sys/syscalls.h"

static int add(struct lr_arena *arena, struct lr_cgroup_layout *l, const char *name,
	       const char *mountpoint)
{
	struct lr_cgroup_hierarchy *v = lr_grow(arena, l->hierarchies, l->n, sizeof(*v));

	if (!v || !name || !mountpoint)
		return -ENOMEM;
	v[l->n++] = (struct lr_cgroup_hierarchy){.name = name, .mountpoint = mountpoint};
	l->hierarchies = v;
	return 0;
}

/* A hierarchy's name from its directory: "cpu,cpuacct"; a word that is no controller is the name of
 * a hierarchy without any: "systemd" -> "name=systemd". */
static const char *hierarchy_name(struct lr_arena *arena, const char *dir)
{
	for (const char *p = dir; *p; p += strcspn(p, ","), p += *p == ',')
		if (!lr_cgroup_ctrl_known(p, strcspn(p, ",")))
			return lr_strf(arena, "name=%s", dir);
	return lr_strdup(arena, dir);
}

static int scan_entry(struct lr_arena *arena, struct lr_cgroup_layout *l, const char *name,
		      unsigned char type)
{
	char path[sizeof(LR_CGROUP_ROOT) + NAME_MAX + 1] = LR_CGROUP_ROOT "/";
	struct statfs s;

	/* Symbolic links ("cpu" -> "cpu,cpuacct") are the same hierarchy again. */
	if (name[0] == '.' || (type != DT_DIR && type != DT_UNKNOWN))
		return 0;
	strcat(path, name);
	/* Not to be skipped: its controller's limits would silently not be there. */
	if (statfs(path, &s) < 0)
		return errno == ENOENT ? 0 : -errno;
	if (s.f_type == CGROUP_SUPER_MAGIC)
		return add(arena, l, hierarchy_name(arena, name), lr_strdup(arena, path));
	return s.f_type == CGROUP2_SUPER_MAGIC ? add(arena, l, "", lr_strdup(arena, path)) : 0;
}

/* Not by opendir(3): its buffer is the only use that a start has for the heap. */
static int scan_root(struct lr_arena *arena, struct lr_cgroup_layout *l)
{
	LR_CLEANUP_FD int fd = lr_open(LR_CGROUP_ROOT, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	struct lr_dir d;
	int r = fd < 0 ? -errno : 0;

	lr_dir_begin(&d, fd);
	for (const struct lr_dirent *e; r >= 0 && (e = lr_dir_next(&d));)
		r = scan_entry(arena, l, e->name, e->type);
	return r < 0 ? r : -errno;
}

/* ---- mountinfo -------------------------------------------------------------------------- */

struct mount_line {
	char *root, *mountpoint, *type, *options;
};

/* id parent maj:min root mountpoint options [tags...] - type source superoptions */
static bool parse_line(char *line, struct mount_line *m)
{
	char *f[5], *save, *sep = strstr(line, " - ");

	if (!sep)
		return false;
	*sep = '\0';
	save = line;
	for (size_t i = 0; i < LR_ARRAY_SIZE(f); i++)
		if (!(f[i] = strsep(&save, " ")))
			return false;
	save = sep + 3;
	m->type = strsep(&save, " ");
	strsep(&save, " ");
	m->options = strsep(&save, " ");
	lr_path_unescape(m->root = f[3]);
	lr_path_unescape(m->mountpoint = f[4]);
	return m->type && m->options;
}

/* The controllers among a v1 superblock's options, in mountinfo's order. */
static const char *name_of_options(struct lr_arena *arena, const char *options)
{
	char *name = lr_alloc(arena, strlen(options) + 1);
	size_t n = 0;

	if (!name)
		return NULL;
	for (const char *p = options; *p; p += strcspn(p, ","), p += *p == ',') {
		size_t len = strcspn(p, ",");

		if (!lr_cgroup_ctrl_known(p, len) && strncmp(p, "name=", 5) != 0)
			continue;
		if (n)
			name[n++] = ',';
		memcpy(name + n, p, len);
		n += len;
	}
	return name;
}

typedef int line_fn(struct lr_arena *arena, struct lr_cgroup_layout *l, struct mount_line *m);

static int each_cgroup_mount(struct lr_arena *arena, struct lr_cgroup_layout *l, line_fn *fn)
{
	char *text = lr_cgroup_slurp(arena, "/proc/self", "mountinfo"), *line;

	if (!text)
		return -ENOENT;
	while ((line = strsep(&text, "\n"))) {
		struct mount_line m;
		int r;

		if (!strstr(line, " - cgroup") || !parse_line(line, &m))
			continue;
		r = fn(arena, l, &m);
		if (r < 0)
			return r;
	}
	return 0;
}

static int add_mount(struct lr_arena *arena, struct lr_cgroup_layout *l, struct mount_line *m)
{
	bool v2 = lr_streq(m->type, "cgroup2");
	const char *name;

	if (!v2 && !lr_streq(m->type, "cgroup"))
		return 0;
	name = v2 ? "" : name_of_options(arena, m->options);
	if (!name)
		return -ENOMEM;
	for (size_t i = 0; i < l->n; i++)
		if (lr_streq(l->hierarchies[i].name, name))
			return 0; /* mounted twice: the first serves */
	return add(arena, l, name, lr_strdup(arena, m->mountpoint));
}

static enum lr_cgroup_mode mode_of(const struct lr_cgroup_layout *l)
{
	size_t v2 = 0;

	for (size_t i = 0; i < l->n; i++)
		v2 += l->hierarchies[i].name[0] == '\0';
	if (l->n == 0)
		return LR_CGROUP_NONE;
	if (v2 == l->n)
		return LR_CGROUP_V2;
	return v2 ? LR_CGROUP_HYBRID : LR_CGROUP_V1;
}

int lr_cgroup_probe(struct lr_arena *arena, struct lr_cgroup_layout **ret, struct lr_err *err)
{
	struct lr_cgroup_layout *l = lr_new(arena, struct lr_cgroup_layout);
	struct statfs s;
	int r = 0;

	if (!l)
		return lr_fail(err, ENOMEM, "cannot look for cgroups");
	if (statfs(LR_CGROUP_ROOT, &s) < 0)
		r = errno == ENOENT ? 0 : -errno;
	else if (s.f_type == CGROUP2_SUPER_MAGIC)
		r = add(arena, l, "", LR_CGROUP_ROOT);
	else
		r = scan_root(arena, l);
	if (r != -ENOMEM && l->n == 0) {
		r = each_cgroup_mount(arena, l, add_mount);
		r = r == -ENOENT ? 0 : r; /* no /proc: then no cgroups either */
	}
	if (r < 0)
		return lr_fail(err, -r, "cannot look for cgroups in %s", LR_CGROUP_ROOT);
	l->mode = mode_of(l);
	*ret = l;
	return 0;
}

/* ---- the caller's own cgroup ------------------------------------------------------------- */

/* First pass leaves mountinfo's root in .own, the second replaces it by the path below it. */
static int note_root(struct lr_arena *arena, struct lr_cgroup_layout *l, struct mount_line *m)
{
	for (size_t i = 0; i < l->n; i++) {
		struct lr_cgroup_hierarchy *h = &l->hierarchies[i];

		if (lr_streq(h->mountpoint, m->mountpoint) && !(h->own = lr_strdup(arena, m->root)))
			return -ENOMEM;
	}
	return 0;
}

/* Order within "cpu,cpuacct" may differ: the first controller decides. `list` ends with a colon, or its end. */
static bool is_same(const char *list, const char *name)
{
	const size_t first = strcspn(name, ",");

	if (!first)
		return list[0] == ':' || !list[0];
	for (const char *w = list;; w++) {
		size_t n = strcspn(w, ",:");
		if (n == first && memcmp(w, name, n) == 0)
			return true;
		w += n;
		if (*w != ',')
			return false;
	}
}

const struct lr_cgroup_hierarchy *lr_cgroup_mounted(const struct lr_cgroup_layout *l,
						    const char *controllers)
{
	for (size_t i = 0; i < l->n; i++)
		if (is_same(controllers, l->hierarchies[i].name))
			return &l->hierarchies[i];
	return NULL;
}

/* Lines "4:memory:/user/x", "1:name=systemd:/", "0::/". */
static const char *own_path(const char *text, const char *name, size_t *len)
{
	for (const char *p = text; *p; p += strcspn(p, "\n"), p += *p == '\n') {
		const char *ctrl = strchr(p, ':'), *path;
		size_t end = strcspn(p, "\n");

		if (!ctrl || ctrl > p + end || !(path = strchr(ctrl + 1, ':')) || path > p + end)
			continue;
		if (is_same(ctrl + 1, name)) {
			*len = (size_t)(p + end - path) - 1;
			return path + 1;
		}
	}
	return NULL;
}

int lr_cgroup_probe_own(struct lr_arena *arena, struct lr_cgroup_layout *l, struct lr_err *err)
{
	char *text = lr_cgroup_slurp(arena, "/proc/self", "cgroup");
	int r = each_cgroup_mount(arena, l, note_root);

	if (!text || r < 0)
		return lr_fail(err, r < 0 ? -r : EIO,
			       "cannot find this process's own cgroup in /proc/self/cgroup");
	for (size_t i = 0; i < l->n; i++) {
		struct lr_cgroup_hierarchy *h = &l->hierarchies[i];
		size_t len = 0, root = h->own ? strlen(h->own) : 0;
		const char *own = own_path(text, h->name, &len);

		if (root == 1) /* "/" */
			root = 0;
		/* Bind-mounted from inside the hierarchy (a container without its own cgroup
		 * namespace): what is above the mount's root cannot be reached. */
		if (own && root && len >= root && memcmp(own, h->own, root) == 0 &&
		    (len == root || own[root] == '/')) {
			own += root;
			len -= root;
		} else if (root) {
			len = 0;
		}
		h->own = own && len ? lr_strndup(arena, own, len) : "/";
		if (!h->own)
			return lr_fail(err, ENOMEM, "cannot find this process's own cgroup");
	}
	return 0;
}
