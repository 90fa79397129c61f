/* SPDX-License-Identifier: Apache-2.0 */
/* launch DIR PROGRAM...: in a session of its own, in that directory, with nothing of ours open but
 * standard error. */
#include <fcntl.h>
#include <sys/syscall.h>
#include <unistd.h>

int main(int argc, char **argv)
{
	int null = open("/dev/null", O_RDWR);

	if (argc < 3 || null < 0 || chdir(argv[1]) < 0)
		return 2;
	dup2(null, 0);
	dup2(null, 1);
	syscall(SYS_close_range, 3, ~0U, 0);
	setsid();
	execv(argv[2], argv + 2);
	return 127;
}
