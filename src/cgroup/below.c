/* SPDX-License-Identifier: Apache-2.0 */
/*
 * cgroup: what is below a container's own cgroup. The runtime makes cgroups there for
 * run.oci.delegate-cgroup alone. (What it makes for run.oci.systemd.subgroup is the container's own
 * cgroup.) So the others are the container's doing.
 */
#define LR_ROOM "cgroup"
#include <dirent.h>
#include <sys/stat.h>

#include "src/cgroup/files.h"
#include "src/cgroup/internal.h"

/* A directory that is looked at: the container's own cgroup first, then each that the runtime has made
 * on the way to the delegated one. */
struct level {
	char dir[PATH_MAX];
	size_t place;     /* the length of the container's own cgroup in it */
	const char *rest; /* of the way, from here on */
	size_t name; /* the length of its first name, which is the runtime's; 0: there is none */
};

static bool begin(const struct lr_cgroup_ref *ref, const struct lr_cgroup_place *p,
		  const char *delegate, char *clean, struct level *l)
{
	int n = snprintf(l->dir, sizeof(l->dir), "%s", p->path);

	l->place = (size_t)n;
	l->rest = "";
	if (delegate && ref->mode == LR_CGROUP_V2 && strlen(delegate) + 2 <= PATH_MAX) {
		lr_path_clean(delegate, clean);
		l->rest = clean + 1;
	}
	l->name = strcspn(l->rest, "/");
	return n > 0 && n < (int)sizeof(l->dir);
}

/* Goes down by that name. False: there is none. */
static bool next(struct level *l)
{
	size_t n = strlen(l->dir);

	if (!l->name || n + 1 + l->name >= sizeof(l->dir))
		return false;
	l->dir[n] = '/';
	memcpy(l->dir + n + 1, l->rest, l->name);
	l->dir[n + 1 + l->name] = '\0';
	l->rest += l->name + (l->rest[l->name] == '/');
	l->name = strcspn(l->rest, "/");
	return true;
}

static bool is_ours(const struct level *l, const char *name)
{
	return l->name && strlen(name) == l->name && strncmp(name, l->rest, l->name) == 0;
}

static int list(const struct level *l, const struct lr_cgroup_place *p, lr_cgroup_tell *tell,
		void *arg, struct lr_err *err)
{
	LR_CLEANUP_DIR DIR *d = opendir(l->dir);
	char path[PATH_MAX];

	if (!d)
		return errno == ENOENT ? 0 : lr_fail(err, errno, "list the cgroup %s", l->dir);
	for (struct dirent *e; errno = 0, (e = readdir(d));) {
		if (e->d_type != DT_DIR || e->d_name[0] == '.' || is_ours(l, e->d_name))
			continue;
		int n = snprintf(path, sizeof(path), "%s/%s", l->dir + l->place, e->d_name);
		if (n < (int)sizeof(path))
			tell(arg, p->hierarchy, path);
	}
	/* ENOENT: it was removed meanwhile. */
	return errno && errno != ENOENT ? lr_fail(err, errno, "list the cgroup %s", l->dir) : 0;
}

int lr_cgroup_each_below(const struct lr_cgroup_ref *ref, const char *delegate,
			 lr_cgroup_tell *tell, void *arg, struct lr_err *err)
{
	char clean[PATH_MAX];
	int r = lr_cgroup_ref_check(ref, err);

	for (size_t i = 0; r >= 0 && i < ref->n; i++) {
		struct level l;
		if (!begin(ref, &ref->v[i], delegate, clean, &l))
			continue;
		do
			r = list(&l, &ref->v[i], tell, arg, err);
		while (r >= 0 && next(&l));
	}
	return r;
}

uint64_t lr_cgroup_count_below(const struct lr_cgroup_ref *ref, const char *delegate)
{
	char clean[PATH_MAX];
	uint64_t all = 0;
	struct stat st;

	for (size_t i = 0; i < ref->n; i++) {
		struct level l;
		if (!begin(ref, &ref->v[i], delegate, clean, &l))
			continue;
		do
			all += stat(l.dir, &st) < 0 ? 0 : st.st_nlink;
		while (next(&l));
	}
	return all;
}
