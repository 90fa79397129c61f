/* SPDX-License-Identifier: (GPL-2.0 WITH Linux-syscall-note) OR MIT */
/*
 * /dev/lean-seed: memory of a frozen process as a seed, and mappings that are
 * filled from it. docs/module.md explains the calls.
 *
 * Every structure may grow at its end. The size is part of the command, so an
 * old program works with a new module, and a new program with an old module
 * as long as what the module does not know is zero.
 */
#ifndef _UAPI_LEAN_SEED_H
#define _UAPI_LEAN_SEED_H

#include <linux/ioctl.h>
#include <linux/types.h>

#define LEAN_SEED_ABI 1
#define LEAN_SEED_TOKEN_SIZE 32

/* Features that LEAN_SEED_INFO tells of. */
#define LEAN_SEED_LOCAL 0x1 /* LEAN_SEED_OPEN */
#define LEAN_SEED_RDMA 0x2  /* LEAN_SEED_LISTEN, LEAN_SEED_CONNECT */
#define LEAN_SEED_FED 0x4   /* LEAN_SEED_FEED */
#define LEAN_SEED_AS_FILE 0x8 /* read(2) of a seed; pids and LEAN_SEED_HOLE of LEAN_SEED_EXPORT */

/* What exists at the moment, of the whole module; pages are of PAGE_SIZE. */
struct lean_seed_info {
	__u32 abi;
	__u32 reserved;
	__u64 features;
	__u64 seeds;
	__u64 sources;
	__u64 mappings; /* one for each mapping and process */
	__u64 referenced; /* pages of frozen processes */
	__u64 cached; /* pages that sources hold */
	__u64 batches; /* reads under way */
	__u64 connections;
	__u64 untracked; /* mappings that fail, as a fork or a move lacked memory */
	__u64 user_limit; /* pages that one user may have referenced */
	__u64 feeds;
};

/* As the start of a range: nothing is there, but pages of zeros. */
#define LEAN_SEED_HOLE (~0ULL)

struct lean_seed_range {
	__u64 start;
	__u64 length;
};

/*
 * Makes a seed of the memory of processes that do not run, and returns its
 * descriptor. The pages are numbered from 0, through the ranges as they come.
 * read(2) and pread(2) of the descriptor give them, one behind the other.
 */
struct lean_seed_export {
	__s32 pid; /* as the caller sees it; 0 with pids */
	__u32 count; /* of ranges */
	__u64 ranges; /* a pointer to struct lean_seed_range */
	__u64 pages; /* returned: all of them */
	__u64 holes; /* returned: those that were never written, and read zero */
	__u64 pids; /* 0, or a pointer to one __s32 for each range: whose it is */
};

/* Returns a source that is filled from a seed of this host, or by a feed. */
struct lean_seed_open {
	__s32 seed; /* a descriptor, also a feed's */
	__u32 readahead; /* pages, a power of two; 0: what the module thinks best */
};

/* Returns a listener: peers connect to it until its descriptor is closed. */
struct lean_seed_listen {
	__u64 address; /* a pointer to a struct sockaddr_in or sockaddr_in6 */
	__u32 length;
	__u32 backlog;
};

/* Returns a source that is filled from a seed of another host. */
struct lean_seed_connect {
	__u64 address;
	__u32 length;
	__u32 readahead;
	__u32 timeout; /* milliseconds; 0: 5000 */
	__u32 reserved;
	__u8 token[LEAN_SEED_TOKEN_SIZE];
};

/*
 * Returns a feed: a descriptor by which a program gives pages that it has, or
 * gets from elsewhere. It reads struct lean_seed_want, and answers each by
 * LEAN_SEED_FILL. poll(2): POLLIN, something is wanted; POLLHUP, and read(2)
 * returns 0: there is no source of this feed. Closing it revokes.
 */
struct lean_seed_feed {
	__u64 pages;
};

/* What read(2) of a feed returns, one at a time: these pages, ascending. */
#define LEAN_SEED_WANT_MAX 64
struct lean_seed_want {
	__u64 id;
	__u32 count;
	__u32 reserved;
	__u64 index[LEAN_SEED_WANT_MAX];
};

/* Of a feed's descriptor: the contents of what is wanted, or why there are none. */
struct lean_seed_fill {
	__u64 id; /* of the want */
	__u32 count; /* as there */
	__u32 error; /* an errno: who waits gets SIGBUS; the next one may ask again */
	__u64 pages; /* a pointer to all of them, one behind the other */
};

/* Of a seed's descriptor: a token that opens one connection, once. */
struct lean_seed_token {
	__u32 seconds; /* how long it is good for; 0: 30 */
	__u32 reserved;
	__u8 token[LEAN_SEED_TOKEN_SIZE]; /* returned */
};

/* Why a source can't be read any more. */
enum lean_seed_reason {
	LEAN_SEED_FINE = 0,
	LEAN_SEED_REVOKED = 1, /* the seed was closed, or the source was cut */
	LEAN_SEED_LINK = 2, /* the connection broke */
	LEAN_SEED_READ = 3, /* one read failed; the next may not */
	LEAN_SEED_UNTRACKED = 4, /* a fork or a move lacked memory */
};

/* Of a source's descriptor. */
struct lean_seed_status {
	__u32 reason; /* of the last failure */
	__s32 error; /* the same as an errno, or 0 */
	__u32 dead; /* nothing will ever come again */
	__u32 readahead;
	__u64 page; /* of the last failure */
	__u64 failures; /* faults that ended with SIGBUS */
	__u64 pages; /* of the seed */
	__u64 cached;
	__u64 fetched;
	__u64 batches;
	__u64 faults;
	__u64 shared; /* faults that found their page here */
	__u64 zeros; /* faults on what was discarded */
	__u64 dropped; /* pages, under memory pressure */
	__u64 mappings;
};

/* Of a source's descriptor: reads pages before they are touched. */
struct lean_seed_fetch {
	__u64 first;
	__u64 count;
};

#define LEAN_SEED_INFO _IOR(0xEA, 0x00, struct lean_seed_info)
#define LEAN_SEED_EXPORT _IOWR(0xEA, 0x01, struct lean_seed_export)
#define LEAN_SEED_OPEN _IOW(0xEA, 0x02, struct lean_seed_open)
#define LEAN_SEED_LISTEN _IOW(0xEA, 0x03, struct lean_seed_listen)
#define LEAN_SEED_CONNECT _IOW(0xEA, 0x04, struct lean_seed_connect)
#define LEAN_SEED_FEED _IOW(0xEA, 0x05, struct lean_seed_feed)
#define LEAN_SEED_TOKEN _IOWR(0xEA, 0x10, struct lean_seed_token)
#define LEAN_SEED_FILL _IOW(0xEA, 0x11, struct lean_seed_fill)
#define LEAN_SEED_STATUS _IOR(0xEA, 0x20, struct lean_seed_status)
#define LEAN_SEED_FETCH _IOW(0xEA, 0x21, struct lean_seed_fetch)
#define LEAN_SEED_CUT _IO(0xEA, 0x22) /* a source's: as if its seed were revoked */

#endif
