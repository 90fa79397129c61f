/* SPDX-License-Identifier: Apache-2.0 */
/* counter FILE [barrier]: counts in a file, a hundred times a second. What goes on is its memory. Static: for
 * a container with nothing else in it. barrier: as long as the kernel makes those of membarrier(2) that it
 * has registered for. */
#include <fcntl.h>
#include <linux/membarrier.h>
#include <stdio.h>
#include <string.h>
#include <sys/syscall.h>
#include <unistd.h>

static int barrier(int command)
{
	return (int)syscall(SYS_membarrier, command, 0, 0);
}

int main(int argc, char **argv)
{
	char text[32];

	if (argc > 2 && barrier(MEMBARRIER_CMD_REGISTER_PRIVATE_EXPEDITED) < 0)
		return 3;
	for (unsigned long i = 1; argc > 1; i++) {
		snprintf(text, sizeof(text), "%lu\n", i);
		int fd = open(argv[1], O_WRONLY | O_CREAT, 0666);
		if (fd < 0 || pwrite(fd, text, strlen(text), 0) < 0)
			return 1;
		close(fd);
		if (argc > 2 && barrier(MEMBARRIER_CMD_PRIVATE_EXPEDITED) < 0)
			return 3;
		usleep(10000);
	}
	return 2;
}
