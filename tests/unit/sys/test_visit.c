/* SPDX-License-Identifier: Apache-2.0 */
/* Unit tests: to do something in another mount namespace. */
#include <errno.h>
#include <fcntl.h>
#include <sched.h>
#include <sys/mount.h>
#include <sys/stat.h>

#include "src/base/fd.h"
#include "src/sys/visit.h"
#include "tests/unit/fork.h"
#include "tests/unit/test.h"

struct seen {
	int fd; /* a number that is ours */
	int answer;
};

static int look(const void *arg)
{
	const struct seen *s = arg;
	int fd = lr_open("/dev", O_RDONLY | O_DIRECTORY | O_CLOEXEC);

	if (s->answer)
		return s->answer;
	return fd < 0 || dup3(fd, s->fd, O_CLOEXEC) < 0 ? -EIO : 0;
}

static dev_t device_of(int fd)
{
	struct stat st;

	return fstat(fd, &st) == 0 ? st.st_dev : 0;
}

/* Where an empty file system lies on /dev of the other namespace. 77: that takes root. */
static int visits(void)
{
	const int before = open("/proc/self/ns/mnt", O_RDONLY | O_CLOEXEC);
	struct seen s = {.fd = open("/dev", O_RDONLY | O_DIRECTORY | O_CLOEXEC)};
	const dev_t here = device_of(s.fd);

	if (unshare(CLONE_NEWNS) < 0)
		return 77;
	const int other = open("/proc/self/ns/mnt", O_RDONLY | O_CLOEXEC);
	if (other < 0 || mount(NULL, "/", NULL, MS_REC | MS_PRIVATE, NULL) < 0 ||
	    mount("none", "/dev", "tmpfs", 0, NULL) < 0 || setns(before, CLONE_NEWNS) < 0)
		return 1;
	if (lr_visit(other, look, &s) < 0 || !device_of(s.fd) || device_of(s.fd) == here)
		return 2;
	/* We have not gone there ourselves. */
	LR_CLEANUP_FD int ours = open("/dev", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	if (device_of(ours) != here)
		return 3;
	s.answer = -EXDEV;
	if (lr_visit(other, look, &s) != -EXDEV)
		return 4;
	return lr_visit(ours, look, &s) == -EINVAL ? 0 : 5;
}

TEST(what_is_done_is_done_there)
{
	int r = in_child(visits);

	if (r == 77)
		SKIP("needs root");
	CHECK_INT(r, 0);
}
