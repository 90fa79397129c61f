/* SPDX-License-Identifier: Apache-2.0 */
/* Unit tests: the bytes of a record, whole, damaged and cut off. */
#include <errno.h>

#include "src/store/record.h"
#include "tests/unit/test.h"

static const char config[] = "{\"ociVersion\": \"1.0.2\"}";

static const struct lr_record sample = {
	.pid = 4711,
	.start_time = 123456789,
	.flags = LR_RECORD_CGROUP,
	.id = "one",
	.oci_version = "1.0.2",
	.bundle = "/b",
	.rootfs = "/b/rootfs",
	.created = "2026-01-02T03:04:05.000000006Z",
	.cgroup_path = "/one",
	.namespaces = 0x20000,
	.hooks = LR_RECORD_POSTSTOP,
};

static unsigned char *bytes_of(const struct lr_record *r, struct lr_arena *a, size_t *size)
{
	void *bytes = NULL;

	CHECK_INT(lr_record_encode(r, config, strlen(config), a, &bytes, size, NULL), 0);
	return bytes;
}

/* What is read is what was written. */
static bool is_sample(const void *bytes, size_t size)
{
	LR_CLEANUP_ARENA struct lr_arena *a = lr_arena_new();
	struct lr_record r;
	const char *text;
	size_t len;

	return lr_record_decode(bytes, size, a, &r, &text, &len, NULL) == 0 &&
	       r.pid == sample.pid && r.start_time == sample.start_time &&
	       r.flags == sample.flags && r.namespaces == sample.namespaces &&
	       r.hooks == sample.hooks && strcmp(r.id, sample.id) == 0 &&
	       strcmp(r.bundle, sample.bundle) == 0 &&
	       strcmp(r.cgroup_path, sample.cgroup_path) == 0 && len == strlen(config) &&
	       memcmp(text, config, len) == 0;
}

static struct lr_err why;

static int decode(const void *bytes, size_t size)
{
	LR_CLEANUP_ARENA struct lr_arena *a = lr_arena_new();
	struct lr_record r;

	why = (struct lr_err){0};
	return lr_record_decode(bytes, size, a, &r, NULL, NULL, &why);
}

TEST(what_is_written_is_read)
{
	LR_CLEANUP_ARENA struct lr_arena *a = lr_arena_new();
	size_t size;
	unsigned char *bytes = bytes_of(&sample, a, &size);

	REQUIRE(bytes);
	CHECK(is_sample(bytes, size));
}

TEST(any_one_bit_may_be_wrong)
{
	LR_CLEANUP_ARENA struct lr_arena *a = lr_arena_new();
	size_t size, wrong = 0;
	unsigned char *bytes = bytes_of(&sample, a, &size);

	REQUIRE(bytes);
	for (size_t i = 0; i < 8 * size; i++) {
		bytes[i / 8] ^= (unsigned char)(1 << i % 8);
		wrong += !is_sample(bytes, size);
		bytes[i / 8] ^= (unsigned char)(1 << i % 8);
	}
	CHECK_INT(wrong, 0);
}

TEST(the_changing_part_counts_by_either_of_its_two)
{
	LR_CLEANUP_ARENA struct lr_arena *a = lr_arena_new();
	struct record_live live[2];
	struct lr_record later = sample, r = {0};
	size_t size;
	unsigned char *bytes = bytes_of(&sample, a, &size);

	REQUIRE(bytes);
	later.pid = 4712;
	later.flags = LR_RECORD_STARTED;
	lr_record_live(&later, live);
	memcpy(bytes + RECORD_LIVE_OFFSET, live, sizeof(live));
	for (int i = 0; i < 2; i++) {
		CHECK(lr_record_salvage(bytes, size, &r));
		CHECK_INT(r.pid, 4712);
		CHECK_INT(r.flags, LR_RECORD_STARTED);
		/* The other one is damaged, as by a kill in the middle of the write. */
		memcpy(bytes + RECORD_LIVE_OFFSET, live, sizeof(live));
		bytes[RECORD_LIVE_OFFSET + (size_t)i * sizeof(live[0])] ^= 0xff;
		r = (struct lr_record){0};
	}
	/* Both: the texts say nothing about the process. */
	bytes[RECORD_LIVE_OFFSET] ^= 0xff;
	CHECK(!lr_record_salvage(bytes, size, &r));
	CHECK_INT(r.pid, 0);
	CHECK_INT(decode(bytes, size), -EPROTO);
}

TEST(cut_off_while_it_was_written_first_is_not_damage)
{
	LR_CLEANUP_ARENA struct lr_arena *a = lr_arena_new();
	struct lr_record first = sample, r;
	size_t size, half;

	first.pid = 0;
	first.start_time = 0;
	first.flags = LR_RECORD_CREATING;
	unsigned char *bytes = bytes_of(&first, a, &size);
	REQUIRE(bytes);
	half = size / 2;
	for (size_t n = 0; n < half; n++)
		CHECK_INT(decode(bytes, n), -ENODATA);
	for (size_t n = half; n <= size; n++)
		CHECK_INT(lr_record_decode(bytes, n, a, &r, NULL, NULL, NULL), 0);
}

TEST(cut_off_later_is_damage_and_the_process_is_known)
{
	LR_CLEANUP_ARENA struct lr_arena *a = lr_arena_new();
	size_t size;
	unsigned char *bytes = bytes_of(&sample, a, &size);

	REQUIRE(bytes);
	for (size_t n = RECORD_LIVE_OFFSET + sizeof(struct record_live); n < size / 2; n++) {
		struct lr_record r = {0};
		CHECK_INT(decode(bytes, n), -EPROTO);
		CHECK(lr_record_salvage(bytes, n, &r));
		CHECK_INT(r.pid, sample.pid);
	}
	for (size_t n = size / 2; n < size; n++)
		CHECK(is_sample(bytes, n));
}

TEST(another_version_is_told_from_damage)
{
	LR_CLEANUP_ARENA struct lr_arena *a = lr_arena_new();
	size_t size;
	unsigned char *bytes = bytes_of(&sample, a, &size);

	REQUIRE(bytes);
	bytes[8] = bytes[size / 2 + 8] = 77;
	CHECK_INT(decode(bytes, size), -ENOTSUP);
	CHECK_HAS(why.msg, "version 77");
}

TEST(what_is_too_long_is_refused_by_name)
{
	LR_CLEANUP_ARENA struct lr_arena *a = lr_arena_new();
	struct lr_err err = {0};
	void *bytes = NULL;
	size_t size = 0;

	CHECK_INT(lr_record_encode(&sample, config, RECORD_MAX / 2, a, &bytes, &size, &err),
		  -EFBIG);
	CHECK(!bytes);
	CHECK_HAS(err.msg, "config.json is too large");
}
