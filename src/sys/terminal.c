/* SPDX-License-Identifier: Apache-2.0 */
/* sys: see terminal.h. */
#include "src/sys/terminal.h"

#include <sys/sysmacros.h>

_Static_assert(sizeof(struct lr_termios2) == 44, "struct termios2 of the kernel");

bool lr_terminal_is_slave(dev_t device)
{
	return major(device) >= 136 && major(device) <= 143;
}

dev_t lr_terminal_device(unsigned told)
{
	return makedev(told >> 8 & 0xfff, (told & 0xff) | (told >> 12 & 0xfff00));
}
