/* SPDX-License-Identifier: Apache-2.0 */
/* store: a record to bytes and back; the format is described in store.h. */
#define LR_ROOM "store"
#include "src/store/record.h"

#include <errno.h>
#include <stddef.h>
#include <string.h>

#include "libocispec/table.h"

#define MAGIC   "LEANREC"
#define VERSION 1

struct header {
	char magic[8];
	uint32_t version;
	uint32_t size; /* of this header */
	struct record_live live;
	uint32_t body;   /* bytes */
	uint32_t config; /* bytes */
	uint8_t reserved[24];
};
_Static_assert(sizeof(struct header) == 64, "the format is fixed");
_Static_assert(offsetof(struct header, live) == RECORD_LIVE_OFFSET, "the format is fixed");

static const struct oci_field fields[] = {
	OCI_STR(struct lr_record, "id", id, OCI_REQUIRED),
	OCI_STR(struct lr_record, "ociVersion", oci_version, OCI_REQUIRED),
	OCI_STR(struct lr_record, "bundle", bundle, OCI_REQUIRED),
	OCI_STR(struct lr_record, "rootfs", rootfs, OCI_REQUIRED),
	OCI_STR(struct lr_record, "created", created, OCI_REQUIRED),
	OCI_MAP(struct lr_record, "annotations", annotations, 0),
	OCI_U32(struct lr_record, "namespaces", namespaces, 0),
	OCI_I32(struct lr_record, "cgroupMode", cgroup_mode, 0),
	OCI_STR(struct lr_record, "cgroupPath", cgroup_path, 0),
	OCI_MAP(struct lr_record, "cgroups", cgroups, 0),
	OCI_STR(struct lr_record, "cgroupUnit", cgroup_unit, 0),
	OCI_BOOL(struct lr_record, "cgroupUser", cgroup_user, 0),
	OCI_I32(struct lr_record, "rdtMade", rdt_made, 0),
	OCI_U32(struct lr_record, "hooks", hooks, 0),
	OCI_BOOL(struct lr_record, "seccomp", has_seccomp, 0),
	OCI_BOOL(struct lr_record, "notify", notify, 0),
	OCI_STR(struct lr_record, "leanSlot", lean_slot, 0),
	OCI_STR(struct lr_record, "leanNet", lean_net, 0),
	OCI_BOOL(struct lr_record, "leanCgroup", lean_cgroup, 0),
};
static const struct oci_type type = OCI_TYPE("record", struct lr_record, fields);

void *lr_record_encode(const struct lr_record *r, const char *config, size_t config_len,
		       struct lr_arena *a, size_t *size)
{
	size_t body_len = 0;
	char *body = oci_table_encode_text(&type, r, false, a, &body_len);

	if (!body || body_len > RECORD_MAX / 2 ||
	    config_len > RECORD_MAX / 2 - sizeof(struct header))
		return NULL;
	struct header h = {
		.magic = MAGIC,
		.version = VERSION,
		.size = sizeof(h),
		.live = {r->start_time, r->pid, r->flags},
		.body = (uint32_t)body_len,
		.config = (uint32_t)config_len,
	};
	*size = sizeof(h) + body_len + config_len;
	char *out = lr_alloc(a, *size);
	if (!out)
		return NULL;
	memcpy(out, &h, sizeof(h));
	memcpy(out + sizeof(h), body, body_len);
	memcpy(out + sizeof(h) + body_len, config, config_len);
	return out;
}

int lr_record_decode(const void *bytes, size_t size, struct lr_arena *a, struct lr_record *ret,
		     const char **config, size_t *config_len, struct lr_err *err)
{
	struct header h;

	if (size < sizeof(h))
		return lr_refuse(err, ENODATA, "the record is not written to its end");
	memcpy(&h, bytes, sizeof(h));
	if (memcmp(h.magic, MAGIC, sizeof(h.magic)) != 0 || h.size != sizeof(h))
		return lr_refuse(err, EPROTO, "not a container record of this program");
	if (h.version != VERSION)
		return lr_refuse(err, EPROTO, "record version %u; this program knows %d", h.version,
				 VERSION);
	if (size < (uint64_t)sizeof(h) + h.body + h.config)
		return lr_refuse(err, ENODATA, "the record is not written to its end");
	if ((uint64_t)sizeof(h) + h.body + h.config != size || h.live.pid < 0)
		return lr_refuse(err, EPROTO, "the record is damaged");

	const char *body = (const char *)bytes + sizeof(h);
	struct lr_record r;
	int rc = oci_table_decode(
		&type, &(struct lr_json_source){.text = body, .len = h.body, .what = "record"}, a,
		&r, err);
	if (rc < 0)
		return rc;
	r.pid = h.live.pid;
	r.start_time = h.live.start_time;
	r.flags = h.live.flags;
	if (config) {
		*config = body + h.body;
		*config_len = h.config;
	}
	*ret = r;
	return 0;
}
