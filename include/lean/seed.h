/* SPDX-License-Identifier: Apache-2.0 */
/* Its examples and comments are laid out by hand. */
/* clang-format off */
/*
 * For programs *in* a container that is to become a seed: where its children go on.
 *
 *	load();                                  // once, however many children there will be
 *	if (lean_seed_here(-1) == 1)
 *		new_random_numbers();            // all children have the parent's
 *	serve();                                 // sockets are opened here: a seed can't carry them
 *
 * Outside, `lean-runtime checkpoint --engine=fork --when-ready ...` makes the seed as soon as the
 * program is there, and `restore` makes children of it (docs/remote-fork.md, lean_seed_here(3)).
 *
 * liblean-seed has these functions and nothing else, for images (`pkg-config --libs lean-seed`);
 * liblean has them, too. It needs no rights, no file and no descriptor; a page of memory is mapped
 * by the first call. Any thread may call at any time, several at once, too; not signal handlers,
 * and a thread in the call must not be left by longjmp(3) or cancelled asynchronously.
 */
#ifndef LEAN_SEED_H
#define LEAN_SEED_H

#ifdef __cplusplus
extern "C" {
#endif

/*
 * Waits until a seed was made of the container, at most timeout_ms milliseconds (negative: without
 * an end; 0: not at all).
 *
 *	0               there is a seed, and this is the parent
 *	1               this is a child of a seed
 *	-ETIMEDOUT      no seed was made in that time
 *	-EINTR          a signal was handled; call again
 *	-EOPNOTSUPP     no seed can ever be made of this process: it is in no container (the host's
 *	                first pid namespace), or this is not x86-64
 *	-ENOSYS, -EPERM, -EACCES, -ENOMEM, -EMFILE, -ENFILE
 *	                the page of memory can't be had (memfd_create(2), mmap(2))
 *
 * 0 means that the seed is whole: while it is being written, and if that fails, the call goes on
 * waiting.
 *
 * If the seed was made while no thread was in the call, the next call in a child returns 1 at once.
 * The first call marks the process: a child of a seed from before that can't be told from a program
 * that was just started. The call may be made again, by parent and child: it waits for the next seed
 * of its own container.
 *
 * A process that was made by fork(2) has calls of its own: they say nothing about its parent process.
 */
int lean_seed_here(int timeout_ms);

/*
 * How many seeds lie between the program's start and this process: 0 in a process that is no child,
 * 2 in a child of a child. It does not wait, and marks the process as the first call above does: for
 * programs of which a seed may be made before they come to lean_seed_here.
 */
unsigned lean_seed_generation(void);

#ifdef __cplusplus
}
#endif

#endif
