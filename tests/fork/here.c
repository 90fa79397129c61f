/* SPDX-License-Identifier: Apache-2.0 */
/*
 * here OUT VERB...: calls lean_seed_here in a container, and writes a line to OUT for each thing that
 * it does. Static: for a container with nothing else in it.
 *
 *	mark            lean_seed_generation, "generation N"
 *	call MS         lean_seed_here(MS), "NAME G": parent, child, or the error; the generation
 *	again MS        the same until it is no EINTR
 *	both MS         by two threads at once; then a line of both, sorted
 *	fork MS         a fork makes the call, and its parent waits for it
 *	catch           SIGUSR1 has a handler, with SA_RESTART
 *	until FILE      waits until there is such a file
 *	spoil HOW       a page of that name that is none: short, magic, sealed, huge; later: sealed when
 *	                it is mapped; named: one of almost that name; leased: one with a lease that is
 *	                given back to nobody; "spoilt"
 *	lease FILE      maps it, has a lease on it that is given back to nobody, and closes it
 *	stay            waits for ever
 */
#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include <lean/seed.h>

#include "src/seed/here.h"

#ifndef F_SEAL_FUTURE_WRITE
#define F_SEAL_FUTURE_WRITE 0x10
#endif

static const char *out;

static void say(const char *text)
{
	int fd = open(out, O_WRONLY | O_CREAT | O_APPEND, 0666);

	if (fd < 0 || write(fd, text, strlen(text)) < 0)
		_exit(3);
	close(fd);
}

static const char *name_of(int r)
{
	return r == 0             ? "parent"
	       : r == 1           ? "child"
	       : r == -ETIMEDOUT  ? "ETIMEDOUT"
	       : r == -EINTR      ? "EINTR"
	       : r == -EOPNOTSUPP ? "EOPNOTSUPP"
				  : strerror(-r);
}

static int call(const char *ms, bool again)
{
	int r;

	do
		r = lean_seed_here(atoi(ms));
	while (again && r == -EINTR);
	return r;
}

static void tell(int r)
{
	char line[80];

	snprintf(line, sizeof(line), "%s %u\n", name_of(r), lean_seed_generation());
	say(line);
}

static void *other(void *ms)
{
	return (void *)name_of(call(ms, true));
}

static void both(char *ms)
{
	char line[80];
	void *theirs = NULL;
	pthread_t t;

	if (pthread_create(&t, NULL, other, ms) != 0)
		_exit(4);
	const char *ours = name_of(call(ms, true));
	pthread_join(t, &theirs);
	snprintf(line, sizeof(line), "%s %s\n", ours, (const char *)theirs);
	say(line);
}

static void in_fork(const char *ms)
{
	pid_t pid = fork();

	if (!pid) {
		tell(call(ms, false));
		_exit(0);
	}
	waitpid(pid, NULL, 0);
}

static void nothing(int sig)
{
	(void)sig;
}

static void catch (void)
{
	struct sigaction a = {.sa_handler = nothing, .sa_flags = SA_RESTART};

	sigaction(SIGUSR1, &a, NULL);
	say("catches\n");
}

/* Leases are for what was opened by a name. */
static int open_once_more(int fd)
{
	char path[32];

	snprintf(path, sizeof(path), "/proc/self/fd/%d", fd);
	int again = open(path, O_RDWR);
	close(fd);
	return again;
}

/* It stays for as long as the mapping does. */
static void lease(int fd)
{
	if (signal(SIGIO, SIG_IGN) == SIG_ERR || fcntl(fd, F_SETLEASE, F_WRLCK) < 0)
		_exit(8);
}

static void lease_file(const char *name)
{
	int fd = open(name, O_RDWR | O_CREAT, 0600);

	if (fd < 0 || write(fd, name, strlen(name)) < 0 ||
	    mmap(NULL, LR_HERE_SIZE, PROT_READ, MAP_SHARED, fd, 0) == MAP_FAILED)
		_exit(9);
	lease(fd);
	close(fd);
	say("leased\n");
}

static void seal(int fd)
{
	if (fcntl(fd, F_ADD_SEALS, F_SEAL_FUTURE_WRITE | F_SEAL_SHRINK | F_SEAL_GROW) < 0)
		_exit(7);
}

static void spoil(const char *how)
{
	struct lr_here h = {
		.version = LR_HERE_VERSION, .waiting = 1, .entered = UINT32_MAX, .released = 7};
	const bool named = strcmp(how, "named") == 0, leased = strcmp(how, "leased") == 0;
	int fd = (int)syscall(SYS_memfd_create, named ? LR_HERE_NAME "s" : LR_HERE_NAME,
			      2U /* MFD_ALLOW_SEALING */);

	memcpy(h.magic, strcmp(how, "magic") == 0 ? "SOMEBODY" : LR_HERE_MAGIC, sizeof(h.magic));
	if (leased)
		fd = open_once_more(fd);
	if (fd < 0 || ftruncate(fd, strcmp(how, "huge") == 0 ? 1 << 24 : LR_HERE_SIZE) < 0 ||
	    write(fd, &h, sizeof(h)) < 0)
		_exit(5);
	if (strcmp(how, "sealed") == 0)
		seal(fd);
	if (mmap(NULL, LR_HERE_SIZE, PROT_READ, MAP_SHARED, fd, 0) == MAP_FAILED)
		_exit(5);
	if (strcmp(how, "short") == 0 && ftruncate(fd, 0) < 0)
		_exit(6);
	if (strcmp(how, "later") == 0)
		seal(fd);
	if (leased)
		lease(fd);
	close(fd);
	say("spoilt\n");
}

static bool is(char **v, const char *verb)
{
	return strcmp(v[0], verb) == 0;
}

int main(int argc, char **argv)
{
	char line[80];

	if (argc < 3)
		return 2;
	out = argv[1];
	for (char **v = argv + 2; *v; v++) {
		if (is(v, "call") || is(v, "again")) {
			tell(call(v[1], is(v, "again")));
		} else if (is(v, "lease")) {
			lease_file(v[1]);
		} else if (is(v, "both")) {
			both(v[1]);
		} else if (is(v, "fork")) {
			in_fork(v[1]);
		} else if (is(v, "until")) {
			while (access(v[1], F_OK) < 0)
				usleep(2000);
		} else if (is(v, "spoil")) {
			spoil(v[1]);
		} else {
			if (is(v, "mark")) {
				snprintf(line, sizeof(line), "generation %u\n",
					 lean_seed_generation());
				say(line);
			} else if (is(v, "catch")) {
				catch ();
			} else if (is(v, "stay")) {
				for (;;)
					pause();
			} else {
				return 2;
			}
			continue;
		}
		v++; /* its word */
	}
	return 0;
}
