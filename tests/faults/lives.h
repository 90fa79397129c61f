/* SPDX-License-Identifier: Apache-2.0 */
/* probe lives: see lives.c. */
#ifndef LR_TESTS_FAULTS_LIVES_H
#define LR_TESTS_FAULTS_LIVES_H

#include <sys/types.h>

/* Until there is a file /tmp/go; then it says how it was, and all but the caller have ended. words: what more
 * there is of it, up to NULL. */
void lives(char **words);

/* settings.c: what it sets, before it has children; its child; and when it has one. */
void make_settings(void);
void make_settings_of_child(void);
void settings_know_child(pid_t pid);
/* In the end: what is not as it was, or NULL. */
const char *wrong_settings(void);
const char *wrong_of_child(void);
/* pairs.c: the same. */
void make_pairs(void);
const char *wrong_pairs(void);

#endif
