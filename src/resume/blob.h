/* SPDX-License-Identifier: Apache-2.0 */
/*
 * resume: what the restorer (blob.c) is given: lists of system calls, made before by code that has
 * a library, memory and tests. It knows nothing of seeds.
 */
#ifndef LR_RESUME_BLOB_H
#define LR_RESUME_BLOB_H

#include <stdint.h>

enum blob_special {
	BLOB_THREAD = -1,     /* clone3(a[0], a[1]); the newborn goes through the list at a[2] */
	BLOB_READ = -2,       /* pread64(a...) until all of it is there */
	BLOB_ARRIVE = -3,     /* a thread: I am done; waits until the leader says go */
	BLOB_GATHER = -4,     /* the leader: waits for a[0] threads */
	BLOB_GO = -5,         /* the leader: lets them go */
	BLOB_RENDEZVOUS = -6, /* tells that all is in place, and a[0], a[1]; waits for the word */
	BLOB_RETURN = -7,     /* rt_sigreturn from the frame at a[0] */
	BLOB_TILES = -8,      /* loads AMX's tiles from the XSAVE area at a[0] */
};

#define BLOB_MAY_FAIL 1U
#define BLOB_IS_FIRST 2U /* must return a[0]: a mapping at its place */
#define BLOB_IS_FIFTH 4U /* must return a[4]: mremap */

struct blob_op {
	int32_t nr;
	uint32_t flags;
	uint64_t a[6];
};

struct blob_head {
	int32_t report; /* a socket */
	uint32_t index; /* of the process */
	uint32_t arrived, go;
};

struct blob_list {
	uint64_t head, ops, n; /* addresses of struct blob_head and of the first op */
	uint64_t which;        /* 0: the leader's */
};

/* In place of a call's number in a report: words follow, of a process that never got to the calls. */
#define BLOB_NO_CALL INT32_MAX

/* What goes over the socket, to whoever waits for the processes. error 0: all is in place. */
struct blob_report {
	uint32_t index, error;
	int32_t nr;
	uint32_t which;
	uint64_t op, a[2];
};

#define BLOB_FAILED 125 /* status of a process that could not be restored */

#endif
