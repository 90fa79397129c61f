/* SPDX-License-Identifier: Apache-2.0 */
/* rootfs: the container's /dev and the links in it; see rootfs.h. */
#define LR_ROOM "rootfs"
#include <sys/stat.h>
#include <unistd.h>

#include "src/base/str.h"
#include "src/rootfs/internal.h"
#include "src/sys/path.h"

int lr_rootfs_open_dev(int rootfd, struct lr_err *err)
{
	int fd = lr_open_in_nolinks(rootfd, "/dev", O_PATH | O_DIRECTORY, 0);
	if (fd == -ENOENT) {
		if (mkdirat(rootfd, "dev", 0755) < 0 && errno != EEXIST) {
			int code = errno;
			lr_fail(err, code, "making /dev in the root file system");
			return lr_err_hint(err,
					   "mount a tmpfs at /dev, or add the directory to the "
					   "image");
		}
		fd = lr_open_in_nolinks(rootfd, "/dev", O_PATH | O_DIRECTORY, 0);
	}
	if (fd == -ELOOP)
		return lr_refuse(
			err, ELOOP,
			"/dev of the root file system is a symbolic link: refused, devices "
			"would be made where it points");
	return fd < 0 ? lr_fail(err, -fd, "opening /dev of the root file system") : fd;
}

/* The newest ptmx of the config wins over what the image brought: an old one would open terminals
 * of the host's devpts. */
static int link_ptmx(int devfd, struct lr_err *err)
{
	static const char target[] = "pts/ptmx";
	char now[sizeof(target) + 1];

	if (symlinkat(target, devfd, "ptmx") == 0)
		return 0;
	if (errno == EEXIST) {
		ssize_t n = readlinkat(devfd, "ptmx", now, sizeof(now));
		if (n == sizeof(target) - 1 && memcmp(now, target, (size_t)n) == 0)
			return 0;
		/* EBUSY: something is mounted there, by the config or by whoever made the
		 * rootfs. */
		if (unlinkat(devfd, "ptmx", 0) < 0)
			return errno == EBUSY ? 0 : lr_fail(err, errno, "replacing /dev/ptmx");
		if (symlinkat(target, devfd, "ptmx") == 0)
			return 0;
	}
	return lr_fail(err, errno, "linking /dev/ptmx to %s", target);
}

int lr_rootfs_dev_links(int devfd, struct lr_err *err)
{
	static const struct {
		const char *name, *target;
	} links[] = {
		{"fd", "/proc/self/fd"},       {"stdin", "/proc/self/fd/0"},
		{"stdout", "/proc/self/fd/1"}, {"stderr", "/proc/self/fd/2"},
		{"core", "/proc/kcore"}, /* last: left out where the kernel has none */
	};
	size_t n = LR_ARRAY_SIZE(links);

	if (access("/proc/kcore", F_OK) < 0)
		n--;
	for (size_t i = 0; i < n; i++) {
		if (symlinkat(links[i].target, devfd, links[i].name) < 0 && errno != EEXIST)
			return lr_fail(err, errno, "linking /dev/%s to %s", links[i].name,
				       links[i].target);
	}
	return link_ptmx(devfd, err);
}
