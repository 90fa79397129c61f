/* SPDX-License-Identifier: Apache-2.0 */
/* What the parts of `refused` share (refused.c). */
#ifndef LR_FORK_REFUSED_H
#define LR_FORK_REFUSED_H

void say(const char *name);         /* makes a file of that name */
void need(int r, const char *what); /* or ends */
void be_a_child(const char *name);  /* which ends with its parent */
_Noreturn void wait_for_ever(void);

/* refused_kinds.c: descriptors of each kind that can't be carried; and such that would have who asks wait, beside
 * which nothing else is looked at. */
void kinds(void);
void kinds_that_wait(void);

#endif
