/* SPDX-License-Identifier: Apache-2.0 */
/* probe lives pairs: pairs of sockets and pipes that other users have made, with what waits in them and was set of
 * them, and sockets that listen as another user. */
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <unistd.h>

#include "tests/faults/lives.h"

enum { FEW = 3, MADE_BY = 1234, OF_GROUP = 1235, CAPACITY = 1 << 17, BUFFER = 20000 };

static int pair[FEW][2], pipes[2][2], named = -1;
static const struct sockaddr_un at = {AF_UNIX, "/dev/shm/d/another"};

static void be(uid_t uid, gid_t gid)
{
	if ((geteuid() && seteuid(0) < 0) || setegid(gid) < 0 || seteuid(uid) < 0)
		exit(1);
}

void make_pairs(void)
{
	const int on = 1, size = BUFFER;
	const mode_t mask = umask(0);

	be(MADE_BY, OF_GROUP);
	for (int i = 0; i < FEW; i++)
		if (socketpair(AF_UNIX, (i == 1 ? SOCK_SEQPACKET : SOCK_STREAM) | SOCK_CLOEXEC, 0,
			       pair[i]) < 0)
			exit(1);
	if (pipe2(pipes[1], O_CLOEXEC) < 0)
		exit(1);
	be(0, 0);
	if (pipe2(pipes[0], O_CLOEXEC) < 0 || fchown(pipes[0][0], 77, 78) < 0 ||
	    fchmod(pipes[0][0], 0644) < 0 || fcntl(pipes[0][0], F_SETPIPE_SZ, CAPACITY) < 0 ||
	    write(pipes[0][1], "piped", 5) != 5 || write(pipes[1][1], "by user", 7) != 7)
		exit(1);
	if (send(pair[0][0], "there", 5, 0) != 5 || send(pair[0][1], "back", 4, 0) != 4 ||
	    setsockopt(pair[0][1], SOL_SOCKET, SO_PASSCRED, &on, sizeof(on)) < 0 ||
	    setsockopt(pair[1][0], SOL_SOCKET, SO_SNDBUF, &size, sizeof(size)) < 0 ||
	    shutdown(pair[2][0], SHUT_WR) < 0)
		exit(1);
	close(pair[2][1]);
	named = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
	if (bind(named, (const struct sockaddr *)&at, sizeof(at)) < 0 ||
	    chmod(at.sun_path, 0604) < 0 || chown(at.sun_path, 0, 99) < 0)
		exit(1);
	be(MADE_BY, OF_GROUP);
	if (listen(named, 3) < 0)
		exit(1);
	be(0, 0);
	umask(mask);
}

static const char *wrong_maker(int fd, uid_t uid, gid_t gid)
{
	struct ucred c = {0};
	socklen_t n = sizeof(c);

	if (getsockopt(fd, SOL_SOCKET, SO_PEERCRED, &c, &n) < 0)
		return "no peer is told of";
	return c.uid == uid && c.gid == gid ? NULL : "a pair is somebody else's";
}

const char *wrong_pairs(void)
{
	char got[32] = "";
	int on = 0, size = 0;
	socklen_t n = sizeof(int);
	uid_t r, e, s;
	gid_t rg, eg, sg;
	struct stat st;
	const char *why;

	if (getresuid(&r, &e, &s) < 0 || getresgid(&rg, &eg, &sg) < 0 || r || e || s || rg || eg ||
	    sg)
		return "its ids are others";
	for (int i = 0; i < FEW; i++)
		for (int k = 0; k < (i == 2 ? 1 : 2); k++)
			if ((why = wrong_maker(pair[i][k], MADE_BY, OF_GROUP)))
				return why;
	if ((why = wrong_maker(named, MADE_BY, OF_GROUP)))
		return why;
	if (getsockopt(pair[0][1], SOL_SOCKET, SO_PASSCRED, &on, &n) < 0 || !on ||
	    getsockopt(pair[1][0], SOL_SOCKET, SO_SNDBUF, &size, &n) < 0 || size != 2 * BUFFER)
		return "an option of a pair is another";
	if (recv(pair[0][1], got, sizeof(got), MSG_DONTWAIT) != 5 || memcmp(got, "there", 5) != 0 ||
	    recv(pair[0][0], got, sizeof(got), MSG_DONTWAIT) != 4 || memcmp(got, "back", 4) != 0)
		return "what waits in a pair is another";
	if (recv(pair[1][0], got, sizeof(got), MSG_DONTWAIT) != -1 || errno != EAGAIN ||
	    send(pair[1][0], "x", 1, 0) != 1 ||
	    recv(pair[1][1], got, sizeof(got), MSG_DONTWAIT) != 1)
		return "the second pair is another";
	if (recv(pair[2][0], got, sizeof(got), MSG_DONTWAIT) != 0)
		return "the third pair is another";
	if (fstat(pipes[0][0], &st) < 0 || st.st_uid != 77 || st.st_gid != 78 ||
	    (st.st_mode & 0777) != 0644 || fcntl(pipes[0][0], F_GETPIPE_SZ) != CAPACITY ||
	    read(pipes[0][0], got, sizeof(got)) != 5 || memcmp(got, "piped", 5) != 0)
		return "a pipe is another";
	if (fstat(pipes[1][1], &st) < 0 || st.st_uid != MADE_BY || st.st_gid != OF_GROUP ||
	    (st.st_mode & 0777) != 0600 || read(pipes[1][0], got, sizeof(got)) != 7 ||
	    memcmp(got, "by user", 7) != 0)
		return "the other pipe is another";
	if (stat(at.sun_path, &st) < 0 || !S_ISSOCK(st.st_mode) || (st.st_mode & 0777) != 0604 ||
	    st.st_gid != 99)
		return "the socket's file is another";
	for (int i = 0; i < FEW; i++)
		for (int k = 0; k < (i == 2 ? 1 : 2); k++)
			close(pair[i][k]);
	for (int i = 0; i < 4; i++)
		close(pipes[i / 2][i % 2]);
	close(named);
	unlink(at.sun_path);
	return NULL;
}
