/* SPDX-License-Identifier: Apache-2.0 */
/* What the parts of churn have in common: the memory (churn.c), and the states (churn_states.c). */
#ifndef LR_FORK_CHURN_H
#define LR_FORK_CHURN_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define PAGE 4096U

/* Otherwise /result has what failed, and the program ends. */
void churn_need(bool good, const char *what);
uint64_t churn_add(uint64_t sum, const uint8_t *p, size_t n);

/* All of them: the state that `churn NAME` is in, or none at all. */
void churn_enter(const char *name); /* returns when it is in that state */
void churn_step(unsigned step);     /* changes what the state has beside the memory of churn.c */
uint64_t churn_state_sum(uint64_t sum); /* of that */
void churn_leave(void);                 /* and looks whether it was in that state until now */

#endif
