/* SPDX-License-Identifier: Apache-2.0 */
/*
 * init: the signals that end a process that waits for start, as they end runc's. One list for the
 * runtime's own process (child.c), for the page (stub.c, which has no C library), and for the
 * parent, which waits until the page has its handlers (executed.c).
 */
#ifndef LR_INIT_ENDS_H
#define LR_INIT_ENDS_H

#define LR_INIT_ENDS_BY                                                                            \
	{                                                                                          \
		SIGHUP, SIGINT, SIGQUIT, SIGTERM                                                   \
	}
#define LR_INIT_ENDS_LAST SIGTERM /* its handler is set last */

#endif
