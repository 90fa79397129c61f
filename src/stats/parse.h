/* SPDX-License-Identifier: Apache-2.0 */
/* stats: reading the kernel's statistics files. What is missing or odd reads as zero or empty. */
#ifndef LR_STATS_PARSE_H
#define LR_STATS_PARSE_H

#include "src/cgroup/files.h"
#include "src/stats/stats.h"

/* A file with one number; "max" is UINT64_MAX. */
uint64_t lr_stats_number(const char *dir, const char *file);
/* The number after `key` in a flat-keyed text (may be NULL). */
uint64_t lr_stats_key(const char *text, const char *key);
/* Like lr_cgroup_slurp for files that always are small (< 4 KiB). False: not there. */
bool lr_stats_text(const char *dir, const char *file, char buf[4096]);
/* Numbers separated by spaces, up to the end of the line. */
uint64_t *lr_stats_parse_list(struct lr_arena *arena, const char *text, size_t *n);
void lr_stats_read_psi(const char *dir, const char *file, struct lr_stats_psi *psi);
/* "8:0 Read 123" and "8:0 123" (op ""); lines without a device ("Total 123") are left out. */
void lr_stats_parse_blkio(struct lr_arena *arena, const char *text, struct lr_stats_blkio_list *l);
int lr_stats_add_blkio(struct lr_arena *arena, struct lr_stats_blkio_list *l, uint64_t major,
		       uint64_t minor, const char *op, uint64_t value);
/* "mlx4_0 hca_handle=2 hca_object=max" lines. */
void lr_stats_parse_rdma(struct lr_arena *arena, const char *text, struct lr_stats_rdma **v,
			 size_t *n);
/* All "key value" lines. */
void lr_stats_parse_map(struct lr_arena *arena, const char *text, struct lr_stats_kv **v,
			size_t *n);

void lr_stats_v1(const struct lr_cgroup_ref *ref, struct lr_arena *arena, struct lr_stats *s);
void lr_stats_v2(const char *dir, struct lr_arena *arena, struct lr_stats *s);

#endif
