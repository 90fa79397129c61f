/* SPDX-License-Identifier: Apache-2.0 */
/* sys: what a terminal's driver is set to, as the kernel has it: libc's structure has no speeds of
 * its own in musl, and others in glibc. */
#ifndef LR_SYS_TERMINAL_H
#define LR_SYS_TERMINAL_H

#include <stdbool.h>
#include <stdint.h>
#include <sys/ioctl.h>
#include <sys/types.h>

/* Of the kernel's <asm/termbits.h>, which can't be included beside <termios.h>. */
struct lr_termios2 {
	uint32_t iflag, oflag, cflag, lflag;
	uint8_t line, cc[19];
	uint32_t ispeed, ospeed;
};

#define LR_TCGETS2  _IOR('T', 0x2a, struct lr_termios2)
#define LR_TCSETS2  _IOW('T', 0x2b, struct lr_termios2)
#define LR_TIOCGDEV _IOR('T', 0x32, unsigned)

/* Slaves of pseudo-terminals: majors 136 to 143 (Documentation/admin-guide/devices.txt). */
bool lr_terminal_is_slave(dev_t device);
/* As the kernel tells a device by a number: TIOCGDEV, tty_nr of proc_pid_stat(5). */
dev_t lr_terminal_device(unsigned told);

#endif
