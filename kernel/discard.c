// SPDX-License-Identifier: GPL-2.0
/*
 * What tells a discard, after which memory reads zero, from all else that an
 * MMU notifier reports in the same way. It depends on the order of calls in
 * mm/, so it is in one place, and tests/module tries each trap on each kernel.
 */
#include <linux/compat.h>
#include <linux/mman.h>
#include <linux/mmu_notifier.h>
#include <linux/sched.h>
#include <asm/syscall.h>
#include <asm/unistd.h>

#include "internal.h"

#ifndef MADV_GUARD_INSTALL /* Linux 6.13 */
#define MADV_GUARD_INSTALL 102
#endif

#if defined(CONFIG_X86_64)
#define LEAN_COMPAT_MADVISE 219 /* of i386 */
#define LEAN_NR_MASK (~0x40000000) /* without the mark of x32 */
#elif defined(CONFIG_ARM64)
#define LEAN_COMPAT_MADVISE 220 /* of arm */
#endif

#ifndef LEAN_NR_MASK
#define LEAN_NR_MASK (~0)
#endif

static bool is_madvise(long nr)
{
#if defined(CONFIG_COMPAT) && defined(LEAN_COMPAT_MADVISE)
	if (in_compat_syscall() && nr == LEAN_COMPAT_MADVISE)
		return true;
#endif
	return nr == __NR_madvise;
}

static bool in_discarding_call(void)
{
	struct pt_regs *regs = task_pt_regs(current);
	unsigned long args[6], advice;
	long nr = syscall_get_nr(current, regs);

	/* A system call that does not exist, or no system call: an exception. */
	if (nr < 0)
		return false;
	nr &= LEAN_NR_MASK;
	syscall_get_arguments(current, regs, args);
	if (is_madvise(nr))
		advice = args[2];
	else if (nr == __NR_process_madvise) /* the same number everywhere */
		advice = args[3];
	else
		return false;
	switch ((unsigned int)advice) {
	case MADV_DONTNEED:
	case MADV_DONTNEED_LOCKED:
	case MADV_GUARD_INSTALL:
		return true;
	}
	return false;
}

/*
 * MMU_NOTIFY_UNMAP is always one. MMU_NOTIFY_CLEAR is also sent when a VMA is
 * split, for the 2 MiB around the place; when a page is reclaimed, migrated or
 * copied for a write; and so on. It is a discard only if who causes it is in
 * the system call that discards, and not in reclaim, which may begin in any
 * system call.
 */
bool lean_is_discard(const struct mmu_notifier_range *range)
{
	if (range->event == MMU_NOTIFY_UNMAP)
		return true;
	if (range->event != MMU_NOTIFY_CLEAR)
		return false;
	if (current->flags & (PF_KTHREAD | PF_MEMALLOC))
		return false;
	/* Of io_uring's workers nothing says what they do; IORING_OP_MADVISE is theirs. */
	if (current->flags & PF_IO_WORKER)
		return true;
	return in_discarding_call();
}
