/* SPDX-License-Identifier: Apache-2.0 */
/*
 * user: HOME from the container's /etc/passwd.
 *
 * The file belongs to the image: it may be huge, endless, a FIFO or a device. It is opened without
 * blocking, must be a regular file, and is read through a fixed window: memory does not grow with
 * it, and after PASSWD_MAX bytes the search ends.
 */
#define LR_ROOM "user"
#include "src/user/user.h"

#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "src/base/fd.h"
#include "src/base/str.h"
#include "src/sys/path.h"

#define PASSWD_MAX (1 << 20)
#define WINDOW     4096 /* also the longest line that counts */

/* name:password:uid:gid:gecos:home:shell; cuts the line up in place. */
static bool match_line(char *line, uint32_t uid, char *home, size_t size)
{
	char *field[7];
	uint32_t id;

	for (size_t i = 0; i < LR_ARRAY_SIZE(field); i++) {
		field[i] = line;
		char *colon = line ? strchr(line, ':') : NULL;
		if (colon)
			*colon = '\0';
		line = colon ? colon + 1 : NULL;
	}
	if (!field[5] || !field[2] || lr_parse_u32(field[2], &id) < 0 || id != uid)
		return false;
	if (field[5][0] != '/' || strlen(field[5]) >= size)
		return false;
	strcpy(home, field[5]);
	return true;
}

/* Handles the whole lines of text; *rest is where the last, unfinished one begins. */
static bool match_lines(char *text, uint32_t uid, char *home, size_t size, char **rest)
{
	char *end;

	for (; (end = strchr(text, '\n')); text = end + 1) {
		*end = '\0';
		if (match_line(text, uid, home, size))
			return true;
	}
	*rest = text;
	return false;
}

bool lr_user_home_in(char *text, uint32_t uid, char *home, size_t size)
{
	char *rest;

	return match_lines(text, uid, home, size, &rest) || match_line(rest, uid, home, size);
}

static bool search(int fd, uint32_t uid, char *home, size_t size)
{
	char buf[WINDOW + 1];
	size_t have = 0, total = 0;
	bool skipping = false; /* in a line longer than the window */

	while (total < PASSWD_MAX) {
		ssize_t n = lr_read_full(fd, buf + have, WINDOW - have);

		if (n < 0)
			return false;
		/* An embedded NUL would end the text early: it cannot be part of a valid line. */
		for (ssize_t i = 0; i < n; i++)
			if (buf[have + (size_t)i] == '\0')
				buf[have + (size_t)i] = '\n';
		total += (size_t)n;
		have += (size_t)n;
		buf[have] = '\0';
		if (have == 0)
			return false;

		char *text = buf, *rest;
		if (skipping) {
			char *end = strchr(buf, '\n');
			if (!end) {
				have = 0;
				if (n == 0)
					return false;
				continue;
			}
			text = end + 1;
			skipping = false;
		}
		if (match_lines(text, uid, home, size, &rest))
			return true;
		if (n == 0) /* the last line has no newline */
			return match_line(rest, uid, home, size);
		have = strlen(rest);
		if (have == WINDOW) {
			skipping = true;
			have = 0;
		} else {
			memmove(buf, rest, have);
		}
	}
	return false;
}

int lr_user_home(int dirfd, uint32_t uid, char *home, size_t size)
{
	const int flags = O_RDONLY | O_CLOEXEC | O_NONBLOCK | O_NOCTTY;
	struct stat st;

	if (size < 2)
		return -ENAMETOOLONG;
	LR_CLEANUP_FD int fd = dirfd == AT_FDCWD ? lr_open("/etc/passwd", flags)
						 : lr_open_in(dirfd, "/etc/passwd", flags, 0);
	if (fd < 0 || fstat(fd, &st) < 0 || !S_ISREG(st.st_mode) || !search(fd, uid, home, size))
		strcpy(home, "/");
	return 0;
}
