/* SPDX-License-Identifier: Apache-2.0 */
/*
 * forkctl: to talk to this host's lean-forkd by its local socket: one message of src/wire a
 * datagram, with descriptors. Used by the runtime, and by the daemon for its own side. No OpenSSL.
 */
#ifndef LR_FORKCTL_FORKCTL_H
#define LR_FORKCTL_FORKCTL_H

#include <stdint.h>
#include <sys/types.h>

#include "src/base/err.h"
#include "src/wire/ticket.h"
#include "src/wire/wire.h"

#define LR_FORKCTL_SOCKET "/run/lean-forkd/control"

/* ---- calls -------------------------------------------------------------------------------- */

/* How long connecting takes at most, and each question and answer after it. */
void lr_forkctl_be_patient(int sock, unsigned seconds);
/* Whether root or our user listens there; -EPERM: somebody else. */
int lr_forkctl_believe(int sock, const char *path, struct lr_err *err) LR_MUST_CHECK;
/* A connected socket. */
int lr_forkctl_connect(const char *path, struct lr_err *err);
/* Text of a ticket, from an argument that may say where it is (lr_ticket_place). */
int lr_forkctl_ticket(const char *arg, char ret[LR_TICKET_TEXT], struct lr_err *err);

/* A seed's directory, or with directory NULL its two files. lease: ms; 0: the daemon's own. */
int lr_forkctl_add(int sock, const char *directory, int descriptor, int pages, uint64_t lease,
		   char ticket[LR_TICKET_TEXT], struct lr_err *err);
/*
 * Two files whose pages are still being written: the ticket is good already. Each lr_forkctl_filled
 * by the same socket says which bytes of them are in place, and may be told which ones somebody waits
 * for (LR_WIRE_RANGES at most). The seed is whole with the first that finds none missing and the file
 * sealed; if the socket is closed before, it is damaged.
 */
int lr_forkctl_add_filling(int sock, int descriptor, int pages, uint64_t lease,
			   char ticket[LR_TICKET_TEXT], struct lr_err *err);
int lr_forkctl_filled(int sock, uint64_t at, uint64_t length, struct lr_wire_range *wanted,
		      size_t *n, struct lr_err *err);
/*
 * Two files, and a seed of the kernel module with what the processes alone had (src/seed/stretch.h):
 * of that the file of pages has no contents. lr_forkctl_exports: whether the daemon would take that;
 * -ECONNREFUSED: no, and other questions may follow.
 */
int lr_forkctl_exports(int sock, struct lr_err *err);
int lr_forkctl_add_exported(int sock, int descriptor, int pages, int exported, uint64_t lease,
			    char ticket[LR_TICKET_TEXT], struct lr_err *err);
/* The descriptor of a seed, as a memfd. */
int lr_forkctl_fetch(int sock, const char *ticket, int *ret, uint8_t id[LR_WIRE_ID],
		     struct lr_err *err);
/*
 * Pages of a seed that was fetched, LR_WIRE_RANGES ranges and LR_WIRE_CHUNK bytes at most: what has
 * to be there before a process is. They are written to `file`, each where the file of pages has it.
 */
int lr_forkctl_bring(int sock, const uint8_t id[LR_WIRE_ID], const struct lr_wire_range *v,
		     size_t n, int file, struct lr_err *err);
/*
 * The memory of a seed that was fetched, by the kernel module (src/seed/span.h, docs/module.md): a
 * descriptor to map, which fills itself. -ECONNREFUSED: this daemon or host can't, and other
 * questions may follow; any other error: none may.
 */
int lr_forkctl_source(int sock, const uint8_t id[LR_WIRE_ID], int *ret, struct lr_err *err);
/*
 * From here on processes of that seed may send their userfaultfd by this socket, each with its
 * index in four bytes (lr_resume_opts.lazy). Before they run, lr_forkctl_ready has to have
 * succeeded: only then nobody's death can make zeros of what they miss. cgroup: a directory whose
 * processes end if their memory can't come any more, or LR_NOFD. Closing the socket lets go.
 */
int lr_forkctl_serve(int sock, const uint8_t id[LR_WIRE_ID], int cgroup, uint32_t around,
		     uint32_t flags, struct lr_err *err);
/* Before that: of what nobody touches (LR_WIRE_PREFETCH) no more than so much comes. */
int lr_forkctl_limit(int sock, const uint8_t id[LR_WIRE_ID], uint64_t bytes, struct lr_err *err);
int lr_forkctl_ready(int sock, uint32_t processes, struct lr_err *err);

/* The lease begins again. lease: ms; 0: as long as it is. */
int lr_forkctl_extend(int sock, const uint8_t id[LR_WIRE_ID], uint64_t lease, struct lr_err *err);
int lr_forkctl_remove(int sock, const uint8_t id[LR_WIRE_ID], struct lr_err *err);
/* id NULL: all, `skip` left out; m->count: how many there are, m->n of them here. */
int lr_forkctl_list(int sock, const uint8_t *id, uint32_t skip, struct lr_wire_msg *m,
		    struct lr_err *err);

/* What came for this connection since it fetched; after SERVE, for its processes. */
int lr_forkctl_counts(int sock, struct lr_wire_child *ret, struct lr_err *err);
/* Children whose memory comes by the daemon, and some that it came for, as lr_forkctl_list. */
int lr_forkctl_children(int sock, uint32_t skip, struct lr_wire_msg *m, struct lr_err *err);

/* ---- both sides --------------------------------------------------------------------------- */

struct lr_forkctl_in {
	uint8_t bytes[LR_WIRE_MESSAGE];
	int fds[3];
	size_t n;  /* of fds */
	pid_t pid; /* the sender's, as we see it; 0: not told */
	uid_t uid;
	int pidfd; /* where the kernel gives one; or LR_NOFD */
};

/* Bytes; 0: the other end is closed; -errno. What it has opened is the caller's to close. */
ssize_t lr_forkctl_receive(int sock, struct lr_forkctl_in *in);
void lr_forkctl_close(struct lr_forkctl_in *in);
int lr_forkctl_send(int sock, const struct lr_wire_msg *m, const int *fds, size_t n);

#endif
