// SPDX-License-Identifier: GPL-2.0
/* Sources: the pages of a seed that somebody on this host wanted. */
#include <linux/file.h>
#include <linux/highmem.h>
#include <linux/log2.h>
#include <linux/magic.h>
#include <linux/module.h>
#include <linux/mount.h>
#include <linux/pagemap.h>
#include <linux/pseudo_fs.h>
#include <linux/slab.h>

#include "compat.h"
#include "internal.h"

#define LEAN_READAHEAD 16
#define IN_FLIGHT 1 /* the tag of an entry that is a batch */
#define LEAN_FS_MAGIC 0x4c65616e

static struct vfsmount *mount;

static unsigned int fault_reads;
module_param(fault_reads, uint, 0600);
MODULE_PARM_DESC(fault_reads, "for tests: each so manyth read fails (0: none)");

void lean_source_fail(struct lean_source *source, unsigned int reason, int error,
		      unsigned long index, bool dead)
{
	spin_lock(&source->failure_lock);
	/* The first thing that went wrong for ever is the reason of all that follows. */
	if (!source->dead) {
		source->reason = reason;
		source->error = error;
		source->failed_page = index;
		WRITE_ONCE(source->dead, dead);
	}
	spin_unlock(&source->failure_lock);
}

static struct lean_batch *batch_of(void *entry)
{
	return xa_pointer_tag(entry) == IN_FLIGHT ? xa_untag_pointer(entry) : NULL;
}

/* The page with a reference, if it is here. */
struct page *lean_source_find(struct lean_source *source, unsigned long index)
{
	struct lean_page *found;
	struct page *page = NULL;
	void *entry;

	xa_lock(&source->pages);
	entry = xa_load(&source->pages, index);
	if (entry && !batch_of(entry)) {
		found = entry;
		found->again = true;
		page = found->page;
		get_page(page);
	}
	xa_unlock(&source->pages);
	return page;
}

static struct lean_page *page_create(struct lean_source *source, unsigned long index, gfp_t more)
{
	struct lean_page *page = lean_page_alloc();

	if (!page)
		return NULL;
	page->page = alloc_page(GFP_HIGHUSER | __GFP_ACCOUNT | more);
	if (!page->page) {
		lean_page_free(page);
		return NULL;
	}
	page->source = source;
	page->index = index;
	return page;
}

static void page_destroy(struct lean_page *page)
{
	put_page(page->page);
	lean_page_free(page);
}

void lean_batch_put(struct lean_batch *batch)
{
	if (!refcount_dec_and_test(&batch->ref))
		return;
	lean_source_put(batch->source);
	kfree(batch);
	atomic_long_dec(&lean_counts.batches);
}

static void batch_done(struct lean_batch *batch, int err)
{
	struct lean_source *source = batch->source;
	unsigned int i;

	for (i = 0; i < batch->count; i++) {
		struct lean_page *page = batch->page[i];

		if (err) {
			xa_erase(&source->pages, batch->index[i]);
			page_destroy(page);
			continue;
		}
		SetPageUptodate(page->page);
		atomic_long_inc(&source->cached);
		atomic_long_inc(&source->fetched);
		atomic_long_inc(&lean_counts.cached);
		/* In the place of the batch's own entry, so that no memory is needed. */
		xa_store(&source->pages, batch->index[i], page, GFP_NOWAIT);
		lean_lru_add(page);
	}
	batch->error = err;
	complete_all(&batch->done);
}

static int batch_transport(struct lean_batch *batch)
{
	static atomic_t reads = ATOMIC_INIT(0);
	unsigned int every = READ_ONCE(fault_reads);

	if (every && (unsigned int)atomic_inc_return(&reads) % every == 0)
		return -EIO;
	return batch->source->transport->read(batch->source, batch);
}

static void batch_read(struct work_struct *work)
{
	struct lean_batch *batch = container_of(work, struct lean_batch, work);
	int err = batch_transport(batch);

	if (err)
		lean_source_fail(batch->source, LEAN_SEED_READ, err, batch->index[0], false);
	batch_done(batch, err);
	lean_batch_put(batch);
}

static void *in_flight(struct lean_batch *batch)
{
	return xa_tag_pointer(batch, IN_FLIGHT);
}

static struct lean_batch *batch_create(struct lean_source *source)
{
	struct lean_batch *batch = kzalloc(sizeof(*batch), GFP_KERNEL_ACCOUNT);

	if (!batch)
		return NULL;
	refcount_set(&batch->ref, 2); /* the caller's and the worker's */
	init_completion(&batch->done);
	INIT_WORK(&batch->work, batch_read);
	lean_source_get(source);
	batch->source = source;
	atomic_long_inc(&lean_counts.batches);
	return batch;
}

/* Of who reads the page already; or -EAGAIN, if the page has come. */
static struct lean_batch *batch_of_other(struct lean_source *source, unsigned long index)
{
	struct lean_batch *batch = ERR_PTR(-EAGAIN);
	void *entry;

	xa_lock(&source->pages);
	entry = xa_load(&source->pages, index);
	if (entry && batch_of(entry)) {
		batch = batch_of(entry);
		refcount_inc(&batch->ref);
	}
	xa_unlock(&source->pages);
	return batch;
}

/* One more page for a batch, unless it is here or under way. */
static int batch_claim(struct lean_batch *batch, unsigned long index, gfp_t more)
{
	struct lean_source *source = batch->source;
	struct lean_page *page;
	int err;

	if (xa_load(&source->pages, index))
		return -EBUSY;
	page = page_create(source, index, more);
	if (!page)
		return -ENOMEM;
	err = xa_insert(&source->pages, index, in_flight(batch), GFP_KERNEL);
	if (err) {
		page_destroy(page);
		return err;
	}
	batch->index[batch->count] = index;
	batch->page[batch->count] = page;
	batch->count++;
	return 0;
}

/* The wanted page was claimed first; it goes to its place between the others. */
static void batch_sort(struct lean_batch *batch)
{
	unsigned int i;

	for (i = 1; i < batch->count && batch->index[i] < batch->index[i - 1]; i++) {
		swap(batch->index[i], batch->index[i - 1]);
		swap(batch->page[i], batch->page[i - 1]);
	}
}

/*
 * Begins to read a page, and others of the window around it, or finds that
 * it is being read. The caller waits for the batch and puts it. -EAGAIN: the
 * page is here.
 */
struct lean_batch *lean_source_fetch(struct lean_source *source, unsigned long index,
				     unsigned int window)
{
	unsigned long start = round_down(index, window), i;
	struct lean_batch *batch;
	int err;

	if (READ_ONCE(source->dead))
		return ERR_PTR(-EIO);
	batch = batch_create(source);
	if (!batch)
		return ERR_PTR(-ENOMEM);
	err = batch_claim(batch, index, 0);
	if (err) {
		refcount_set(&batch->ref, 1);
		lean_batch_put(batch);
		return err == -EBUSY ? batch_of_other(source, index) : ERR_PTR(err);
	}
	for (i = start; i < start + window && i < source->npages; i++)
		if (i != index && batch_claim(batch, i, __GFP_NORETRY | __GFP_NOWARN) == -ENOMEM)
			break;
	batch_sort(batch);
	atomic_long_inc(&source->batches);
	queue_work(lean_wq, &batch->work);
	return batch;
}

/*
 * The shrinker's: takes a page out of all children and of the cache, and
 * frees it. With the page locked no fault can map it meanwhile.
 */
bool lean_source_drop(struct lean_page *page)
{
	struct lean_source *source = page->source;
	struct page *p = page->page;
	bool dropped = false;

	if (!folio_trylock(page_folio(p)))
		return false;
	if (lean_mapcount(p))
		unmap_mapping_range(source->inode->i_mapping, (loff_t)page->index << PAGE_SHIFT,
				    PAGE_SIZE, 0);
	xa_lock(&source->pages);
	/* References are taken under this lock, so one that is not there now won't come. */
	if (page_count(p) == 1 && xa_load(&source->pages, page->index) == page) {
		__xa_erase(&source->pages, page->index);
		dropped = true;
	}
	xa_unlock(&source->pages);
	folio_unlock(page_folio(p));
	if (!dropped)
		return false;
	atomic_long_inc(&source->dropped);
	atomic_long_dec(&source->cached);
	atomic_long_dec(&lean_counts.cached);
	page_destroy(page);
	return true;
}

static void source_free(struct work_struct *work)
{
	struct lean_source *source = container_of(work, struct lean_source, free_work);
	struct lean_page *page;
	unsigned long index;

	xa_for_each(&source->pages, index, page) {
		lean_lru_del(page);
		page_destroy(page);
		atomic_long_dec(&lean_counts.cached);
	}
	xa_destroy(&source->pages);
	source->transport->free(source);
	iput(source->inode);
	kfree(source);
	atomic_long_dec(&lean_counts.sources);
}

/* The last one may be the shrinker or a batch's worker: freeing is left to another. */
void lean_source_put(struct lean_source *source)
{
	if (refcount_dec_and_test(&source->ref))
		queue_work(lean_wq, &source->free_work);
}

static int source_release(struct inode *inode, struct file *file)
{
	lean_source_put(file->private_data);
	return 0;
}

static int source_mmap(struct file *file, struct vm_area_struct *vma)
{
	return lean_mapping_mmap(file->private_data, vma);
}

static long source_status(struct lean_source *source, void __user *arg, size_t size)
{
	struct lean_seed_status status = {
		.readahead = source->readahead,
		.failures = atomic_long_read(&source->failures),
		.pages = source->npages,
		.cached = atomic_long_read(&source->cached),
		.fetched = atomic_long_read(&source->fetched),
		.batches = atomic_long_read(&source->batches),
		.faults = atomic_long_read(&source->faults),
		.shared = atomic_long_read(&source->shared),
		.zeros = atomic_long_read(&source->zeros),
		.dropped = atomic_long_read(&source->dropped),
		.mappings = atomic_long_read(&source->mappings),
	};

	spin_lock(&source->failure_lock);
	/* Who asks knows before a fault does. */
	if (!source->dead && source->transport->broken && source->transport->broken(source)) {
		source->reason = LEAN_SEED_LINK;
		source->error = -ENOLINK;
		WRITE_ONCE(source->dead, true);
	}
	status.reason = source->reason;
	status.error = source->error;
	status.dead = source->dead;
	status.page = source->failed_page;
	spin_unlock(&source->failure_lock);
	return lean_copy_out(arg, size, &status, sizeof(status));
}

static int fetch_one(struct lean_source *source, unsigned long index)
{
	struct lean_batch *batch;
	struct page *page = lean_source_find(source, index);
	int err;

	if (page) {
		put_page(page);
		return 0;
	}
	batch = lean_source_fetch(source, index, LEAN_BATCH_MAX);
	if (IS_ERR(batch))
		return PTR_ERR(batch) == -EAGAIN ? 0 : PTR_ERR(batch);
	err = wait_for_completion_killable(&batch->done);
	if (!err)
		err = batch->error;
	lean_batch_put(batch);
	return err;
}

static long source_fetch(struct lean_source *source, const void __user *user, size_t size)
{
	struct lean_seed_fetch arg;
	int err = lean_copy_in(&arg, sizeof(arg), user, size);

	if (err)
		return err;
	if (arg.first > source->npages || arg.count > source->npages - arg.first)
		return -EINVAL;
	while (!err && arg.count--) {
		err = fetch_one(source, arg.first++);
		cond_resched();
	}
	return err;
}

static long source_cut(struct lean_source *source)
{
	lean_source_fail(source, LEAN_SEED_REVOKED, -EOWNERDEAD, 0, true);
	if (source->transport->cut)
		source->transport->cut(source);
	return 0;
}

static long source_ioctl(struct file *file, unsigned int cmd, unsigned long value)
{
	void __user *arg = (void __user *)value;
	size_t size = _IOC_SIZE(cmd);

	if (_IOC_TYPE(cmd) != _IOC_TYPE(LEAN_SEED_STATUS))
		return -ENOTTY;
	switch (_IOC_NR(cmd)) {
	case _IOC_NR(LEAN_SEED_STATUS):
		return source_status(file->private_data, arg, size);
	case _IOC_NR(LEAN_SEED_FETCH):
		return source_fetch(file->private_data, arg, size);
	case _IOC_NR(LEAN_SEED_CUT):
		return source_cut(file->private_data);
	}
	return -ENOTTY;
}

static const struct file_operations source_fops = {
	.owner = THIS_MODULE,
	.mmap = source_mmap,
	.unlocked_ioctl = source_ioctl,
	.compat_ioctl = compat_ptr_ioctl,
	.release = source_release,
};

/*
 * A file of our own file system: newer kernels let nothing of an anonymous
 * inode be executed, and memory that a program has code in would be refused.
 */
static int source_fd(struct lean_source *source)
{
	int fd = get_unused_fd_flags(O_CLOEXEC);
	struct file *file;

	if (fd < 0)
		return fd;
	__module_get(THIS_MODULE); /* fput() gives it back */
	ihold(source->inode);
	file = alloc_file_pseudo(source->inode, mount, "[lean-seed-source]", O_RDWR,
				 &source_fops);
	if (IS_ERR(file)) {
		iput(source->inode);
		module_put(THIS_MODULE);
		put_unused_fd(fd);
		return PTR_ERR(file);
	}
	file->private_data = source;
	fd_install(fd, file);
	return fd;
}

/* Takes over what is private to the transport, also if it fails. Returns a descriptor. */
int lean_source_create(const struct lean_transport *transport, void *private,
		       unsigned long npages, unsigned int readahead)
{
	struct lean_source *source = kzalloc(sizeof(*source), GFP_KERNEL_ACCOUNT);
	struct lean_source unmade = { .private = private };
	int err = -ENOMEM;

	if (!source) {
		transport->free(&unmade);
		return err;
	}
	refcount_set(&source->ref, 1);
	INIT_WORK(&source->free_work, source_free);
	xa_init_flags(&source->pages, XA_FLAGS_ACCOUNT);
	spin_lock_init(&source->failure_lock);
	source->transport = transport;
	source->private = private;
	source->npages = npages;
	source->readahead = readahead ? readahead : LEAN_READAHEAD;
	atomic_long_inc(&lean_counts.sources);
	source->inode = alloc_anon_inode(mount->mnt_sb);
	if (IS_ERR(source->inode)) {
		err = PTR_ERR(source->inode);
		source->inode = NULL;
	} else if (!is_power_of_2(source->readahead) || source->readahead > LEAN_BATCH_MAX) {
		err = -EINVAL;
	} else {
		err = source_fd(source);
	}
	if (err < 0)
		lean_source_put(source);
	return err;
}

static int init_fs_context(struct fs_context *fc)
{
	if (!init_pseudo(fc, LEAN_FS_MAGIC))
		return -ENOMEM;
	fc->s_iflags &= ~SB_I_NOEXEC; /* newer kernels set it: see source_fd() */
	return 0;
}

/*
 * Never mounted by anybody else: for inodes, whose address space has what we
 * map. Without an owner: our own mount would keep the module from being unloaded.
 */
static struct file_system_type filesystem = {
	.name = "lean_seed",
	.init_fs_context = init_fs_context,
	.kill_sb = kill_anon_super,
};

int lean_source_init(void)
{
	mount = kern_mount(&filesystem);
	return PTR_ERR_OR_ZERO(mount);
}

void lean_source_exit(void)
{
	kern_unmount(mount);
}
