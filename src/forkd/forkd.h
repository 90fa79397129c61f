/* SPDX-License-Identifier: Apache-2.0 */
/*
 * forkd: the daemon of the remote fork. It holds seeds and serves them to other hosts, and fills the
 * memory of this host's children from seeds that others hold.
 *
 * A thread a connection, blocking with deadlines; everything that a peer can make us keep has a
 * limit. Missing pages never become zeros: the keeper (keeper.h) shares our table of descriptors,
 * so that no userfaultfd is closed by our death, and ends the children then.
 *
 * The only room that links OpenSSL. It stays out of lean-runtime.
 */
#ifndef LR_FORKD_FORKD_H
#define LR_FORKD_FORKD_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>
#include <sys/socket.h>

#include "src/base/err.h"

enum forkd_rdma { FORKD_RDMA_AUTO, FORKD_RDMA_OFF, FORKD_RDMA_REQUIRE };

struct forkd_config {
	const char *listen; /* HOST:PORT, as it is in tickets, too */
	const char *control, *metrics;
	bool plain;            /* tickets without TLS are given, and served */
	uint64_t lease;        /* ms, if nobody says */
	uint64_t keep;         /* ms: how long what is held waits for the next daemon */
	uint64_t patience;     /* ms: how long a child waits for a host that does not answer */
	uint64_t cache;        /* bytes of pages kept for all children together */
	uint64_t descriptor;   /* bytes: the longest descriptor that is fetched */
	uint64_t rate;         /* bytes a second to one peer; 0: no limit */
	unsigned connections;  /* in all */
	unsigned per_peer;     /* connections */
	unsigned handshake_ms; /* a peer has that long to prove itself */
	unsigned idle_ms;      /* a connection without a question ends after that */
	bool no_module;        /* the kernel module is not used, though it may be there */
	enum forkd_rdma rdma;
	uint64_t rdma_memory; /* bytes of seeds that are pinned for RDMA */
};
extern struct forkd_config forkd_config;

/* What the metrics tell. */
struct forkd_counts {
	atomic_ullong connections, refused, handshakes_failed, malformed;
	atomic_ullong bytes_sent, bytes_fetched, reads, faults, pages_filled, pages_prefetched;
	atomic_ullong events, children, children_ended, children_done, keepers, connects;
	atomic_ullong cached;
	atomic_ullong rdma_bytes, rdma_reads, rdma_connects, rdma_failures;
	atomic_ullong rdma_peers, rdma_refused, rdma_pinned;
	atomic_ullong sources, source_reads, source_pages, source_failures;
	atomic_ullong exported, links, linked_pages;
};
extern struct forkd_counts forkd_counts;

void forkd_log(const char *fmt, ...) LR_PRINTF(1, 2);
/* Detached; 0 or -errno. */
int forkd_thread(void *(*run)(void *), void *arg);

/* accept4(2), close-on-exec. */
int forkd_accept(int listener, struct sockaddr *sa, socklen_t *size, int flags);

/* control.c, serve.c, metrics.c: sockets to listen on; what a connection to them does. */
int control_listen(const char *path, struct lr_err *err);
void control_accept(int listener);
void serve_accept(int listener);
void metrics_accept(int listener);
int unix_listen(const char *path, int type, struct lr_err *err);

#endif
