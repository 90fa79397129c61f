/* SPDX-License-Identifier: Apache-2.0 */
/* Addresses of ours by which peers come. */
#include <arpa/inet.h>
#include <netinet/in.h>
#include <string.h>

#include "src/forkd/addresses.h"
#include "tests/unit/test.h"

/* As the kernel may give it: with what is not address and port left to chance. */
static struct sockaddr_storage four(const char *text, uint16_t port)
{
	struct sockaddr_storage sa;
	struct sockaddr_in *in = (struct sockaddr_in *)&sa;

	memset(&sa, 0xa5, sizeof(sa));
	in->sin_family = AF_INET;
	in->sin_port = htons(port);
	CHECK(inet_pton(AF_INET, text, &in->sin_addr) == 1);
	return sa;
}

static struct sockaddr_storage six(const char *text, uint16_t port, uint32_t scope)
{
	struct sockaddr_storage sa;
	struct sockaddr_in6 *in6 = (struct sockaddr_in6 *)&sa;

	memset(&sa, 0x5a, sizeof(sa));
	in6->sin6_family = AF_INET6;
	in6->sin6_port = htons(port);
	in6->sin6_scope_id = scope;
	CHECK(inet_pton(AF_INET6, text, &in6->sin6_addr) == 1);
	return sa;
}

static bool is_same(struct sockaddr_storage a, struct sockaddr_storage b)
{
	address_clean(&a);
	address_clean(&b);
	return memcmp(&a, &b, sizeof(a)) == 0;
}

TEST(an_address_is_the_same_however_it_came)
{
	struct sockaddr_storage a = four("192.0.2.1", 7411), b = six("::ffff:192.0.2.1", 7411, 0);
	struct sockaddr_storage c = six("fe80::1", 7411, 3), d = c;

	CHECK(is_same(a, b));
	address_clean(&b);
	CHECK_INT(b.ss_family, AF_INET);
	CHECK(is_same(b, b)); /* also when it is clean */
	((struct sockaddr_in6 *)&d)->sin6_flowinfo = 77;
	CHECK(is_same(c, d));
	CHECK(is_same(c, six("fe80::1", 7411, 3)));
}

TEST(another_address_port_or_network_is_another)
{
	CHECK(!is_same(four("192.0.2.1", 1), four("192.0.2.2", 1)));
	CHECK(!is_same(four("192.0.2.1", 1), four("192.0.2.1", 2)));
	CHECK(!is_same(six("::ffff:192.0.2.1", 1, 0), four("192.0.2.1", 2)));
	CHECK(!is_same(six("::192.0.2.1", 1, 0), four("192.0.2.1", 1))); /* no mapped one */
	CHECK(!is_same(six("fe80::1", 1, 3), six("fe80::1", 1, 4)));
	CHECK(!is_same(six("fe80::1", 1, 3), six("fe80::1", 2, 3)));
}

TEST(a_port_is_read_and_set)
{
	struct sockaddr_storage a = four("192.0.2.1", 1), b = six("fe80::1", 1, 3);

	address_clean(&a);
	address_clean(&b);
	address_set_port(&a, 7411);
	address_set_port(&b, 7411);
	CHECK_INT(address_port(&a), 7411);
	CHECK_INT(address_port(&b), 7411);
	CHECK(is_same(a, four("192.0.2.1", 7411)));
	CHECK(is_same(b, six("fe80::1", 7411, 3)));
}

static struct sockaddr_storage number(uint16_t port)
{
	struct sockaddr_storage sa = four("192.0.2.1", port);

	address_clean(&sa);
	return sa;
}

/* Whether it was there; if not, it is now. */
static bool come(struct addresses *a, uint16_t port, size_t *place)
{
	const struct sockaddr_storage sa = number(port);
	const bool there = addresses_find(a, &sa, place);

	if (!there)
		addresses_put(a, *place, &sa);
	return there;
}

TEST(who_was_not_asked_for_longest_gives_way)
{
	struct addresses a = {0};
	size_t first = 99, place = 99, n = 0;

	CHECK(!come(&a, 1, &first));
	for (uint16_t i = 2; i <= ADDRESSES; i++)
		CHECK(!come(&a, i, &place) && place == i - 1u);
	CHECK(come(&a, 1, &place) && place == first);
	/* The second one is the oldest now. */
	CHECK(!come(&a, 1000, &place) && place == 1);
	CHECK(come(&a, 1000, &place) && place == 1);
	CHECK(!come(&a, 2, &place) && place == 2);
	CHECK(come(&a, 1, &place) && place == first);
	/* However many come: there is a place, and who is used keeps its own. */
	for (uint16_t i = 2000; i < 2100; i++)
		n += !come(&a, i, &place) && place != first && come(&a, 1, &place);
	CHECK_INT(n, 100);
	CHECK_INT(a.n, ADDRESSES);
}

/* Who could not listen there has taken nobody's place. */
TEST(a_place_that_is_not_taken_stays_as_it_was)
{
	const struct sockaddr_storage other = number(5000);
	struct addresses a = {0};
	size_t place = 99, again = 99;

	for (uint16_t i = 1; i <= ADDRESSES; i++)
		come(&a, i, &place);
	CHECK(!addresses_find(&a, &other, &place));
	CHECK(!addresses_find(&a, &other, &again) && again == place);
	for (uint16_t i = 1; i <= ADDRESSES; i++)
		CHECK(come(&a, i, &place));
}
