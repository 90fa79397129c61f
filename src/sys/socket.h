/* SPDX-License-Identifier: Apache-2.0 */
/* sys: Unix sockets that callers listen on, and descriptors that go over them. */
#ifndef LR_SYS_SOCKET_H
#define LR_SYS_SOCKET_H

#include <stddef.h>

/* A connected socket, or -errno. Paths longer than sun_path are fine. */
int lr_socket_connect(const char *path);
/* Sends len >= 1 bytes; the first message carries the descriptor. 0 or -errno. */
int lr_socket_send_fd(int sock, int fd, const char *text, size_t len);

#endif
