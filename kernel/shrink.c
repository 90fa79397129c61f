// SPDX-License-Identifier: GPL-2.0
/*
 * Pages of sources under memory pressure: the ones that nobody used since the
 * last look are taken out of all children and forgotten, and read again if
 * somebody wants them.
 */
#include <linux/list_lru.h>
#include <linux/shrinker.h>
#include <linux/slab.h>

#include "compat.h"
#include "internal.h"

static struct list_lru lru;
static struct kmem_cache *cache;
static bool ready;

static unsigned long shrink_count(struct shrinker *shrinker, struct shrink_control *sc)
{
	unsigned long count = 0;

	/* Pairs with shrinker_start(): the list is made before it is counted. */
	if (smp_load_acquire(&ready))
		count = list_lru_shrink_count(&lru, sc);
	return count ? count : SHRINK_EMPTY;
}

static LEAN_LRU_WALK(isolate)
{
	struct lean_page *page = container_of(item, struct lean_page, lru);
	struct list_head *found = arg;

	if (page->again) {
		page->again = false;
		return LRU_ROTATE;
	}
	/* Somebody copies it, or reads it into somewhere. */
	if (page_count(page->page) > 1 + lean_mapcount(page->page))
		return LRU_ROTATE;
	if (!refcount_inc_not_zero(&page->source->ref))
		return LRU_SKIP;
	list_lru_isolate_move(list, item, found);
	return LRU_REMOVED;
}

static unsigned long shrink_scan(struct shrinker *shrinker, struct shrink_control *sc)
{
	struct lean_page *page, *next;
	struct lean_source *source;
	unsigned long freed = 0;
	LIST_HEAD(found);

	/* Who allocates may hold what taking a page out of page tables needs. */
	if (!(sc->gfp_mask & __GFP_FS))
		return SHRINK_STOP;
	list_lru_shrink_walk(&lru, sc, isolate, &found);
	list_for_each_entry_safe(page, next, &found, lru) {
		source = page->source;
		list_del_init(&page->lru);
		if (lean_source_drop(page))
			freed++;
		else
			lean_lru_add(page);
		lean_source_put(source);
	}
	return freed;
}

void lean_lru_add(struct lean_page *page)
{
	list_lru_add_obj(&lru, &page->lru);
}

void lean_lru_del(struct lean_page *page)
{
	list_lru_del_obj(&lru, &page->lru);
}

struct lean_page *lean_page_alloc(void)
{
	struct lean_page *page = kmem_cache_alloc_lru(cache, &lru, GFP_KERNEL_ACCOUNT);

	if (page) {
		INIT_LIST_HEAD(&page->lru);
		page->again = false;
	}
	return page;
}

void lean_page_free(struct lean_page *page)
{
	kmem_cache_free(cache, page);
}

#if LINUX_VERSION_CODE < KERNEL_VERSION(6, 7, 0)
static struct shrinker old_shrinker = {
	.count_objects = shrink_count,
	.scan_objects = shrink_scan,
	.seeks = DEFAULT_SEEKS,
	.flags = SHRINKER_MEMCG_AWARE | SHRINKER_NUMA_AWARE,
};

/*
 * The list needs the shrinker's number, which only registering gives where
 * nothing less is exported: it counts nothing until the list is there.
 */
static int shrinker_start(void)
{
	int err = register_shrinker(&old_shrinker, "lean-seed");

	if (err)
		return err;
	err = list_lru_init_memcg(&lru, &old_shrinker);
	if (err)
		unregister_shrinker(&old_shrinker);
	else
		smp_store_release(&ready, true); /* pairs with shrink_count() */
	return err;
}

static void shrinker_stop(void)
{
	unregister_shrinker(&old_shrinker);
}
#else
static struct shrinker *shrinker;

static int shrinker_start(void)
{
	int err;

	shrinker = shrinker_alloc(SHRINKER_MEMCG_AWARE | SHRINKER_NUMA_AWARE, "lean-seed");
	if (!shrinker)
		return -ENOMEM;
	shrinker->count_objects = shrink_count;
	shrinker->scan_objects = shrink_scan;
	err = list_lru_init_memcg(&lru, shrinker);
	if (err)
		shrinker_free(shrinker);
	else
		ready = true;
	if (!err)
		shrinker_register(shrinker);
	return err;
}

static void shrinker_stop(void)
{
	shrinker_free(shrinker);
}
#endif

int lean_shrink_init(void)
{
	int err;

	/* Memory control groups are known by the slab object, so it must be accounted. */
	cache = kmem_cache_create("lean_page", sizeof(struct lean_page), 0, SLAB_ACCOUNT, NULL);
	if (!cache)
		return -ENOMEM;
	err = shrinker_start();
	if (err)
		kmem_cache_destroy(cache);
	return err;
}

void lean_shrink_exit(void)
{
	shrinker_stop();
	list_lru_destroy(&lru);
	kmem_cache_destroy(cache);
}
