/* SPDX-License-Identifier: Apache-2.0 */
/* probe lives: see lives.c. */
#ifndef LR_TESTS_FAULTS_LIVES_H
#define LR_TESTS_FAULTS_LIVES_H

/* Until there is a file /tmp/go; then it says how it was, and all but the caller have ended. words: what more
 * there is of it, up to NULL. */
void lives(char **words);

#endif
