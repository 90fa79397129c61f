/* SPDX-License-Identifier: Apache-2.0 */
/* lean: which configs are alike, and what was learnt about them. */
#define LR_ROOM "lean"
#include <fcntl.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "libocispec/ocispec.h"
#include "src/base/str.h"
#include "src/lean/internal.h"

#define KEY_FILE_MAX (1 << 20)

/* O_NONBLOCK: a fifo that was put in its place must not block us. */
#define READ_KEY (O_RDONLY | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC)

/* The parts of config.json that a slot is made from, and nothing else. */
static struct oci_config part_of(const struct lr_lean_plan *p, struct oci_linux *l)
{
	const struct oci_linux *all = p->config->linux_;

	*l = (struct oci_linux){.resources = p->pool ? all->resources : NULL};
	if (p->template_) {
		l->devices = all->devices;
		l->mount_label = all->mount_label;
	}
	return (struct oci_config){
		.oci_version = "",
		.root = p->template_ || p->image ? p->config->root : NULL,
		.mounts = p->template_ ? p->base : (struct oci_mounts){0},
		.linux_ = l,
	};
}

/* The places of the container's own mounts: the template has a directory or file for each. Each
 * with its length, as a name may have spaces. */
static const char *own_places(const struct lr_lean_plan *p, struct lr_arena *a)
{
	const char *text = "";

	for (size_t i = 0; text && p->template_ && i < p->own.n; i++)
		text = lr_strf(a, "%s %zu:%s", text, strlen(p->own.v[i].destination),
			       p->own.v[i].destination);
	return text;
}

static const char *json_of(const struct lr_lean_plan *p, struct lr_arena *a)
{
	struct oci_linux l;
	const struct oci_config part = part_of(p, &l);

	return oci_config_encode(&part, false, a, NULL);
}

int lr_lean_settle(struct lr_lean_plan *p, struct lr_arena *a, struct lr_err *err)
{
	if (p->pool || p->template_)
		p->json = json_of(p, a);
	return (p->pool || p->template_) && !p->json ? lr_fail(err, ENOMEM, "make the plan") : 0;
}

int lr_lean_key_make(const struct lr_lean_plan *p, int netns, struct lr_arena *a,
		     struct lr_lean_key *ret, struct lr_err *err)
{
	struct lr_lean_key k = {0};
	struct stat net = {0};

	/* /sys of the template shows that network namespace, and no later one. */
	if (netns >= 0 && fstat(netns, &net) < 0)
		return lr_fail(err, errno, "stat the shared network namespace");
	const char *title = p->image ? p->image : p->template_ ? p->rootfs : "";
	const char *json = p->json ? p->json : json_of(p, a);
	const char *own = own_places(p, a);
	/* A part of the profile decides whether all mounts of a template are read-only. */
	k.text = lr_strf(a, "%s %d%d%d%d:%lu %" PRIx64 ":%" PRIu64 " %s\nown%s\n%s", LR_VERSION,
			 p->pool, p->template_, p->network == LR_LEAN_HOST,
			 p->profile.way[LR_LEAN_ROOTFS] == LR_LEAN_RO, (unsigned long)net.st_ino,
			 p->seen.dev, p->seen.ino, title, own ? own : "", json ? json : "");
	if (!json || !own || !k.text)
		return lr_fail(err, ENOMEM, "make the plan");
	k.len = strlen(k.text);
	k.name = lr_strf(a, "%016" PRIx64, lr_hash(LR_HASH, k.text, k.len));
	if (!k.name)
		return lr_fail(err, ENOMEM, "make the plan");
	*ret = k;
	return 0;
}

/*
 * The file: "lean 2", "mode N", one "at HIERARCHY<tab>MOUNTPOINT" a hierarchy, "text",
 * and the rest of it is the text.
 */
static int decode_head(char **at, struct lr_cgroup_layout *ret, struct lr_arena *a)
{
	struct lr_cgroup_layout l = {0};
	char *text = *at, *line = strsep(&text, "\n");

	if (!line || !lr_streq(line, "lean 2"))
		return -EPROTO;
	while ((line = strsep(&text, "\n")) && !lr_streq(line, "text")) {
		char *value = strchr(line, ' '), *tab;
		uint32_t mode;

		if (!value)
			return -EPROTO;
		*value++ = '\0';
		if (lr_streq(line, "mode") && lr_parse_u32(value, &mode) == 0) {
			l.mode = (enum lr_cgroup_mode)mode;
		} else if (lr_streq(line, "at") && (tab = strchr(value, '\t'))) {
			*tab = '\0';
			l.hierarchies = lr_grow(a, l.hierarchies, l.n, sizeof(*l.hierarchies));
			if (!l.hierarchies)
				return -ENOMEM;
			l.hierarchies[l.n++] = (struct lr_cgroup_hierarchy){
				.name = value, .mountpoint = tab + 1, .own = ""};
		} else {
			return -EPROTO;
		}
	}
	if (!text)
		return -EPROTO;
	*ret = l;
	*at = text;
	return 0;
}

static int decode(char *text, struct lr_lean_key *k, struct lr_arena *a)
{
	struct lr_cgroup_layout l;

	int r = decode_head(&text, &l, a);
	if (r < 0)
		return r;
	if (!lr_streq(text, k->text))
		return -EEXIST;
	k->layout = l;
	k->known = true;
	return 1;
}

static void key_file(const char *name, char path[64])
{
	snprintf(path, 64, "key/%.32s", name);
}

int lr_lean_key_load(const struct lr_lean_home *h, struct lr_lean_key *k, struct lr_arena *a,
		     struct lr_err *err)
{
	size_t size = k->len + 8192;
	char path[64], *text = lr_alloc(a, size);

	if (!text)
		return lr_fail(err, ENOMEM, "make the plan");
	key_file(k->name, path);
	LR_CLEANUP_FD int fd = openat(h->fd, path, READ_KEY);
	if (fd < 0 && errno == ENOENT)
		return 0;
	/* It was written at once, so one read has all of it. */
	if (fd < 0 || read(fd, text, size - 1) < 0)
		return lr_fail(err, errno, "read %s/%s", h->path, path);
	int r = decode(text, k, a);
	if (r == -ENOMEM)
		return lr_fail(err, ENOMEM, "make the plan");
	return r < 0 ? lr_refuse(err, -r, "%s/%s is not about this container", h->path, path) : r;
}

int lr_lean_key_save(const struct lr_lean_home *h, const struct lr_lean_key *k, struct lr_arena *a,
		     struct lr_err *err)
{
	char path[64], tmp[96];
	char *text = lr_strf(a, "lean 2\nmode %d\n", k->layout.mode);

	for (size_t i = 0; text && i < k->layout.n; i++)
		text = lr_strf(a, "%sat %s\t%s\n", text, k->layout.hierarchies[i].name,
			       k->layout.hierarchies[i].mountpoint);
	text = text ? lr_strf(a, "%stext\n%s", text, k->text) : NULL;
	if (!text)
		return lr_fail(err, ENOMEM, "make the plan");
	key_file(k->name, path);
	snprintf(tmp, sizeof(tmp), "%s.%d", path, getpid());
	LR_CLEANUP_FD int fd =
		openat(h->fd, tmp, O_WRONLY | O_CREAT | O_TRUNC | O_NOFOLLOW | O_CLOEXEC, 0600);
	ssize_t n = fd < 0 ? -errno : lr_write_full(fd, text, strlen(text));
	if (n >= 0 && renameat(h->fd, tmp, h->fd, path) < 0)
		n = -errno;
	if (n < 0) {
		(void)unlinkat(h->fd, tmp, 0);
		return lr_fail(err, (int)-n, "write %s/%s", h->path, path);
	}
	return 0;
}

/* Reads a key, whatever its text. *ret NULL: there is none. */
static int read_key(const struct lr_lean_home *h, const char *name, struct lr_arena *a, char **ret)
{
	char path[64];
	struct stat st;

	key_file(name, path);
	LR_CLEANUP_FD int fd = openat(h->fd, path, READ_KEY);
	*ret = NULL;
	if (fd < 0 || fstat(fd, &st) < 0)
		return errno == ENOENT ? 0 : -errno;
	if (st.st_size > KEY_FILE_MAX)
		return 0;
	char *text = lr_alloc(a, (size_t)st.st_size + 1);
	ssize_t n = text ? lr_read_full(fd, text, (size_t)st.st_size) : -ENOMEM;
	if (n < 0)
		return (int)n;
	*ret = text;
	return 0;
}

int lr_lean_key_layout(const struct lr_lean_home *h, const char *name, struct lr_arena *a,
		       struct lr_cgroup_layout *ret)
{
	char *text;

	*ret = (struct lr_cgroup_layout){0};
	int r = read_key(h, name, a, &text);
	return text ? decode_head(&text, ret, a) : r;
}

const char *lr_lean_key_title(const struct lr_lean_home *h, const char *name, struct lr_arena *a)
{
	struct lr_cgroup_layout l;
	char *text;

	if (read_key(h, name, a, &text) < 0 || !text || decode_head(&text, &l, a) < 0)
		return "";
	text[strcspn(text, "\n")] = '\0';
	/* VERSION FLAGS DEVICE:INODE ROOTFS */
	for (int i = 0; i < 3 && text; i++) {
		text = strchr(text, ' ');
		text += text != NULL;
	}
	return text ? text : "";
}
