/* SPDX-License-Identifier: Apache-2.0 */
/*
 * dbus: a narrow D-Bus client: enough to ask systemd for something and to hear that it is done.
 *
 * Contract. One connection, one call at a time, no descriptors passed, no heap. Whatever the other
 * side sends is untrusted: lengths are checked before anything is read, a message that is larger
 * than LR_DBUS_MAX, malformed or in a foreign byte order ends the conversation with an error, and
 * so does a peer that says nothing until the deadline. Both ends are on one machine, so the byte
 * order is the machine's.
 *
 * Values are written by hand (lr_dbus_put_*) or from GVariant's text form, which is how people
 * write properties of systemd units in annotations: "uint64 5", "'inactive-or-failed'", "[1, 2]".
 */
#ifndef LR_DBUS_H
#define LR_DBUS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/socket.h>
#include <sys/un.h>

#include "src/base/err.h"

/* The longest message either way. What systemd answers to us has a few hundred bytes; signals that
 * a connection without a bus in between gets unasked have some thousands. */
#define LR_DBUS_MAX 65536

/* ---- writing ------------------------------------------------------------------------------ */

/* Fills buf; what does not fit sets `full`, and nothing more is written. Begins 8-aligned. */
struct lr_dbus_out {
	uint8_t *buf;
	size_t cap, len;
	bool full;
};

void lr_dbus_put_align(struct lr_dbus_out *o, size_t to);
void lr_dbus_put_byte(struct lr_dbus_out *o, uint8_t v);
void lr_dbus_put_u16(struct lr_dbus_out *o, uint16_t v);
void lr_dbus_put_u32(struct lr_dbus_out *o, uint32_t v);
void lr_dbus_put_u64(struct lr_dbus_out *o, uint64_t v);
void lr_dbus_put_string(struct lr_dbus_out *o, const char *s);    /* also for object paths */
void lr_dbus_put_signature(struct lr_dbus_out *o, const char *s); /* at most 255 bytes */

/* An array's length is known at its end. `align` is that of its elements. */
struct lr_dbus_array {
	size_t length_at, begin;
};
struct lr_dbus_array lr_dbus_put_array(struct lr_dbus_out *o, size_t align);
void lr_dbus_end_array(struct lr_dbus_out *o, struct lr_dbus_array a);

/* A variant from GVariant's text form: booleans, numbers, strings, arrays and tuples of these, with
 * types in front ("uint64 5", "byte 0x1f") or "@t 5". -EINVAL; -ENOBUFS when it does not fit. */
int lr_dbus_put_text(struct lr_dbus_out *o, const char *text, struct lr_err *err) LR_MUST_CHECK;

/* ---- reading ------------------------------------------------------------------------------ */

/* What does not fit the bytes sets `bad`, and every later value is 0 or "". */
struct lr_dbus_in {
	const uint8_t *buf;
	size_t len, pos;
	bool bad;
};

uint8_t lr_dbus_get_byte(struct lr_dbus_in *in);
uint32_t lr_dbus_get_u32(struct lr_dbus_in *in);
const char *lr_dbus_get_string(struct lr_dbus_in *in); /* also object paths; NUL-terminated */
const char *lr_dbus_get_signature(struct lr_dbus_in *in);

enum { LR_DBUS_CALL = 1, LR_DBUS_RETURN = 2, LR_DBUS_ERROR = 3, LR_DBUS_SIGNAL = 4 };

/* Points into the bytes it was parsed from. Texts that are not there are "". */
struct lr_dbus_msg {
	int type;
	uint32_t serial, reply_serial;
	const char *path, *interface, *member, *error, *sender, *signature;
	struct lr_dbus_in body;
};

#define LR_DBUS_HEAD 16
/* The length of the message that begins so. -EBADMSG, -EMSGSIZE. */
int lr_dbus_length(const uint8_t head[LR_DBUS_HEAD], size_t *ret) LR_MUST_CHECK;
/* A whole message, len bytes as lr_dbus_length has it. -EBADMSG. */
int lr_dbus_parse(const uint8_t *buf, size_t len, struct lr_dbus_msg *ret) LR_MUST_CHECK;

/* ---- connections --------------------------------------------------------------------------- */

struct lr_dbus_method {
	const char *destination, *path, *interface, *member;
	const char *signature; /* of the body; "" without one */
};
/* Header and body; `body` may be NULL. */
void lr_dbus_encode(struct lr_dbus_out *o, uint32_t serial, const struct lr_dbus_method *m,
		    const struct lr_dbus_out *body);

/* One address out of a list as in DBUS_SESSION_BUS_ADDRESS; *list moves on. 1: *ret holds it;
 * 0: the list is at its end; -EAFNOSUPPORT or -EINVAL: not one that can be used, try the next. */
int lr_dbus_address(const char **list, struct sockaddr_un *ret, socklen_t *len) LR_MUST_CHECK;

struct lr_dbus {
	int fd;
	bool direct; /* to systemd itself, without a bus: signals come unasked, without senders */
	uint32_t serial;
	int64_t deadline;    /* milliseconds of CLOCK_MONOTONIC, for the whole conversation */
	char error[128];     /* name of the error that the last call was answered with; or "" */
	const char *address; /* for messages */
	uint8_t in[LR_DBUS_MAX];
};

/*
 * To the host's systemd, or to that of this user: by the bus as DBUS_SYSTEM_BUS_ADDRESS,
 * DBUS_SESSION_BUS_ADDRESS and XDG_RUNTIME_DIR have it, else by systemd's own socket.
 */
int lr_dbus_open(bool user, struct lr_dbus *c, struct lr_err *err) LR_MUST_CHECK;
/* The same for a socket that is connected already; takes it. */
int lr_dbus_greet(struct lr_dbus *c, int fd, bool direct, struct lr_err *err) LR_MUST_CHECK;
void lr_dbus_close(struct lr_dbus *c);
#define LR_CLEANUP_DBUS __attribute__((cleanup(lr_dbus_close)))

/* The answer to a call; *reply is valid until the next message is read. -EREMOTEIO: the answer was
 * an error, its name is in c->error. Signals that come before the answer are dropped. */
int lr_dbus_call(struct lr_dbus *c, const struct lr_dbus_method *m, const struct lr_dbus_out *body,
		 struct lr_dbus_msg *reply, struct lr_err *err) LR_MUST_CHECK;
/* Asks a bus for signals ("type='signal',..."); without a bus all come anyway. */
int lr_dbus_match(struct lr_dbus *c, const char *rule, struct lr_err *err) LR_MUST_CHECK;
/* The next message, whatever it is. */
int lr_dbus_next(struct lr_dbus *c, struct lr_dbus_msg *ret, struct lr_err *err) LR_MUST_CHECK;

#endif
