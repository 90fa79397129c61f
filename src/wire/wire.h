/* SPDX-License-Identifier: Apache-2.0 */
/*
 * wire: the messages by which seeds travel, as bytes; docs/seed-protocol.md says what they mean.
 *
 * Pure: nothing here knows a socket. A decoder believes no length: each message has an upper limit
 * that is known from its first 16 bytes, each field is checked, and a body that is longer or shorter
 * than its fields is refused. There is one way to write a message, so what was decoded encodes to
 * the same bytes.
 */
#ifndef LR_WIRE_WIRE_H
#define LR_WIRE_WIRE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

#define LR_WIRE_VERSION 1
#define LR_WIRE_PAGE    4096U
#define LR_WIRE_ID      16
#define LR_WIRE_SECRET  32
#define LR_WIRE_PROOF   32

/* What one answer may hold, in bytes: of the descriptor, or of pages. */
#define LR_WIRE_CHUNK  (1U << 20)
#define LR_WIRE_RANGES 64 /* in one question for pages */
#define LR_WIRE_TEXT   512
#define LR_WIRE_PATH   4095
#define LR_WIRE_SEEDS  32 /* in one list */
#define LR_WIRE_KIN    16 /* children in one list */

/* ---- before anything else, in clear ----------------------------------------------------- */

enum lr_wire_way { LR_WIRE_TLS = 1, LR_WIRE_PLAIN };

#define LR_WIRE_HELLO 32
struct lr_wire_hello {
	uint16_t oldest, newest; /* versions that the client speaks */
	enum lr_wire_way way;
	uint8_t id[LR_WIRE_ID];
};

#define LR_WIRE_GREETING 48
struct lr_wire_greeting {
	uint16_t version; /* that both speak from here on; 0 with a code */
	uint16_t code;    /* 0: go on; or enum lr_wire_code, and the connection ends */
	uint8_t challenge[LR_WIRE_PROOF];
};

void lr_wire_put_hello(const struct lr_wire_hello *h, uint8_t out[LR_WIRE_HELLO]);
int lr_wire_get_hello(const uint8_t in[LR_WIRE_HELLO], struct lr_wire_hello *ret);
void lr_wire_put_greeting(const struct lr_wire_greeting *g, uint8_t out[LR_WIRE_GREETING]);
int lr_wire_get_greeting(const uint8_t in[LR_WIRE_GREETING], struct lr_wire_greeting *ret);

/* What a reader shows when it connects by RDMA: its private data begins with that. */
#define LR_WIRE_TOKEN_SHOWN 48
void lr_wire_put_token(const uint8_t token[LR_WIRE_PROOF], uint8_t out[LR_WIRE_TOKEN_SHOWN]);
int lr_wire_get_token(const void *in, size_t n, uint8_t ret[LR_WIRE_PROOF]);

/* ---- messages ---------------------------------------------------------------------------- */

enum lr_wire_type {
	/* between hosts */
	LR_WIRE_PROVE = 1, /* proof: of the secret, where TLS does not prove it */
	LR_WIRE_WELCOME,   /* count: pages in one READ at most; length, pages, lease, id */
	LR_WIRE_REFUSED,   /* code, text; also the answer to a local question */
	LR_WIRE_DESCRIBE,  /* at, count: bytes of the descriptor */
	LR_WIRE_READ,      /* ranges of the file of pages */
	LR_WIRE_DATA,      /* data: the answer to these two */
	LR_WIRE_PING,
	LR_WIRE_PONG,    /* lease */
	LR_WIRE_RDMA,    /* -> ENTRY */
	LR_WIRE_ENTRY,   /* count: the port for RDMA, 0: pages come by READ alone; proof: a token */
	LR_WIRE_ENTERED, /* -> REGION */
	LR_WIRE_REGION,  /* key, at, length: the file of pages; a length of 0: as a port of 0 */
	LR_WIRE_MODULE,  /* -> ENTRY, of the kernel module's; port 0: it has nothing of the seed */
	/* on the local socket; one message a datagram */
	LR_WIRE_ADD = 32, /* lease, flags, path: empty with two or three descriptors -> TICKET */
	LR_WIRE_EXTEND,   /* id, lease (0: as long as it is) -> OK */
	LR_WIRE_REMOVE,   /* id -> OK */
	LR_WIRE_LIST,     /* count: how many to leave out -> SEEDS */
	LR_WIRE_INSPECT,  /* id -> SEEDS with one */
	LR_WIRE_FETCH,    /* text: a ticket -> DESCRIPTOR */
	LR_WIRE_SERVE,    /* id, count: pages around a fault, flags -> OK, and processes may come */
	LR_WIRE_READY,    /* count: processes that came -> OK when all of them are kept */
	LR_WIRE_OK,       /* nothing more to say */
	LR_WIRE_TICKET,   /* text */
	LR_WIRE_SEEDS_ARE,  /* count: of all; seeds */
	LR_WIRE_DESCRIPTOR, /* length, id; with it a descriptor of a file */
	LR_WIRE_BRING,      /* id, ranges, with a file: those pages are written there -> OK */
	LR_WIRE_FILLED, /* at, length: bytes of the pages of an ADD that are in place now -> OK, or: */
	LR_WIRE_WANTED,       /* ranges that somebody waits for */
	LR_WIRE_SOURCE,       /* id -> OK, with a source of the kernel module */
	LR_WIRE_COUNTS,       /* what came for this connection so far -> CHILDREN_ARE with one */
	LR_WIRE_CHILDREN,     /* count: how many to leave out -> CHILDREN_ARE */
	LR_WIRE_CHILDREN_ARE, /* count: of all; children */
	LR_WIRE_LIMIT, /* id, length: bytes that come untouched at most, of the next SERVE -> OK */
	LR_WIRE_EXPORTS, /* -> OK: ADD takes what the kernel module has */
};

enum lr_wire_code {
	LR_WIRE_NO_SEED = 1,
	LR_WIRE_REVOKED,
	LR_WIRE_EXPIRED,
	LR_WIRE_WRONG_SECRET,
	LR_WIRE_BUSY,
	LR_WIRE_NO_VERSION,
	LR_WIRE_NO_WAY,
	LR_WIRE_MALFORMED,
	LR_WIRE_DAMAGED,
	LR_WIRE_ENDING,
	LR_WIRE_FAILED, /* local: text says what */
	LR_WIRE_CODES
};

#define LR_WIRE_PREFETCH 1U /* SERVE: what nobody has touched yet comes, too */
#define LR_WIRE_TIMED    2U /* SERVE: how long faults wait is measured */
#define LR_WIRE_FILLING  1U /* ADD: what is in the file of pages is told by FILLED */
#define LR_WIRE_EXPORTED 2U /* ADD: with a third descriptor, a seed of the kernel module */

struct lr_wire_range {
	uint64_t at;
	uint32_t pages;
};

struct lr_wire_seed {
	uint8_t id[LR_WIRE_ID];
	uint32_t users, ended; /* ended: 0, or enum lr_wire_code */
	uint64_t length, pages, lease, sent;
	uint64_t missing; /* of pages: bytes that are still to come */
};

/* What came for a child, in pages, and how. */
enum lr_wire_figure {
	LR_WIRE_FAULTS,     /* answered */
	LR_WIRE_ASKED,      /* pages that were touched, and are the seed's */
	LR_WIRE_AHEAD,      /* pages that came with those */
	LR_WIRE_PREFETCHED, /* pages that came before anybody touched them */
	LR_WIRE_ZEROS,      /* pages that the seed does not have */
	LR_WIRE_CACHED,     /* of all that came: kept from another child, */
	LR_WIRE_BY_TCP,     /* from the seed's host by TCP, */
	LR_WIRE_BY_RDMA,    /* or by RDMA */
	LR_WIRE_TIMES,      /* faults that were measured; ns: */
	LR_WIRE_SHORTEST,
	LR_WIRE_MEDIAN,
	LR_WIRE_LONGEST,
	LR_WIRE_FIGURES
};

enum lr_wire_state {
	LR_WIRE_COMING, /* memory comes */
	LR_WIRE_OVER,   /* it has come, or the processes have ended */
	LR_WIRE_KILLED, /* it can't come any more, so they were ended */
	LR_WIRE_STATES
};

struct lr_wire_child {
	uint8_t id[LR_WIRE_ID]; /* of its seed */
	uint32_t pid, state;    /* pid: of its first process, as the daemon sees it; 0: none */
	uint64_t v[LR_WIRE_FIGURES];
};

struct lr_wire_bytes {
	const uint8_t *at; /* into what was decoded */
	size_t n;
};

/* Only the members that belong to the type mean anything. */
struct lr_wire_msg {
	enum lr_wire_type type;
	uint64_t tag; /* an answer has its question's */
	uint32_t code, count, flags, key;
	uint64_t at, length, pages, lease; /* lease: ms */
	uint8_t id[LR_WIRE_ID], proof[LR_WIRE_PROOF];
	struct lr_wire_bytes text, path, data;
	size_t n; /* of ranges, seeds or children */
	struct lr_wire_range ranges[LR_WIRE_RANGES];
	union {
		struct lr_wire_seed seeds[LR_WIRE_SEEDS];
		struct lr_wire_child children[LR_WIRE_KIN];
	};
};

#define LR_WIRE_HEAD 16
/* Longest message but DATA, whose bytes a sender need not copy. */
#define LR_WIRE_MESSAGE (LR_WIRE_HEAD + 8 + 4 + LR_WIRE_PATH)
_Static_assert(LR_WIRE_MESSAGE >= LR_WIRE_HEAD + 4 + LR_WIRE_SEEDS * 64, "a list fits");

struct lr_wire_head {
	enum lr_wire_type type;
	uint32_t length; /* of the body that follows */
	uint64_t tag;
};

void lr_wire_put_head(const struct lr_wire_head *h, uint8_t out[LR_WIRE_HEAD]);
/* -EPROTO: no such type, or too long for it. */
int lr_wire_get_head(const uint8_t in[LR_WIRE_HEAD], struct lr_wire_head *ret);

/* Head and body. The number of bytes, -EMSGSIZE, or -EINVAL if the message may not be sent. */
ssize_t lr_wire_encode(const struct lr_wire_msg *m, uint8_t *out, size_t size);
/* What points into the message points into body then. -EPROTO. */
int lr_wire_decode(const struct lr_wire_head *h, const uint8_t *body, struct lr_wire_msg *ret);
/* Head and body in one piece that ends there. */
int lr_wire_decode_all(const uint8_t *bytes, size_t n, struct lr_wire_msg *ret);

static inline struct lr_wire_bytes lr_wire_text(const char *s, size_t n)
{
	return (struct lr_wire_bytes){(const uint8_t *)s, n};
}
/* All that the ranges ask for, in bytes. */
size_t lr_wire_asked(const struct lr_wire_msg *m);
/* "revoked" */
const char *lr_wire_code_name(uint32_t code);
/* Whether it is no use to ask again, if a peer says so that has proved itself. */
bool lr_wire_code_is_final(uint32_t code);

#endif
