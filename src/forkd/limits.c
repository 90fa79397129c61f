/* SPDX-License-Identifier: Apache-2.0 */
/* forkd: see limits.h. Each peer has two buckets that fill with time: what is taken out of an empty
 * one has to wait. */
#include "src/forkd/limits.h"

#include <errno.h>
#include <stdbool.h>
#include <string.h>

static void refill(const struct limits *l, struct limits_peer *p, int64_t now)
{
	double seconds = (double)(now - p->seen) / 1000;

	p->attempts += seconds * LIMITS_ATTEMPTS;
	if (p->attempts > LIMITS_ATTEMPTS)
		p->attempts = LIMITS_ATTEMPTS;
	p->bytes += seconds * (double)l->rate;
	if (p->bytes > (double)l->rate)
		p->bytes = (double)l->rate;
	p->seen = now;
}

/* An unknown one takes the place of who has no connection and was here longest ago. */
static struct limits_peer *find(struct limits *l, const uint8_t address[16], int64_t now)
{
	struct limits_peer *oldest = NULL;

	for (size_t i = 0; i < LIMITS_PEERS; i++) {
		struct limits_peer *p = &l->peers[i];
		if (p->seen && memcmp(p->address, address, 16) == 0) {
			refill(l, p, now);
			return p;
		}
		if (!p->connections && (!oldest || p->seen < oldest->seen))
			oldest = p;
	}
	if (!oldest)
		return NULL;
	*oldest = (struct limits_peer){
		.seen = now, .attempts = LIMITS_ATTEMPTS, .bytes = (double)l->rate};
	memcpy(oldest->address, address, 16);
	return oldest;
}

int limits_enter(struct limits *l, const uint8_t address[16], int64_t now)
{
	struct limits_peer *p = find(l, address, now);

	if (!p || p->attempts < 1)
		return -EBUSY;
	p->attempts -= 1;
	if (p->connections >= l->per_peer)
		return -EBUSY;
	if (l->now >= l->most)
		return -ENOSPC;
	l->now++;
	p->connections++;
	return 0;
}

void limits_take(struct limits *l, const uint8_t address[16], int64_t now)
{
	struct limits_peer *p = find(l, address, now);

	if (p) {
		l->now++;
		p->connections++;
	}
}

/* Half of an IPv6 address is whatever its owner likes. */
static bool same_network(const uint8_t a[16], const uint8_t b[16])
{
	static const uint8_t v4[12] = {[10] = 0xff, [11] = 0xff};

	return memcmp(a, b, memcmp(a, v4, sizeof(v4)) == 0 ? 16 : 8) == 0;
}

size_t limits_victim(const uint8_t (*v)[16], size_t n)
{
	size_t victim = 0, most = 0;

	for (size_t i = 0; i < n; i++) {
		size_t same = 0;
		for (size_t k = i; k < n; k++)
			same += same_network(v[i], v[k]);
		if (same > most) {
			most = same;
			victim = i;
		}
	}
	return victim;
}

void limits_leave(struct limits *l, const uint8_t address[16], int64_t now)
{
	struct limits_peer *p = find(l, address, now);

	if (p && p->connections) {
		p->connections--;
		l->now--;
	}
}

int64_t limits_wait(struct limits *l, const uint8_t address[16], uint64_t bytes, int64_t now)
{
	struct limits_peer *p = l->rate ? find(l, address, now) : NULL;

	if (!p)
		return 0;
	p->bytes -= (double)bytes;
	return p->bytes >= 0 ? 0 : (int64_t)(-p->bytes * 1000 / (double)l->rate) + 1;
}
