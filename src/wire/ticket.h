/* SPDX-License-Identifier: Apache-2.0 */
/*
 * wire: a ticket as text: what it takes to find a seed and to be let in, as one line.
 *
 *	lean-seed:1:tls:ID:SECRET@HOST:PORT
 *
 * ID: 32 hexadecimal digits; SECRET: 43 characters of base64url; HOST: a name, an IPv4 address, or
 * an IPv6 one in brackets; `plain` in place of `tls` on trusted networks. Whoever has it may use the
 * seed, so it is named rather than written down where others look: file:PATH, env:NAME.
 */
#ifndef LR_WIRE_TICKET_H
#define LR_WIRE_TICKET_H

#include "src/wire/wire.h"

#define LR_TICKET_PREFIX "lean-seed:" /* of all versions */

#define LR_TICKET_HOST   256
#define LR_TICKET_TEXT   400 /* with the NUL */

struct lr_ticket {
	enum lr_wire_way way;
	uint8_t id[LR_WIRE_ID], secret[LR_WIRE_SECRET];
	char host[LR_TICKET_HOST]; /* without brackets */
	uint16_t port;
};

/* -EINVAL. There is one way to write a ticket, so a text that decodes is what it encodes to. */
int lr_ticket_decode(const char *text, size_t n, struct lr_ticket *ret);
/* -EINVAL: such a host can't be written. */
int lr_ticket_encode(const struct lr_ticket *t, char out[LR_TICKET_TEXT]);

enum lr_ticket_place { LR_TICKET_HERE, LR_TICKET_FILE, LR_TICKET_ENV };
/* What an argument or an annotation names; *rest: the text, the path, the variable. */
enum lr_ticket_place lr_ticket_place(const char *arg, const char **rest);

#define LR_WIRE_HEX (2 * LR_WIRE_ID + 1)
void lr_wire_id_text(const uint8_t id[LR_WIRE_ID], char out[LR_WIRE_HEX]);
int lr_wire_id_of(const char *text, size_t n, uint8_t ret[LR_WIRE_ID]);

#endif
