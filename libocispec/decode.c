/* SPDX-License-Identifier: Apache-2.0 */
/* libocispec: the decoders of whole documents, and reading their files; see ocispec.h. */
#define LR_ROOM "ocispec"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "libocispec/ocispec.h"
#include "libocispec/tables.h"
#include "libocispec/validate.h"
#include "src/base/fd.h"
#include "src/base/str.h"

static int decode(const struct oci_type *type, const char *what, const char *text, size_t len,
		  struct lr_arena *arena, void **ret, struct lr_err *err)
{
	const struct lr_json_source src = {
		.text = text, .len = len, .max = OCI_CONFIG_MAX, .what = what};
	void *object = lr_alloc(arena, type->size);
	int rc;

	if (!object)
		return lr_refuse(err, ENOMEM, "out of memory");
	rc = oci_table_decode(type, &src, arena, object, err);
	if (rc == 0)
		*ret = object;
	return rc;
}

/* What said something else in an earlier version of the specification is said in today's words:
 * before 1.3 a limit of 0 processes was none. Podman 4 writes that for --pids-limit=-1. */
static void translate(struct oci_config *c)
{
	static const int64_t none = -1;
	const struct oci_resources *r = c->linux_ ? c->linux_->resources : NULL;
	bool old = strtoul(c->oci_version + strlen("1."), NULL, 10) < 3;

	if (old && r && r->pids && r->pids->limit && *r->pids->limit == 0)
		((struct oci_pids *)(size_t)r->pids)->limit = &none; /* decoded a moment ago */
}

int oci_config_decode(const char *text, size_t len, struct lr_arena *arena,
		      const struct oci_config **ret, struct lr_err *err)
{
	void *object;
	int rc = decode(&oci_config_type, "config.json", text, len, arena, &object, err);

	if (rc == 0)
		rc = oci_validate_config(object, err);
	if (rc == 0) {
		translate(object);
		*ret = object;
	}
	return rc;
}

int oci_process_decode(const char *text, size_t len, struct lr_arena *arena,
		       const struct oci_process **ret, struct lr_err *err)
{
	void *object;
	int rc = decode(&oci_process_type, "process.json", text, len, arena, &object, err);

	if (rc == 0)
		rc = oci_validate_process(object, "process.json", "", err);
	if (rc == 0)
		*ret = object;
	return rc;
}

int oci_resources_decode(const char *text, size_t len, struct lr_arena *arena,
			 const struct oci_resources **ret, struct lr_err *err)
{
	void *object;
	int rc = decode(&oci_resources_type, "resources", text, len, arena, &object, err);

	if (rc == 0)
		*ret = object;
	return rc;
}

int oci_mounts_decode(const char *text, size_t len, struct lr_arena *arena, struct oci_mounts *ret,
		      struct lr_err *err)
{
	struct document {
		struct oci_mounts mounts;
	};
	static const struct oci_field fields[] = {
		OCI_LIST(struct document, "mounts", mounts, &oci_mount_type, OCI_REQUIRED),
	};
	static const struct oci_type type = OCI_TYPE("mounts", struct document, fields);
	static const char before[] = "{\"mounts\":", after[] = "}";
	size_t blank = 0;
	void *object;

	while (blank < len && strchr(" \t\r\n", text[blank]))
		blank++;
	if (blank < len && text[blank] == '[') { /* one decoder for both, and the same paths */
		char *whole = lr_alloc(arena, len + sizeof(before) + sizeof(after));
		if (!whole)
			return lr_refuse(err, ENOMEM, "out of memory");
		memcpy(whole, before, sizeof(before) - 1);
		memcpy(whole + sizeof(before) - 1, text, len);
		memcpy(whole + sizeof(before) - 1 + len, after, sizeof(after));
		text = whole;
		len += sizeof(before) + sizeof(after) - 2;
	}
	int rc = decode(&type, "mounts", text, len, arena, &object, err);
	if (rc == 0)
		*ret = ((struct document *)object)->mounts;
	return rc;
}

int oci_state_decode(const char *text, size_t len, struct lr_arena *arena,
		     const struct oci_state **ret, struct lr_err *err)
{
	void *object;
	int rc = decode(&oci_state_type, "state", text, len, arena, &object, err);

	if (rc == 0)
		*ret = object;
	return rc;
}

int oci_features_decode(const char *text, size_t len, struct lr_arena *arena,
			const struct oci_features **ret, struct lr_err *err)
{
	void *object;
	int rc = decode(&oci_features_type, "features", text, len, arena, &object, err);

	if (rc == 0)
		*ret = object;
	return rc;
}

static int too_large(const char *path, struct lr_err *err)
{
	return lr_refuse(err, EFBIG, "\"%s\" is larger than %u MiB", path, OCI_CONFIG_MAX >> 20);
}

int oci_read_file(int dirfd, const char *path, struct lr_arena *arena, char **text, size_t *len,
		  struct lr_err *err)
{
	/* O_NONBLOCK: a FIFO in its place must not make us wait for a writer. */
	LR_CLEANUP_FD int fd = openat(dirfd, path, O_RDONLY | O_CLOEXEC | O_NOCTTY | O_NONBLOCK);

	return fd < 0 ? lr_fail(err, errno, "cannot open \"%s\"", path)
		      : oci_read_fd(fd, path, arena, text, len, err);
}

/* Its length is not known, so the buffer grows; the smaller ones stay in the arena. */
static int read_stream(int fd, const char *path, struct lr_arena *arena, char **text, size_t *len,
		       struct lr_err *err)
{
	size_t size = 4096, n = 0;
	char *buf = lr_alloc(arena, size);

	while (buf) {
		ssize_t got = lr_read_full(fd, buf + n, size - 1 - n);
		if (got < 0)
			return lr_fail(err, (int)-got, "cannot read \"%s\"", path);
		n += (size_t)got;
		if (n > OCI_CONFIG_MAX)
			return too_large(path, err);
		if (n < size - 1) {
			*text = buf;
			*len = n;
			return 0;
		}
		char *more = lr_alloc(arena, 4 * size);
		buf = more ? memcpy(more, buf, n) : NULL;
		size *= 4;
	}
	return lr_refuse(err, ENOMEM, "out of memory");
}

int oci_read_input(const char *path, struct lr_arena *arena, char **text, size_t *len,
		   struct lr_err *err)
{
	bool standard = lr_streq(path, "-");
	LR_CLEANUP_FD int opened =
		standard ? LR_NOFD : openat(AT_FDCWD, path, O_RDONLY | O_CLOEXEC | O_NOCTTY);
	struct stat st;

	if (standard)
		path = "standard input";
	else if (opened < 0)
		return lr_fail(err, errno, "cannot open \"%s\"", path);
	int fd = standard ? STDIN_FILENO : opened;
	if (fstat(fd, &st) < 0)
		return lr_fail(err, errno, "cannot stat \"%s\"", path);
	return S_ISREG(st.st_mode) && !standard ? oci_read_fd(fd, path, arena, text, len, err)
						: read_stream(fd, path, arena, text, len, err);
}

int oci_read_fd(int fd, const char *path, struct lr_arena *arena, char **text, size_t *len,
		struct lr_err *err)
{
	struct stat st;
	ssize_t n;
	char *buf;

	if (fstat(fd, &st) < 0)
		return lr_fail(err, errno, "cannot stat \"%s\"", path);
	if (!S_ISREG(st.st_mode))
		return lr_refuse(err, EINVAL, "\"%s\" is not a regular file", path);
	if (st.st_size > (off_t)OCI_CONFIG_MAX)
		return too_large(path, err);
	buf = lr_alloc(arena, (size_t)st.st_size + 1);
	if (!buf)
		return lr_refuse(err, ENOMEM, "out of memory");
	n = lr_read_full(fd, buf, (size_t)st.st_size);
	if (n < 0)
		return lr_fail(err, (int)-n, "cannot read \"%s\"", path);
	*text = buf;
	*len = (size_t)n;
	return 0;
}

const char *oci_map_get(const struct oci_map *m, const char *key)
{
	for (size_t i = 0; m && i < m->n; i++)
		if (lr_streq(m->v[i].key, key))
			return m->v[i].value;
	return NULL;
}
