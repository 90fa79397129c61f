// SPDX-License-Identifier: GPL-2.0
/* The module and /dev/lean-seed. */
#include <linux/capability.h>
#include <linux/miscdevice.h>
#include <linux/module.h>
#include <linux/uaccess.h>

#include "internal.h"

struct lean_counts lean_counts;
struct workqueue_struct *lean_wq;

int lean_copy_in(void *to, size_t size, const void __user *arg, size_t user_size)
{
	return copy_struct_from_user(to, size, arg, user_size);
}

int lean_copy_out(void __user *arg, size_t user_size, const void *from, size_t size)
{
	size_t both = min(size, user_size);

	if (copy_to_user(arg, from, both))
		return -EFAULT;
	if (user_size > both && clear_user(arg + both, user_size - both))
		return -EFAULT;
	return 0;
}

static long lean_info(void __user *arg, size_t size)
{
	struct lean_seed_info info = {
		.abi = LEAN_SEED_ABI,
		.features = LEAN_SEED_LOCAL | LEAN_SEED_FED | LEAN_SEED_AS_FILE |
			    (LEAN_HAS_RDMA ? LEAN_SEED_RDMA : 0),
		.seeds = atomic_long_read(&lean_counts.seeds),
		.sources = atomic_long_read(&lean_counts.sources),
		.mappings = atomic_long_read(&lean_counts.mappings),
		.referenced = atomic_long_read(&lean_counts.referenced),
		.cached = atomic_long_read(&lean_counts.cached),
		.batches = atomic_long_read(&lean_counts.batches),
		.connections = atomic_long_read(&lean_counts.connections),
		.untracked = atomic_long_read(&lean_counts.untracked),
		.user_limit = lean_user_limit(),
		.feeds = atomic_long_read(&lean_counts.feeds),
	};

	return lean_copy_out(arg, size, &info, sizeof(info));
}

static int lean_open(struct inode *inode, struct file *file)
{
	/* Whoever has a descriptor may use it: root hands one to its daemon. */
	return capable(CAP_SYS_ADMIN) ? 0 : -EPERM;
}

/* By number, so that a structure which has grown is the same command. */
static long lean_ioctl(struct file *file, unsigned int cmd, unsigned long value)
{
	void __user *arg = (void __user *)value;
	size_t size = _IOC_SIZE(cmd);

	if (_IOC_TYPE(cmd) != _IOC_TYPE(LEAN_SEED_INFO))
		return -ENOTTY;
	switch (_IOC_NR(cmd)) {
	case _IOC_NR(LEAN_SEED_INFO):
		return lean_info(arg, size);
	case _IOC_NR(LEAN_SEED_EXPORT):
		return lean_seed_export(arg, size);
	case _IOC_NR(LEAN_SEED_OPEN):
		return lean_local_open(arg, size);
	case _IOC_NR(LEAN_SEED_LISTEN):
		return lean_rdma_listen(arg, size);
	case _IOC_NR(LEAN_SEED_CONNECT):
		return lean_rdma_connect(arg, size);
	case _IOC_NR(LEAN_SEED_FEED):
		return lean_feed_create(arg, size);
	}
	return -ENOTTY;
}

static const struct file_operations lean_fops = {
	.owner = THIS_MODULE,
	.open = lean_open,
	.unlocked_ioctl = lean_ioctl,
	.compat_ioctl = compat_ptr_ioctl,
};

static struct miscdevice lean_device = {
	.minor = MISC_DYNAMIC_MINOR,
	.name = "lean-seed",
	.mode = 0600,
	.fops = &lean_fops,
};

static int __init lean_init(void)
{
	int err;

	lean_wq = alloc_workqueue("lean-seed", WQ_UNBOUND, 0);
	if (!lean_wq)
		return -ENOMEM;
	err = lean_shrink_init();
	if (err)
		goto no_shrinker;
	err = lean_source_init();
	if (err)
		goto no_source;
	err = lean_mapping_init();
	if (err)
		goto no_mapping;
	err = misc_register(&lean_device);
	if (err)
		goto no_device;
	return 0;

no_device:
	lean_mapping_exit();
no_mapping:
	lean_source_exit();
no_source:
	lean_shrink_exit();
no_shrinker:
	destroy_workqueue(lean_wq);
	return err;
}

static void __exit lean_exit(void)
{
	misc_deregister(&lean_device);
	/* Descriptors and mappings are gone, or we would not be here. What is left is done now. */
	destroy_workqueue(lean_wq);
	lean_mapping_exit();
	lean_source_exit();
	lean_shrink_exit();
}

module_init(lean_init);
module_exit(lean_exit);
MODULE_DESCRIPTION("Memory of frozen processes for others that continue them");
MODULE_AUTHOR("The lean-runtime authors");
MODULE_LICENSE("GPL");
