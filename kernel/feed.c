// SPDX-License-Identifier: GPL-2.0
/*
 * The transport by user space: a feed is a descriptor from which a program
 * reads which pages are wanted, and which it gives their contents. Closing it
 * revokes, as it does for a seed.
 */
#include <linux/anon_inodes.h>
#include <linux/file.h>
#include <linux/highmem.h>
#include <linux/module.h>
#include <linux/poll.h>
#include <linux/slab.h>
#include <linux/uaccess.h>
#include <linux/wait.h>

#include "internal.h"

static_assert(LEAN_BATCH_MAX == LEAN_SEED_WANT_MAX);

struct lean_feed {
	struct kref ref; /* the descriptor's, and one for each source */
	unsigned long npages;
	spinlock_t lock; /* for all that follows */
	bool closed;
	unsigned int sources;
	u64 last;
	struct list_head wanted; /* nobody was told of them yet */
	struct list_head told; /* of which an answer will come */
	wait_queue_head_t readers;
	wait_queue_head_t answered;
};

/* A batch that waits for an answer: its worker's. */
struct lean_want {
	struct list_head link;
	struct lean_batch *batch;
	u64 id;
	int error;
	bool revoked;
	bool done; /* after this is set, the worker may be gone */
};

static void feed_free(struct kref *ref)
{
	kfree(container_of(ref, struct lean_feed, ref));
	atomic_long_dec(&lean_counts.feeds);
}

static void feed_put(struct lean_feed *feed)
{
	kref_put(&feed->ref, feed_free);
}

/* Of a want that is in no list any more. */
static void answer(struct lean_feed *feed, struct lean_want *want, int error, bool revoked)
{
	want->error = error;
	want->revoked = revoked;
	/* Behind the two above, which feed_read() looks at once it has seen this. */
	smp_store_release(&want->done, true);
	wake_up_all(&feed->answered);
}

/* Nothing will come for what waits: of one source, or of all. */
static void give_up(struct lean_feed *feed, struct lean_source *source, struct list_head *list)
{
	struct lean_want *want, *next;

	list_for_each_entry_safe(want, next, list, link) {
		if (source && want->batch->source != source)
			continue;
		list_del(&want->link);
		answer(feed, want, -EOWNERDEAD, true);
	}
}

/*
 * In a worker of its own, and idle: how long it takes is up to a program, and
 * perhaps to another host. Who waits for the page can be killed meanwhile.
 */
static int feed_read(struct lean_source *source, struct lean_batch *batch)
{
	struct lean_feed *feed = source->private;
	struct lean_want want = { .batch = batch };
	bool closed;

	spin_lock(&feed->lock);
	closed = feed->closed || READ_ONCE(source->dead);
	if (!closed) {
		want.id = ++feed->last;
		list_add_tail(&want.link, &feed->wanted);
	}
	spin_unlock(&feed->lock);
	if (!closed) {
		wake_up_interruptible_poll(&feed->readers, EPOLLIN | EPOLLRDNORM);
		/* Before a look at what answer() has set with it. */
		wait_event_idle(feed->answered, smp_load_acquire(&want.done));
	}
	if (!closed && !want.revoked)
		return want.error;
	lean_source_fail(source, LEAN_SEED_REVOKED, -EOWNERDEAD, batch->index[0], true);
	return -EOWNERDEAD;
}

static void feed_cut(struct lean_source *source)
{
	struct lean_feed *feed = source->private;

	spin_lock(&feed->lock);
	give_up(feed, source, &feed->wanted);
	give_up(feed, source, &feed->told);
	spin_unlock(&feed->lock);
}

static void feed_leave(struct lean_source *source)
{
	struct lean_feed *feed = source->private;
	bool last;

	spin_lock(&feed->lock);
	last = --feed->sources == 0;
	spin_unlock(&feed->lock);
	if (last)
		wake_up_interruptible_poll(&feed->readers, EPOLLHUP);
	feed_put(feed);
}

static const struct lean_transport feed_transport = {
	.read = feed_read,
	.cut = feed_cut,
	.free = feed_leave,
};

/* ---- the descriptor -------------------------------------------------------- */

/* Whoever reads of a want has to answer it. */
static bool take_want(struct lean_feed *feed, struct lean_seed_want *ret)
{
	struct lean_want *want;
	unsigned int i;

	spin_lock(&feed->lock);
	want = list_first_entry_or_null(&feed->wanted, struct lean_want, link);
	if (want) {
		list_move_tail(&want->link, &feed->told);
		ret->id = want->id;
		ret->count = want->batch->count;
		for (i = 0; i < want->batch->count; i++)
			ret->index[i] = want->batch->index[i];
	}
	spin_unlock(&feed->lock);
	return want;
}

/* One that was told of, out of the list; NULL: it was answered, or given up. */
static struct lean_want *take_told(struct lean_feed *feed, u64 id, u32 count, bool *wrong)
{
	struct lean_want *want;

	*wrong = false;
	spin_lock(&feed->lock);
	list_for_each_entry(want, &feed->told, link) {
		if (want->id != id)
			continue;
		*wrong = count != want->batch->count;
		if (*wrong)
			break;
		list_del(&want->link);
		spin_unlock(&feed->lock);
		return want;
	}
	spin_unlock(&feed->lock);
	return NULL;
}

static void untell(struct lean_feed *feed, u64 id)
{
	struct lean_want *want;

	spin_lock(&feed->lock);
	list_for_each_entry(want, &feed->told, link) {
		if (want->id == id) {
			list_move(&want->link, &feed->wanted);
			break;
		}
	}
	spin_unlock(&feed->lock);
}

/* Also when there is nobody who could want something. */
static bool is_readable(struct lean_feed *feed)
{
	bool readable;

	spin_lock(&feed->lock);
	readable = !list_empty(&feed->wanted) || !feed->sources;
	spin_unlock(&feed->lock);
	return readable;
}

static bool has_sources(struct lean_feed *feed)
{
	bool has;

	spin_lock(&feed->lock);
	has = feed->sources;
	spin_unlock(&feed->lock);
	return has;
}

static ssize_t feed_file_read(struct file *file, char __user *to, size_t size, loff_t *pos)
{
	struct lean_feed *feed = file->private_data;
	struct lean_seed_want want = {};
	int err;

	if (size < sizeof(want))
		return -EINVAL;
	while (!take_want(feed, &want)) {
		if (!has_sources(feed))
			return 0;
		if (file->f_flags & O_NONBLOCK)
			return -EAGAIN;
		err = wait_event_interruptible(feed->readers, is_readable(feed));
		if (err)
			return err;
	}
	if (copy_to_user(to, &want, sizeof(want))) {
		untell(feed, want.id);
		return -EFAULT;
	}
	return sizeof(want);
}

static __poll_t feed_poll(struct file *file, struct poll_table_struct *table)
{
	struct lean_feed *feed = file->private_data;
	__poll_t ret = 0;

	poll_wait(file, &feed->readers, table);
	spin_lock(&feed->lock);
	if (!list_empty(&feed->wanted))
		ret |= EPOLLIN | EPOLLRDNORM;
	if (!feed->sources)
		ret |= EPOLLHUP;
	spin_unlock(&feed->lock);
	return ret;
}

static int fill_pages(struct lean_batch *batch, const char __user *from)
{
	unsigned long left = 0;
	unsigned int i;
	void *to;

	for (i = 0; i < batch->count && !left; i++) {
		to = kmap_local_page(batch->page[i]->page);
		left = copy_from_user(to, from + i * PAGE_SIZE, PAGE_SIZE);
		kunmap_local(to);
		flush_dcache_page(batch->page[i]->page);
	}
	return left ? -EFAULT : 0;
}

static long feed_fill(struct lean_feed *feed, const void __user *user, size_t size)
{
	struct lean_seed_fill arg;
	struct lean_want *want;
	bool wrong;
	int err = lean_copy_in(&arg, sizeof(arg), user, size);

	if (err)
		return err;
	if (arg.error >= MAX_ERRNO)
		return -EINVAL;
	want = take_told(feed, arg.id, arg.count, &wrong);
	if (!want)
		return wrong ? -EINVAL : -ENOENT;
	err = arg.error ? 0 : fill_pages(want->batch, u64_to_user_ptr(arg.pages));
	answer(feed, want, arg.error ? -(int)arg.error : err, false);
	return err;
}

static long feed_ioctl(struct file *file, unsigned int cmd, unsigned long value)
{
	if (_IOC_TYPE(cmd) != _IOC_TYPE(LEAN_SEED_FILL) || _IOC_NR(cmd) != _IOC_NR(LEAN_SEED_FILL))
		return -ENOTTY;
	return feed_fill(file->private_data, (void __user *)value, _IOC_SIZE(cmd));
}

static int feed_release(struct inode *inode, struct file *file)
{
	struct lean_feed *feed = file->private_data;

	spin_lock(&feed->lock);
	feed->closed = true;
	give_up(feed, NULL, &feed->wanted);
	give_up(feed, NULL, &feed->told);
	spin_unlock(&feed->lock);
	feed_put(feed);
	return 0;
}

static const struct file_operations feed_fops = {
	.owner = THIS_MODULE,
	.read = feed_file_read,
	.poll = feed_poll,
	.unlocked_ioctl = feed_ioctl,
	.compat_ioctl = compat_ptr_ioctl,
	.release = feed_release,
};

int lean_feed_create(void __user *user, size_t size)
{
	struct lean_seed_feed arg;
	struct lean_feed *feed;
	int fd = lean_copy_in(&arg, sizeof(arg), user, size);

	if (fd)
		return fd;
	if (!arg.pages || arg.pages > LEAN_PAGES_MAX)
		return -EINVAL;
	feed = kzalloc(sizeof(*feed), GFP_KERNEL_ACCOUNT);
	if (!feed)
		return -ENOMEM;
	kref_init(&feed->ref);
	spin_lock_init(&feed->lock);
	INIT_LIST_HEAD(&feed->wanted);
	INIT_LIST_HEAD(&feed->told);
	init_waitqueue_head(&feed->readers);
	init_waitqueue_head(&feed->answered);
	feed->npages = arg.pages;
	atomic_long_inc(&lean_counts.feeds);
	fd = anon_inode_getfd("[lean-seed-feed]", &feed_fops, feed, O_RDWR | O_CLOEXEC);
	if (fd < 0)
		feed_put(feed);
	return fd;
}

/* A source that this feed fills. -EINVAL: the descriptor is no feed's. */
int lean_feed_open(int fd, unsigned int readahead)
{
	struct file *file = fget(fd);
	struct lean_feed *feed;

	if (!file)
		return -EBADF;
	if (file->f_op != &feed_fops) {
		fput(file);
		return -EINVAL;
	}
	feed = file->private_data;
	kref_get(&feed->ref);
	spin_lock(&feed->lock);
	feed->sources++;
	spin_unlock(&feed->lock);
	fput(file);
	return lean_source_create(&feed_transport, feed, feed->npages, readahead);
}
