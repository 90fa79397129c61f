/* SPDX-License-Identifier: Apache-2.0 */
/* forkd: what the rest asks the main thread for; the verbs that ask a daemon. */
#ifndef LR_FORKD_MAIN_H
#define LR_FORKD_MAIN_H

#include <stdint.h>

#include "src/wire/ticket.h"

/* Readable when the daemon ends. */
int ending_fd(void);
/* HOST:PORT or [HOST]:PORT. -EINVAL. */
int listen_place(const char *text, char host[LR_TICKET_HOST], uint16_t *port);
/* "90s", "5m", "2h", "1d", "100ms"; a number alone is seconds. ms; -EINVAL. */
int duration_of(const char *text, uint64_t *ms);

/* daemon.c: until it is told to end. */
int daemon_run(struct lr_err *err);
/* ask.c: argv[0] is the verb. The exit status; -1: no such verb. */
int ask_daemon(const char *control, int argc, char **argv);

#endif
