/* SPDX-License-Identifier: Apache-2.0 */
/* seed: what the numbers of an endpoint, or of an end of a pair, are to the kernel, for who takes them and who sets
 * them. */
#ifndef LR_SEED_SOCKET_H
#define LR_SEED_SOCKET_H

#include <stdbool.h>
#include <sys/socket.h>

#include "src/seed/seed.h"

#ifndef SO_PASSPIDFD
#define SO_PASSPIDFD 76
#endif

struct lr_seed_option_of {
	int level, name;
	bool (*fits)(uint32_t domain); /* NULL: any */
	bool is_time; /* the kernel has a struct timeval, and a seed milliseconds */
};
extern const struct lr_seed_option_of lr_seed_options[LR_SEED_OPTIONS];

/* In place of a domain: an end of a pair of Unix sockets. */
#define LR_SEED_OF_PAIR UINT32_MAX

/* Whether an option is one of such a socket. */
bool lr_seed_option_fits(enum lr_seed_option o, uint32_t domain);
/* Whether all that are `set` are, and have values that a kernel would take. */
bool lr_seed_options_fit(uint32_t domain, uint32_t set, const int32_t *options);

/* Whether it has a file: its name is a path. */
static inline bool lr_seed_has_path(const struct lr_seed *s, const struct lr_seed_endpoint *e)
{
	const char *address = lr_seed_data(s, &e->address);

	return e->domain == AF_UNIX && address[sizeof(sa_family_t)];
}

/* How much of `dir` is the directory from which `path`, a file in `dir`, counts: none of it if it is
 * absolute (and then a link may be in it). -1: `path` is of no file in there, by its text. */
int lr_seed_socket_base(const char *dir, const char *path);

/* "127.0.0.1:80", "[::1]:80", "/run/socket", "@name"; for messages. */
#define LR_SEED_ADDRESS_TEXT 128
void lr_seed_address_text(const void *address, uint64_t length, char ret[LR_SEED_ADDRESS_TEXT]);

#endif
