/* SPDX-License-Identifier: Apache-2.0 */
/*
 * base: what static libraries that were compiled for glibc with _FORTIFY_SOURCE call, for a libc
 * without it (musl): Debian's libyajl_s.a (tests/house/yajl-symbols has all that it takes of libc)
 * and, in tests alone, libseccomp.a. The checks are kept: a size that does not fit ends the
 * program.
 */
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

void *__memcpy_chk(void *to, const void *from, size_t n, size_t size);
int __sprintf_chk(char *to, int flag, size_t size, const char *fmt, ...);
int __snprintf_chk(char *to, size_t n, int flag, size_t size, const char *fmt, ...);
int __fprintf_chk(FILE *f, int flag, const char *fmt, ...);

void *__memcpy_chk(void *to, const void *from, size_t n, size_t size)
{
	if (n > size)
		abort();
	return memcpy(to, from, n);
}

int __sprintf_chk(char *to, int flag, size_t size, const char *fmt, ...)
{
	va_list ap;

	va_start(ap, fmt);
	int n = vsnprintf(to, size, fmt, ap);
	va_end(ap);
	if (n >= 0 && (size_t)n >= size)
		abort();
	return n;
}

int __snprintf_chk(char *to, size_t n, int flag, size_t size, const char *fmt, ...)
{
	va_list ap;

	if (n > size)
		abort();
	va_start(ap, fmt);
	int len = vsnprintf(to, n, fmt, ap);
	va_end(ap);
	return len;
}

int __fprintf_chk(FILE *f, int flag, const char *fmt, ...)
{
	va_list ap;

	va_start(ap, fmt);
	int n = vfprintf(f, fmt, ap);
	va_end(ap);
	return n;
}
