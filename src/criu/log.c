/* SPDX-License-Identifier: Apache-2.0 */
/* criu: why it failed, in its own words; for people, nothing is decided by it. */
#define LR_ROOM "criu"
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "src/base/fd.h"
#include "src/base/str.h"
#include "src/criu/criu.h"

/* criu finds out what it may do, and calls it an error what it can do without. */
static bool is_harmless(const char *text, size_t n)
{
	static const char *const begins[] = {"rlimit: Can't setup RLIMIT_NOFILE for self",
					     "tun: Unable to create tun"};

	for (size_t i = 0; i < LR_ARRAY_SIZE(begins); i++)
		if (n >= strlen(begins[i]) && memcmp(text, begins[i], strlen(begins[i])) == 0)
			return true;
	return false;
}

/* "(00.012345)     12: Error (criu/mount.c:123): mnt: No such thing" -> "mnt: No such thing". */
static bool is_error(const char *line, size_t n, const char **text, size_t *len)
{
	static const char mark[] = "Error (";
	const char *at = memmem(line, n, mark, sizeof(mark) - 1);
	const char *end = line + n;

	if (!at || at - line > 32)
		return false;
	at = memmem(at, (size_t)(end - at), "): ", 3);
	if (!at)
		return false;
	*text = at + 3;
	*len = (size_t)(end - *text);
	return *len > 0 && !is_harmless(*text, *len);
}

static void copy(const char *text, size_t n, char *buf, size_t size)
{
	n = n < size ? n : size - 1;
	for (size_t i = 0; i < n; i++)
		buf[i] = text[i] >= ' ' && text[i] < 0x7f ? text[i] : ' ';
	buf[n] = '\0';
}

/* The first error is the cause; what comes after it are mostly its consequences. */
bool lr_criu_telling(const char *log, size_t n, char *buf, size_t size)
{
	const char *text;
	size_t len;

	for (size_t at = 0; at < n;) {
		const char *end = memchr(log + at, '\n', n - at);
		size_t line = end ? (size_t)(end - log) - at : n - at;
		if (is_error(log + at, line, &text, &len)) {
			copy(text, len, buf, size);
			return true;
		}
		at += line + 1;
	}
	return false;
}

/* A log can have megabytes: in pieces, which begin at a line. */
static bool look_into(int fd, char *buf, size_t size)
{
	char piece[16384];
	size_t kept = 0;
	ssize_t n;

	while ((n = read(fd, piece + kept, sizeof(piece) - kept)) > 0) {
		size_t have = kept + (size_t)n;
		char *last = memrchr(piece, '\n', have);
		size_t whole = last ? (size_t)(last - piece) + 1 : have;
		if (lr_criu_telling(piece, whole, buf, size))
			return true;
		kept = have - whole;
		memmove(piece, piece + whole, kept);
	}
	return kept && lr_criu_telling(piece, kept, buf, size);
}

static void last_line(int fd, char *buf, size_t size)
{
	char text[2048];
	ssize_t n = pread(fd, text, sizeof(text), 0);

	while (n > 0 && text[n - 1] == '\n')
		n--;
	if (n <= 0)
		return;
	const char *from = memrchr(text, '\n', (size_t)n);
	from = from ? from + 1 : text;
	copy(from, (size_t)(text + n - from), buf, size);
}

void lr_criu_why(int dirfd, const char *log, int output, char *buf, size_t size)
{
	LR_CLEANUP_FD int fd = LR_NOFD;

	buf[0] = '\0';
	if (log)
		fd = openat(dirfd, log, O_RDONLY | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK);
	if (fd >= 0 && look_into(fd, buf, size))
		return;
	if (output >= 0)
		last_line(output, buf, size);
}
