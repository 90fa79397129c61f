/* SPDX-License-Identifier: Apache-2.0 */
/* forkd: values of options. Pure. */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "src/base/str.h"
#include "src/forkd/main.h"

int listen_place(const char *text, char host[LR_TICKET_HOST], uint16_t *port)
{
	const char *colon = strrchr(text, ':');
	uint32_t value;

	if (!colon || colon == text || lr_parse_u32(colon + 1, &value) < 0 || !value ||
	    value > UINT16_MAX)
		return -EINVAL;
	size_t n = (size_t)(colon - text);
	if (text[0] == '[' && colon[-1] == ']' && n > 2) {
		text++;
		n -= 2;
	} else if (memchr(text, ':', n)) {
		return -EINVAL;
	}
	if (n >= LR_TICKET_HOST)
		return -EINVAL;
	memcpy(host, text, n);
	host[n] = 0;
	*port = (uint16_t)value;
	return 0;
}

int duration_of(const char *text, uint64_t *ms)
{
	static const struct {
		const char *unit;
		uint64_t ms;
	} units[] = {{"ms", 1},    {"", 1000},     {"s", 1000},
		     {"m", 60000}, {"h", 3600000}, {"d", 86400000}};
	char digits[16];
	size_t n = strspn(text, "0123456789");
	uint64_t value;

	if (!n || n >= sizeof(digits))
		return -EINVAL;
	memcpy(digits, text, n);
	digits[n] = 0;
	for (size_t i = 0; i < LR_ARRAY_SIZE(units); i++)
		if (lr_streq(text + n, units[i].unit)) {
			if (lr_parse_u64(digits, &value) < 0 || value > INT64_MAX / 4 / units[i].ms)
				return -EINVAL;
			*ms = value * units[i].ms;
			return 0;
		}
	return -EINVAL;
}
