/* SPDX-License-Identifier: Apache-2.0 */
/* store: who could have written what is read; see trust.h. */
#define LR_ROOM "store"
#include "src/store/trust.h"

#include <errno.h>
#include <limits.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define LINKS_MAX    40 /* as the kernel */
#define OTHERS_WRITE (S_IWGRP | S_IWOTH)

bool lr_trust_ours(const struct stat *st)
{
	return (st->st_uid == 0 || st->st_uid == geteuid()) && !(st->st_mode & OTHERS_WRITE);
}

/* In a user namespace, all users outside of it show as one and the same. */
static bool is_outside(uid_t uid)
{
	FILE *f = fopen("/proc/self/uid_map", "re");
	uintmax_t first, outside, n;
	bool found = !f;

	while (f && !found && fscanf(f, "%ju %ju %ju", &first, &outside, &n) == 3)
		found = uid >= first && uid - first < n;
	if (f)
		fclose(f);
	return !found;
}

/* A user who owns "/" and so can replace everything, or one who cannot be told from root. */
static bool owns_the_host(uid_t uid)
{
	struct stat top;

	return (stat("/", &top) == 0 && top.st_uid == uid) || is_outside(uid);
}

/* Whether a link or directory on the way can be trusted. In a sticky directory nobody can replace
 * what belongs to others. */
static bool is_way(const struct stat *st)
{
	if (st->st_uid != 0 && st->st_uid != geteuid() && !owns_the_host(st->st_uid))
		return false;
	return S_ISLNK(st->st_mode) || st->st_mode & S_ISVTX || !(st->st_mode & OTHERS_WRITE);
}

int lr_trust_refuse(const struct stat *st, const char *what, const char *path, struct lr_err *err)
{
	bool foreign = st->st_uid != 0 && st->st_uid != geteuid();

	if (foreign) {
		lr_refuse(err, EPERM, "%s %s belongs to user %u, who could forge containers", what,
			  path, st->st_uid);
		return lr_err_hint(err, "call as that user, or give another directory by --root");
	}
	lr_refuse(err, EPERM,
		  "%s %s may be written to by others (mode %04o), who could forge "
		  "containers",
		  what, path, st->st_mode & 07777);
	return lr_err_hint(err, "chmod go-w it once its containers are known to be yours, or give "
				"another directory by --root");
}

/* The part of a path that has been resolved, and the rest. */
struct walk {
	char done[PATH_MAX]; /* no links in it; "" is the root */
	char todo[PATH_MAX];
	int links;
};

/* Moves the next component from todo to done. 0: there is none. */
static int step(struct walk *w)
{
	const char *from = w->todo + strspn(w->todo, "/");
	size_t n = strcspn(from, "/"), len = strlen(w->done);

	if (n == 0)
		return 0;
	if (len + 1 + n >= sizeof(w->done))
		return -ENAMETOOLONG;
	if (n == 2 && from[0] == '.' && from[1] == '.')
		*(len ? strrchr(w->done, '/') : w->done) = '\0';
	else if (n > 1 || from[0] != '.')
		snprintf(w->done + len, sizeof(w->done) - len, "/%.*s", (int)n, from);
	memmove(w->todo, from + n, strlen(from + n) + 1);
	return 1;
}

static int follow(struct walk *w)
{
	char target[PATH_MAX], rest[PATH_MAX];
	ssize_t n = readlink(w->done, target, sizeof(target) - 1);

	if (n < 0)
		return -errno;
	target[n] = '\0';
	memcpy(rest, w->todo, strlen(w->todo) + 1);
	if (++w->links > LINKS_MAX)
		return -ELOOP;
	if ((size_t)snprintf(w->todo, sizeof(w->todo), "%s/%s", target, rest) >= sizeof(w->todo))
		return -ENAMETOOLONG;
	*(target[0] == '/' ? w->done : strrchr(w->done, '/')) = '\0';
	return 0;
}

static bool at_end(const struct walk *w)
{
	return w->todo[strspn(w->todo, "/")] == '\0';
}

int lr_trust_refuse_image(const struct stat *st, const char *what, const char *path,
			  struct lr_err *err)
{
	if (st->st_uid != 0 && st->st_uid != geteuid())
		return lr_refuse(err, EPERM,
				 "%s %s belongs to user %u, who could change the images", what,
				 path, st->st_uid);
	return lr_refuse(err, EPERM,
			 "%s %s may be written to by others (mode %04o), who could change the "
			 "images",
			 what, path, st->st_mode & 07777);
}

static int refuse(const struct stat *st, const char *name, bool last, const char *path,
		  struct lr_err *err)
{
	char what[96];

	snprintf(what, sizeof(what), last ? "%s" : "on the way to %s,",
		 name ? name : "the runtime's root directory");
	return (name ? lr_trust_refuse_image : lr_trust_refuse)(st, what, path, err);
}

static int trust(const char *path, const char *name, struct lr_err *err)
{
	struct walk w = {.links = 0};
	struct stat st;
	int r = (size_t)snprintf(w.todo, sizeof(w.todo), "%s", path) < sizeof(w.todo)
			? 0
			: -ENAMETOOLONG;

	while (r >= 0 && (r = step(&w)) > 0) {
		if (!w.done[0])
			continue; /* the owner of "/" owns all */
		if (lstat(w.done, &st) < 0)
			return errno == ENOENT ? 0 : lr_fail(err, errno, "look at %s", w.done);
		bool link = S_ISLNK(st.st_mode), last = at_end(&w) && !link;
		if (last ? !lr_trust_ours(&st) : !is_way(&st))
			return refuse(&st, name, last, w.done, err);
		if (link)
			r = follow(&w);
	}
	return r < 0 ? lr_fail(err, -r, "resolve %s", path) : 1;
}

int lr_trust_path(const char *path, struct lr_err *err)
{
	return trust(path, NULL, err);
}

int lr_trust_images(const char *path, const char *what, struct lr_err *err)
{
	return trust(path, what, err);
}
