/* SPDX-License-Identifier: Apache-2.0 */
/* dbus: addresses as the environment gives them:
 * "unix:path=/run/user/1000/bus,guid=...;...". Pure. */
#include "src/systemd/dbus.h"

#include <string.h>

#include "src/base/str.h"

static int hex(char c)
{
	static const char digits[] = "0123456789abcdef";
	const char *p = c ? strchr(digits, c | 0x20) : NULL;

	return p ? (int)(p - digits) : -1;
}

/* Undoes the %xx of a value of n bytes. Its length, or -EINVAL. */
static ssize_t unescape(const char *v, size_t n, char *out, size_t room)
{
	size_t len = 0;

	for (size_t i = 0; i < n; i++) {
		char c = v[i];

		if (c == '%') {
			int high = n - i > 2 ? hex(v[i + 1]) : -1;
			int low = high >= 0 ? hex(v[i + 2]) : -1;

			if (low < 0)
				return -EINVAL;
			c = (char)(high << 4 | low);
			i += 2;
		}
		if (len == room || c == '\0')
			return -EINVAL;
		out[len++] = c;
	}
	return (ssize_t)len;
}

/* Value of a key among "key=value,key=value" of n bytes. */
static const char *value_of(const char *text, size_t n, const char *key, size_t *len)
{
	for (const char *p = text, *end = text + n; p < end;) {
		size_t one = strcspn(p, ",;"), k = strlen(key);

		if (one > (size_t)(end - p))
			one = (size_t)(end - p);
		if (one > k && strncmp(p, key, k) == 0 && p[k] == '=') {
			*len = one - k - 1;
			return p + k + 1;
		}
		p += one + 1;
	}
	return NULL;
}

int lr_dbus_address(const char **list, struct sockaddr_un *ret, socklen_t *len)
{
	const char *entry = *list, *value;
	size_t n, all = strcspn(entry, ";");
	bool abstract = false;
	ssize_t got;

	if (!all && !*entry)
		return 0;
	*list = entry + all + (entry[all] == ';');
	if (!lr_has_prefix(entry, "unix:"))
		return -EAFNOSUPPORT;
	value = value_of(entry + 5, all - 5, "path", &n);
	if (!value) {
		value = value_of(entry + 5, all - 5, "abstract", &n);
		abstract = true;
	}
	if (!value)
		return -EAFNOSUPPORT;
	*ret = (struct sockaddr_un){.sun_family = AF_UNIX};
	/* A path keeps its NUL, an abstract name begins with one. */
	got = unescape(value, n, ret->sun_path + abstract, sizeof(ret->sun_path) - 1);
	if (got <= 0)
		return -EINVAL;
	*len = (socklen_t)(offsetof(struct sockaddr_un, sun_path) + 1 + (size_t)got);
	return 1;
}
