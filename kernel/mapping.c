// SPDX-License-Identifier: GPL-2.0
/*
 * Mappings of a source, which behave as anonymous memory that already holds
 * the seed's pages: private mappings, so a write makes a page anonymous for
 * the kernel, and what was discarded reads zero.
 *
 * A page table can't tell a page that was discarded from one that was never
 * touched. So each view has a bit for each page, set by an MMU notifier.
 */
#include <linux/anon_inodes.h>
#include <linux/file.h>
#include <linux/hashtable.h>
#include <linux/highmem.h>
#include <linux/lockdep.h>
#include <linux/mmu_notifier.h>
#include <linux/module.h>
#include <linux/pagemap.h>
#include <linux/sched/mm.h>
#include <linux/sched/signal.h>
#include <linux/slab.h>

#include "compat.h"
#include "internal.h"

/*
 * One mmap, with a file of its own, so that the kernel merges its parts with
 * each other and with nothing else.
 */
struct lean_mapping {
	struct lean_source *source;
	unsigned long first; /* page of the seed */
	unsigned long count;
	struct list_head views;
	struct work_struct reap; /* removes views of processes that ended */
};

/* A mapping in one process. A page is at base + its number in the seed. */
struct lean_view {
	struct mmu_interval_notifier notifier;
	struct lean_mapping *mapping;
	struct list_head link; /* of the mapping's */
	struct hlist_node hash; /* by mapping and mm */
	struct mm_struct *mm;
	unsigned long base;
	bool ended; /* and the process with it */
	spinlock_t lock; /* for setting bits */
	unsigned long *gone;
	struct xarray doubt; /* pages of which nobody knows if they were discarded */
	bool lost; /* that is all pages */
	/* And these, if the first is not behind the last: of moves that failed untracked. */
	unsigned long doubt_first;
	unsigned long doubt_last;
	/* While mremap() moves pages of this view elsewhere: who does it, and which ones. */
	struct task_struct *mover;
	unsigned long moved_first;
	unsigned long moved_last;
	bool moved;
	bool untracked; /* no view is where they are moved to */
	/* In the view that they are moved to: the view that they are from, and its file. */
	struct lean_view *from;
	struct file *from_file;
	unsigned long next; /* where a sequential reader would fault */
	unsigned int window;
};

static unsigned int fault_views;
module_param(fault_views, uint, 0600);
MODULE_PARM_DESC(fault_views, "for tests: each so manyth mapping, fork and move lacks memory (0: none)");

static DEFINE_HASHTABLE(views, 8);
static DEFINE_SPINLOCK(views_lock); /* for it, and for all lists of views */

/* Read faults of discarded pages; several, as a fault locks the page. */
#define ZEROS 16
static struct page *zeros[ZEROS];

static const struct vm_operations_struct lean_vm_ops;
static const struct file_operations mapping_fops;

bool lean_mapping_ours(struct vm_area_struct *vma)
{
	return vma->vm_ops == &lean_vm_ops;
}

static unsigned long base_of(struct vm_area_struct *vma)
{
	return vma->vm_start - (vma->vm_pgoff << PAGE_SHIFT);
}

static unsigned long key_of(struct lean_mapping *mapping, struct mm_struct *mm)
{
	return (unsigned long)mapping ^ (unsigned long)mm;
}

/* Does this page of the seed belong to the mapping, and was it not discarded? */
static bool is_gone(struct lean_view *view, unsigned long index)
{
	struct lean_mapping *mapping = view->mapping;

	/* Behind its end is memory that mremap() added. */
	if (index < mapping->first || index - mapping->first >= mapping->count)
		return true;
	return test_bit(index - mapping->first, view->gone);
}

/* The pages of a mapping in a range of addresses: [*first, *last], or none. */
static bool pages_of(struct lean_view *view, unsigned long start, unsigned long end,
		     unsigned long *first, unsigned long *last)
{
	struct lean_mapping *mapping = view->mapping;
	unsigned long low = view->base + (mapping->first << PAGE_SHIFT);
	unsigned long high = low + (mapping->count << PAGE_SHIFT);

	start = max(start, low);
	end = min(end, high);
	if (start >= end)
		return false;
	*first = (start - view->base) >> PAGE_SHIFT;
	*last = (end - 1 - view->base) >> PAGE_SHIFT;
	return true;
}

static void set_gone(struct lean_view *view, unsigned long first, unsigned long last)
{
	spin_lock(&view->lock);
	bitmap_set(view->gone, first - view->mapping->first, last - first + 1);
	spin_unlock(&view->lock);
	/* Before a look at which pages are locked: a fault locks first, then tests the bit. */
	smp_mb();
}

/*
 * A fault that saw its bit unset has the page locked until the page is in
 * the page table, from where the discard then takes it.
 */
static bool wait_for_faults(struct lean_source *source, unsigned long first, unsigned long last,
			    bool may_block)
{
	struct page *page;
	unsigned long index;

	for (index = first; index <= last; index++) {
		if (!xa_find(&source->pages, &index, last, XA_PRESENT))
			break;
		page = lean_source_find(source, index);
		if (!page)
			continue;
		if (folio_test_locked(page_folio(page))) {
			if (!may_block) {
				put_page(page);
				return false;
			}
			folio_wait_locked(page_folio(page));
		}
		put_page(page);
	}
	return true;
}

/*
 * An io_uring worker either discards a page or copies it for a write, and a
 * notifier can't tell which. If nobody refers to the page, it is no copy. If
 * somebody does, it is left open: a copy ends the question, and if there is
 * none, the next access ends with SIGBUS and not with a guess.
 */
static void one_page_by_worker(struct lean_view *view, unsigned long index)
{
	struct page *page = lean_source_find(view->mapping->source, index);
	bool copied = page && page_count(page) > 2 + lean_mapcount(page);

	if (page)
		put_page(page);
	if (!copied)
		set_gone(view, index, index);
	else if (xa_err(xa_store(&view->doubt, index, xa_mk_value(1), GFP_ATOMIC | __GFP_NOWARN)))
		WRITE_ONCE(view->lost, true); /* no memory to doubt one page: all are doubted */
}

/* Where the move is not tracked nobody is told if it fails: doubted until it has not. */
static void pages_move(struct lean_view *view, unsigned long first, unsigned long last)
{
	view->moved_first = first;
	view->moved_last = last;
	view->moved = true;
	if (!view->untracked)
		return;
	WRITE_ONCE(view->doubt_first, min(view->doubt_first, first));
	WRITE_ONCE(view->doubt_last, max(view->doubt_last, last));
}

static bool view_invalidate(struct mmu_interval_notifier *notifier,
			    const struct mmu_notifier_range *range, unsigned long seq)
{
	struct lean_view *view = container_of(notifier, struct lean_view, notifier);
	unsigned long first, last;

	mmu_interval_set_seq(notifier, seq);
	if (range->event == MMU_NOTIFY_RELEASE) {
		spin_lock(&views_lock);
		view->ended = true;
		spin_unlock(&views_lock);
		queue_work(lean_wq, &view->mapping->reap);
		return true;
	}
	if (!lean_is_discard(range))
		return true;
	if (!pages_of(view, range->start, range->end, &first, &last))
		return true;
	/*
	 * mremap() moves page tables, and says so once. If that fails, they
	 * come back: nothing is gone yet.
	 */
	if (READ_ONCE(view->mover) == current && !view->moved) {
		pages_move(view, first, last);
		return true;
	}
	if (first == last && range->event == MMU_NOTIFY_CLEAR && (current->flags & PF_IO_WORKER)) {
		one_page_by_worker(view, first);
		return true;
	}
	set_gone(view, first, last);
	/* What is unmapped has no faults: their lock excludes it. */
	if (range->event == MMU_NOTIFY_UNMAP)
		return true;
	return wait_for_faults(view->mapping->source, first, last,
			       mmu_notifier_range_blockable(range));
}

static const struct mmu_interval_notifier_ops view_notifier_ops = {
	.invalidate = view_invalidate,
};

struct insertion {
	struct work_struct work;
	struct lean_view *view;
	struct mm_struct *caller;
	int err;
};

static int insert_now(struct lean_view *view)
{
	struct lean_mapping *mapping = view->mapping;

	return mmu_interval_notifier_insert_locked(&view->notifier, view->mm,
						   view->base + (mapping->first << PAGE_SHIFT),
						   mapping->count << PAGE_SHIFT,
						   &view_notifier_ops);
}

/*
 * Who waits for this holds these locks meanwhile, as lockdep has to be told:
 * of a fork also the parent's, whose mappings are in the child's list until
 * they are copied.
 */
static void insert_work(struct work_struct *work)
{
	struct insertion *insertion = container_of(work, struct insertion, work);
	struct rw_semaphore __maybe_unused *lock = &insertion->view->mm->mmap_lock;
	struct rw_semaphore __maybe_unused *own = &insertion->caller->mmap_lock;

	if (own != lock)
		rwsem_acquire(&own->dep_map, 0, 1, _THIS_IP_);
	rwsem_acquire(&lock->dep_map, SINGLE_DEPTH_NESTING, 1, _THIS_IP_);
	insertion->err = insert_now(insertion->view);
	rwsem_release(&lock->dep_map, _THIS_IP_);
	if (own != lock)
		rwsem_release(&own->dep_map, _THIS_IP_);
}

/*
 * The caller holds the mmap lock for write. The first notifier of an mm takes
 * all of its locks, and fails if a signal is pending, which fork() would not:
 * a worker has no signals.
 */
static int insert_notifier(struct lean_view *view)
{
	struct insertion insertion = { .view = view, .caller = current->mm };
	int err = signal_pending(current) ? -EINTR : insert_now(view);

	if (err == -EINTR) {
		INIT_WORK_ONSTACK(&insertion.work, insert_work);
		queue_work(lean_wq, &insertion.work);
		flush_work(&insertion.work);
		destroy_work_on_stack(&insertion.work);
		err = insertion.err;
	}
	/* It may have been put off by an invalidation under way; after this it is in. */
	if (!err)
		mmu_interval_read_begin(&view->notifier);
	return err;
}

/* What the view that this one is made from has lost is lost here, too. */
static int copy_gone(struct lean_view *view, struct lean_view *from)
{
	unsigned long i, index;
	void *entry;

	view->lost = READ_ONCE(from->lost);
	view->doubt_first = from->doubt_first;
	view->doubt_last = from->doubt_last;
	if (view->mapping == from->mapping)
		bitmap_copy(view->gone, from->gone, view->mapping->count);
	for (i = 0; view->mapping != from->mapping && i < view->mapping->count; i++)
		if (is_gone(from, view->mapping->first + i))
			__set_bit(i, view->gone);
	xa_for_each(&from->doubt, index, entry)
		if (xa_err(xa_store(&view->doubt, index, entry, GFP_KERNEL_ACCOUNT)))
			return -ENOMEM;
	return 0;
}

static void view_free(struct lean_view *view)
{
	xa_destroy(&view->doubt);
	kvfree(view->gone);
	kfree(view);
}

static struct lean_view *view_alloc(void)
{
	static atomic_t views_made = ATOMIC_INIT(0);
	unsigned int every = READ_ONCE(fault_views);

	if (every && (unsigned int)atomic_inc_return(&views_made) % every == 0)
		return NULL;
	return kzalloc(sizeof(struct lean_view), GFP_KERNEL_ACCOUNT);
}

static struct lean_view *view_create(struct lean_mapping *mapping, struct mm_struct *mm,
				     unsigned long base, struct lean_view *from)
{
	struct lean_view *view = view_alloc();
	int err = -ENOMEM;

	if (!view)
		return ERR_PTR(err);
	spin_lock_init(&view->lock);
	xa_init_flags(&view->doubt, XA_FLAGS_ACCOUNT);
	view->doubt_first = ULONG_MAX;
	view->mapping = mapping;
	view->mm = mm;
	view->base = base;
	view->window = mapping->source->readahead;
	view->next = ULONG_MAX;
	view->gone = kvcalloc(BITS_TO_LONGS(mapping->count), sizeof(long), GFP_KERNEL_ACCOUNT);
	if (!view->gone)
		goto fail;
	if (from && copy_gone(view, from))
		goto fail;
	err = insert_notifier(view);
	if (err)
		goto fail;
	spin_lock(&views_lock);
	list_add(&view->link, &mapping->views);
	hash_add(views, &view->hash, key_of(mapping, mm));
	spin_unlock(&views_lock);
	atomic_long_inc(&lean_counts.mappings);
	atomic_long_inc(&mapping->source->mappings);
	return view;
fail:
	view_free(view);
	return ERR_PTR(err);
}

/*
 * The new mapping is as long as the new memory. If only a part of the old one
 * was moved, and grew, what was behind that part did not come along.
 */
static void end_moved(struct lean_view *view, unsigned long moved_last)
{
	struct lean_mapping *mapping = view->mapping;
	unsigned long last = mapping->first + mapping->count - 1;

	if (moved_last < last)
		set_gone(view, max(moved_last + 1, mapping->first), last);
}

static void move_begins(struct lean_view *from, bool tracked)
{
	from->moved = false;
	from->untracked = !tracked;
	WRITE_ONCE(from->mover, current);
}

static void move_ends(struct lean_view *view, bool succeeded)
{
	struct lean_view *from = view->from;

	if (!from)
		return;
	if (succeeded && from->moved) {
		end_moved(view, from->moved_last);
		set_gone(from, from->moved_first, from->moved_last);
	}
	from->moved = false;
	WRITE_ONCE(from->mover, NULL);
	view->from = NULL;
	fput(view->from_file);
	view->from_file = NULL;
}

/* Of a view that no list has any more. */
static void view_remove(struct lean_view *view)
{
	mmu_interval_notifier_remove(&view->notifier);
	move_ends(view, false);
	atomic_long_dec(&view->mapping->source->mappings);
	atomic_long_dec(&lean_counts.mappings);
	view_free(view);
}

/* Removes the views of processes that ended, or all. */
static void remove_views(struct lean_mapping *mapping, bool all)
{
	struct lean_view *view, *next;
	LIST_HEAD(old);

	spin_lock(&views_lock);
	list_for_each_entry_safe(view, next, &mapping->views, link) {
		if (!all && !view->ended)
			continue;
		hash_del(&view->hash);
		list_move(&view->link, &old);
	}
	spin_unlock(&views_lock);
	list_for_each_entry_safe(view, next, &old, link)
		view_remove(view);
}

static void mapping_reap(struct work_struct *work)
{
	remove_views(container_of(work, struct lean_mapping, reap), false);
}

/* No VMA of any process has the file any more. */
static int mapping_release(struct inode *inode, struct file *file)
{
	struct lean_mapping *mapping = file->private_data;

	remove_views(mapping, true);
	cancel_work_sync(&mapping->reap);
	lean_source_put(mapping->source);
	kfree(mapping);
	return 0;
}

static const struct file_operations mapping_fops = {
	.owner = THIS_MODULE,
	.release = mapping_release,
};

/* A mapping without a view is a file; it goes when the file is put. */
static struct file *mapping_create(struct lean_source *source, unsigned long first,
				   unsigned long count)
{
	struct lean_mapping *mapping = kzalloc(sizeof(*mapping), GFP_KERNEL_ACCOUNT);
	struct file *file;

	if (!mapping)
		return ERR_PTR(-ENOMEM);
	INIT_LIST_HEAD(&mapping->views);
	INIT_WORK(&mapping->reap, mapping_reap);
	mapping->source = source;
	mapping->first = first;
	mapping->count = count;
	file = anon_inode_getfile("[lean-seed]", &mapping_fops, mapping, O_RDWR);
	if (IS_ERR(file)) {
		kfree(mapping);
		return file;
	}
	lean_source_get(source);
	/* One address space for all mappings of a source: it is how a page's users are found. */
	file->f_mapping = source->inode->i_mapping;
	return file;
}

int lean_mapping_mmap(struct lean_source *source, struct vm_area_struct *vma)
{
	unsigned long count = vma_pages(vma);
	struct lean_view *view;
	struct file *file;

	if (vma->vm_flags & (VM_SHARED | VM_MAYSHARE))
		return -EINVAL;
	if (vma->vm_pgoff > source->npages || count > source->npages - vma->vm_pgoff)
		return -EINVAL;
	if (READ_ONCE(source->dead))
		return -EIO;
	file = mapping_create(source, vma->vm_pgoff, count);
	if (IS_ERR(file))
		return PTR_ERR(file);
	view = view_create(file->private_data, vma->vm_mm, base_of(vma), NULL);
	if (IS_ERR(view)) {
		fput(file);
		return PTR_ERR(view);
	}
	vma_set_file(vma, file);
	fput(file);
	vma->vm_ops = &lean_vm_ops;
	vma->vm_private_data = view;
	return 0;
}

/*
 * Of a VMA that is not tracked nobody knows what was discarded: all of its
 * faults fail, and it is merged with no other.
 */
static void lose(struct vm_area_struct *vma)
{
	vma->vm_private_data = NULL;
	lean_vm_flags_set(vma, VM_DONTEXPAND);
	atomic_long_inc(&lean_counts.untracked);
}

/* The view that a process has of a mapping, or NULL. */
static struct lean_view *view_in(struct lean_mapping *mapping, struct mm_struct *mm)
{
	struct lean_view *view, *found = NULL;

	spin_lock(&views_lock);
	hash_for_each_possible(views, view, hash, key_of(mapping, mm)) {
		if (view->mapping == mapping && view->mm == mm && !view->ended) {
			found = view;
			break;
		}
	}
	spin_unlock(&views_lock);
	return found;
}

/*
 * The forked process has several VMAs of this mapping, if the mapping was
 * split: they have one view. It keeps its parent's file, which is not the
 * VMA's own yet when this is called.
 */
static struct lean_view *view_of_fork(struct lean_view *from, struct vm_area_struct *vma)
{
	struct lean_view *view = view_in(from->mapping, vma->vm_mm);

	return view ? view : view_create(from->mapping, vma->vm_mm, from->base, from);
}

/* Moved by mremap(): a mapping of its own, since pages have other addresses there. */
static struct lean_view *view_of_move(struct lean_view *from, struct vm_area_struct *vma)
{
	struct file *file = mapping_create(from->mapping->source, vma->vm_pgoff, vma_pages(vma));
	struct lean_view *view;

	if (IS_ERR(file)) {
		move_begins(from, false);
		return ERR_CAST(file);
	}
	view = view_create(file->private_data, vma->vm_mm, base_of(vma), from);
	if (!IS_ERR(view)) {
		view->from = from;
		/* The VMA still has it. */
		view->from_file = get_file(vma->vm_file);
		vma_set_file(vma, file);
	}
	fput(file);
	move_begins(from, !IS_ERR(view));
	return view;
}

/* A VMA that is not tracked has the file that its pages are from. */
static void untracked_move_ends(struct vm_area_struct *vma, bool succeeded)
{
	struct lean_view *from = view_in(vma->vm_file->private_data, vma->vm_mm);
	unsigned long first, last;

	if (!from || from->mover != current || !from->untracked)
		return;
	if (succeeded && from->moved) {
		first = from->moved_first;
		last = from->moved_last;
		set_gone(from, first, last);
		/* No more doubts, unless there were others. */
		if (from->doubt_first == first && from->doubt_last == last) {
			WRITE_ONCE(from->doubt_first, ULONG_MAX);
			WRITE_ONCE(from->doubt_last, 0);
		}
	}
	WRITE_ONCE(from->mover, NULL);
}

static void lean_vm_open(struct vm_area_struct *vma)
{
	struct lean_view *from = vma->vm_private_data, *view;

	if (!from) {
		/* A move before this one that nobody ended has failed. */
		untracked_move_ends(vma, false);
		lose(vma);
		return;
	}
	if (vma->vm_mm != from->mm)
		view = view_of_fork(from, vma);
	else if (base_of(vma) != from->base)
		view = view_of_move(from, vma);
	else
		return; /* split */
	if (IS_ERR(view))
		lose(vma);
	else
		vma->vm_private_data = view;
}

/* The pages have moved: now they are gone from where they were. */
static int lean_vm_mremap(struct vm_area_struct *vma)
{
	struct lean_view *view = vma->vm_private_data;

	if (view)
		move_ends(view, true);
	else
		untracked_move_ends(vma, true);
	return 0;
}

/* Whoever reads on where the last read ended gets more at a time. */
static unsigned int window_of(struct lean_view *view, unsigned long index)
{
	unsigned int window = READ_ONCE(view->window);

	if (index == READ_ONCE(view->next))
		window = min_t(unsigned int, window * 2, LEAN_BATCH_MAX);
	else
		window = view->mapping->source->readahead;
	WRITE_ONCE(view->window, window);
	WRITE_ONCE(view->next, round_down(index, window) + window);
	return window;
}

static vm_fault_t failed(struct lean_source *source)
{
	atomic_long_inc(&source->failures);
	return VM_FAULT_SIGBUS;
}

/* Waits for a read; the fault is tried again afterwards, if it can be. */
static vm_fault_t wait_for_batch(struct vm_fault *vmf, struct lean_source *source,
				 struct lean_batch *batch)
{
	vm_fault_t ret = 0;

	if (fault_flag_allow_retry_first(vmf->flags)) {
		ret = VM_FAULT_RETRY;
		if (!(vmf->flags & FAULT_FLAG_RETRY_NOWAIT)) {
			lean_release_fault_lock(vmf);
			wait_for_completion_killable(&batch->done);
		}
	} else if (wait_for_completion_killable(&batch->done)) {
		ret = VM_FAULT_SIGBUS; /* it ends: nobody hears of this */
	} else if (batch->error) {
		ret = batch->error == -ENOMEM ? VM_FAULT_OOM : failed(source);
	}
	lean_batch_put(batch);
	return ret;
}

/* Brings a page that is not here, or says why not. */
static vm_fault_t fetch(struct vm_fault *vmf, struct lean_view *view)
{
	struct lean_source *source = view->mapping->source;
	struct lean_batch *batch;

	batch = lean_source_fetch(source, vmf->pgoff, window_of(view, vmf->pgoff));
	if (!IS_ERR(batch))
		return wait_for_batch(vmf, source, batch);
	switch (PTR_ERR(batch)) {
	case -EAGAIN:
		return 0;
	case -ENOMEM:
		return VM_FAULT_OOM;
	default:
		return failed(source);
	}
}

static bool in_doubt(struct lean_view *view, unsigned long index)
{
	if (index >= READ_ONCE(view->doubt_first) && index <= READ_ONCE(view->doubt_last))
		return true;
	return READ_ONCE(view->lost) ||
	       (!xa_empty(&view->doubt) && xa_load(&view->doubt, index));
}

static vm_fault_t zero_fault(struct vm_fault *vmf, struct lean_source *source)
{
	atomic_long_inc(&source->zeros);
	vmf->page = zeros[vmf->pgoff % ZEROS];
	get_page(vmf->page);
	return 0;
}

static vm_fault_t lean_vm_fault(struct vm_fault *vmf)
{
	struct lean_view *view = vmf->vma->vm_private_data;
	struct lean_source *source;
	bool waited = false;
	struct page *page;
	vm_fault_t ret;

	if (!view)
		return VM_FAULT_SIGBUS;
	source = view->mapping->source;
	if (!(vmf->flags & FAULT_FLAG_TRIED))
		atomic_long_inc(&source->faults);
	for (;;) {
		if (is_gone(view, vmf->pgoff))
			return zero_fault(vmf, source);
		if (in_doubt(view, vmf->pgoff)) {
			lean_source_fail(source, LEAN_SEED_UNTRACKED, 0, vmf->pgoff, false);
			return failed(source);
		}
		page = lean_source_find(source, vmf->pgoff);
		if (page) {
			folio_lock(page_folio(page));
			if (!is_gone(view, vmf->pgoff))
				break;
			folio_unlock(page_folio(page));
			put_page(page);
			continue;
		}
		ret = fetch(vmf, view);
		if (ret)
			return ret;
		waited = true;
	}
	if (!waited && !(vmf->flags & FAULT_FLAG_TRIED))
		atomic_long_inc(&source->shared);
	vmf->page = page;
	return VM_FAULT_LOCKED;
}

static const char *lean_vm_name(struct vm_area_struct *vma)
{
	return "[lean-seed]";
}

/* No close: the kernel does not merge what has one. */
static const struct vm_operations_struct lean_vm_ops = {
	.open = lean_vm_open,
	.mremap = lean_vm_mremap,
	.fault = lean_vm_fault,
	.name = lean_vm_name,
};

int lean_mapping_init(void)
{
	unsigned int i;

	for (i = 0; i < ZEROS; i++) {
		zeros[i] = alloc_page(GFP_KERNEL | __GFP_ZERO);
		if (!zeros[i]) {
			lean_mapping_exit();
			return -ENOMEM;
		}
	}
	return 0;
}

void lean_mapping_exit(void)
{
	unsigned int i;

	for (i = 0; i < ZEROS && zeros[i]; i++) {
		put_page(zeros[i]);
		zeros[i] = NULL;
	}
}
