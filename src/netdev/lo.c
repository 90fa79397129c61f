/* SPDX-License-Identifier: Apache-2.0 */
/* netdev: the loopback device; see netdev.h. */
#define LR_ROOM "netdev"
#include <errno.h>
#include <net/if.h>
#include <sys/ioctl.h>
#include <sys/socket.h>

#include "src/base/fd.h"
#include "src/netdev/netdev.h"

int lr_netdev_lo_up(int *ret, struct lr_err *err)
{
	/* Interface ioctls work on any socket; a Unix one exists where IPv4 does not. IFF_UP alone:
	 * of the flags lo can have, the kernel changes no other by this call. */
	struct ifreq req = {.ifr_name = "lo", .ifr_flags = IFF_UP};

	LR_CLEANUP_FD int fd = socket(AF_UNIX, SOCK_DGRAM | SOCK_CLOEXEC, 0);
	if (fd < 0)
		return lr_fail(err, errno, "a socket to set the loopback device up");
	if (ioctl(fd, SIOCSIFFLAGS, &req) < 0)
		return lr_fail(err, errno, "setting the loopback device up");
	*ret = lr_take_fd(&fd);
	return 0;
}
