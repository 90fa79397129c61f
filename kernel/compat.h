/* SPDX-License-Identifier: GPL-2.0 */
/* What differs between the kernels that this is built for (6.1 to 7.2). */
#ifndef LEAN_SEED_COMPAT_H
#define LEAN_SEED_COMPAT_H

#include <linux/list_lru.h>
#include <linux/mm.h>
#include <linux/shrinker.h>
#include <linux/version.h>

#if LINUX_VERSION_CODE < KERNEL_VERSION(6, 5, 0)
#define lean_get_pages(mm, start, count, flags, pages) \
	get_user_pages_remote(mm, start, count, flags, pages, NULL, NULL)
#else
#define lean_get_pages(mm, start, count, flags, pages) \
	get_user_pages_remote(mm, start, count, flags, pages, NULL)
#endif

/* Leaves what a fault holds while it waits; the fault then has to be retried. */
static inline void lean_release_fault_lock(struct vm_fault *vmf)
{
#if LINUX_VERSION_CODE < KERNEL_VERSION(6, 4, 0)
	mmap_read_unlock(vmf->vma->vm_mm);
#else
	release_fault_lock(vmf);
#endif
}

#if LINUX_VERSION_CODE < KERNEL_VERSION(6, 3, 0)
static inline void lean_vm_flags_set(struct vm_area_struct *vma, unsigned long flags)
{
	vma->vm_flags |= flags;
}
#else
#define lean_vm_flags_set vm_flags_set
#endif

#if LINUX_VERSION_CODE < KERNEL_VERSION(6, 8, 0)
#define list_lru_add_obj list_lru_add
#define list_lru_del_obj list_lru_del
#endif

/* How many page tables a small page is in. */
static inline int lean_mapcount(struct page *page)
{
#if LINUX_VERSION_CODE < KERNEL_VERSION(6, 12, 0)
	return page_mapcount(page);
#else
	return folio_mapcount(page_folio(page));
#endif
}

#if LINUX_VERSION_CODE < KERNEL_VERSION(6, 13, 0)
#define LEAN_LRU_WALK(name) \
	enum lru_status name(struct list_head *item, struct list_lru_one *list, \
			     spinlock_t *lock, void *arg)
#else
#define LEAN_LRU_WALK(name) \
	enum lru_status name(struct list_head *item, struct list_lru_one *list, void *arg)
#endif

#endif
