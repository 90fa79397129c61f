/* SPDX-License-Identifier: Apache-2.0 */
/* cli: booleans, sizes and durations as Go's libraries read them. */
#include "src/cli/number.h"

#include <errno.h>
#include <string.h>

#include "src/base/str.h"

int lr_cli_parse_bool(const char *text, bool *ret)
{
	if (lr_has_word("1 t T true True TRUE", text) && !strchr(text, ' ')) {
		*ret = true;
		return 0;
	}
	if (lr_has_word("0 f F false False FALSE", text) && !strchr(text, ' ')) {
		*ret = false;
		return 0;
	}
	return -EINVAL;
}

static bool is_digit(char c)
{
	return c >= '0' && c <= '9';
}

/* Digits with an optional fraction, times `unit`; *text moves behind them. Unit may be up to 2^50:
 * the fraction is kept to six digits so that nothing overflows. */
static int scaled(const char **text, int64_t *ret_whole, int64_t *ret_millionths)
{
	int64_t whole = 0, fraction = 0, place = 1000000;
	const char *s = *text;

	if (!is_digit(*s))
		return -EINVAL;
	for (; is_digit(*s); s++)
		if (__builtin_mul_overflow(whole, 10, &whole) ||
		    __builtin_add_overflow(whole, *s - '0', &whole))
			return -ERANGE;
	if (*s == '.')
		for (s++; is_digit(*s); s++)
			if (place > 1)
				fraction += (*s - '0') * (place /= 10);
	*text = s;
	*ret_whole = whole;
	*ret_millionths = fraction;
	return 0;
}

static int multiply(int64_t whole, int64_t millionths, int64_t unit, int64_t *ret)
{
	__int128 v = (__int128)whole * unit + (__int128)millionths * unit / 1000000;

	if (v > INT64_MAX)
		return -ERANGE;
	*ret = (int64_t)v;
	return 0;
}

int lr_cli_parse_size(const char *text, int64_t *ret)
{
	static const char suffixes[] = "bkmgtp";
	int64_t whole, millionths, unit = 1;

	if (lr_streq(text, "-1")) {
		*ret = -1;
		return 0;
	}
	int r = scaled(&text, &whole, &millionths);
	if (r < 0)
		return r;
	if (*text == ' ')
		text++;
	if (*text) {
		const char *s = strchr(suffixes, *text | 0x20);
		if (!s)
			return -EINVAL;
		unit = INT64_C(1) << (10 * (s - suffixes));
		text++;
		if (unit > 1 && (*text | 0x20) == 'i')
			text++;
		if (unit > 1 && (*text | 0x20) == 'b')
			text++;
		if (*text)
			return -EINVAL;
	}
	return multiply(whole, millionths, unit, ret);
}

int lr_cli_parse_duration(const char *text, int64_t *ret_ms)
{
	static const struct {
		const char *name;
		int64_t ms;
	} units[] = {{"ms", 1}, {"s", 1000}, {"m", 60000}, {"h", 3600000}};
	int64_t total = 0;

	if (!*text)
		return -EINVAL;
	while (*text) {
		int64_t whole, millionths, part;
		size_t unit;
		int r = scaled(&text, &whole, &millionths);
		if (r < 0)
			return r;
		for (unit = 0; unit < LR_ARRAY_SIZE(units); unit++)
			if (lr_has_prefix(text, units[unit].name))
				break;
		if (unit < LR_ARRAY_SIZE(units))
			text += strlen(units[unit].name);
		else if (*text || total)
			return -EINVAL;
		r = multiply(whole, millionths, unit < LR_ARRAY_SIZE(units) ? units[unit].ms : 1000,
			     &part);
		if (r < 0 || __builtin_add_overflow(total, part, &total))
			return -ERANGE;
	}
	if (total < 1)
		return -EINVAL;
	*ret_ms = total;
	return 0;
}
