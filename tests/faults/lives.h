/* SPDX-License-Identifier: Apache-2.0 */
/* probe lives: see lives.c. */
#ifndef LR_TESTS_FAULTS_LIVES_H
#define LR_TESTS_FAULTS_LIVES_H

#include <stdbool.h>

/* Until there is a file /tmp/go; then it says how it was, and all but the caller have ended. here: and a
 * thread that waits in lean_seed_here, and says what that returned. */
void lives(bool here);

#endif
