/* SPDX-License-Identifier: Apache-2.0 */
/* forkd: answers on the local socket, which two files give. */
#ifndef LR_FORKD_LOCAL_H
#define LR_FORKD_LOCAL_H

#include <sys/socket.h>

#include "src/forkctl/forkctl.h"

/* Who can't be answered is told by the end of the connection: it would wait. */
static inline void local_send(int sock, const struct lr_wire_msg *m, int fd)
{
	if (lr_forkctl_send(sock, m, &fd, fd >= 0) < 0)
		shutdown(sock, SHUT_RDWR);
}

static inline void local_refuse(int sock, uint64_t tag, enum lr_wire_code code, const char *text)
{
	struct lr_wire_msg m = {.type = LR_WIRE_REFUSED, .tag = tag, .code = code};
	char clean[LR_WIRE_TEXT + 1];
	size_t n = 0;

	for (; n < LR_WIRE_TEXT && text[n]; n++)
		clean[n] = text[n] < 0x20 || text[n] > 0x7e ? '?' : text[n];
	m.text = lr_wire_text(clean, n);
	local_send(sock, &m, -1);
}

static inline void local_fail(int sock, uint64_t tag, const char *text)
{
	local_refuse(sock, tag, LR_WIRE_FAILED, text);
}

#endif
