/* SPDX-License-Identifier: GPL-2.0 */
/*
 * A seed (export.c) holds references to the pages of a frozen process. A
 * source (source.c) is a cache of a seed's pages on the host where they are
 * wanted, filled by a transport: local.c copies from a seed of this host,
 * rdma_client.c reads from another, feed.c asks a program. A mapping (mapping.c) is one mmap of a
 * source; a view is a mapping in one process, since a fork gives a mapping
 * to a second process, whose memory then goes its own way.
 */
#ifndef LEAN_SEED_INTERNAL_H
#define LEAN_SEED_INTERNAL_H

#include <linux/atomic.h>
#include <linux/completion.h>
#include <linux/fs.h>
#include <linux/kref.h>
#include <linux/list.h>
#include <linux/mm.h>
#include <linux/refcount.h>
#include <linux/rwsem.h>
#include <linux/workqueue.h>
#include <linux/xarray.h>

#include <lean_seed.h>

#define LEAN_BATCH_MAX 64
#define LEAN_PAGES_MAX (INT_MAX / sizeof(void *)) /* of a seed: what kvmalloc() gives at most */

/* What LEAN_SEED_INFO tells, and what must be zero after the last close. */
struct lean_counts {
	atomic_long_t seeds;
	atomic_long_t sources;
	atomic_long_t mappings;
	atomic_long_t referenced;
	atomic_long_t cached;
	atomic_long_t batches;
	atomic_long_t connections;
	atomic_long_t untracked;
	atomic_long_t feeds;
};

extern struct lean_counts lean_counts;
extern struct workqueue_struct *lean_wq;

/* export.c */
struct lean_seed {
	struct kref ref;
	struct rw_semaphore lock; /* for write: revoking; for read: reading pages */
	bool revoked;
	unsigned long npages;
	struct page **pages; /* NULL where there is a hole */
	unsigned long charged; /* pages of its user, without the holes that were told */
	struct lean_user *user;
	unsigned int tokens; /* that were not used yet */
	struct mutex links_lock;
	struct list_head links; /* connections that peers read by */
	bool closing; /* there will be no more */
};

int lean_seed_export(void __user *arg, size_t size);
struct lean_seed *lean_seed_of_fd(int fd);
void lean_seed_put(struct lean_seed *seed);
unsigned long lean_user_limit(void);

/* token.c */
int lean_token_make(struct lean_seed *seed, void __user *arg, size_t size);
struct lean_seed *lean_token_take(const u8 *token);
void lean_tokens_drop(struct lean_seed *seed);

/* source.c */
struct lean_source;
struct lean_batch;

/* A page of a source's cache: owned by the cache's array. */
struct lean_page {
	struct list_head lru;
	struct page *page;
	struct lean_source *source;
	unsigned long index;
	bool again; /* it was used since the shrinker saw it last */
};

/* A read under way. Its indexes ascend, but may have gaps. */
struct lean_batch {
	refcount_t ref;
	struct completion done;
	struct work_struct work;
	struct lean_source *source;
	int error;
	unsigned int count;
	unsigned long index[LEAN_BATCH_MAX];
	struct lean_page *page[LEAN_BATCH_MAX];
};

/* How pages come. read() fills all pages of a batch, or returns an error. */
struct lean_transport {
	int (*read)(struct lean_source *source, struct lean_batch *batch);
	void (*cut)(struct lean_source *source);
	bool (*broken)(struct lean_source *source); /* nothing comes any more; or NULL */
	void (*free)(struct lean_source *source);
};

struct lean_source {
	refcount_t ref;
	struct work_struct free_work;
	struct inode *inode; /* has the address space that all mappings are in */
	const struct lean_transport *transport;
	void *private; /* the transport's */
	unsigned long npages;
	unsigned int readahead;
	struct xarray pages; /* struct lean_page, or a tagged struct lean_batch */

	spinlock_t failure_lock; /* for the next four */
	unsigned int reason;
	int error;
	bool dead;
	unsigned long failed_page;

	atomic_long_t failures, cached, fetched, batches, faults, shared, zeros, dropped, mappings;
};

int lean_source_create(const struct lean_transport *transport, void *private,
		       unsigned long npages, unsigned int readahead);
void lean_source_put(struct lean_source *source);
static inline void lean_source_get(struct lean_source *source)
{
	refcount_inc(&source->ref);
}

void lean_source_fail(struct lean_source *source, unsigned int reason, int error,
		      unsigned long index, bool dead);
struct page *lean_source_find(struct lean_source *source, unsigned long index);
struct lean_batch *lean_source_fetch(struct lean_source *source, unsigned long index,
				     unsigned int window);
void lean_batch_put(struct lean_batch *batch);
int lean_source_init(void);
void lean_source_exit(void);

/* shrink.c */
void lean_lru_add(struct lean_page *page);
void lean_lru_del(struct lean_page *page);
struct lean_page *lean_page_alloc(void);
void lean_page_free(struct lean_page *page);
bool lean_source_drop(struct lean_page *page);
int lean_shrink_init(void);
void lean_shrink_exit(void);

/* mapping.c */
int lean_mapping_mmap(struct lean_source *source, struct vm_area_struct *vma);
bool lean_mapping_ours(struct vm_area_struct *vma);
int lean_mapping_init(void);
void lean_mapping_exit(void);

/* discard.c */
struct mmu_notifier_range;
bool lean_is_discard(const struct mmu_notifier_range *range);

/* local.c */
int lean_local_open(void __user *arg, size_t size);

/* feed.c */
int lean_feed_create(void __user *arg, size_t size);
int lean_feed_open(int fd, unsigned int readahead);

/* rdma_server.c, rdma_client.c */
#if IS_ENABLED(CONFIG_INFINIBAND_ADDR_TRANS)
#define LEAN_HAS_RDMA true
int lean_rdma_listen(void __user *arg, size_t size);
int lean_rdma_connect(void __user *arg, size_t size);
void lean_links_drop(struct lean_seed *seed);
#else
#define LEAN_HAS_RDMA false
static inline int lean_rdma_listen(void __user *arg, size_t size)
{
	return -EOPNOTSUPP;
}

static inline int lean_rdma_connect(void __user *arg, size_t size)
{
	return -EOPNOTSUPP;
}

static inline void lean_links_drop(struct lean_seed *seed)
{
}
#endif

/* device.c: copies a structure in or out that may be older or newer than ours */
int lean_copy_in(void *to, size_t size, const void __user *arg, size_t user_size);
int lean_copy_out(void __user *arg, size_t user_size, const void *from, size_t size);

#endif
