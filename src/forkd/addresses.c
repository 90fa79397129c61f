/* SPDX-License-Identifier: Apache-2.0 */
/* forkd: see addresses.h. */
#include "src/forkd/addresses.h"

#include <netinet/in.h>
#include <string.h>

bool addresses_find(struct addresses *a, const struct sockaddr_storage *sa, size_t *place)
{
	size_t oldest = 0;

	for (size_t i = 0; i < a->n; i++) {
		if (memcmp(&a->v[i].at, sa, sizeof(*sa)) == 0) {
			a->v[i].used = ++a->uses;
			*place = i;
			return true;
		}
		if (a->v[i].used < a->v[oldest].used)
			oldest = i;
	}
	*place = a->n < ADDRESSES ? a->n : oldest;
	return false;
}

void addresses_put(struct addresses *a, size_t place, const struct sockaddr_storage *sa)
{
	a->v[place].at = *sa;
	a->v[place].used = ++a->uses;
	if (place == a->n)
		a->n++;
}

void address_clean(struct sockaddr_storage *sa)
{
	const struct sockaddr_in6 six = *(struct sockaddr_in6 *)sa;
	const struct sockaddr_in four = *(struct sockaddr_in *)sa;
	const bool is_six = sa->ss_family == AF_INET6;
	struct sockaddr_in in = {.sin_family = AF_INET};
	struct sockaddr_in6 in6 = {.sin6_family = AF_INET6,
				   .sin6_addr = six.sin6_addr,
				   .sin6_port = six.sin6_port,
				   .sin6_scope_id = six.sin6_scope_id};

	in.sin_port = is_six ? six.sin6_port : four.sin_port;
	in.sin_addr = four.sin_addr;
	if (is_six)
		memcpy(&in.sin_addr, six.sin6_addr.s6_addr + 12, 4);
	memset(sa, 0, sizeof(*sa));
	if (is_six && !IN6_IS_ADDR_V4MAPPED(&six.sin6_addr))
		memcpy(sa, &in6, sizeof(in6));
	else
		memcpy(sa, &in, sizeof(in));
}

uint16_t address_port(const struct sockaddr_storage *sa)
{
	return ntohs(sa->ss_family == AF_INET6 ? ((const struct sockaddr_in6 *)sa)->sin6_port
					       : ((const struct sockaddr_in *)sa)->sin_port);
}

void address_set_port(struct sockaddr_storage *sa, uint16_t port)
{
	if (sa->ss_family == AF_INET6)
		((struct sockaddr_in6 *)sa)->sin6_port = htons(port);
	else
		((struct sockaddr_in *)sa)->sin_port = htons(port);
}
