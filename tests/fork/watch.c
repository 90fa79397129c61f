/* SPDX-License-Identifier: Apache-2.0 */
/*
 * watch WHAT...: watches files by inotify(7), and writes each event to /out: which inotify, number, mask
 * and name. Static, for a container with nothing else in it.
 *
 *	PATH=MASK	is watched; MASK is hexadecimal
 *	PATH=MASK@N	by that number: those before are taken and given back
 *	open=PATH	it is open, and then deleted
 *	again		what follows is watched by another inotify
 *	later		events are read only when there is a file /read
 *
 * It tells in /n how often it went round.
 */
#include <fcntl.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/inotify.h>
#include <sys/ioctl.h>
#include <unistd.h>

#define MOST 8

static int files[MOST], n_files;
static bool later;

static void need(bool good, const char *what)
{
	if (good)
		return;
	perror(what);
	exit(1);
}

static void begin(void)
{
	need(n_files < MOST, "too many");
	files[n_files] = inotify_init1(IN_CLOEXEC);
	need(files[n_files] >= 0, "inotify_init1");
	n_files++;
}

/* What that leaves in the queue is read away. */
static void skip(int fd, const char *path, int until)
{
	char events[4096];
	int number, unread;

	do {
		number = inotify_add_watch(fd, path, IN_EXCL_UNLINK);
		need(number >= 0 && inotify_rm_watch(fd, number) == 0, path);
	} while (number + 1 < until);
	while (ioctl(fd, FIONREAD, &unread) == 0 && unread)
		need(read(fd, events, sizeof(events)) > 0, "read");
}

static void watch(char *what)
{
	char *mask = strchr(what, '='), *end;
	const int fd = files[n_files - 1];

	need(mask, what);
	*mask++ = 0;
	const unsigned bits = (unsigned)strtoul(mask, &end, 16);
	const int number = *end == '@' ? atoi(end + 1) : 0;
	if (number > 1)
		skip(fd, what, number);
	const int got = inotify_add_watch(fd, what, bits);
	need(got >= 0 && (!number || got == number), what);
}

static void open_and_delete(const char *path)
{
	need(open(path, O_RDONLY | O_CLOEXEC) >= 0 && unlink(path) == 0, path);
}

static void tell(int out, int which, const struct inotify_event *e)
{
	char line[512];
	const int n = snprintf(line, sizeof(line), "%d:%d %x %s\n", which, e->wd, e->mask,
			       e->len ? e->name : "-");

	need(write(out, line, (size_t)n) == n, "/out");
}

static void read_events(int out, int which)
{
	char events[4096] __attribute__((aligned(8)));
	int unread = 0;

	need(ioctl(files[which], FIONREAD, &unread) == 0, "FIONREAD");
	if (!unread || (later && access("/read", F_OK) < 0))
		return;
	const ssize_t n = read(files[which], events, sizeof(events));
	need(n > 0, "read");
	for (ssize_t at = 0; at < n;) {
		const struct inotify_event *e = (const void *)(events + at);
		tell(out, which, e);
		at += (ssize_t)(sizeof(*e) + e->len);
	}
}

int main(int argc, char **argv)
{
	/* Nothing is written where nobody has asked for it. */
	if (argc < 2)
		return 2;
	const int out = open("/out", O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC, 0666);
	const int rounds = open("/n", O_WRONLY | O_CREAT | O_CLOEXEC, 0666);

	begin();
	for (int i = 1; i < argc; i++)
		if (strcmp(argv[i], "again") == 0)
			begin();
		else if (strcmp(argv[i], "later") == 0)
			later = true;
		else if (strncmp(argv[i], "open=", 5) == 0)
			open_and_delete(argv[i] + 5);
		else
			watch(argv[i]);
	for (unsigned n = 1;; n++) {
		char text[16];
		const int size = snprintf(text, sizeof(text), "%u\n", n);
		need(pwrite(rounds, text, (size_t)size, 0) == size, "/n");
		for (int i = 0; i < n_files; i++)
			read_events(out, i);
		usleep(10000);
	}
}
