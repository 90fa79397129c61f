/* SPDX-License-Identifier: GPL-2.0 */
/*
 * What both ends of a data connection have in common. It is an RC connection
 * of rdma_cm. The reader shows a token in its request; the other end sends
 * where each chunk of the seed is, in as many messages as it takes; after that
 * the reader reads, and the other end does nothing any more.
 */
#ifndef LEAN_SEED_RDMA_H
#define LEAN_SEED_RDMA_H

#include <linux/inet.h>
#include <linux/net.h>
#include <linux/socket.h>
#include <linux/uaccess.h>
#include <rdma/ib_verbs.h>
#include <rdma/rdma_cm.h>

#include <lean_seed.h>

#define LEAN_RDMA_MAGIC 0x6c534431
#define LEAN_RDMA_VERSION 1
#define LEAN_RDMA_TIMEOUT 5000 /* milliseconds */
#define LEAN_CHUNK_PAGES 512
#define LEAN_CHUNKS_MAX (LEAN_PAGES_MAX / 16) /* hardware has chunks of more pages than that */

/* The private data of a request; rdma_cm has room for 56 bytes. */
struct lean_hello {
	__le32 magic;
	__le16 version;
	__le16 reserved;
	__u8 token[LEAN_SEED_TOKEN_SIZE];
};

struct lean_chunk {
	__le64 address;
	__le32 key;
	__le32 pages;
};

#define LEAN_CHUNKS_AT_ONCE ((4096 - 32) / sizeof(struct lean_chunk))

struct lean_table {
	__le32 magic;
	__le16 version;
	__le16 page_shift;
	__le64 pages; /* of the seed */
	__le32 chunk_pages;
	__le32 chunks; /* of the seed */
	__le32 first; /* of those that follow */
	__le32 count;
	struct lean_chunk chunk[LEAN_CHUNKS_AT_ONCE];
};

static inline int lean_copy_address(struct sockaddr_storage *to, u64 user, u32 length)
{
	memset(to, 0, sizeof(*to));
	if (length > sizeof(*to) || length < sizeof(struct sockaddr_in))
		return -EINVAL;
	if (copy_from_user(to, u64_to_user_ptr(user), length))
		return -EFAULT;
	if (to->ss_family == AF_INET6)
		return length < sizeof(struct sockaddr_in6) ? -EINVAL : 0;
	return to->ss_family == AF_INET ? 0 : -EAFNOSUPPORT;
}

#endif
