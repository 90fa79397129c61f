/* SPDX-License-Identifier: Apache-2.0 */
/* forkd: TLS 1.3 with an external PSK, by OpenSSL; no certificates. Each side proves by it that it
 * has the secret. */
#ifndef LR_FORKD_TLS_H
#define LR_FORKD_TLS_H

#include <stdint.h>
#include <sys/types.h>

#include "src/wire/wire.h"

struct tls;

/* fd does not block, and stays the caller's. until: of lr_now_ms. -EACCES: no proof. */
int tls_connect(int fd, const uint8_t id[LR_WIRE_ID], const uint8_t secret[LR_WIRE_SECRET],
		int64_t until, struct tls **ret);
int tls_accept(int fd, const uint8_t id[LR_WIRE_ID], const uint8_t secret[LR_WIRE_SECRET],
	       int64_t until, struct tls **ret);
void tls_free(struct tls *t);
/* > 0; -EPIPE: the end; -EIO: not the peer's bytes; -EAGAIN and what to poll for. */
ssize_t tls_read(struct tls *t, void *to, size_t n, short *events);
ssize_t tls_write(struct tls *t, const void *from, size_t n, short *events);

#endif
