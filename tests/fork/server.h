/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A small page server: fills the memory of resumed processes from a seed, page by page, and keeps
 * up with what they do to it meanwhile.
 */
#ifndef LR_FORK_SERVER_H
#define LR_FORK_SERVER_H

#include "src/seed/seed.h"

/*
 * Serves what comes by `sock` (struct lr_resume_lazy), until its other end is closed and no process
 * is left. keeper: a SOCK_SEQPACKET that gets a copy of each descriptor, so that it lives on if we
 * don't.
 */
int serve_pages(const struct lr_seed *s, int pages, int sock, int keeper);

#endif
