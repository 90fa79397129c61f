/* SPDX-License-Identifier: Apache-2.0 */
/* What forkd-tool's files share: the memory of its seeds. */
#ifndef LR_FORKD_TOOL_H
#define LR_FORKD_TOOL_H

#include <stdbool.h>
#include <stdint.h>

#define MEMORY UINT64_C(0x200000000000)

/* Behind it: pages of a mapped file that were written. They are read into place, and never come
 * later. */
#define WRITTEN 8
/* Pages that the seed does not have: zeros. */
static inline bool is_hole(uint64_t i)
{
	return i % 37 == 5;
}
void fill_page(uint64_t *page, uint64_t i);

/*
 * Takes the memory of a seed by a daemon, and looks at it: HOW is
 *	read     all of it, in order; prints how fast
 *	random   all of it, in no order
 *	prefetch waits until all has come by itself, then as read
 *	events   forks, moves, discards and unmaps it before it came
 *	moved    moves memory to where the prefetch has been, before it came
 *	bring    asks for pages, without a process that touches them
 *	grow     has memory grow to where the file was mapped
 *	crowd    200 threads touch it at once, when a line is read, and one discards some
 *	forks    forks 200 processes that stay
 *	changed  remaps it, maps over it, locks it and has it not forked, before it came
 *	split    changes what may be done with every other page, before they came
 *	parted   the same with a prefetch
 *	late     registers its memory half a second after it has handed the userfaultfd over
 *	some     some pages, and prints what that took
 *	warm     waits until as many pages have come as that are, which is all that may come, then as some
 *	slow     a page now and then, and by a fork, too: to be killed
 * Status 3: something was wrong.
 */
struct lr_err;
/* hard.c: modes that ask much of a daemon. */
void crowd(char *memory, uint64_t pages);
void forks(void);
void grow(char *memory, uint64_t pages);
void changed(char *memory);
void split(char *memory, uint64_t pages);
int bring(int sock, const char *ticket, struct lr_err *err);
int child(const char *control, const char *ticket, const char *how, uint32_t around);

#endif
