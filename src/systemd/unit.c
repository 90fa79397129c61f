/* SPDX-License-Identifier: Apache-2.0 */
/* systemd: names of units, and what kind of unit a container's is. */
#define LR_ROOM "systemd"

#include "src/systemd/systemd.h"

#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "libocispec/ocispec.h"
#include "src/base/str.h"

#define UNIT_NAME_MAX 255
#define SUBGROUP      "run.oci.systemd.subgroup"
#define PROPERTY      "org.systemd.property."

static int no_memory(struct lr_err *err)
{
	return lr_fail(err, ENOMEM, "cannot plan the unit");
}

/* ---- names ---------------------------------------------------------------------------------- */

/* As systemd-escape(1): what a unit's name cannot hold becomes \xNN. Ids may have a "+". */
static const char *escape(const char *name, struct lr_arena *arena)
{
	static const char valid[] = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ"
				    "0123456789:-_.\\@";
	char *out = lr_alloc(arena, 4 * strlen(name) + 1), *p = out;

	for (; p && *name; name++)
		if (strchr(valid, *name))
			*p++ = *name;
		else
			p += snprintf(p, 5, "\\x%02x", (unsigned char)*name);
	return out;
}

/* "a-b.slice" is below "a.slice": no part between dashes may be empty. "-.slice" is the root. */
static bool is_slice_name(const char *s)
{
	size_t len = strlen(s), stem = len - strlen(".slice");

	if (!lr_has_suffix(s, ".slice") || stem == 0 || len > UNIT_NAME_MAX || strchr(s, '/'))
		return false;
	if (stem == 1 && s[0] == '-')
		return true;
	for (size_t i = 0; i < stem; i++)
		if (s[i] == '-' && (i == 0 || i + 1 == stem || s[i + 1] == '-'))
			return false;
	return s[0] != '.';
}

/* The slice that a slice is in, by its name. */
static const char *parent_slice(const char *slice, struct lr_arena *arena)
{
	const char *dash = strrchr(slice, '-');

	return dash && dash > slice ? lr_strf(arena, "%.*s.slice", (int)(dash - slice), slice)
				    : "-.slice";
}

static int refuse(struct lr_err *err, const char *what, const char *path)
{
	lr_refuse(err, EINVAL, "%s: \"%.200s\"", what, path);
	lr_err_hint(err, "with the systemd manager it is slice:prefix:name, such as "
			 "machine.slice:libpod:id, which becomes machine.slice/libpod-id.scope");
	return lr_err_at(err, "linux.cgroupsPath");
}

/* "slice:prefix:name" into its parts; name may hold more colons. */
static int split(const char *path, const struct lr_systemd_opts *o, struct lr_arena *arena,
		 struct lr_systemd_unit *u, struct lr_err *err)
{
	const char *first = strchr(path, ':'), *second = first ? strchr(first + 1, ':') : NULL;
	const char *name;
	int prefix;

	if (!second || !second[1] || strchr(path, '/'))
		return refuse(err, "not the name of a systemd unit", path);
	prefix = (int)(second - first - 1);
	u->slice = first > path ? lr_strf(arena, "%.*s", (int)(first - path), path)
		   : o->user    ? "user.slice"
				: "system.slice";
	if (!u->slice)
		return no_memory(err);
	if (!is_slice_name(u->slice))
		return refuse(err, "not the name of a slice", u->slice);
	name = second + 1;
	u->is_slice = lr_has_suffix(name, ".slice");
	if (u->is_slice && (!is_slice_name(name) || name[0] == '-'))
		return refuse(err, "not the name of a slice", name);
	if (u->is_slice)
		u->slice = parent_slice(name, arena);
	else
		name = lr_strf(arena, "%.*s%s%s.scope", prefix, first + 1, prefix ? "-" : "", name);
	u->name = name ? escape(name, arena) : NULL;
	return u->name && u->slice ? 0 : no_memory(err);
}

static int set_subgroup(const struct lr_systemd_opts *o, struct lr_systemd_unit *u,
			struct lr_err *err)
{
	const char *sub = oci_map_get(o->annotations, SUBGROUP);

	if (!sub || !*sub)
		return 0;
	if (strpbrk(sub, "/\n\r") || sub[0] == '.' || strlen(sub) > NAME_MAX) {
		lr_refuse(err, EINVAL, "not the name of a sub-cgroup: \"%.100s\"", sub);
		return lr_err_at(err, "annotations[\"" SUBGROUP "\"]");
	}
	u->subgroup = sub;
	return 0;
}

int lr_systemd_unit_of(const char *cgroups_path, const struct lr_systemd_opts *o,
		       struct lr_arena *arena, struct lr_systemd_unit *ret, struct lr_err *err)
{
	struct lr_systemd_unit u = {0};
	const char *path = cgroups_path && *cgroups_path
				   ? cgroups_path
				   : lr_strf(arena, ":lean-runtime:%s", o->id);
	int r = path ? split(path, o, arena, &u, err) : no_memory(err);

	if (r == 0 && strlen(u.name) > UNIT_NAME_MAX)
		r = refuse(err, "too long for the name of a unit", u.name);
	if (r == 0)
		r = set_subgroup(o, &u, err);
	if (r == 0)
		*ret = u;
	return r;
}

const char *lr_systemd_unit_path(const struct lr_systemd_unit *u, struct lr_arena *arena)
{
	const char *path = "";

	/* Each slice is below the one that its name extends. */
	for (const char *p = u->slice; path && *p && p[0] != '-'; p += *p == '-') {
		p += strcspn(p, "-");
		path = *p ? lr_strf(arena, "%s/%.*s.slice", path, (int)(p - u->slice), u->slice)
			  : lr_strf(arena, "%s/%s", path, u->slice);
	}
	return path ? lr_strf(arena, "%s/%s%s%s", path, u->name, u->subgroup ? "/" : "",
			      u->subgroup ? u->subgroup : "")
		    : NULL;
}

/* ---- properties ----------------------------------------------------------------------------- */

static int add(struct lr_systemd_props *props, struct lr_arena *arena, struct lr_systemd_prop one,
	       struct lr_err *err)
{
	return one.name && lr_systemd_put(props, one, arena) ? 0 : no_memory(err);
}

/* As a string in GVariant's text form. */
static const char *quote(const char *s, struct lr_arena *arena)
{
	char *out = lr_alloc(arena, 2 * strlen(s) + 3), *p = out;

	if (!out)
		return NULL;
	for (*p++ = '\''; *s; *p++ = *s++)
		if (*s == '\'' || *s == '\\')
			*p++ = '\\';
	*p = '\'';
	return out;
}

static int add_nature(struct lr_systemd_unit *u, const struct lr_systemd_opts *o,
		      struct lr_arena *arena, struct lr_err *err)
{
	const struct lr_systemd_prop common[] = {
		{"Description", lr_strf(arena, "'container %s'", o->id), NULL, false},
		{"DefaultDependencies", "false", NULL, false},
		/* Controllers, also where systemd would see no use for them. */
		{"CPUAccounting", "true", NULL, false},
		{"MemoryAccounting", "true", NULL, false},
		{"TasksAccounting", "true", NULL, false},
		{o->v2 ? "IOAccounting" : "BlockIOAccounting", "true", NULL, true},
	};
	const struct lr_systemd_prop scope[] = {
		{"Slice", quote(u->slice, arena), "linux.cgroupsPath", false},
		{"Delegate", "true", NULL, false},
		/* One that failed (out of memory, say) is not kept for somebody to look at. */
		{"CollectMode", "'inactive-or-failed'", NULL, true},
	};
	int r = 0;

	for (size_t i = 0; r == 0 && i < LR_ARRAY_SIZE(common); i++)
		r = add(&u->props, arena, common[i], err);
	/* Where a slice is, is in its name; and it cannot be delegated. */
	for (size_t i = 0; r == 0 && !u->is_slice && i < LR_ARRAY_SIZE(scope); i++)
		r = add(&u->props, arena, scope[i], err);
	return r;
}

/* "TimeoutStopSec" in seconds is what people know from unit files; D-Bus has "TimeoutStopUSec" as
 * uint64. The numbers' types do not matter then. */
static int add_seconds(struct lr_systemd_props *props, const char *name, const char *value,
		       const char *where, struct lr_arena *arena, struct lr_err *err)
{
	const char *number = strrchr(value, ' ');
	char *end;
	double s = strtod(number ? number + 1 : value, &end);
	const struct lr_systemd_prop prop = {
		.name = lr_strf(arena, "%.*sUSec", (int)(strlen(name) - strlen("Sec")), name),
		.value = lr_strf(arena, "uint64 %llu",
				 s >= 0 && s < 1e12 ? (unsigned long long)(s * 1e6) : 0ULL),
		.where = where,
	};

	if (*end || end == value || !(s >= 0 && s < 1e12)) {
		lr_refuse(err, EINVAL, "not a number of seconds: %.100s", value);
		return lr_err_at(err, "%s", where);
	}
	return add(props, arena, prop, err);
}

/* As it is; but what is no value is told before anything has been made. */
static int add_value(struct lr_systemd_props *props, const char *name, const char *value,
		     const char *where, struct lr_arena *arena, struct lr_err *err)
{
	uint8_t buf[4096];
	struct lr_dbus_out scratch = {.buf = buf, .cap = sizeof(buf)};
	int r = lr_dbus_put_text(&scratch, value, err);

	if (r < 0)
		return lr_err_at(err, "%s", where);
	return add(props, arena, (struct lr_systemd_prop){name, value, where, false}, err);
}

static bool is_property_name(const char *s)
{
	return s[0] >= 'A' && s[0] <= 'Z' && s[1] &&
	       strspn(s, "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ") == strlen(s);
}

static int add_annotations(struct lr_systemd_unit *u, const struct lr_systemd_opts *o,
			   struct lr_arena *arena, struct lr_err *err)
{
	int r = 0;

	for (size_t i = 0; r == 0 && o->annotations && i < o->annotations->n; i++) {
		const char *key = o->annotations->v[i].key, *value = o->annotations->v[i].value;
		const char *name = key + strlen(PROPERTY), *where;

		if (!lr_has_prefix(key, PROPERTY))
			continue;
		where = lr_strf(arena, "annotations[\"%.120s\"]", key);
		if (!where)
			return no_memory(err);
		if (!is_property_name(name)) {
			lr_refuse(err, EINVAL, "not the name of a unit's property: %.100s", name);
			return lr_err_at(err, "%s", where);
		}
		if (lr_has_suffix(name, "Sec") && !lr_has_suffix(name, "USec"))
			r = add_seconds(&u->props, name, value, where, arena, err);
		else
			r = add_value(&u->props, name, value, where, arena, err);
	}
	return r;
}

int lr_systemd_unit_describe(struct lr_systemd_unit *u, const struct lr_systemd_opts *o,
			     const struct lr_systemd_limit *limits, size_t n,
			     struct lr_arena *arena, struct lr_err *err)
{
	int r = add_nature(u, o, arena, err);

	if (r == 0)
		r = lr_systemd_limits(limits, n, o->v2, false, arena, &u->props, err);
	return r == 0 ? add_annotations(u, o, arena, err) : r;
}
