/* SPDX-License-Identifier: Apache-2.0 */
/*
 * mount: the options of a mount, by one table (runtime-spec config.md "Linux mount options", plus
 * what crun adds). What the table does not know is data for the file system. Pure.
 */
#define LR_ROOM "mount"
#include "src/mount/internal.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "src/base/str.h"

/* fsconfig(2) takes string values below this many bytes only (strndup_user(value, 256)). */
#define FSCONFIG_VALUE_MAX 256

enum class {
	NOTHING,  /* accepted, means the default */
	ATTR_SET, /* MOUNT_ATTR_* bit */
	ATTR_CLEAR,
	ATIME_SET,   /* MOUNT_ATTR__ATIME value */
	ATIME_UNSET, /* "not that one": the kernel's default instead */
	SB_SET,      /* MS_* bit of the superblock */
	SB_CLEAR,
	PROP, /* MS_SHARED ... */
	ACL,  /* MS_POSIXACL or data, as the file system likes it */
	WORD, /* enum word */
};

enum word {
	BIND,
	RBIND,
	REMOUNT,
	IDMAP,
	RIDMAP,
	COPYUP,
	COPY_SYMLINK,
	SRC_NOFOLLOW,
	DEST_NOFOLLOW
};

struct option {
	const char *name;
	enum class class;
	uint64_t value;
	bool rec;
};

/* Sorted by name (strcmp): searched by bisection, and shown by `features` in this order. */
static const struct option table[] = {
	{"acl", ACL, 1, false},
	{"async", SB_CLEAR, MS_SYNCHRONOUS, false},
	{"atime", ATIME_UNSET, MOUNT_ATTR_NOATIME, false},
	{"bind", WORD, BIND, false},
	{"copy-symlink", WORD, COPY_SYMLINK, false},
	{"defaults", NOTHING, 0, false},
	{"dest-nofollow", WORD, DEST_NOFOLLOW, false},
	{"dev", ATTR_CLEAR, MOUNT_ATTR_NODEV, false},
	{"diratime", ATTR_CLEAR, MOUNT_ATTR_NODIRATIME, false},
	{"dirsync", SB_SET, MS_DIRSYNC, false},
	{"exec", ATTR_CLEAR, MOUNT_ATTR_NOEXEC, false},
	{"idmap", WORD, IDMAP, false},
	{"iversion", SB_SET, MS_I_VERSION, false},
	{"lazytime", SB_SET, MS_LAZYTIME, false},
	{"loud", SB_CLEAR, MS_SILENT, false},
	{"mand", SB_SET, MS_MANDLOCK, false},
	{"noacl", ACL, 0, false},
	{"noatime", ATIME_SET, MOUNT_ATTR_NOATIME, false},
	{"nodev", ATTR_SET, MOUNT_ATTR_NODEV, false},
	{"nodiratime", ATTR_SET, MOUNT_ATTR_NODIRATIME, false},
	{"noexec", ATTR_SET, MOUNT_ATTR_NOEXEC, false},
	{"noiversion", SB_CLEAR, MS_I_VERSION, false},
	{"nolazytime", SB_CLEAR, MS_LAZYTIME, false},
	{"nomand", SB_CLEAR, MS_MANDLOCK, false},
	{"norelatime", ATIME_UNSET, MOUNT_ATTR_RELATIME, false},
	{"nostrictatime", ATIME_UNSET, MOUNT_ATTR_STRICTATIME, false},
	{"nosuid", ATTR_SET, MOUNT_ATTR_NOSUID, false},
	{"nosymfollow", ATTR_SET, MOUNT_ATTR_NOSYMFOLLOW, false},
	{"private", PROP, MS_PRIVATE, false},
	{"ratime", ATIME_UNSET, MOUNT_ATTR_NOATIME, true},
	{"rbind", WORD, RBIND, false},
	{"rdev", ATTR_CLEAR, MOUNT_ATTR_NODEV, true},
	{"rdiratime", ATTR_CLEAR, MOUNT_ATTR_NODIRATIME, true},
	{"relatime", ATIME_SET, MOUNT_ATTR_RELATIME, false},
	{"remount", WORD, REMOUNT, false},
	{"rexec", ATTR_CLEAR, MOUNT_ATTR_NOEXEC, true},
	{"ridmap", WORD, RIDMAP, false},
	{"rnoatime", ATIME_SET, MOUNT_ATTR_NOATIME, true},
	{"rnodev", ATTR_SET, MOUNT_ATTR_NODEV, true},
	{"rnodiratime", ATTR_SET, MOUNT_ATTR_NODIRATIME, true},
	{"rnoexec", ATTR_SET, MOUNT_ATTR_NOEXEC, true},
	{"rnorelatime", ATIME_UNSET, MOUNT_ATTR_RELATIME, true},
	{"rnostrictatime", ATIME_UNSET, MOUNT_ATTR_STRICTATIME, true},
	{"rnosuid", ATTR_SET, MOUNT_ATTR_NOSUID, true},
	{"rnosymfollow", ATTR_SET, MOUNT_ATTR_NOSYMFOLLOW, true},
	{"ro", ATTR_SET, MOUNT_ATTR_RDONLY, false},
	{"rprivate", PROP, MS_PRIVATE, true},
	{"rrelatime", ATIME_SET, MOUNT_ATTR_RELATIME, true},
	{"rro", ATTR_SET, MOUNT_ATTR_RDONLY, true},
	{"rrw", ATTR_CLEAR, MOUNT_ATTR_RDONLY, true},
	{"rshared", PROP, MS_SHARED, true},
	{"rslave", PROP, MS_SLAVE, true},
	{"rstrictatime", ATIME_SET, MOUNT_ATTR_STRICTATIME, true},
	{"rsuid", ATTR_CLEAR, MOUNT_ATTR_NOSUID, true},
	{"rsymfollow", ATTR_CLEAR, MOUNT_ATTR_NOSYMFOLLOW, true},
	{"runbindable", PROP, MS_UNBINDABLE, true},
	{"rw", ATTR_CLEAR, MOUNT_ATTR_RDONLY, false},
	{"shared", PROP, MS_SHARED, false},
	{"silent", SB_SET, MS_SILENT, false},
	{"slave", PROP, MS_SLAVE, false},
	{"src-nofollow", WORD, SRC_NOFOLLOW, false},
	{"strictatime", ATIME_SET, MOUNT_ATTR_STRICTATIME, false},
	{"suid", ATTR_CLEAR, MOUNT_ATTR_NOSUID, false},
	{"symfollow", ATTR_CLEAR, MOUNT_ATTR_NOSYMFOLLOW, false},
	{"sync", SB_SET, MS_SYNCHRONOUS, false},
	{"tmpcopyup", WORD, COPYUP, false},
	{"unbindable", PROP, MS_UNBINDABLE, false},
};

static int by_name(const void *key, const void *entry)
{
	return strcmp(key, ((const struct option *)entry)->name);
}

static const struct option *find(const char *name)
{
	return bsearch(name, table, LR_ARRAY_SIZE(table), sizeof(table[0]), by_name);
}

const char *const *lr_mount_option_names(size_t *n)
{
	static const char *names[LR_ARRAY_SIZE(table) + 1];

	for (size_t i = 0; i < LR_ARRAY_SIZE(table); i++)
		names[i] = table[i].name;
	if (n)
		*n = LR_ARRAY_SIZE(table);
	return names;
}

unsigned long lr_mount_prop_parse(const char *name, bool *rec)
{
	const struct option *opt = find(name);

	if (!opt || opt->class != PROP)
		return 0;
	if (rec)
		*rec = opt->rec;
	return opt->value;
}

/* The later option wins: a recursive one also overrides what an earlier one said of the top mount,
 * a plain one overrides the recursive one for the top mount only (it is applied after it). */
static void take_attr(struct lr_mount_options *o, const struct option *opt)
{
	bool set = opt->class == ATTR_SET;

	o->set &= ~opt->value;
	o->clear &= ~opt->value;
	if (!opt->rec) {
		*(set ? &o->set : &o->clear) |= opt->value;
		return;
	}
	o->rset &= ~opt->value;
	o->rclear &= ~opt->value;
	*(set ? &o->rset : &o->rclear) |= opt->value;
}

/* Access time is one field of three values, not bits: changing it clears the whole field first. */
static void take_atime(struct lr_mount_options *o, const struct option *opt)
{
	uint64_t *set = opt->rec ? &o->rset : &o->set, *clear = opt->rec ? &o->rclear : &o->clear;
	uint64_t mode = opt->value;

	if (opt->class == ATIME_UNSET) {
		if ((*clear & MOUNT_ATTR__ATIME) && (*set & MOUNT_ATTR__ATIME) != mode)
			return;
		mode = MOUNT_ATTR_RELATIME;
	}
	o->set &= ~(uint64_t)MOUNT_ATTR__ATIME;
	o->clear &= ~(uint64_t)MOUNT_ATTR__ATIME;
	*set = (*set & ~(uint64_t)MOUNT_ATTR__ATIME) | mode;
	*clear |= MOUNT_ATTR__ATIME;
}

static int take_prop(struct lr_mount_options *o, const struct option *opt, struct lr_arena *arena)
{
	struct lr_mount_prop *v = lr_grow(arena, o->props, o->n_props, sizeof(*v));

	if (!v)
		return -ENOMEM;
	v[o->n_props++] = (struct lr_mount_prop){opt->value, opt->rec};
	o->props = v;
	return 0;
}

static void take_word(struct lr_mount_options *o, enum word word)
{
	switch (word) {
	case BIND:
		/* After "rbind" it is still the whole tree, as with runc and crun. */
		o->bind = true;
		break;
	case RBIND:
		o->bind = o->rec = true;
		break;
	case REMOUNT:
		o->remount = true;
		break;
	case IDMAP:
		o->idmap = true;
		o->ridmap = false;
		break;
	case RIDMAP:
		o->idmap = o->ridmap = true;
		break;
	case COPYUP:
		o->copyup = true;
		break;
	case COPY_SYMLINK:
		o->copy_symlink = true;
		break;
	case SRC_NOFOLLOW:
		o->src_nofollow = true;
		break;
	case DEST_NOFOLLOW:
		o->dest_nofollow = true;
		break;
	}
}

int lr_mount_options_add(struct lr_mount_options *o, const char *key, const char *value,
			 const char *text, struct lr_arena *arena)
{
	struct lr_mount_param *v = lr_grow(arena, o->params, o->n_params, sizeof(*v));
	char *data = lr_concat(arena, o->data, *o->data ? "," : "", text, NULL);

	if (!v || !data)
		return -ENOMEM;
	v[o->n_params++] = (struct lr_mount_param){key, value};
	o->params = v;
	o->data = data;
	if (value && strlen(value) >= FSCONFIG_VALUE_MAX)
		o->only_mount2 = true;
	return 0;
}

bool lr_mount_options_has(const struct lr_mount_options *o, const char *key)
{
	for (size_t i = 0; i < o->n_params; i++)
		if (lr_streq(o->params[i].key, key))
			return true;
	return false;
}

/* "size=64k", "newinstance", context="a:b:c:d1,d2" (quoted for mount(2), bare for fsconfig). */
static int take_data(struct lr_mount_options *o, const char *text, struct lr_arena *arena)
{
	const char *eq = strchr(text, '=');

	if (!eq) {
		if (strchr(text, ','))
			o->only_mount2 = true;
		return lr_mount_options_add(o, text, NULL, text, arena);
	}
	size_t len = strlen(eq + 1);
	bool quoted = len >= 2 && eq[1] == '"' && eq[len] == '"';
	const char *key = lr_strndup(arena, text, (size_t)(eq - text));
	const char *value = quoted ? lr_strndup(arena, eq + 2, len - 2) : eq + 1;
	if (!key || !value)
		return -ENOMEM;
	/* Several options in one string, or none before "=": only mount(2) splits such text. */
	if (!*key || (!quoted && strchr(text, ',')))
		o->only_mount2 = true;
	return lr_mount_options_add(o, key, value, text, arena);
}

/* File systems that know the words "acl" and "noacl"; others get the mount flag or its absence. */
static bool has_acl_option(const char *type)
{
	static const char *const known[] = {"btrfs", "ceph", "erofs", "ext2", "ext3", "ext4",
					    "f2fs",  "gfs2", "jffs2", "nfs",  "nfs4", "ocfs2"};

	for (size_t i = 0; type && i < LR_ARRAY_SIZE(known); i++)
		if (lr_streq(type, known[i]))
			return true;
	return false;
}

static int take_acl(struct lr_mount_options *o, const struct option *opt, const char *type,
		    struct lr_arena *arena)
{
	if (has_acl_option(type))
		return lr_mount_options_add(o, opt->name, NULL, opt->name, arena);
	if (opt->value)
		o->sb |= MS_POSIXACL;
	else
		o->sb &= ~(unsigned long)MS_POSIXACL;
	return 0;
}

static bool is_flag(const struct option *opt)
{
	return opt->class != NOTHING && opt->class != PROP && opt->class != WORD;
}

static int take(struct lr_mount_options *o, const char *text, const char *type,
		struct lr_arena *arena)
{
	const struct option *opt = find(text);

	if (!opt)
		return take_data(o, text, arena);
	o->named |= is_flag(opt) && !opt->rec;
	switch (opt->class) {
	case NOTHING:
		break;
	case ATTR_SET:
	case ATTR_CLEAR:
		take_attr(o, opt);
		break;
	case ATIME_SET:
	case ATIME_UNSET:
		take_atime(o, opt);
		break;
	case SB_SET:
		o->sb |= opt->value;
		break;
	case SB_CLEAR:
		o->sb &= ~opt->value;
		break;
	case PROP:
		return take_prop(o, opt, arena);
	case ACL:
		return take_acl(o, opt, type, arena);
	case WORD:
		take_word(o, (enum word)opt->value);
		break;
	}
	return 0;
}

/* "idmap=uids=...;gids=..." carries its own mapping; it must not end up as file system data. */
static bool take_idmap_spec(struct lr_mount_options *o, const char *text)
{
	bool rec = lr_has_prefix(text, "ridmap=");

	if (!rec && !lr_has_prefix(text, "idmap="))
		return false;
	take_word(o, rec ? RIDMAP : IDMAP);
	o->idmap_spec = strchr(text, '=') + 1;
	return true;
}

int lr_mount_options_parse(const struct oci_strv *options, const char *type, size_t index,
			   struct lr_arena *arena, struct lr_mount_options *ret, struct lr_err *err)
{
	*ret = (struct lr_mount_options){.data = ""};
	for (size_t i = 0; i < options->n; i++) {
		const char *text = options->v[i];

		/* Buildah writes an empty one for each volume; runc and crun say nothing. */
		if (!*text || take_idmap_spec(ret, text))
			continue;
		int r = take(ret, text, type, arena);
		if (r < 0) {
			lr_fail(err, -r, "mount option \"%s\"", text);
			lr_err_at(err, "mounts[%zu].options[%zu]", index, i);
			return r;
		}
	}
	/* fsconfig(2) has no word for these superblock flags. */
	if (ret->sb & (MS_I_VERSION | MS_SILENT | MS_POSIXACL))
		ret->only_mount2 = true;
	return 0;
}
