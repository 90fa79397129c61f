/* SPDX-License-Identifier: Apache-2.0 */
/* netdev: the plan; see netdev.h. */
#define LR_ROOM "netdev"
#include <ctype.h>
#include <net/if.h>

#include "src/base/str.h"
#include "src/netdev/netdev.h"

/* dev_valid_name() of the kernel; `why` says what is wrong. */
static bool is_valid(const char *name, const char **why)
{
	if (!name[0])
		*why = "is empty";
	else if (strlen(name) >= IFNAMSIZ)
		*why = "is longer than 15 bytes";
	else if (lr_streq(name, ".") || lr_streq(name, ".."))
		*why = "is a directory";
	else
		*why = NULL;
	for (const char *p = name; !*why && *p; p++) {
		unsigned char c = (unsigned char)*p;
		/* 0xa0: the kernel's isspace() is Latin-1's */
		if (c == '/' || c == ':' || c == ' ' || (c >= '\t' && c <= '\r') || c == 0xa0)
			*why = "holds a slash, a colon or white space";
	}
	return !*why;
}

/* A name in the container may hold one %d, where the kernel puts the first free number. */
static bool is_valid_target(const char *name, bool *is_template, const char **why)
{
	const char *percent = strchr(name, '%');

	*is_template = percent != NULL;
	if (!is_valid(name, why))
		return false;
	if (percent && (percent[1] != 'd' || strchr(percent + 1, '%')))
		*why = "holds a % that is not one %d";
	return !*why;
}

static int check_namespace(const struct oci_namespaces *namespaces, struct lr_err *err)
{
	for (size_t i = 0; namespaces && i < namespaces->n; i++) {
		if (namespaces->v[i].type && lr_streq(namespaces->v[i].type, "network"))
			return 0;
	}
	lr_refuse(err, EINVAL,
		  "network devices can only move to a network namespace, and the "
		  "container has none of its own");
	lr_err_hint(err, "add {\"type\": \"network\"} to linux.namespaces");
	return lr_err_at(err, "linux.netDevices");
}

static int plan_one(const struct oci_net_device *in, struct lr_netdev *d, struct lr_err *err)
{
	const char *why;
	bool has_name = in->name && in->name[0];

	d->host_name = in->host_name;
	d->name = has_name ? in->name : in->host_name;
	if (!is_valid(in->host_name, &why))
		return lr_refuse(err, EINVAL, "device name \"%s\" %s", in->host_name, why);
	if (has_name && !is_valid_target(in->name, &d->is_template, &why))
		return lr_refuse(err, EINVAL, "device name \"%s\" %s", in->name, why);
	return 0;
}

int lr_netdev_plan(const struct oci_net_devices *devices, const struct oci_namespaces *namespaces,
		   struct lr_arena *arena, const struct lr_netdev_plan **ret, struct lr_err *err)
{
	size_t n = devices ? devices->n : 0;
	struct lr_netdev_plan *plan = lr_new(arena, struct lr_netdev_plan);
	struct lr_netdev *v = lr_new_n(arena, n + 1, struct lr_netdev);

	if (!plan || !v)
		return lr_fail(err, ENOMEM, "planning network devices");
	if (n) {
		int r = check_namespace(namespaces, err);
		if (r < 0)
			return r;
	}
	for (size_t i = 0; i < n; i++) {
		int r = plan_one(&devices->v[i], &v[i], err);
		for (size_t k = 0; k < i && r == 0; k++) {
			if (!v[i].is_template && lr_streq(v[i].name, v[k].name))
				r = lr_refuse(err, EINVAL,
					      "\"%s\" is also the name of what was %s on the host",
					      v[i].name, v[k].host_name);
		}
		if (r < 0)
			return lr_err_at(err, "linux.netDevices.%s", devices->v[i].host_name);
	}
	plan->v = v;
	plan->n = n;
	*ret = plan;
	return 0;
}
