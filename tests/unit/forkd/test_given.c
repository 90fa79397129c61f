/* SPDX-License-Identifier: Apache-2.0 */
/* Descriptors that are not what they are said to be. */
#include <errno.h>
#include <fcntl.h>
#include <linux/userfaultfd.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "src/forkd/given.h"
#include "tests/unit/test.h"

static int in_memory(int seals)
{
	int fd = memfd_create("x", MFD_CLOEXEC | MFD_ALLOW_SEALING);

	return fd >= 0 && fcntl(fd, F_ADD_SEALS, seals) == 0 ? fd : -1;
}

TEST(a_file_that_can_still_be_changed_is_not_sealed)
{
	int whole = in_memory(F_SEAL_WRITE | F_SEAL_SHRINK | F_SEAL_GROW);
	int shrinks = in_memory(F_SEAL_WRITE | F_SEAL_GROW);
	int written = in_memory(F_SEAL_SHRINK | F_SEAL_GROW);
	int later = in_memory(F_SEAL_FUTURE_WRITE | F_SEAL_SHRINK | F_SEAL_GROW);
	int file = open("/proc/self/exe", O_RDONLY | O_CLOEXEC), p[2];

	REQUIRE(whole >= 0 && shrinks >= 0 && written >= 0 && later >= 0 && file >= 0);
	REQUIRE(pipe2(p, O_CLOEXEC) == 0);
	CHECK(given_is_sealed(whole));
	CHECK(!given_is_sealed(shrinks));
	CHECK(!given_is_sealed(written));
	CHECK(!given_is_sealed(later));
	CHECK(!given_is_sealed(file));
	CHECK(!given_is_sealed(p[0]));
	CHECK(!given_is_sealed(-1));
}

static int open_uffd(uint64_t features, int flags)
{
	struct uffdio_api api = {.api = UFFD_API, .features = features};
	int fd = (int)syscall(SYS_userfaultfd, O_CLOEXEC | flags);

	return fd >= 0 && features && ioctl(fd, UFFDIO_API, &api) < 0 ? -1 : fd;
}

TEST(a_userfaultfd_has_to_tell_of_everything)
{
	const uint64_t all = UFFD_FEATURE_EVENT_FORK | UFFD_FEATURE_EVENT_REMAP |
			     UFFD_FEATURE_EVENT_REMOVE | UFFD_FEATURE_EVENT_UNMAP;
	int right = open_uffd(all, O_NONBLOCK), waits = open_uffd(all, 0);

	if (right < 0)
		SKIP("no userfaultfd with events");
	CHECK(given_tells_all(right));
	CHECK(given_tells_all(waits)); /* and waits no more */
	CHECK(fcntl(waits, F_GETFL) & O_NONBLOCK);
	CHECK(!given_tells_all(open_uffd(0, O_NONBLOCK)));
	CHECK(!given_tells_all(open_uffd(UFFD_FEATURE_EVENT_FORK, O_NONBLOCK)));
	CHECK(!given_tells_all(in_memory(0)));
	CHECK(!given_tells_all(open("/dev/null", O_RDWR | O_CLOEXEC)));
	CHECK(!given_tells_all(-1));
}

TEST(a_files_name_makes_no_userfaultfd)
{
	char dir[] = "/tmp/given.XXXXXX", path[64];

	REQUIRE(mkdtemp(dir));
	snprintf(path, sizeof(path), "%s/anon_inode:[userfaultfd]", dir);
	int fd = open(path, O_CREAT | O_RDWR | O_CLOEXEC, 0600);
	CHECK_INT(given_is_uffd(fd), 0);
	CHECK(given_is_uffd(-1) < 0);
	close(fd);
	unlink(path);
	rmdir(dir);
}

/* Ours, where there is a tree of version 2 that we can look at. */
static int own_cgroup(void)
{
	static const char *const trees[] = {"/sys/fs/cgroup", "/sys/fs/cgroup/unified"};
	char line[4200], path[4300];
	FILE *f = fopen("/proc/self/cgroup", "re");

	while (f && fgets(line, sizeof(line), f)) {
		if (strncmp(line, "0::", 3) != 0)
			continue;
		line[strcspn(line, "\n")] = 0;
		for (size_t i = 0; i < 2; i++) {
			snprintf(path, sizeof(path), "%s%s", trees[i], line + 3);
			int fd = open(path, O_PATH | O_DIRECTORY | O_CLOEXEC);
			if (fd >= 0 && given_is_cgroup(fd))
				return fclose(f), fd;
			close(fd);
		}
	}
	return -1;
}

TEST(a_cgroup_is_that_of_the_process)
{
	int ours = own_cgroup(), p[2];

	if (ours < 0)
		SKIP("no cgroup v2 here");
	REQUIRE(pipe2(p, O_CLOEXEC) == 0);
	CHECK(given_is_member(ours, getpid()));
	CHECK(!given_is_member(ours, 0));
	CHECK(!given_is_member(ours, 1 << 30));
	CHECK(!given_is_member(p[0], getpid()));
}

TEST(a_directory_with_such_names_is_no_cgroup)
{
	char dir[] = "/tmp/given.XXXXXX", path[64];

	REQUIRE(mkdtemp(dir));
	snprintf(path, sizeof(path), "%s/cgroup.kill", dir);
	CHECK_INT(symlink("/dev/null", path), 0);
	int fd = open(dir, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	CHECK(!given_is_cgroup(fd));
	CHECK(!given_is_cgroup(-1));
	close(fd);
	unlink(path);
	rmdir(dir);
}
