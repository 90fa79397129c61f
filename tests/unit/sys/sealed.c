/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Helper of test_selfexe.
 *   sealed seal ...      seals itself and tells what it is then
 *   sealed plain ...     tells without sealing
 *   sealed expose PATH   seals itself and executes PATH as a container's process would be, which
 *                        keeps a descriptor of the runtime's program as number 10
 *   sealed attack        is that process: tries to overwrite the program (CVE-2019-5736)
 */
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "src/sys/selfexe.h"

static int tell(int argc, char **argv, char **envp)
{
	int fd = open("/proc/self/exe", O_RDONLY | O_CLOEXEC), extra = 0;
	struct stat st = {0};

	fstat(fd, &st);
	for (int i = 3; i < 64; i++)
		extra += i != fd && fcntl(i, F_GETFD) >= 0;
	printf("sealed=%d links=%d fds=%d argc=%d last=%s env=%s\n", lr_selfexe_is_sealed(),
	       (int)st.st_nlink, extra, argc, argv[argc - 1], envp[0] ? envp[0] : "");
	return 0;
}

static int expose(char *path)
{
	char *argv[] = {path, (char *)(size_t) "attack", NULL}, *envp[] = {NULL};
	int fd = open("/proc/self/exe", O_RDONLY);

	if (fd < 0 || dup2(fd, 10) < 0)
		return 3;
	execve(path, argv, envp);
	return 4;
}

static int attack(void)
{
	int fd = open("/proc/self/fd/10", O_RDWR);
	int wrote = fd >= 0 && write(fd, "#!", 2) == 2;

	printf("wrote=%d cut=%d\n", wrote, fd >= 0 && ftruncate(fd, 0) == 0);
	return 0;
}

int main(int argc, char **argv, char **envp)
{
	struct lr_err err = {0};
	char text[1024];

	if (argc > 1 && strcmp(argv[1], "attack") == 0)
		return attack();
	if (argc > 1 && strcmp(argv[1], "plain") == 0)
		return tell(argc, argv, envp);
	if (lr_selfexe_seal(argv, envp, &err) < 0) {
		printf("error: %s\n", lr_err_format(&err, text, sizeof text));
		return 2;
	}
	return strcmp(argv[1], "expose") == 0 ? expose(argv[2]) : tell(argc, argv, envp);
}
