/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The default container and nothing else: one clone3, the default mounts, pivot_root, exec, wait. No
 * cgroup, no seccomp, no capabilities, no device nodes, no record: what everything is compared with.
 */
#ifndef LEAN_BENCH_BARE_H
#define LEAN_BENCH_BARE_H

#include <errno.h>
#include <linux/sched.h>
#include <sched.h>
#include <signal.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <sys/mount.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#define NAMESPACES (CLONE_NEWPID | CLONE_NEWNS | CLONE_NEWIPC | CLONE_NEWUTS)

static int64_t now(void)
{
	struct timespec t;

	clock_gettime(CLOCK_MONOTONIC, &t);
	return (int64_t)t.tv_sec * 1000000000 + t.tv_nsec;
}

static void die(const char *what)
{
	fprintf(stderr, "lean-bench: %s: %s\n", what, strerror(errno));
	_exit(125);
}

static void must(long r, const char *what)
{
	if (r < 0)
		die(what);
}

static pid_t clone_into(uint64_t flags, int cgroup)
{
	struct clone_args a = {.flags = flags | (cgroup >= 0 ? CLONE_INTO_CGROUP : 0),
			       .exit_signal = SIGCHLD,
			       .cgroup = (uint64_t)cgroup};

	return (pid_t)syscall(SYS_clone3, &a, sizeof a);
}

static int reap(pid_t pid)
{
	int st = 0;

	while (waitpid(pid, &st, 0) < 0 && errno == EINTR)
		;
	return WIFEXITED(st) ? WEXITSTATUS(st) : 128 + WTERMSIG(st);
}

/* The mounts of the specification's default (config.md's example; `spec` of any runtime). */
static void default_mounts(int new_net)
{
	const unsigned long nse = MS_NOSUID | MS_NOEXEC, all = nse | MS_NODEV;

	must(mount("proc", "proc", "proc", 0, NULL), "proc");
	must(mount("tmpfs", "dev", "tmpfs", MS_NOSUID | MS_STRICTATIME, "mode=755,size=65536k"),
	     "dev");
	mkdir("dev/pts", 0755);
	mkdir("dev/shm", 0755);
	mkdir("dev/mqueue", 0755);
	must(mount("devpts", "dev/pts", "devpts", nse, "newinstance,ptmxmode=0666,mode=0620,gid=5"),
	     "pts");
	must(mount("shm", "dev/shm", "tmpfs", all, "mode=1777,size=65536k"), "shm");
	must(mount("mqueue", "dev/mqueue", "mqueue", all, NULL), "mqueue");
	if (new_net)
		must(mount("sysfs", "sys", "sysfs", all | MS_RDONLY, NULL), "sys");
	else
		must(mount("/sys", "sys", NULL, MS_BIND | MS_REC, NULL), "sys");
}

static int child(const char *rootfs, int new_net, char **argv)
{
	must(mount(NULL, "/", NULL, MS_REC | MS_SLAVE, NULL), "propagation");
	must(mount(rootfs, rootfs, NULL, MS_BIND | MS_REC, NULL), "bind");
	must(chdir(rootfs), rootfs);
	default_mounts(new_net);
	must(syscall(SYS_pivot_root, ".", "."), "pivot_root");
	must(umount2(".", MNT_DETACH), "umount");
	must(chdir("/"), "/");
	char *envp[] = {NULL};
	execve(argv[0], argv, envp);
	die(argv[0]);
	return 1;
}

static int run(const char *rootfs, int new_net, char **argv)
{
	pid_t pid = clone_into(NAMESPACES | (new_net ? CLONE_NEWNET : 0), -1);

	must(pid, "clone3");
	if (pid == 0)
		_exit(child(rootfs, new_net, argv));
	return reap(pid);
}

#endif
