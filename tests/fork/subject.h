/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What a subject of the tests is: `subject MODE` in a directory of its own makes something, says
 * "ready" (a file), waits for "go" (a file), looks whether everything is as it was, and writes
 * "ok" or what is wrong to the file "result". Between ready and go it is captured; both it and its
 * child go through the second half.
 */
#ifndef LR_FORK_SUBJECT_H
#define LR_FORK_SUBJECT_H

#include <errno.h>
#include <fcntl.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

void subject_ready(void); /* returns after go */
void subject_wrong(const char *fmt, ...) __attribute__((format(printf, 1, 2), noreturn));

#define EXPECT(cond)                                                                               \
	do {                                                                                       \
		if (!(cond))                                                                       \
			subject_wrong("%s:%d: %s (errno %d)", __FILE__, __LINE__, #cond, errno);   \
	} while (0)

void subject_threads(void);
void subject_files(void);
void subject_kinds(void);
void subject_signals(void);
void subject_restart(void);
void subject_memory(void);
void subject_shared(void);
void subject_tree(void);
void subject_brood(void);
void subject_heirs(void);
void subject_vectors(void);
void subject_timers(void);
void subject_sections(void);
void subject_sealed(void);
void subject_owners(void);
void subject_locked(void);
void subject_lockedall(void);
void subject_advice(void);
void subject_settings(void);
void subject_places(void);
void subject_jail(void);
void subject_tiles(void);
void subject_notiles(void);
void subject_keys(void);
void subject_firstkey(void);

#endif
