/* SPDX-License-Identifier: Apache-2.0 */
/* seccomp: the listener's way to the agent (config-linux.md "The Container Process State"). */
#define LR_ROOM "seccomp"
#include "src/seccomp/internal.h"

#include "src/base/fd.h"
#include "src/sys/socket.h"

int lr_seccomp_send_listener(const char *path, int listener_fd, const char *json, size_t len,
			     struct lr_err *err)
{
	LR_CLEANUP_FD int sock = lr_socket_connect(path);

	if (sock < 0) {
		lr_fail(err, -sock, "cannot connect to the seccomp agent at %s", path);
		lr_err_step(err, "connect");
		lr_err_at(err, "linux.seccomp.listenerPath");
		return lr_err_hint(err, "is the agent running, on a stream socket?");
	}
	int r = lr_socket_send_fd(sock, listener_fd, json, len);
	if (r < 0) {
		lr_fail(err, -r, "cannot send the listener to the seccomp agent at %s", path);
		lr_err_step(err, "sendmsg");
		return lr_err_at(err, "linux.seccomp.listenerPath");
	}
	return 0;
}
