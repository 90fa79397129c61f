/* SPDX-License-Identifier: Apache-2.0 */
/* wire: messages to bytes and back. */
#include <errno.h>
#include <string.h>

#include "src/wire/fields.h"

#define MAGIC      "LEANWIRE"
#define RDMA_MAGIC "LEANRDMA"

/* ---- hello and greeting ------------------------------------------------------------------- */

void lr_wire_put_hello(const struct lr_wire_hello *h, uint8_t out[LR_WIRE_HELLO])
{
	memcpy(out, MAGIC, 8);
	wire_put(out + 8, h->oldest, 2);
	wire_put(out + 10, h->newest, 2);
	wire_put(out + 12, h->way, 2);
	wire_put(out + 14, 0, 2);
	memcpy(out + 16, h->id, LR_WIRE_ID);
}

int lr_wire_get_hello(const uint8_t in[LR_WIRE_HELLO], struct lr_wire_hello *ret)
{
	uint64_t way = wire_get(in + 12, 2);
	struct lr_wire_hello h = {.oldest = (uint16_t)wire_get(in + 8, 2),
				  .newest = (uint16_t)wire_get(in + 10, 2),
				  .way = (enum lr_wire_way)way};

	if (memcmp(in, MAGIC, 8) != 0 || h.oldest > h.newest || !h.oldest ||
	    (way != LR_WIRE_TLS && way != LR_WIRE_PLAIN) || wire_get(in + 14, 2))
		return -EPROTO;
	memcpy(h.id, in + 16, LR_WIRE_ID);
	*ret = h;
	return 0;
}

void lr_wire_put_greeting(const struct lr_wire_greeting *g, uint8_t out[LR_WIRE_GREETING])
{
	memcpy(out, MAGIC, 8);
	wire_put(out + 8, g->version, 2);
	wire_put(out + 10, g->code, 2);
	wire_put(out + 12, 0, 4);
	memcpy(out + 16, g->challenge, LR_WIRE_PROOF);
}

int lr_wire_get_greeting(const uint8_t in[LR_WIRE_GREETING], struct lr_wire_greeting *ret)
{
	struct lr_wire_greeting g = {.version = (uint16_t)wire_get(in + 8, 2),
				     .code = (uint16_t)wire_get(in + 10, 2)};

	if (memcmp(in, MAGIC, 8) != 0 || wire_get(in + 12, 4) || g.code >= LR_WIRE_CODES ||
	    !g.version != !!g.code)
		return -EPROTO;
	memcpy(g.challenge, in + 16, LR_WIRE_PROOF);
	*ret = g;
	return 0;
}

void lr_wire_put_token(const uint8_t token[LR_WIRE_PROOF], uint8_t out[LR_WIRE_TOKEN_SHOWN])
{
	memcpy(out, RDMA_MAGIC, 8);
	wire_put(out + 8, LR_WIRE_VERSION, 2);
	wire_put(out + 10, 0, 6);
	memcpy(out + 16, token, LR_WIRE_PROOF);
}

/* There may be zeros behind it: private data has a length of its own. */
int lr_wire_get_token(const void *in, size_t n, uint8_t ret[LR_WIRE_PROOF])
{
	const uint8_t *b = in;

	if (!b || n < LR_WIRE_TOKEN_SHOWN || memcmp(b, RDMA_MAGIC, 8) != 0 ||
	    wire_get(b + 8, 2) != LR_WIRE_VERSION || wire_get(b + 10, 6))
		return -EPROTO;
	memcpy(ret, b + 16, LR_WIRE_PROOF);
	return 0;
}

/* ---- heads -------------------------------------------------------------------------------- */

static uint32_t longest(const uint8_t *fields)
{
	uint32_t n = 0;

	for (; *fields; fields++)
		n += wire_most(*fields);
	return n;
}

void lr_wire_put_head(const struct lr_wire_head *h, uint8_t out[LR_WIRE_HEAD])
{
	wire_put(out, h->length, 4);
	wire_put(out + 4, h->type, 2);
	wire_put(out + 6, 0, 2);
	wire_put(out + 8, h->tag, 8);
}

int lr_wire_get_head(const uint8_t in[LR_WIRE_HEAD], struct lr_wire_head *ret)
{
	uint32_t type = (uint32_t)wire_get(in + 4, 2);
	uint32_t length = (uint32_t)wire_get(in, 4);
	const uint8_t *fields = wire_fields(type);

	if (!fields || wire_get(in + 6, 2) || length > longest(fields))
		return -EPROTO;
	*ret = (struct lr_wire_head){(enum lr_wire_type)type, length, wire_get(in + 8, 8)};
	return 0;
}

/* ---- lists -------------------------------------------------------------------------------- */

static void put_range(const struct lr_wire_range *r, uint8_t *out)
{
	wire_put(out, r->at, 8);
	wire_put(out + 8, r->pages, 4);
}

static void put_seed(const struct lr_wire_seed *s, uint8_t *out)
{
	memcpy(out, s->id, LR_WIRE_ID);
	wire_put(out + 16, s->users, 4);
	wire_put(out + 20, s->ended, 4);
	wire_put(out + 24, s->length, 8);
	wire_put(out + 32, s->pages, 8);
	wire_put(out + 40, s->lease, 8);
	wire_put(out + 48, s->sent, 8);
	wire_put(out + 56, s->missing, 8);
}

static void get_seed(const uint8_t *in, struct lr_wire_seed *s)
{
	memcpy(s->id, in, LR_WIRE_ID);
	s->users = (uint32_t)wire_get(in + 16, 4);
	s->ended = (uint32_t)wire_get(in + 20, 4);
	s->length = wire_get(in + 24, 8);
	s->pages = wire_get(in + 32, 8);
	s->lease = wire_get(in + 40, 8);
	s->sent = wire_get(in + 48, 8);
	s->missing = wire_get(in + 56, 8);
}

static void put_child(const struct lr_wire_child *c, uint8_t *out)
{
	memcpy(out, c->id, LR_WIRE_ID);
	wire_put(out + 16, c->pid, 4);
	wire_put(out + 20, c->state, 4);
	for (size_t i = 0; i < LR_WIRE_FIGURES; i++)
		wire_put(out + 24 + 8 * i, c->v[i], 8);
}

static void get_child(const uint8_t *in, struct lr_wire_child *c)
{
	memcpy(c->id, in, LR_WIRE_ID);
	c->pid = (uint32_t)wire_get(in + 16, 4);
	c->state = (uint32_t)wire_get(in + 20, 4);
	for (size_t i = 0; i < LR_WIRE_FIGURES; i++)
		c->v[i] = wire_get(in + 24 + 8 * i, 8);
}

/* Of what there are several; 0: of nothing else. */
static size_t size_of_one(enum wire_field f)
{
	return f == F_RANGES     ? WIRE_RANGE_SIZE
	       : f == F_SEEDS    ? WIRE_SEED_SIZE
	       : f == F_CHILDREN ? WIRE_CHILD_SIZE
				 : 0;
}

static size_t put_list(const struct lr_wire_msg *m, enum wire_field f, uint8_t *out)
{
	const size_t size = size_of_one(f);

	for (size_t i = 0; i < m->n; i++)
		if (f == F_RANGES)
			put_range(&m->ranges[i], out + i * size);
		else if (f == F_SEEDS)
			put_seed(&m->seeds[i], out + i * size);
		else
			put_child(&m->children[i], out + i * size);
	return m->n * size;
}

/* length: within the field's limit. */
static int get_list(struct lr_wire_msg *m, enum wire_field f, const uint8_t *in, size_t length)
{
	const size_t size = size_of_one(f);

	if (length % size)
		return -EPROTO;
	m->n = length / size;
	for (size_t i = 0; i < m->n; i++)
		if (f == F_RANGES)
			m->ranges[i] =
				(struct lr_wire_range){wire_get(in + i * size, 8),
						       (uint32_t)wire_get(in + i * size + 8, 4)};
		else if (f == F_SEEDS)
			get_seed(in + i * size, &m->seeds[i]);
		else
			get_child(in + i * size, &m->children[i]);
	return 0;
}

/* ---- messages ----------------------------------------------------------------------------- */

static size_t put_field(const struct lr_wire_msg *m, enum wire_field f, uint8_t *out)
{
	const void *from = wire_place((struct lr_wire_msg *)(uintptr_t)m, f);
	uint32_t size = wire_most(f);

	if (size_of_one(f))
		return put_list(m, f, out);
	if (wire_takes_rest(f)) {
		const struct lr_wire_bytes *b = from;
		if (b->n)
			memcpy(out, b->at, b->n);
		return b->n;
	}
	if (f == F_ID || f == F_PROOF)
		memcpy(out, from, size);
	else if (size == 4)
		wire_put(out, *(const uint32_t *)from, 4);
	else if (size == 8)
		wire_put(out, *(const uint64_t *)from, 8);
	return size;
}

static size_t field_size(const struct lr_wire_msg *m, enum wire_field f)
{
	const struct lr_wire_bytes *b = wire_place((struct lr_wire_msg *)(uintptr_t)m, f);

	if (size_of_one(f))
		return m->n * size_of_one(f);
	return wire_takes_rest(f) ? b->n : wire_most(f);
}

ssize_t lr_wire_encode(const struct lr_wire_msg *m, uint8_t *out, size_t size)
{
	const uint8_t *fields = wire_fields(m->type);
	struct lr_wire_head h = {.type = m->type, .tag = m->tag};
	size_t at = LR_WIRE_HEAD, length = 0;

	if (!fields)
		return -EINVAL;
	for (const uint8_t *f = fields; *f; f++) {
		if (!wire_field_is_right(m, *f))
			return -EINVAL;
		length += field_size(m, *f);
	}
	if (size < LR_WIRE_HEAD || length > size - LR_WIRE_HEAD)
		return -EMSGSIZE;
	h.length = (uint32_t)length;
	lr_wire_put_head(&h, out);
	for (const uint8_t *f = fields; *f; f++)
		at += put_field(m, *f, out + at);
	return (ssize_t)at;
}

/* Returns how much of the body it takes. */
static ssize_t get_field(struct lr_wire_msg *m, enum wire_field f, const uint8_t *in, size_t left)
{
	void *to = wire_place(m, f);
	uint32_t size = wire_most(f);

	if (wire_takes_rest(f)) {
		if (left > size)
			return -EPROTO;
		if (size_of_one(f) && get_list(m, f, in, left) < 0)
			return -EPROTO;
		if (f == F_TEXT || f == F_PATH || f == F_DATA)
			*(struct lr_wire_bytes *)to = (struct lr_wire_bytes){in, left};
		return (ssize_t)left;
	}
	if (left < size)
		return -EPROTO;
	if (f == F_ID || f == F_PROOF)
		memcpy(to, in, size);
	else if (size == 4)
		*(uint32_t *)to = (uint32_t)wire_get(in, 4);
	else if (size == 8)
		*(uint64_t *)to = wire_get(in, 8);
	return (ssize_t)size;
}

int lr_wire_decode(const struct lr_wire_head *h, const uint8_t *body, struct lr_wire_msg *ret)
{
	const uint8_t *fields = wire_fields(h->type);
	size_t at = 0;

	if (!fields)
		return -EPROTO;
	memset(ret, 0, sizeof(*ret));
	ret->type = h->type;
	ret->tag = h->tag;
	for (const uint8_t *f = fields; *f; f++) {
		ssize_t n = get_field(ret, *f, body + at, h->length - at);
		if (n < 0 || !wire_field_is_right(ret, *f))
			return -EPROTO;
		at += (size_t)n;
	}
	return at == h->length ? 0 : -EPROTO;
}

int lr_wire_decode_all(const uint8_t *bytes, size_t n, struct lr_wire_msg *ret)
{
	struct lr_wire_head h;

	if (n < LR_WIRE_HEAD || lr_wire_get_head(bytes, &h) < 0 || h.length != n - LR_WIRE_HEAD)
		return -EPROTO;
	return lr_wire_decode(&h, bytes + LR_WIRE_HEAD, ret);
}
