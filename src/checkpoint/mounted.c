/* SPDX-License-Identifier: Apache-2.0 */
/*
 * checkpoint: which mounts of a container are its own doing. Pure.
 *
 * A child's mounts are made from config.json, by the runtime and its hooks, and what the host mounts
 * below a mount that it shares reaches the child, too. Whatever else is mounted is lost there.
 *
 * mountinfo tells not who has mounted something. But its lines are in the order in which mounts were
 * made (since Linux 6.8 by their unique numbers, before that as they came), and the runtime's are all
 * there before the container's program begins. So a line is told by its mount point to be one that
 * config.json explains, once for each time that it does; and what comes after the last of these, and
 * is not explained, is the container's own.
 *
 * Who continues what it had before would rather be refused once too seldom than for nothing. So:
 *
 *   links     a destination may have led elsewhere. For each one without a line, one that is not
 *             explained is believed to be it, those that are first in the list first
 *   trees     recursive binds, and cgroup v1, bring more lines, which follow right behind: what is
 *             below that mount, and on a device of the host's, is believed to be part of it. Those of
 *             a read-only path are copies of what the runtime has mounted there before
 *   hooks     what mounts of theirs there are nobody knows. Those of the last kinds to run have the
 *             protected paths made behind them: only what comes after these counts. With others
 *             nothing can be told
 *   the host  a line of a peer group that came from there (master:7; shared:7, if the host has it)
 *   others    a container that may not mount (CAP_SYS_ADMIN) has mounts of its own only by exec --cap
 *             or from outside: they are told if all the rest is exactly as config.json has it
 */
#define LR_ROOM "checkpoint"
#include <errno.h>
#include <linux/capability.h>
#include <stdlib.h>
#include <string.h>

#include "src/base/str.h"
#include "src/caps/caps.h"
#include "src/checkpoint/internal.h"
#include "src/sys/syscalls.h"

#define DELETED "//deleted" /* behind the mount point */

/* What the runtime may have mounted. */
struct expected {
	const char *point;
	bool certain;  /* if it has no line, there is none, or a link has led it elsewhere */
	bool tree;     /* it may bring more */
	bool cgroup;   /* of the runtime's own making */
	bool masked;   /* one of linux.maskedPaths */
	bool readonly; /* one of linux.readonlyPaths */
	uint64_t want; /* MOUNT_ATTR_* */
	const struct lr_checkpoint_mount *by;
	const struct expected *in; /* the tree that it lies in, whose parts may go on behind its */
	size_t left; /* of the first with that point: lines there that were not looked at yet */
};

enum kind { STRANGE, PART, COPY, EXPLAINED }; /* COPY: a part of a read-only path */

/* Sorted, as a container, or the host, may have a hundred thousand mounts. */
struct set {
	uint64_t *v;
	size_t n;
};

struct work {
	const struct oci_config *config;
	const struct lr_mounted_found *f;
	struct lr_arena *a;
	struct expected *v;
	size_t n;
	unsigned char *kinds;                /* of each line */
	struct set masters, peers;           /* groups of what is the runtime's for sure */
	struct set devices;                  /* and what it is on */
	struct set host_peers, host_devices; /* devices by their hashes */
	size_t last; /* the number of lines up to the last one that is EXPLAINED */
	bool no_memory;
	struct lr_mounted *ret;
};

/* ---- what is expected ------------------------------------------------------------------------ */

static bool has_option(const struct oci_mount *m, const char *option)
{
	for (size_t i = 0; i < m->options.n; i++)
		if (lr_streq(m->options.v[i], option))
			return true;
	return false;
}

static bool is_type(const struct oci_mount *m, const char *types)
{
	return m->type && *m->type && lr_has_word(types, m->type);
}

/* An entry that changes a mount which is there, and makes none (mount/plan.c). */
static bool is_change(const struct oci_mount *m)
{
	bool none = !m->type || !*m->type || lr_streq(m->type, "none");

	return has_option(m, "remount") || (none && !lr_checkpoint_is_bind(m));
}

static void expect(struct work *w, const char *path, struct expected e)
{
	char *clean = path ? lr_checkpoint_clean(path, w->a) : NULL;
	struct expected *v = lr_grow(w->a, w->v, w->n, sizeof(*v));

	w->no_memory |= (path && !clean) || !v;
	if (!clean || !v)
		return;
	w->v = v;
	/* Who has changed its root sees, in mountinfo, what is below that. */
	e.point = lr_path_below(clean, w->f->root);
	if (e.point && lr_streq(w->f->root, "/"))
		e.point = clean;
	if (e.point && *e.point && !lr_streq(e.point, "/"))
		w->v[w->n++] = e;
}

static void expect_mounts(struct work *w)
{
	const struct oci_mounts *m = &w->config->mounts;
	const bool user = lr_checkpoint_own(w->config, "user");

	for (size_t i = 0; i < m->n; i++) {
		const struct oci_mount *x = &m->v[i];
		struct expected e = {.certain = !has_option(x, "copy-symlink"),
				     .cgroup = is_type(x, "cgroup cgroup2"),
				     .want = lr_checkpoint_attributes(&x->options)};
		/* The host's is bound where a user namespace may have none of its own. */
		e.tree = e.cgroup || has_option(x, "rbind") || is_type(x, "rbind") ||
			 (user && is_type(x, "sysfs mqueue proc"));
		if (!is_change(x))
			expect(w, x->destination, e);
	}
}

/* What the runtime may mount without an entry in mounts of config.json. Devices it binds where it can't
 * make them. */
static void expect_own(struct work *w)
{
	static const char *const own[] = {"/run/notify", "/dev/null",    "/dev/zero", "/dev/full",
					  "/dev/random", "/dev/urandom", "/dev/tty"};
	const struct oci_linux *l = w->config->linux_;

	if (lr_checkpoint_has_terminal(w->config))
		expect(w, "/dev/console", (struct expected){0});
	for (size_t i = 0; i < LR_ARRAY_SIZE(own); i++)
		expect(w, own[i], (struct expected){0});
	for (size_t i = 0; l && i < l->devices.n; i++)
		expect(w, l->devices.v[i].path, (struct expected){0});
	for (size_t i = 0; l && i < l->masked_paths.n; i++)
		expect(w, l->masked_paths.v[i], (struct expected){.masked = true});
	for (size_t i = 0; l && i < l->readonly_paths.n; i++)
		expect(w, l->readonly_paths.v[i],
		       (struct expected){
			       .readonly = true, .tree = true, .want = MOUNT_ATTR_RDONLY});
}

/* ---- which lines are explained --------------------------------------------------------------- */

static size_t point_length(const char *point)
{
	size_t n = strlen(point);

	return lr_has_suffix(point, DELETED) ? n - strlen(DELETED) : n;
}

/* The first that is expected at that point; unmet: of those that have no line yet. */
static struct expected *find(struct work *w, const char *point, bool unmet)
{
	size_t n = point_length(point);

	for (size_t i = 0; i < w->n; i++)
		if (!(unmet && w->v[i].by) && strncmp(w->v[i].point, point, n) == 0 &&
		    !w->v[i].point[n])
			return &w->v[i];
	return NULL;
}

/* Whether lines that come later suffice for all that are unmet at that point, as where config.json
 * mounts on what a tree has brought. */
static bool can_wait(const struct work *w, const struct expected *first)
{
	size_t unmet = 0;

	for (size_t i = 0; i < w->n; i++)
		unmet += !w->v[i].by && lr_streq(w->v[i].point, first->point);
	return first->left >= unmet;
}

static void explain_one(struct work *w, size_t i, const struct expected **tree)
{
	const struct lr_checkpoint_mount *m = &w->f->mounts[i];
	struct expected *first = find(w, m->point, false);
	struct expected *e = first ? find(w, m->point, true) : NULL;

	while (*tree && !lr_path_below(m->point, (*tree)->point))
		*tree = (*tree)->in;
	const bool below = *tree;
	if (first)
		first->left--;
	if (e && below && can_wait(w, first))
		e = NULL;
	w->kinds[i] = e ? EXPLAINED : !below ? STRANGE : (*tree)->readonly ? COPY : PART;
	if (!e)
		return;
	e->in = *tree;
	if (e->tree)
		*tree = e;
	e->by = m;
	w->last = i + 1;
}

static bool has_component(const char *path, const char *name)
{
	for (const char *at = path; (at = strstr(at, name)); at++)
		if (!at[strlen(name)] || at[strlen(name)] == '/')
			return true;
	return false;
}

/* Whether what is mounted at its first process's root is its own root, or one of config.json's or below that (a tree),
 * by a name of these: links may have led it there. */
static bool is_root_explained(const struct work *w)
{
	const struct oci_mounts *m = &w->config->mounts;
	bool is = lr_streq(w->f->root, "/");

	for (size_t i = 0; i < m->n && !is; i++) {
		char *path = m->v[i].destination && !is_change(&m->v[i])
				     ? lr_checkpoint_clean(m->v[i].destination, w->a)
				     : NULL;
		const char *name = path ? strrchr(path, '/') : NULL;
		is = name && has_component(w->f->root, name);
	}
	return is;
}

static void explain(struct work *w)
{
	const bool root = is_root_explained(w);
	const struct expected *tree = NULL; /* whose parts may follow */

	for (size_t i = 0; i < w->f->n; i++) {
		struct expected *first = find(w, w->f->mounts[i].point, false);
		if (first)
			first->left++;
	}
	for (size_t i = 0; i < w->f->n; i++)
		if (root && lr_streq(w->f->mounts[i].point, "/"))
			w->kinds[i] = EXPLAINED;
		else
			explain_one(w, i, &tree);
}

/* ---- the host's ------------------------------------------------------------------------------ */

static int compare_values(const void *a, const void *b)
{
	uint64_t x = *(const uint64_t *)a, y = *(const uint64_t *)b;

	return (x > y) - (x < y);
}

static bool has(const struct set *s, uint64_t v)
{
	return s->n && bsearch(&v, s->v, s->n, sizeof(v), compare_values);
}

static void make_set(struct work *w, struct set *s, size_t most)
{
	*s = (struct set){.v = lr_new_n(w->a, most + 1, uint64_t)};
	w->no_memory |= !s->v;
}

static void put(struct set *s, uint64_t v)
{
	if (v)
		s->v[s->n++] = v;
}

static void sort(struct set *s)
{
	qsort(s->v, s->n, sizeof(*s->v), compare_values);
}

static uint64_t device_of(const struct lr_checkpoint_mount *m)
{
	return lr_hash(LR_HASH, m->device, strlen(m->device));
}

static void make_sets(struct work *w)
{
	make_set(w, &w->masters, w->f->n);
	make_set(w, &w->peers, w->f->n);
	make_set(w, &w->devices, w->f->n);
	make_set(w, &w->host_peers, w->f->n_host);
	make_set(w, &w->host_devices, w->f->n_host);
	if (w->no_memory)
		return;
	for (size_t i = 0; i < w->f->n; i++) {
		if (w->kinds[i] == STRANGE || (w->kinds[i] != EXPLAINED && i >= w->last))
			continue;
		put(&w->devices, device_of(&w->f->mounts[i]));
		put(&w->masters, w->f->mounts[i].master);
		put(&w->peers, w->f->mounts[i].peers);
	}
	for (size_t i = 0; i < w->f->n_host; i++) {
		put(&w->host_peers, w->f->host[i].peers);
		put(&w->host_devices, device_of(&w->f->host[i]));
	}
	sort(&w->masters);
	sort(&w->peers);
	sort(&w->devices);
	sort(&w->host_peers);
	sort(&w->host_devices);
}

/* A bind by the container of something that it has: a mount like any other of its own, though it has
 * the peer group of what was bound. */
static bool is_copy(const struct work *w, const struct lr_checkpoint_mount *m)
{
	return has(&w->masters, m->master) || has(&w->peers, m->peers);
}

/* As long as the host's mounts are not known, they are believed to have it. */
static bool host_has(struct work *w, const struct set *s, uint64_t v)
{
	w->ret->ask |= !w->f->host;
	return !w->f->host || has(s, v);
}

static bool is_hosts(struct work *w, const struct lr_checkpoint_mount *m)
{
	if ((!m->master && !m->peers) || is_copy(w, m))
		return false;
	return m->master || host_has(w, &w->host_peers, m->peers);
}

/* ---- who else may have mounted --------------------------------------------------------------- */

/* What Docker has in each config.json names a network namespace. */
static bool may_mount(const struct oci_hook_list *l)
{
	for (size_t i = 0; l && i < l->n; i++)
		if (!l->v[i].args.n || !lr_streq(l->v[i].args.v[0], "libnetwork-setkey"))
			return true;
	return false;
}

/* Hooks that have run, and have mounted what they have, before the paths were protected. */
static bool has_hooks(const struct work *w)
{
	const struct oci_hooks *h = w->config->hooks;

	return h && (may_mount(&h->prestart) || may_mount(&h->create_runtime) ||
		     may_mount(&h->create_container));
}

/* The first cover may be older than all the rest (rootfs/cover.c). */
static bool is_protected_behind_hooks(const struct work *w)
{
	size_t masked = 0;

	for (size_t i = 0; i < w->n; i++) {
		if (w->v[i].by && w->v[i].readonly)
			return true;
		masked += w->v[i].by && w->v[i].masked;
	}
	return masked > 1;
}

static bool cannot_tell(const struct work *w)
{
	const struct oci_hooks *h = w->config->hooks;

	/* Without a mount namespace of its own, what is there is others'. */
	return !lr_checkpoint_own(w->config, "mount") ||
	       (h && (h->start_container.n || h->poststart.n)) ||
	       (has_hooks(w) && !is_protected_behind_hooks(w));
}

bool lr_checkpoint_has_admin(const struct oci_config *c)
{
	const struct oci_capabilities *caps = c->process ? c->process->capabilities : NULL;

	for (size_t i = 0; caps && i < caps->bounding.n; i++)
		if (lr_caps_parse(caps->bounding.v[i], NULL) == CAP_SYS_ADMIN)
			return true;
	return false;
}

/* ---- what is not as config.json says --------------------------------------------------------- */

static void add(struct work *w, struct lr_mounted_change c)
{
	struct lr_mounted_change *v = lr_grow(w->a, w->ret->v, w->ret->n, sizeof(*v));

	w->no_memory |= !v;
	if (!v)
		return;
	w->ret->v = v;
	v[w->ret->n++] = c;
}

/* Of the image's, or one of those that the kernel itself has. */
static bool may_be_led_elsewhere(const char *point)
{
	static const char *const links[] = {"/proc/self", "/proc/thread-self", "/proc/net",
					    "/proc/mounts"};

	for (size_t i = 0; i < LR_ARRAY_SIZE(links); i++)
		if (lr_path_below(point, links[i]))
			return true;
	return !lr_path_below(point, "/proc") && !lr_path_below(point, "/sys");
}

/* How many of config.json's have no line; by_links: also paths that links may have led elsewhere, or
 * that the root does not have. */
static size_t count_unmet(const struct work *w, bool by_links)
{
	size_t n = 0;

	for (size_t i = 0; i < w->n; i++) {
		const struct expected *e = &w->v[i];
		bool led = by_links && (e->masked || e->readonly) && may_be_led_elsewhere(e->point);
		n += !e->by && (e->certain || led);
	}
	return n;
}

/* Parts of trees may be what a link has led there. Those of cgroup v1 have another reason. */
static size_t count(struct work *w, enum kind kind, size_t lines)
{
	size_t n = 0;

	for (size_t i = 0; i < lines; i++)
		n += (w->kinds[i] == COPY ? PART : w->kinds[i]) == kind &&
		     (kind == STRANGE ? !is_hosts(w, &w->f->mounts[i])
				      : !lr_has_word("cgroup cgroup2", w->f->mounts[i].type));
	return n;
}

static bool is_own(struct work *w, size_t i)
{
	const struct lr_checkpoint_mount *m = &w->f->mounts[i];

	if (w->kinds[i] == EXPLAINED || is_hosts(w, m))
		return false;
	if (w->kinds[i] == COPY && has(&w->devices, device_of(m)))
		return false;
	return w->kinds[i] == STRANGE || !host_has(w, &w->host_devices, device_of(m));
}

static void add_own(struct work *w, size_t spare)
{
	const char *believed = NULL;

	for (size_t i = w->last; i < w->f->n; i++) {
		const struct lr_checkpoint_mount *m = &w->f->mounts[i];
		if (!is_own(w, i) || (believed && lr_path_below(m->point, believed)))
			continue;
		believed = spare ? m->point : NULL;
		if (spare)
			spare--;
		else
			add(w, (struct lr_mounted_change){
				       .what = LR_MOUNTED_OWN,
				       .point = lr_streq(m->point, "/") ? w->f->root : m->point,
				       .type = m->type});
	}
}

static void add_gone(struct work *w)
{
	for (size_t i = 0; i < w->n; i++)
		if (w->v[i].certain && !w->v[i].by)
			add(w, (struct lr_mounted_change){.what = LR_MOUNTED_GONE,
							  .point = w->v[i].point});
}

/* Nothing else is expected at that point, and no entry changes what is there. */
static bool is_alone(const struct work *w, const struct expected *e)
{
	const struct oci_mounts *m = &w->config->mounts;

	for (size_t i = 0; i < w->n; i++)
		if (&w->v[i] != e && lr_streq(w->v[i].point, e->point))
			return false;
	for (size_t i = 0; i < m->n; i++) {
		char *path = is_change(&m->v[i]) && m->v[i].destination
				     ? lr_checkpoint_clean(m->v[i].destination, w->a)
				     : NULL;
		if (path && lr_path_below(e->point, path))
			return false;
	}
	return true;
}

static bool is_read_only(const struct lr_checkpoint_mount *m)
{
	return m->attributes & MOUNT_ATTR_RDONLY || lr_streq(m->options, "ro") ||
	       lr_has_prefix(m->options, "ro,");
}

static void add_flags(struct work *w)
{
	const struct lr_checkpoint_mount *root = NULL;

	for (size_t i = 0; i < w->n; i++) {
		const struct expected *e = &w->v[i];
		uint64_t lost = e->by ? e->want & ~e->by->attributes : 0;
		if (lost & MOUNT_ATTR_RDONLY && is_read_only(e->by))
			lost &= ~(uint64_t)MOUNT_ATTR_RDONLY;
		if (lost && is_alone(w, e))
			add(w, (struct lr_mounted_change){
				       .what = LR_MOUNTED_FLAGS, .point = e->point, .lost = lost});
	}
	for (size_t i = 0; i < w->f->n; i++)
		if (lr_streq(w->f->mounts[i].point, "/"))
			root = &w->f->mounts[i];
	if (root && w->config->root && w->config->root->readonly && lr_streq(w->f->root, "/") &&
	    !is_read_only(root))
		add(w, (struct lr_mounted_change){
			       .what = LR_MOUNTED_FLAGS, .point = "/", .lost = MOUNT_ATTR_RDONLY});
}

static void compare(struct work *w)
{
	const size_t unmet = count_unmet(w, true), before = count(w, STRANGE, w->last);
	const bool exact = !unmet && !before && !has_hooks(w);

	if (cannot_tell(w))
		return;
	if (!lr_checkpoint_has_admin(w->config)) {
		if (exact)
			add_own(w, 0);
		return;
	}
	/* Those before the last one are the runtime's in any case, or a hook's. */
	add_own(w, has_hooks(w) ? unmet : unmet > before ? unmet - before : 0);
	if (!count(w, STRANGE, w->f->n) && !count(w, PART, w->f->n) && !has_hooks(w))
		add_gone(w);
	if (!has_hooks(w))
		add_flags(w);
}

/* What is mounted on "/" hides, in mountinfo, what was mounted before. */
bool lr_checkpoint_mounts_root(const struct oci_mounts *m)
{
	for (size_t i = 0; i < m->n; i++)
		if (m->v[i].destination && !is_change(&m->v[i]) &&
		    !m->v[i].destination[strspn(m->v[i].destination, "/.")])
			return true;
	return false;
}

int lr_checkpoint_mounted(const struct oci_config *config, const struct lr_mounted_found *f,
			  struct lr_arena *a, struct lr_mounted *ret, struct lr_err *err)
{
	struct lr_mounted found = {0};
	struct work w = {.config = config, .f = f, .a = a, .ret = &found};

	w.kinds = lr_new_n(a, f->n + 1, unsigned char);
	expect_mounts(&w);
	expect_own(&w);
	for (size_t i = 0; i < w.n && lr_checkpoint_mounts_root(&config->mounts); i++)
		w.v[i].certain = false;
	if (!w.kinds || w.no_memory)
		return lr_fail(err, ENOMEM, "look at mounts");
	explain(&w);
	make_sets(&w);
	if (!w.no_memory)
		compare(&w);
	if (w.no_memory)
		return lr_fail(err, ENOMEM, "look at mounts");
	*ret = found;
	return 0;
}
