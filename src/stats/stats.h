/* SPDX-License-Identifier: Apache-2.0 */
/*
 * stats: what a container's cgroups count and tell, for `events` and its like: use of CPU, memory
 * and devices, pressure, and that the kernel ran out of memory.
 *
 * Contract. lr_stats_read reads what is there, in one form for v1 and v2: that of v1, which the
 * readers of `events` know. A watch for out-of-memory (lr_stats_oom_*) is a descriptor to poll.
 * Nothing is changed in any cgroup.
 */
#ifndef LR_STATS_H
#define LR_STATS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "src/base/arena.h"
#include "src/base/err.h"
#include "src/cgroup/cgroup.h"

struct lr_stats_kv {
	const char *key;
	uint64_t value;
};

struct lr_stats_psi_line {
	double avg10, avg60, avg300; /* percent */
	uint64_t total;              /* microseconds */
};

struct lr_stats_psi {
	bool present;
	struct lr_stats_psi_line some, full;
};

struct lr_stats_mem {
	uint64_t usage, max, limit,
		failcnt; /* bytes; no limit: v2 UINT64_MAX, v1 just below 2^63 */
};

struct lr_stats_blkio_entry {
	uint64_t major, minor, value;
	const char *op; /* "Read", "Write", "Total", ...; "" where the file has none */
};

struct lr_stats_blkio_list {
	struct lr_stats_blkio_entry *v;
	size_t n;
};

struct lr_stats_hugetlb {
	const char *page_size; /* "2MB" */
	uint64_t usage, max, failcnt;
};

struct lr_stats_rdma {
	const char *device;
	uint64_t hca_handles, hca_objects; /* UINT32_MAX: "max" */
};

/* Whatever the host does not count is zero, empty or NULL. */
struct lr_stats {
	struct {
		uint64_t total, kernel, user; /* nanoseconds */
		struct {
			uint64_t *v; /* nanoseconds, one per possible CPU; v1 only */
			size_t n;
		} percpu, percpu_kernel, percpu_user;
		uint64_t periods, throttled_periods, throttled_time; /* ns */
		struct lr_stats_psi psi;
	} cpu;
	struct {
		bool present;
		const char *cpus, *mems; /* lists as the kernel prints them: "0-3" */
		uint64_t cpu_exclusive, mem_exclusive, mem_hardwall, memory_migrate,
			memory_spread_page, memory_spread_slab, memory_pressure, sched_load_balance;
		int64_t sched_relax_domain_level;
	} cpuset;
	struct {
		bool present;
		uint64_t cache;
		struct lr_stats_mem usage, swap, kernel, kernel_tcp; /* swap: memory + swap */
		bool use_hierarchy;
		struct {
			struct lr_stats_kv *v;
			size_t n;
		} stat; /* memory.stat, in the kernel's order */
		uint64_t oom_kill;
		struct lr_stats_psi psi;
	} memory;
	struct {
		bool present;
		uint64_t current, limit; /* limit 0: none, as runc reports it */
	} pids;
	struct {
		struct lr_stats_blkio_list io_service_bytes, io_serviced, io_queued,
			io_service_time, io_wait_time, io_merged, io_time, sectors;
		struct lr_stats_psi psi;
	} blkio;
	struct {
		struct lr_stats_hugetlb *v;
		size_t n;
	} hugetlb;
	struct {
		struct lr_stats_rdma *v;
		size_t n;
	} rdma_current, rdma_limit;
};

int lr_stats_read(const struct lr_cgroup_ref *ref, struct lr_arena *arena, struct lr_stats **ret,
		  struct lr_err *err) LR_MUST_CHECK;

/* ---- memory that is left --------------------------------------------------------------------- */

struct lr_stats_left {
	uint64_t bytes; /* UINT64_MAX: there is no limit, or nobody counts */
	uint64_t limit; /* bytes, below which that is */
	uint64_t own;   /* bytes of it that are the processes' own, and no file's */
	bool group;     /* whoever is killed for want of it, others are, too (memory.oom.group) */
};

/* What a container's processes may still take, with what the kernel can take back from the page cache, and swap: in its
 * cgroup and in those above it, where there is least. */
int lr_stats_memory_left(const struct lr_cgroup_ref *ref, struct lr_arena *arena,
			 struct lr_stats_left *ret, struct lr_err *err) LR_MUST_CHECK;

/* The files of these limits, open: to ask again, at once, whether there is any. {0}: none are open. */
struct lr_stats_limits {
	int fd[16];
	size_t n;
	bool all; /* of the cgroup, and of each above it */
};
int lr_stats_limits_open(const struct lr_cgroup_ref *ref, struct lr_arena *arena,
			 struct lr_stats_limits *ret, struct lr_err *err) LR_MUST_CHECK;
void lr_stats_limits_close(struct lr_stats_limits *l);
/* false: there is one, or nobody knows. */
bool lr_stats_has_no_limit(const struct lr_stats_limits *l);

/* ---- out-of-memory events ------------------------------------------------------------------ */

struct lr_stats_oom {
	int fd;          /* poll for POLLIN */
	int aux;         /* private */
	bool v2;         /* private */
	uint64_t seen;   /* private */
	char path[4096]; /* private: the directory watched */
};
#define LR_STATS_OOM_INIT                                                                          \
	{                                                                                          \
		.fd = -EBADF, .aux = -EBADF                                                        \
	}

/* -EOPNOTSUPP without a memory controller. */
int lr_stats_oom_open(const struct lr_cgroup_ref *ref, struct lr_stats_oom *oom,
		      struct lr_err *err) LR_MUST_CHECK;
/* After POLLIN: the number of OOM events since the last call (v1: at least; 0: something else
 * happened), or -ENODEV when the cgroup is gone or empty for good. */
int lr_stats_oom_read(struct lr_stats_oom *oom);
void lr_stats_oom_close(struct lr_stats_oom *oom);

#endif
