/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Helper of test_selfexe.
 *   sealed seal ...      seals itself and tells what it is then
 *   sealed mounted ...   the same by a mount
 *   sealed plain ...     tells without sealing
 *   sealed expose PATH   seals itself and executes PATH as a container's process would be, which
 *                        keeps a descriptor of the runtime's program as number 10
 *   sealed show PATH     the same by a mount
 *   sealed attack        is that process: tries to overwrite the program (CVE-2019-5736)
 */
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/mount.h>
#include <sys/stat.h>
#include <sys/statvfs.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "src/sys/selfexe.h"
#include "src/sys/syscalls.h"

static int tell(int argc, char **argv, char **envp)
{
	int fd = open("/proc/self/exe", O_RDONLY | O_CLOEXEC), extra = 0;
	struct statvfs fs = {0};
	struct stat st = {0};

	fstat(fd, &st);
	fstatvfs(fd, &fs);
	for (int i = 3; i < 64; i++)
		extra += i != fd && fcntl(i, F_GETFD) >= 0;
	printf("sealed=%d links=%d ro=%d fds=%d argc=%d last=%s env=%s\n", lr_selfexe_is_sealed(),
	       (int)st.st_nlink, (fs.f_flag & ST_RDONLY) != 0, extra, argc, argv[argc - 1],
	       envp[0] ? envp[0] : "");
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

static int make_writable(int fd)
{
	struct mount_attr attr = {.attr_clr = MOUNT_ATTR_RDONLY};

	return lr_mount_setattr(fd, "", AT_EMPTY_PATH, &attr) == 0;
}

/* With every capability of the host's root, if that is who runs the tests. */
static int attack(void)
{
	int fd = open("/proc/self/fd/10", O_RDWR);
	int wrote = fd >= 0 && write(fd, "#!", 2) == 2;

	printf("wrote=%d cut=%d ", wrote, fd >= 0 && ftruncate(fd, 0) == 0);
	printf("writable=%d remounted=%d bound=%d cloned=%d picked=%d\n", make_writable(10),
	       mount(NULL, "/proc/self/fd/10", NULL, MS_REMOUNT | MS_BIND, NULL) == 0,
	       mount("/proc/self/fd/10", "/proc/self/fd/10", NULL, MS_BIND, NULL) == 0,
	       lr_open_tree(10, "", AT_EMPTY_PATH | OPEN_TREE_CLONE) >= 0,
	       syscall(SYS_fspick, 10, "", 8 /* FSPICK_EMPTY_PATH */) >= 0);
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
	if (argc > 1 && (strcmp(argv[1], "mounted") == 0 || strcmp(argv[1], "show") == 0)) {
		if (!lr_selfexe_mounted(argv, envp)) {
			printf("no mount\n");
			return 2;
		}
		lr_selfexe_let_go();
	} else if (lr_selfexe_seal(argv, envp, &err) < 0) {
		printf("error: %s\n", lr_err_format(&err, text, sizeof text));
		return 2;
	}
	bool to_others = strcmp(argv[1], "expose") == 0 || strcmp(argv[1], "show") == 0;
	return to_others ? expose(argv[2]) : tell(argc, argv, envp);
}
