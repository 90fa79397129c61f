/* SPDX-License-Identifier: Apache-2.0 */
/* base: filling and printing struct lr_err. */
#include "src/base/err.h"

#include <stdarg.h>
#include <stdio.h>
#include <string.h>

static void vset(char *field, size_t size, const char *fmt, va_list ap)
{
	if (vsnprintf(field, size, fmt, ap) < 0)
		field[0] = '\0';
}

int lr_err_set(struct lr_err *err, int code, const char *room, bool with_strerror, const char *fmt,
	       ...)
{
	if (!err)
		return -code;

	lr_err_clear(err);
	err->code = code;
	snprintf(err->room, sizeof(err->room), "%s", room);

	va_list ap;
	va_start(ap, fmt);
	vset(err->msg, sizeof(err->msg), fmt, ap);
	va_end(ap);

	if (with_strerror) {
		size_t n = strlen(err->msg);
		snprintf(err->msg + n, sizeof(err->msg) - n, ": %s", lr_strerror(code));
	}
	/* It can come from any call, and always means the same. */
	if (code == EMFILE)
		(void)lr_err_add_hint(err, "raise the runtime's limit of open files (ulimit -n)");
	return -code;
}

int lr_err_add_path(struct lr_err *err, const char *fmt, ...)
{
	if (!err)
		return -EIO;
	if (!err->path[0]) {
		va_list ap;
		va_start(ap, fmt);
		vset(err->path, sizeof(err->path), fmt, ap);
		va_end(ap);
	}
	return -err->code;
}

int lr_err_add_step(struct lr_err *err, const char *step)
{
	if (!err)
		return -EIO;
	if (!err->step[0])
		snprintf(err->step, sizeof(err->step), "%s", step);
	return -err->code;
}

int lr_err_add_hint(struct lr_err *err, const char *fmt, ...)
{
	if (!err)
		return -EIO;
	if (!err->hint[0]) {
		va_list ap;
		va_start(ap, fmt);
		vset(err->hint, sizeof(err->hint), fmt, ap);
		va_end(ap);
	}
	return -err->code;
}

void lr_err_clear(struct lr_err *err)
{
	if (!err)
		return;
	err->code = err->exit_code = 0;
	err->terse = false;
	err->room[0] = err->step[0] = err->path[0] = err->msg[0] = err->hint[0] = '\0';
}

char *lr_err_format(const struct lr_err *err, char *buf, size_t size)
{
	const char *room = err->terse ? "" : err->room, *step = err->terse ? "" : err->step;

	snprintf(buf, size, "%s%s%s%s%s%s%s%s%s%s", room, *room ? ": " : "", step,
		 *step ? ": " : "", err->msg, err->path[0] ? " (at " : "", err->path,
		 err->path[0] ? ")" : "", err->hint[0] ? "; " : "", err->hint);
	for (char *p = buf; *p; p++) /* one line, whatever a path or a key contained */
		if ((unsigned char)*p < 0x20 || *p == 0x7f)
			*p = ' ';
	return buf;
}
