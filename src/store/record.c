/* SPDX-License-Identifier: Apache-2.0 */
/* store: a record to bytes and back; the format is described in store.h. */
#define LR_ROOM "store"
#include "src/store/record.h"

#include <errno.h>
#include <stddef.h>
#include <string.h>

#include "libocispec/table.h"
#include "src/base/str.h"

#define MAGIC   "LEANREC"
#define VERSION 2

/* Of each copy; `live` counts in the first one only. */
struct header {
	char magic[8];
	uint32_t version;
	uint32_t size; /* of this header */
	struct record_live live[2];
	uint32_t body;   /* bytes */
	uint32_t config; /* bytes */
	uint64_t sum;    /* of the four numbers, body and config */
};
_Static_assert(sizeof(struct header) == 80, "the format is fixed");
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
	OCI_I32(struct lr_record, "seedReport", seed_report, 0),
	OCI_I32(struct lr_record, "seedDescriptor", seed_descriptor, 0),
	OCI_I32(struct lr_record, "seedLazy", seed_lazy, 0),
	OCI_BOOL(struct lr_record, "seedPrefetch", seed_prefetch, 0),
	OCI_U32(struct lr_record, "seedPrefetchMiB", seed_prefetch_mib, 0),
	OCI_STR(struct lr_record, "leanSlot", lean_slot, 0),
	OCI_STR(struct lr_record, "leanNet", lean_net, 0),
	OCI_BOOL(struct lr_record, "leanCgroup", lean_cgroup, 0),
};
static const struct oci_type type = OCI_TYPE("record", struct lr_record, fields);

static uint64_t sum_of_live(const struct record_live *l)
{
	return lr_hash(LR_HASH, l, offsetof(struct record_live, sum));
}

/* texts: body and config, one after the other. */
static uint64_t sum_of(const struct header *h, const char *texts)
{
	const uint32_t numbers[] = {h->version, h->size, h->body, h->config};
	uint64_t sum = lr_hash(LR_HASH, numbers, sizeof(numbers));

	return lr_hash(sum, texts, (size_t)h->body + h->config);
}

void lr_record_seal(void *copy, size_t size)
{
	struct header h;

	if (size < sizeof(h))
		return;
	memcpy(&h, copy, sizeof(h));
	if (size - sizeof(h) < (uint64_t)h.body + h.config)
		return;
	h.live[0].sum = sum_of_live(&h.live[0]);
	h.live[1].sum = sum_of_live(&h.live[1]);
	h.sum = sum_of(&h, (char *)copy + sizeof(h));
	memcpy(copy, &h, sizeof(h));
}

void lr_record_live(const struct lr_record *r, struct record_live ret[2])
{
	ret[0] = (struct record_live){r->start_time, r->pid, r->flags, 0};
	ret[0].sum = sum_of_live(&ret[0]);
	ret[1] = ret[0];
}

int lr_record_encode(const struct lr_record *r, const char *config, size_t config_len,
		     struct lr_arena *a, void **ret, size_t *size, struct lr_err *err)
{
	size_t body_len = 0;
	char *body = oci_table_encode_text(&type, r, false, a, &body_len);

	if (!body)
		return lr_fail(err, ENOMEM, "encode the record");
	size_t most = RECORD_MAX / 2 - sizeof(struct header), n = sizeof(struct header) + body_len;
	if (body_len > most || config_len > most - body_len)
		return lr_refuse(err, EFBIG,
				 "the record of %s would have %zu bytes, and %u are the most: its "
				 "config.json is too large",
				 r->id, 2 * (n + config_len), RECORD_MAX);
	n += config_len;
	char *out = lr_alloc(a, 2 * n);
	if (!out)
		return lr_fail(err, ENOMEM, "encode the record");
	struct header h = {
		.magic = MAGIC,
		.version = VERSION,
		.size = sizeof(h),
		.body = (uint32_t)body_len,
		.config = (uint32_t)config_len,
	};
	lr_record_live(r, h.live);
	memcpy(out, &h, sizeof(h));
	memcpy(out + sizeof(h), body, body_len);
	memcpy(out + sizeof(h) + body_len, config, config_len);
	lr_record_seal(out, n);
	memcpy(out + n, out, n);
	*ret = out;
	*size = 2 * n;
	return 0;
}

/* The copy that begins at `at`, if it is whole. */
static bool find_copy(const char *bytes, size_t size, size_t at, struct header *h)
{
	if (at > size || size - at < sizeof(*h))
		return false;
	memcpy(h, bytes + at, sizeof(*h));
	return memcmp(h->magic, MAGIC, sizeof(h->magic)) == 0 && h->version == VERSION &&
	       h->size == sizeof(*h) && h->body <= size && h->config <= size &&
	       (size_t)h->body + h->config <= size - at - sizeof(*h) &&
	       sum_of(h, bytes + at + sizeof(*h)) == h->sum;
}

bool lr_record_salvage(const void *bytes, size_t size, struct lr_record *ret)
{
	for (size_t i = 0; i < 2; i++) {
		struct record_live l;
		size_t at = RECORD_LIVE_OFFSET + i * sizeof(l);
		if (size < at + sizeof(l))
			break;
		memcpy(&l, (const char *)bytes + at, sizeof(l));
		if (l.sum != sum_of_live(&l) || l.pid < 0)
			continue;
		ret->pid = l.pid;
		ret->start_time = l.start_time;
		ret->flags = l.flags;
		return true;
	}
	return false;
}

/* Neither copy is whole, or the part that changes in place is not. */
static int damaged(const void *bytes, size_t size, struct lr_err *err)
{
	struct lr_record live = {0};
	struct header h = {0};

	memcpy(&h, bytes, size < sizeof(h) ? size : sizeof(h));
	if (memcmp(h.magic, MAGIC, sizeof(h.magic)) == 0 && h.version && h.version != VERSION) {
		lr_refuse(err, ENOTSUP, "record version %u; this program knows %d", h.version,
			  VERSION);
		return lr_err_hint(err, "use the version of lean-runtime that made the container");
	}
	/* A create that was killed while it wrote the first record had not made anything yet. */
	if (lr_record_salvage(bytes, size, &live) ? live.pid == 0 : size < sizeof(h))
		return lr_refuse(err, ENODATA, "the record is not written to its end");
	lr_refuse(err, EPROTO, "the record is damaged");
	return lr_err_hint(err, "'delete --force' removes it, and what is known of the container");
}

int lr_record_decode(const void *bytes, size_t size, struct lr_arena *a, struct lr_record *ret,
		     const char **config, size_t *config_len, struct lr_err *err)
{
	const char *copy = bytes;
	struct lr_record live = {0}, r;
	struct header h;

	bool found = find_copy(copy, size, 0, &h);
	if (!found && size % 2 == 0) {
		copy += size / 2;
		found = find_copy(bytes, size, size / 2, &h);
	}
	if (!found || !lr_record_salvage(bytes, size, &live))
		return damaged(bytes, size, err);
	const char *body = copy + sizeof(h);
	int rc = oci_table_decode(
		&type, &(struct lr_json_source){.text = body, .len = h.body, .what = "record"}, a,
		&r, err);
	if (rc < 0)
		return rc;
	r.pid = live.pid;
	r.start_time = live.start_time;
	r.flags = live.flags;
	if (config) {
		*config = body + h.body;
		*config_len = h.config;
	}
	*ret = r;
	return 0;
}
