/* SPDX-License-Identifier: Apache-2.0 */
/*
 * keeps-sync NAME [forge]: takes, until SIGTERM, the sockets and fifos of every process that it
 * meets whose program was called by that name, with CAP_SYS_PTRACE. It keeps them open; or sends
 * an error into each that asks for an exit status of 256, which exit(3) makes 0. The last line it
 * prints: how many.
 */
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#define KEEP_MAX 500

/* Of src/init/sync.c and src/base/err.h. */
struct message {
	uint32_t magic;
	uint16_t kind, step;
	int32_t value;
	int code, exit_code;
	bool terse;
	char room[16], step_name[32], path[192], msg[512], hint[256];
};

static bool is_named(const char *pid, const char *name)
{
	char path[300], text[256] = "";
	const char *slash;

	snprintf(path, sizeof(path), "/proc/%s/cmdline", pid);
	int fd = open(path, O_RDONLY | O_CLOEXEC);
	if (fd < 0 || read(fd, text, sizeof(text) - 1) < 0)
		text[0] = '\0';
	close(fd);
	slash = strrchr(text, '/');
	return strcmp(slash ? slash + 1 : text, name) == 0;
}

static bool is_rendezvous(int fd)
{
	socklen_t len = sizeof(int);
	struct stat st;
	int type;

	return (getsockopt(fd, SOL_SOCKET, SO_TYPE, &type, &len) == 0 && type == SOCK_SEQPACKET) ||
	       (fstat(fd, &st) == 0 && S_ISFIFO(st.st_mode));
}

static int take_all(const char *pid, bool forge, int had)
{
	static const struct message m = {
		.magic = 0x4c52534e, .kind = 2, .code = EIO, .exit_code = 256, .msg = "forged"};
	int pidfd = (int)syscall(SYS_pidfd_open, atoi(pid), 0), n = 0;

	for (int i = 3; pidfd >= 0 && i < 40; i++) {
		int fd = (int)syscall(SYS_pidfd_getfd, pidfd, i, 0);
		if (fd < 0)
			continue;
		bool it = is_rendezvous(fd);
		n += it;
		if (it && forge)
			(void)send(fd, &m, sizeof(m), MSG_DONTWAIT | MSG_NOSIGNAL);
		if (!it || forge || had + n > KEEP_MAX)
			close(fd);
	}
	close(pidfd);
	return n;
}

static volatile sig_atomic_t told;

static void tell(int sig)
{
	told = sig;
}

int main(int argc, char **argv)
{
	bool forge = argc > 2;
	int n = 0;

	signal(SIGTERM, tell);
	puts("ready");
	fflush(stdout);
	while (!told) {
		DIR *d = opendir("/proc");
		struct dirent *e;
		while (d && (e = readdir(d)))
			if (e->d_name[0] >= '1' && e->d_name[0] <= '9' &&
			    is_named(e->d_name, argv[1]))
				n += take_all(e->d_name, forge, n);
		if (d)
			closedir(d);
	}
	printf("%d\n", n);
	return 0;
}
