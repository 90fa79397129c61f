/* SPDX-License-Identifier: Apache-2.0 */
/* forkd: a connection to another host: TCP, with TLS 1.3 by the seed's secret or in clear, every
 * read and write with a deadline. Used by one thread at a time. */
#ifndef LR_FORKD_LINK_H
#define LR_FORKD_LINK_H

#include "src/base/err.h"
#include "src/wire/ticket.h"
#include "src/wire/wire.h"

struct link;

/* ms from now. -ETIMEDOUT, -EPIPE (the peer is gone), -EIO (TLS: what came is not the peer's). */
int link_read(struct link *l, void *to, size_t n, int64_t ms);
int link_write(struct link *l, const void *from, size_t n, int64_t ms);
void link_close(struct link *l); /* NULL-safe */
int link_fd(const struct link *l);
/* All that is read and written from here on has to be over in that time, too; 0: no longer so. */
void link_hurry(struct link *l, int64_t ms);

int link_send(struct link *l, const struct lr_wire_msg *m, int64_t ms);
/* DATA without a copy of it. */
int link_send_data(struct link *l, uint64_t tag, const void *data, size_t n, int64_t ms);
int link_refuse(struct link *l, uint64_t tag, enum lr_wire_code code, int64_t ms);
/*
 * One message. Its body goes to `body`, of `room` bytes; -EPROTO if it is longer, or no message.
 * first_ms: until it begins; then it has to go on.
 */
int link_receive(struct link *l, struct lr_wire_msg *m, uint8_t *body, size_t room,
		 int64_t first_ms, int64_t ms);

/*
 * A question, and its answer of the type `want`: -ESTALE as below; -EPROTO: another answer; or the
 * connection is of no use any more.
 */
int link_ask(struct link *l, struct lr_wire_msg *m, enum lr_wire_type want, struct lr_wire_msg *got,
	     uint8_t *body, size_t room, int64_t ms, struct lr_err *err);

/*
 * A client's: connects, proves itself, is welcomed (*welcome). -ESTALE: a peer that proved itself
 * says that the seed is not to be had any more; *code (0: none) is what any peer said.
 */
int link_connect(const struct lr_ticket *t, int64_t ms, struct link **ret,
		 struct lr_wire_msg *welcome, uint32_t *code, struct lr_err *err);

/* A server's. Takes fd. Until it is accepted it is in clear. */
struct link *link_new(int fd);
int link_accept_tls(struct link *l, const uint8_t id[LR_WIRE_ID],
		    const uint8_t secret[LR_WIRE_SECRET], int64_t ms);
/* HMAC-SHA256(secret, "lean-seed 1 client" challenge id) */
int link_proof(const uint8_t secret[LR_WIRE_SECRET], const uint8_t challenge[LR_WIRE_PROOF],
	       const uint8_t id[LR_WIRE_ID], uint8_t ret[LR_WIRE_PROOF]);
int link_random(void *to, size_t n);
bool link_same(const void *a, const void *b, size_t n); /* in a time that tells nothing */
void link_forget(void *secret, size_t n);

#endif
