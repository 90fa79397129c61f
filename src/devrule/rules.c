/* SPDX-License-Identifier: Apache-2.0 */
/*
 * devrule: the rules. config.json gives a list in which the last match decides; a list that
 * does not say what becomes of the rest denies it, as runc does, so that an absent list opens no
 * device to a container with CAP_MKNOD. The devices of the default file system (config-linux.md,
 * "Default Devices") stay usable whatever the list says.
 */
#define LR_ROOM "cgroup" /* what it has to say is about that */

#include "src/devrule/devrule.h"

#include <errno.h>
#include <inttypes.h>
#include <string.h>

#include "src/base/str.h"

/* Making a node gives no access to the device: linux.devices may name any, and so may a container
 * with CAP_MKNOD, as under runc. */
static const struct {
	char type;
	int major, minor;
	unsigned access;
} defaults[] = {
	{'c', -1, -1, LR_DEV_M},    {'b', -1, -1, LR_DEV_M}, {'c', 1, 3, LR_DEV_ALL}, /* null */
	{'c', 1, 5, LR_DEV_ALL},                                                      /* zero */
	{'c', 1, 7, LR_DEV_ALL},                                                      /* full */
	{'c', 1, 8, LR_DEV_ALL},                                                      /* random */
	{'c', 1, 9, LR_DEV_ALL},                                                      /* urandom */
	{'c', 5, 0, LR_DEV_ALL},                                                      /* tty */
	{'c', 5, 2, LR_DEV_ALL},                                                      /* ptmx */
	{'c', 136, -1, LR_DEV_ALL},                                                   /* pts/N */
	{'c', 5, 1, LR_DEV_ALL}, /* console, last: only with a terminal */
};

static bool covers_all(const struct lr_devrule *d)
{
	return d->type == 'a' && d->major < 0 && d->minor < 0 && d->access == LR_DEV_ALL;
}

static int parse_access(const char *text, unsigned *ret)
{
	*ret = 0;
	for (const char *p = text ? text : "rwm"; *p; p++) {
		if (*p == 'r')
			*ret |= LR_DEV_R;
		else if (*p == 'w')
			*ret |= LR_DEV_W;
		else if (*p == 'm')
			*ret |= LR_DEV_M;
		else
			return -EINVAL;
	}
	/* Some callers write "" for "all". */
	if (!*ret)
		*ret = LR_DEV_ALL;
	return 0;
}

static int parse_number(const int64_t *p, int64_t *ret)
{
	*ret = p ? *p : -1;
	return *ret < -1 || *ret > UINT32_MAX ? -ERANGE : 0;
}

static int parse_rule(const struct oci_device_cgroup *in, size_t i, struct lr_arena *arena,
		      struct lr_devrule *d, struct lr_err *err)
{
	const char *type = in->type && *in->type ? in->type : "a";

	d->allow = in->allow;
	d->where = lr_strf(arena, LR_DEVRULES_WHERE "[%zu]", i);
	if (!d->where)
		return lr_fail(err, ENOMEM, "cannot plan the device rules");
	d->type = type[0];
	if (type[1] || !strchr("abc", type[0]))
		lr_refuse(err, EINVAL, "device type \"%.16s\" is none of a, b, c", type);
	else if (parse_access(in->access, &d->access) < 0)
		lr_refuse(err, EINVAL, "access \"%.16s\" is not made of r, w and m", in->access);
	else if (parse_number(in->major, &d->major) < 0 || parse_number(in->minor, &d->minor) < 0)
		lr_refuse(err, EINVAL, "device number out of range");
	else
		return 0;
	lr_err_at(err, "%s", d->where);
	return -EINVAL;
}

/* Which of the wanted accesses to one device the rules grant. */
static unsigned granted(const struct lr_devrules *devs, char type, int64_t major, int64_t minor)
{
	unsigned open = LR_DEV_ALL, yes = 0;

	for (size_t i = devs->n; i-- > 0 && open;) {
		const struct lr_devrule *d = &devs->v[i];

		if ((d->type != 'a' && d->type != type) || (d->major >= 0 && d->major != major))
			continue;
		if (d->minor >= 0 && d->minor != minor) {
			/* Asked about every minor, and denied one: not all of it is granted. */
			if (minor < 0 && !d->allow)
				open &= ~d->access;
			continue;
		}
		if (d->allow)
			yes |= open & d->access;
		open &= ~d->access;
	}
	return devs->allow_rest ? yes | open : yes;
}

int lr_devrules_of(const struct oci_device_cgroups *devices, bool terminal, struct lr_arena *arena,
		   struct lr_devrules *ret, struct lr_err *err)
{
	size_t n = devices ? devices->n : 0, start = 0, k = 0;
	struct lr_devrule *v = lr_new_n(arena, n + LR_ARRAY_SIZE(defaults), struct lr_devrule);

	*ret = (struct lr_devrules){0};
	if (!v)
		return lr_fail(err, ENOMEM, "cannot plan the device rules");
	for (size_t i = 0; i < n; i++) {
		int r = parse_rule(&devices->v[i], i, arena, &v[k], err);
		if (r < 0)
			return r;
		if (covers_all(&v[k++])) {
			ret->allow_rest = v[k - 1].allow;
			start = k;
		}
	}
	ret->v = v + start;
	ret->n = k - start;
	for (size_t i = 0; i < LR_ARRAY_SIZE(defaults) - !terminal; i++) {
		unsigned has = granted(ret, defaults[i].type, defaults[i].major, defaults[i].minor);
		if ((has & defaults[i].access) == defaults[i].access)
			continue;
		ret->v[ret->n++] = (struct lr_devrule){
			.type = defaults[i].type,
			.major = defaults[i].major,
			.minor = defaults[i].minor,
			.access = defaults[i].access,
			.allow = true,
			.where = LR_DEVRULES_WHERE,
		};
	}
	return 0;
}

/* ---- v1: a default and exceptions ---------------------------------------------------------- */

static bool number_covers(int64_t a, int64_t b)
{
	return a < 0 || a == b;
}

static bool number_meets(int64_t a, int64_t b)
{
	return a < 0 || b < 0 || a == b;
}

/* Takes `d` out of the exceptions. -EINVAL when only a part of one would have to go. */
static int cut(struct lr_devrules *x, const struct lr_devrule *d, struct lr_err *err)
{
	size_t keep = 0;

	for (size_t i = 0; i < x->n; i++) {
		struct lr_devrule *e = &x->v[i];
		bool meets = e->type == d->type && number_meets(e->major, d->major) &&
			     number_meets(e->minor, d->minor) && (e->access & d->access);

		if (meets &&
		    !(number_covers(d->major, e->major) && number_covers(d->minor, e->minor))) {
			lr_refuse(
				err, EINVAL,
				"cgroup v1 cannot %s a part of the devices of an earlier rule (%c "
				"%" PRIi64 ":%" PRIi64 ")",
				d->allow ? "allow" : "deny", e->type, e->major, e->minor);
			lr_err_at(err, "%s", d->where);
			return lr_err_hint(err, "list the devices one by one (-1 stands for any "
						"number)");
		}
		if (meets)
			e->access &= ~d->access;
		if (e->access)
			x->v[keep++] = *e;
	}
	x->n = keep;
	return 0;
}

static void merge(struct lr_devrules *x, const struct lr_devrule *d)
{
	for (size_t i = 0; i < x->n; i++) {
		struct lr_devrule *e = &x->v[i];

		if (e->type == d->type && e->major == d->major && e->minor == d->minor) {
			e->access |= d->access;
			return;
		}
	}
	x->v[x->n++] = *d;
}

int lr_devrules_flatten(const struct lr_devrules *in, struct lr_arena *arena,
			struct lr_devrules *ret, struct lr_err *err)
{
	*ret = (struct lr_devrules){.allow_rest = in->allow_rest};
	/* "a" with numbers or fewer accesses stands for both types. */
	ret->v = lr_new_n(arena, 2 * in->n + 1, struct lr_devrule);
	if (!ret->v)
		return lr_fail(err, ENOMEM, "cannot plan the device rules");
	for (size_t i = 0; i < in->n; i++) {
		for (const char *type = in->v[i].type == 'b' ? "b" : "cb"; *type; type++) {
			struct lr_devrule d = in->v[i];
			int r;

			if (d.type != 'a' && d.type != *type)
				continue;
			d.type = *type;
			if (d.allow == ret->allow_rest) {
				r = cut(ret, &d, err);
				if (r < 0)
					return r;
			} else {
				merge(ret, &d);
			}
		}
	}
	return 0;
}
