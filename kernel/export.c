// SPDX-License-Identifier: GPL-2.0
/*
 * Seeds: references to the pages of processes that do not run. No page is
 * copied. Each has to be a fork: its pages are then shared with its
 * parent, and whoever writes to one gets a copy, as long as the seed lives.
 */
#include <linux/anon_inodes.h>
#include <linux/cred.h>
#include <linux/file.h>
#include <linux/highmem.h>
#include <linux/module.h>
#include <linux/pid.h>
#include <linux/sched/mm.h>
#include <linux/sched/signal.h>
#include <linux/slab.h>
#include <linux/uaccess.h>
#include <linux/uio.h>

#include "compat.h"
#include "internal.h"

#define LEAN_RANGES_MAX (1024 * 1024)
#define LEAN_GET_AT_ONCE 512

static unsigned long user_pages;
module_param(user_pages, ulong, 0644);
MODULE_PARM_DESC(user_pages, "pages that one user may have referenced (0: half of the memory)");

/* A user who has seeds, and the pages they refer to. */
struct lean_user {
	struct list_head link;
	kuid_t uid;
	unsigned long seeds;
	unsigned long pages;
};

static LIST_HEAD(users);
static DEFINE_MUTEX(users_lock);

unsigned long lean_user_limit(void)
{
	unsigned long limit = READ_ONCE(user_pages);

	return limit ? limit : totalram_pages() / 2;
}

static void uncharge(struct lean_user *user, unsigned long pages)
{
	mutex_lock(&users_lock);
	user->pages -= pages;
	if (--user->seeds == 0) {
		list_del(&user->link);
		kfree(user);
	}
	mutex_unlock(&users_lock);
}

/* One more seed of the caller's. */
static struct lean_user *charge(unsigned long pages)
{
	struct lean_user *user;
	bool found = false;

	mutex_lock(&users_lock);
	list_for_each_entry(user, &users, link) {
		found = uid_eq(user->uid, current_uid());
		if (found)
			break;
	}
	if (!found) {
		user = kzalloc(sizeof(*user), GFP_KERNEL);
		if (!user) {
			user = ERR_PTR(-ENOMEM);
			goto out;
		}
		user->uid = current_uid();
		list_add(&user->link, &users);
	}
	if (pages > lean_user_limit() || user->pages > lean_user_limit() - pages) {
		if (!user->seeds) {
			list_del(&user->link);
			kfree(user);
		}
		user = ERR_PTR(-EDQUOT);
		goto out;
	}
	user->seeds++;
	user->pages += pages;
out:
	mutex_unlock(&users_lock);
	return user;
}

static void drop_pages(struct lean_seed *seed)
{
	unsigned long i;

	if (!seed->pages)
		return;
	for (i = 0; i < seed->npages; i++) {
		if (!seed->pages[i])
			continue;
		put_page(seed->pages[i]);
		atomic_long_dec(&lean_counts.referenced);
		cond_resched();
	}
	kvfree(seed->pages);
	seed->pages = NULL;
	uncharge(seed->user, seed->charged);
}

static void seed_free(struct kref *ref)
{
	struct lean_seed *seed = container_of(ref, struct lean_seed, ref);

	drop_pages(seed);
	kfree(seed);
	atomic_long_dec(&lean_counts.seeds);
}

void lean_seed_put(struct lean_seed *seed)
{
	kref_put(&seed->ref, seed_free);
}

/* After this nobody reads a page of the seed. */
static void revoke(struct lean_seed *seed)
{
	down_write(&seed->lock);
	seed->revoked = true;
	drop_pages(seed);
	up_write(&seed->lock);
}

static int seed_release(struct inode *inode, struct file *file)
{
	lean_tokens_drop(file->private_data);
	lean_links_drop(file->private_data);
	revoke(file->private_data);
	lean_seed_put(file->private_data);
	return 0;
}

static long seed_ioctl(struct file *file, unsigned int cmd, unsigned long value)
{
	if (_IOC_TYPE(cmd) != _IOC_TYPE(LEAN_SEED_TOKEN) ||
	    _IOC_NR(cmd) != _IOC_NR(LEAN_SEED_TOKEN))
		return -ENOTTY;
	return lean_token_make(file->private_data, (void __user *)value, _IOC_SIZE(cmd));
}

/*
 * The pages as a file. No lock is needed: whoever reads has the descriptor
 * open, and a seed is revoked by the last close.
 */
static ssize_t seed_read(struct kiocb *iocb, struct iov_iter *to)
{
	struct lean_seed *seed = iocb->ki_filp->private_data;
	size_t part, copied, done = 0;
	struct page *page;
	u64 at = iocb->ki_pos;

	while (iov_iter_count(to) && at >> PAGE_SHIFT < seed->npages) {
		if (fatal_signal_pending(current))
			break;
		part = min_t(size_t, iov_iter_count(to), PAGE_SIZE - offset_in_page(at));
		page = seed->pages[at >> PAGE_SHIFT];
		copied = page ? copy_page_to_iter(page, offset_in_page(at), part, to) :
				iov_iter_zero(part, to);
		at += copied;
		done += copied;
		if (copied < part) {
			if (!done)
				return -EFAULT;
			break;
		}
		cond_resched();
	}
	iocb->ki_pos = at;
	return done;
}

static const struct file_operations seed_fops = {
	.owner = THIS_MODULE,
	.unlocked_ioctl = seed_ioctl,
	.compat_ioctl = compat_ptr_ioctl,
	.release = seed_release,
	.read_iter = seed_read,
};

struct lean_seed *lean_seed_of_fd(int fd)
{
	struct file *file = fget(fd);
	struct lean_seed *seed;

	if (!file)
		return ERR_PTR(-EBADF);
	if (file->f_op == &seed_fops) {
		seed = file->private_data;
		kref_get(&seed->ref);
	} else {
		seed = ERR_PTR(-EINVAL);
	}
	fput(file);
	return seed;
}

/*
 * The memory of a process that the caller may trace. mm_access() is not
 * exported, nor is the user namespace of a process everywhere, so the question
 * is asked in its strictest form: a capability over all of them.
 */
static struct mm_struct *mm_of(pid_t nr)
{
	struct task_struct *task;
	struct mm_struct *mm;
	struct pid *pid;

	if (!capable(CAP_SYS_PTRACE))
		return ERR_PTR(-EPERM);
	pid = find_get_pid(nr);
	task = get_pid_task(pid, PIDTYPE_TGID);
	put_pid(pid);
	if (!task)
		return ERR_PTR(-ESRCH);
	mm = get_task_mm(task);
	put_task_struct(task);
	return mm ? mm : ERR_PTR(-ESRCH);
}

/*
 * Only what nobody changes may be in a seed: pages of anonymous memory, also
 * those of a private mapping of a file that were written, and pages of our
 * own mappings. A page of anonymous memory that is not of it is the shared
 * page of zeros, small or huge.
 */
static int keep(struct lean_seed *seed, unsigned long index, struct vm_area_struct *vma,
		struct page *page, u64 *holes)
{
	if (!PageAnon(page)) {
		if (!vma->vm_ops) {
			put_page(page);
			(*holes)++;
			return 0;
		}
		if (!lean_mapping_ours(vma)) {
			put_page(page);
			return -EINVAL;
		}
	}
	seed->pages[index] = page;
	atomic_long_inc(&lean_counts.referenced);
	return 0;
}

/* Pages of one VMA, at most LEAN_GET_AT_ONCE; returns how many there were. */
static long get_some(struct lean_seed *seed, struct mm_struct *mm, unsigned long start,
		     unsigned long end, unsigned long index, struct page **pages, u64 *holes)
{
	struct vm_area_struct *vma;
	long got, i, err = 0;

	mmap_read_lock(mm);
	vma = find_vma(mm, start);
	if (!vma || vma->vm_start > start) {
		got = -EFAULT;
		goto out;
	}
	end = min(end, vma->vm_end);
	/* FOLL_GET, by which nothing is unshared; FORCE: also what the process can't read. */
	got = lean_get_pages(mm, start,
			     min_t(unsigned long, (end - start) >> PAGE_SHIFT, LEAN_GET_AT_ONCE),
			     FOLL_FORCE, pages);
	if (!got)
		got = -EFAULT;
	for (i = 0; i < got; i++) {
		if (err)
			put_page(pages[i]);
		else
			err = keep(seed, index + i, vma, pages[i], holes);
	}
	if (err)
		got = err;
out:
	mmap_read_unlock(mm);
	return got;
}

/* The memory that is exported, as the caller says it. */
struct lean_request {
	const struct lean_seed_range *ranges;
	const s32 *pids; /* for each range; NULL: pid is whose all are */
	unsigned int count;
	pid_t pid;
	u64 pages; /* all, */
	u64 held; /* and those that are no holes from the start */
	u64 holes; /* what was found to be one, too */
};

static int get_range(struct lean_seed *seed, struct mm_struct *mm,
		     const struct lean_seed_range *range, unsigned long *index,
		     struct page **pages, u64 *holes)
{
	unsigned long start = range->start, end = start + range->length;
	long got;

	while (start < end) {
		if (fatal_signal_pending(current))
			return -EINTR;
		got = get_some(seed, mm, start, end, *index, pages, holes);
		if (got < 0)
			return got;
		*index += got;
		start += got << PAGE_SHIFT;
		cond_resched();
	}
	return 0;
}

static int get_all(struct lean_seed *seed, struct lean_request *request)
{
	struct page **pages = kmalloc_array(LEAN_GET_AT_ONCE, sizeof(*pages), GFP_KERNEL);
	struct mm_struct *mm = NULL;
	unsigned long index = 0;
	unsigned int i;
	pid_t pid = 0, next;
	int err = 0;

	if (!pages)
		return -ENOMEM;
	for (i = 0; i < request->count && !err; i++) {
		const struct lean_seed_range *range = &request->ranges[i];

		if (range->start == LEAN_SEED_HOLE) {
			index += range->length >> PAGE_SHIFT;
			continue;
		}
		next = request->pids ? request->pids[i] : request->pid;
		if (!mm || next != pid) {
			if (mm)
				mmput(mm);
			pid = next;
			mm = mm_of(pid);
			if (IS_ERR(mm)) {
				err = PTR_ERR(mm);
				mm = NULL;
				break;
			}
		}
		err = get_range(seed, mm, range, &index, pages, &request->holes);
	}
	if (mm)
		mmput(mm);
	kfree(pages);
	return err;
}

static int count_pages(struct lean_request *request)
{
	unsigned int i;

	for (i = 0; i < request->count; i++) {
		u64 start = request->ranges[i].start, length = request->ranges[i].length;
		bool hole = start == LEAN_SEED_HOLE;

		if (!length || !PAGE_ALIGNED(length))
			return -EINVAL;
		if (!hole && (!PAGE_ALIGNED(start) || length > TASK_SIZE_MAX ||
			      start > TASK_SIZE_MAX - length))
			return -EINVAL;
		/* Each time, or the sum may be too large for its type. */
		request->pages += length >> PAGE_SHIFT;
		if (request->pages > LEAN_PAGES_MAX)
			return -EFBIG;
		if (hole)
			request->holes += length >> PAGE_SHIFT;
		else
			request->held += length >> PAGE_SHIFT;
	}
	return 0;
}

static struct lean_seed *seed_create(struct lean_request *request)
{
	struct lean_seed *seed = kzalloc(sizeof(*seed), GFP_KERNEL_ACCOUNT);
	int err;

	if (!seed)
		return ERR_PTR(-ENOMEM);
	kref_init(&seed->ref);
	init_rwsem(&seed->lock);
	mutex_init(&seed->links_lock);
	INIT_LIST_HEAD(&seed->links);
	atomic_long_inc(&lean_counts.seeds);
	seed->npages = request->pages;
	seed->charged = request->held;
	seed->user = charge(seed->charged);
	if (IS_ERR(seed->user)) {
		err = PTR_ERR(seed->user);
		goto fail;
	}
	seed->pages = kvcalloc(seed->npages, sizeof(*seed->pages), GFP_KERNEL_ACCOUNT);
	if (!seed->pages) {
		uncharge(seed->user, seed->charged);
		err = -ENOMEM;
		goto fail;
	}
	err = get_all(seed, request);
	if (!err)
		return seed;
fail:
	lean_seed_put(seed);
	return ERR_PTR(err);
}

/* Its descriptor can be read at any place, as a file. */
static int seed_fd(struct lean_seed *seed)
{
	int fd = get_unused_fd_flags(O_CLOEXEC);
	struct file *file;

	if (fd < 0)
		return fd;
	file = anon_inode_getfile("[lean-seed]", &seed_fops, seed, O_RDWR);
	if (IS_ERR(file)) {
		put_unused_fd(fd);
		return PTR_ERR(file);
	}
	file->f_mode |= FMODE_PREAD;
	fd_install(fd, file);
	return fd;
}

static int export_request(struct lean_seed_export *arg, struct lean_request *request,
			  void __user *user, size_t size)
{
	struct lean_seed *seed;
	int fd, err;

	err = count_pages(request);
	if (err)
		return err;
	seed = seed_create(request);
	if (IS_ERR(seed))
		return PTR_ERR(seed);
	arg->pages = request->pages;
	arg->holes = request->holes;
	fd = lean_copy_out(user, size, arg, sizeof(*arg));
	if (!fd)
		fd = seed_fd(seed);
	if (fd < 0)
		lean_seed_put(seed);
	return fd;
}

int lean_seed_export(void __user *user, size_t size)
{
	struct lean_seed_export arg;
	struct lean_request request = {};
	void *ranges, *pids = NULL;
	int ret = lean_copy_in(&arg, sizeof(arg), user, size);

	if (ret)
		return ret;
	if (!arg.count || arg.count > LEAN_RANGES_MAX || arg.pages || arg.holes ||
	    (arg.pids && arg.pid))
		return -EINVAL;
	ranges = vmemdup_user(u64_to_user_ptr(arg.ranges),
			      arg.count * sizeof(*request.ranges));
	if (IS_ERR(ranges))
		return PTR_ERR(ranges);
	if (arg.pids)
		pids = vmemdup_user(u64_to_user_ptr(arg.pids), arg.count * sizeof(*request.pids));
	if (IS_ERR(pids)) {
		kvfree(ranges);
		return PTR_ERR(pids);
	}
	request.ranges = ranges;
	request.pids = pids;
	request.count = arg.count;
	request.pid = arg.pid;
	ret = export_request(&arg, &request, user, size);
	kvfree(pids);
	kvfree(ranges);
	return ret;
}
