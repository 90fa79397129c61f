/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Small texts that people and images write: CPU lists, `exec --user`, /etc/passwd, resctrl
 * schemas. The first byte chooses which.
 */
#include <errno.h>

#include "src/limits/limits.h"
#include "src/rdt/rdt.h"
#include "src/user/user.h"
#include "tests/fuzz/fuzz.h"

static void list(const char *text, struct lr_arena *a)
{
	struct lr_limits_mask m = {0};
	struct lr_err err = {0};
	size_t bits = 0;
	int r = lr_limits_parse_list(text, "CPU", a, &m, &err);

	FUZZ_CHECK(r == 0 || (r == -EINVAL && err.hint[0]));
	for (size_t i = 0; i < m.bits; i++)
		bits += lr_limits_mask_has(&m, i);
	FUZZ_CHECK(r < 0 || (bits > 0 && m.bits <= LR_LIMITS_LIST_MAX));
}

static void user(const char *text)
{
	uint32_t uid, gid = 0;
	bool has_gid;
	struct lr_err err = {0};
	char again[64];

	if (lr_user_parse(text, &uid, &gid, &has_gid, &err) < 0)
		return;
	/* Nothing but digits, leading zeros and one colon got through. */
	FUZZ_CHECK(strspn(text, "0123456789:") == strlen(text));
	FUZZ_CHECK(uid != UINT32_MAX && gid != UINT32_MAX);
	snprintf(again, sizeof(again), has_gid ? "%u:%u" : "%u", uid, gid);
	FUZZ_CHECK(strlen(again) <= strlen(text));
}

static void schemas(char *text, struct lr_arena *a)
{
	struct lr_err err = {0};
	const char *out;
	char *half = strchr(text, '|');

	if (half)
		*half++ = '\0';
	if (lr_rdt_combine(text, half, a, &out, &err) == 0 && out)
		(void)lr_rdt_schema_within(out, text);
	(void)lr_rdt_schema_within(text, half ? half : "");
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	LR_CLEANUP_ARENA struct lr_arena *a = lr_arena_new();
	char home[64];

	if (size == 0 || size > 65536)
		return 0;
	char *text = lr_strndup(a, (const char *)data + 1, size - 1);
	FUZZ_CHECK(text);
	switch (data[0]) {
	case 'c':
		list(text, a);
		break;
	case 'u':
		user(text);
		break;
	case 'p':
		if (lr_user_home_in(text, 1000, home, sizeof(home)))
			FUZZ_CHECK(home[0] == '/' && strlen(home) < sizeof(home));
		break;
	case 'r':
		schemas(text, a);
		break;
	default:
		break;
	}
	return 0;
}
