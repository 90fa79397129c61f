/* SPDX-License-Identifier: Apache-2.0 */
/* libocispec: checks beyond the tables; see validate.h. */
#define LR_ROOM "config.json"

#include <errno.h>
#include <string.h>

#include "libocispec/validate.h"

/* ---- SemVer 2.0.0 ---------------------------------------------------------------------- */

static bool is_digit(char c)
{
	return c >= '0' && c <= '9';
}

static bool is_identifier_char(char c)
{
	return is_digit(c) || (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || c == '-';
}

/* A number without leading zeros; *value saturates. NULL when there is none. */
static const char *semver_number(const char *s, unsigned *value)
{
	const char *start = s;
	unsigned v = 0;

	for (; is_digit(*s); s++)
		v = v > 100000 ? v : v * 10 + (unsigned)(*s - '0');
	if (s == start || (*start == '0' && s - start > 1))
		return NULL;
	*value = v;
	return s;
}

/* Dot-separated identifiers; numeric ones of a pre-release must not start with a zero. */
static const char *semver_identifiers(const char *s, bool prerelease)
{
	for (;; s++) {
		const char *start = s;
		bool numeric = true;

		for (; is_identifier_char(*s); s++)
			numeric = numeric && is_digit(*s);
		if (s == start)
			return NULL;
		if (prerelease && numeric && *start == '0' && s - start > 1)
			return NULL;
		if (*s != '.')
			return s;
	}
}

bool oci_is_semver(const char *s, unsigned *major)
{
	unsigned rest;

	s = semver_number(s, major);
	for (int i = 0; i < 2; i++) {
		if (!s || *s != '.')
			return false;
		s = semver_number(s + 1, &rest);
	}
	if (s && *s == '-')
		s = semver_identifiers(s + 1, true);
	if (s && *s == '+')
		s = semver_identifiers(s + 1, false);
	return s && *s == '\0';
}

/* ---- documents ------------------------------------------------------------------------- */

static int check_version(const char *version, struct lr_err *err)
{
	unsigned major;

	if (!oci_is_semver(version, &major)) {
		lr_refuse(err, EINVAL, "\"%s\" is not a version like 1.2.0", version);
		lr_err_at(err, "ociVersion");
		return -EINVAL;
	}
	if (major != 1) {
		lr_refuse(err, EINVAL, "version %s of the specification is not supported", version);
		lr_err_hint(err, "any 1.x is");
		lr_err_at(err, "ociVersion");
		return -EINVAL;
	}
	return 0;
}

int oci_validate_process(const struct oci_process *p, const char *what, const char *prefix,
			 struct lr_err *err)
{
	if (p->cwd[0] != '/') {
		lr_err_set(err, EINVAL, what, false, "\"%s\" must be an absolute path", p->cwd);
		lr_err_at(err, "%scwd", prefix);
		return -EINVAL;
	}
	if (p->args.n == 0) {
		lr_err_set(err, EINVAL, what, false,
			   "there must be at least the name of a program");
		lr_err_at(err, "%sargs", prefix);
		return -EINVAL;
	}
	return 0;
}

static int check_root(const struct oci_config *c, struct lr_err *err)
{
	if (!c->root)
		return lr_refuse(err, EINVAL, "the required property \"root\" is missing");
	if (c->root->path[0] == '\0') {
		lr_refuse(err, EINVAL, "must not be empty");
		lr_err_at(err, "root.path");
		return -EINVAL;
	}
	return 0;
}

/* Relative destinations pass: the mount room takes them from the root, with a warning, as runc
 * does. */
static int check_mounts(const struct oci_mounts *mounts, struct lr_err *err)
{
	for (size_t i = 0; i < mounts->n; i++) {
		const char *destination = mounts->v[i].destination;

		if (destination[0] == '\0') {
			lr_refuse(err, EINVAL, "must not be empty");
			lr_err_at(err, "mounts[%zu].destination", i);
			return -EINVAL;
		}
	}
	return 0;
}

static int check_hook_list(const struct oci_hook_list *list, const char *name, struct lr_err *err)
{
	for (size_t i = 0; i < list->n; i++) {
		const struct oci_hook *hook = &list->v[i];

		if (hook->path[0] != '/') {
			lr_refuse(err, EINVAL, "\"%s\" must be an absolute path", hook->path);
			lr_err_at(err, "hooks.%s[%zu].path", name, i);
			return -EINVAL;
		}
		if (hook->timeout && *hook->timeout <= 0) {
			lr_refuse(err, EINVAL, "%d is not a number of seconds above 0",
				  (int)*hook->timeout);
			lr_err_at(err, "hooks.%s[%zu].timeout", name, i);
			return -EINVAL;
		}
	}
	return 0;
}

static int check_hooks(const struct oci_hooks *hooks, struct lr_err *err)
{
	const struct {
		const char *name;
		const struct oci_hook_list *list;
	} lists[] = {
		{"prestart", &hooks->prestart},
		{"createRuntime", &hooks->create_runtime},
		{"createContainer", &hooks->create_container},
		{"startContainer", &hooks->start_container},
		{"poststart", &hooks->poststart},
		{"poststop", &hooks->poststop},
	};

	for (size_t i = 0; i < sizeof(lists) / sizeof(lists[0]); i++) {
		int rc = check_hook_list(lists[i].list, lists[i].name, err);
		if (rc < 0)
			return rc;
	}
	return 0;
}

static int check_linux(const struct oci_linux *l, struct lr_err *err)
{
	for (size_t i = 0; l->seccomp && i < l->seccomp->syscalls.n; i++) {
		if (l->seccomp->syscalls.v[i].names.n > 0)
			continue;
		lr_refuse(err, EINVAL, "there must be at least one name");
		lr_err_at(err, "linux.seccomp.syscalls[%zu].names", i);
		return -EINVAL;
	}
	return 0;
}

int oci_validate_config(const struct oci_config *c, struct lr_err *err)
{
	int rc = check_version(c->oci_version, err);

	if (rc == 0)
		rc = check_root(c, err);
	if (rc == 0 && c->process)
		rc = oci_validate_process(c->process, LR_ROOM, "process.", err);
	if (rc == 0)
		rc = check_mounts(&c->mounts, err);
	if (rc == 0 && c->hooks)
		rc = check_hooks(c->hooks, err);
	if (rc == 0 && c->linux_)
		rc = check_linux(c->linux_, err);
	for (size_t i = 0; rc == 0 && i < c->annotations.n; i++) {
		if (c->annotations.v[i].key[0] == '\0') {
			lr_refuse(err, EINVAL, "a key must not be empty");
			lr_err_at(err, "annotations");
			rc = -EINVAL;
		}
	}
	return rc;
}
