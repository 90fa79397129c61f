/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What the kernel itself asks for the parts of a container, without any runtime.
 *
 *   floor run [--host-net|--cgroups] ROOTFS PROGRAM [ARG]
 *	the default container and nothing else: one clone3, the default mounts, pivot_root, exec,
 *	wait; --cgroups: and a control group in every hierarchy of v1, without limits
 *   floor measure N TRUE CGROUP [DYNAMIC-TRUE]
 *	each primitive N times, as JSON; children are made in CGROUP, a directory of cgroup v1 or v2
 *
 * `run` exits as the program did. Both need root.
 */
#include <dirent.h>
#include <fcntl.h>
#include <linux/filter.h>
#include <linux/magic.h>
#include <linux/seccomp.h>
#include <stdlib.h>
#include <sys/prctl.h>
#include <sys/vfs.h>

#include "bare.h"

/* ---- run --cgroups ------------------------------------------------------------------------ */

static char groups[32][128];
static int n_groups;

static void copy_value(const char *group, const char *file)
{
	char path[256], value[4096];

	snprintf(path, sizeof path, "%.*s%s", (int)(strrchr(group, '/') - group + 1), group, file);
	int fd = open(path, O_RDONLY);
	ssize_t n = read(fd, value, sizeof value);
	must(n, path);
	close(fd);
	snprintf(path, sizeof path, "%s/%s", group, file);
	fd = open(path, O_WRONLY);
	must(write(fd, value, (size_t)n), path);
	close(fd);
}

static void make_groups(void)
{
	DIR *top = opendir("/sys/fs/cgroup");
	/* The pid alone may be that of one in another pid namespace, or of one that was killed. */
	unsigned long long id = (unsigned long long)now();
	struct dirent *e;

	if (!top)
		die("/sys/fs/cgroup");
	while ((e = readdir(top)) && n_groups < 32) {
		struct statfs sfs;
		char *group = groups[n_groups];

		if (e->d_type != DT_DIR || e->d_name[0] == '.')
			continue;
		snprintf(group, sizeof groups[0], "/sys/fs/cgroup/%.64s", e->d_name);
		if (statfs(group, &sfs) < 0 || sfs.f_type != CGROUP_SUPER_MAGIC)
			continue;
		snprintf(group + strlen(group), 48, "/floor-%d-%llx", (int)getpid(), id);
		must(mkdir(group, 0755), group);
		if (strcmp(e->d_name, "cpuset") == 0) {
			copy_value(group, "cpuset.cpus");
			copy_value(group, "cpuset.mems");
		}
		n_groups++;
	}
	closedir(top);
}

static void join_groups(void)
{
	for (int i = 0; i < n_groups; i++) {
		char path[160];

		snprintf(path, sizeof path, "%.127s/tasks", groups[i]);
		int fd = open(path, O_WRONLY);
		must(write(fd, "0", 1), path);
		close(fd);
	}
}

static int run_in_groups(const char *rootfs, char **argv)
{
	make_groups();
	pid_t pid = clone_into(NAMESPACES | CLONE_NEWNET, -1);
	must(pid, "clone3");
	if (pid == 0) {
		join_groups();
		_exit(child(rootfs, 1, argv));
	}
	int status = reap(pid);
	for (int i = 0; i < n_groups; i++)
		must(rmdir(groups[i]), groups[i]);
	return status;
}

/* ---- measure ------------------------------------------------------------------------------ */

#define TAIL_MIN 30

static int n_runs, first_row = 1;
static int64_t *samples;

static int compare(const void *a, const void *b)
{
	int64_t x = *(const int64_t *)a, y = *(const int64_t *)b;

	return x < y ? -1 : x > y;
}

/* Takes the samples; n: how many there are. As stats.py: the median, the nearest rank, no p99 of few. */
static void report(const char *name, int n)
{
	qsort(samples, (size_t)n, sizeof *samples, compare);
	printf("%s\n  {\"name\": \"%s\", \"runs\": %d, \"min_us\": %.2f, \"p50_us\": %.2f",
	       first_row ? "" : ",", name, n, (double)samples[0] / 1e3,
	       (double)(samples[(n - 1) / 2] + samples[n / 2]) / 2e3);
	if (n >= TAIL_MIN)
		printf(", \"p99_us\": %.2f", (double)samples[(n * 99 + 99) / 100 - 1] / 1e3);
	printf("}");
	first_row = 0;
	fflush(stdout);
	if (isatty(2))
		fprintf(stderr, "\r\033[Kfloor: %s", name);
}

static void skip(const char *name, const char *why)
{
	printf("%s\n  {\"name\": \"%s\", \"runs\": 0, \"skipped\": \"%s\"}", first_row ? "" : ",",
	       name, why);
	first_row = 0;
}

static void measure_exec(const char *name, const char *program)
{
	char *argv[] = {(char *)(size_t)program, NULL}, *envp[] = {NULL};

	if (!program || access(program, X_OK) < 0) {
		skip(name, "no such program");
		return;
	}
	for (int i = 0; i < n_runs; i++) {
		int64_t t = now();
		pid_t pid = vfork();
		if (pid == 0) {
			execve(program, argv, envp);
			_exit(127);
		}
		reap(pid);
		samples[i] = now() - t;
	}
	report(name, n_runs);
}

static void measure_clone(const char *name, uint64_t flags, int cgroup)
{
	for (int i = 0; i < n_runs; i++) {
		int64_t t = now();
		pid_t pid = clone_into(flags, cgroup);
		if (pid == 0)
			_exit(0);
		if (pid < 0) {
			skip(name, strerror(errno));
			return;
		}
		reap(pid);
		samples[i] = now() - t;
	}
	report(name, n_runs);
}

/* The whole container in this process: what a library would pay. */
static void measure_run(const char *name, const char *rootfs, int new_net)
{
	char *argv[] = {(char *)(size_t) "/true", NULL};

	for (int i = 0; i < n_runs; i++) {
		int64_t t = now();
		if (run(rootfs, new_net, argv) != 0) {
			skip(name, "failed");
			return;
		}
		samples[i] = now() - t;
	}
	report(name, n_runs);
}

static void measure_mount(const char *name, const char *type, const char *data)
{
	int64_t *detach = calloc((size_t)n_runs, sizeof *detach);
	char other[64];

	for (int i = 0; i < n_runs; i++) {
		int64_t t = now();
		if (mount(type ? type : "/", "mnt", type, type ? 0 : MS_BIND, data) < 0) {
			skip(name, strerror(errno));
			free(detach);
			return;
		}
		samples[i] = now() - t;
		t = now();
		umount2("mnt", MNT_DETACH);
		detach[i] = now() - t;
	}
	report(name, n_runs);
	memcpy(samples, detach, (size_t)n_runs * sizeof *samples);
	free(detach);
	snprintf(other, sizeof other, "umount_%s", name + strlen("mount_"));
	report(other, n_runs);
}

/* The same by the newer calls: made detached, then attached. */
static void measure_fsmount(const char *name, const char *type)
{
	for (int i = 0; i < n_runs; i++) {
		int64_t t = now();
		int ctx = (int)syscall(SYS_fsopen, type, 1);
		if (ctx < 0 || syscall(SYS_fsconfig, ctx, 6, NULL, NULL, 0) < 0) {
			skip(name, strerror(errno));
			close(ctx);
			return;
		}
		int mnt = (int)syscall(SYS_fsmount, ctx, 1, 0);
		syscall(SYS_move_mount, mnt, "", AT_FDCWD, "mnt", 4);
		samples[i] = now() - t;
		close(ctx), close(mnt);
		umount2("mnt", MNT_DETACH);
	}
	report(name, n_runs);
}

static void in_child(void (*body)(void))
{
	pid_t pid;

	fflush(stdout);
	pid = clone_into(CLONE_NEWNS | CLONE_NEWPID | CLONE_NEWIPC | CLONE_NEWNET, -1);
	must(pid, "clone3");
	if (pid == 0) {
		must(mount(NULL, "/", NULL, MS_REC | MS_PRIVATE, NULL), "propagation");
		must(mount("tmpfs", "/tmp", "tmpfs", 0, NULL), "tmpfs");
		must(chdir("/tmp"), "/tmp");
		must(mkdir("mnt", 0755), "mnt");
		body();
		fflush(stdout);
		_exit(0);
	}
	if (reap(pid) != 0)
		fprintf(stderr, "floor: a measurement failed\n");
	first_row = 0;
}

static void mounts_body(void)
{
	measure_mount("mount_proc", "proc", NULL);
	measure_mount("mount_tmpfs", "tmpfs", NULL);
	measure_mount("mount_devpts", "devpts", "newinstance");
	measure_mount("mount_mqueue", "mqueue", NULL);
	measure_mount("mount_sysfs", "sysfs", NULL);
	measure_mount("mount_cgroup2", "cgroup2", NULL);
	measure_mount("mount_bind", NULL, NULL);
	measure_fsmount("fsmount_proc", "proc");
	measure_fsmount("fsmount_tmpfs", "tmpfs");
	measure_fsmount("fsmount_devpts", "devpts");
}

/* A mount namespace copies every mount it starts from. */
static void namespace_body(void)
{
	char name[64], dir[32];
	int made = 0;

	for (int target = 0; target <= 1000; target = target ? target * 5 : 200) {
		for (; made < target; made++) {
			snprintf(dir, sizeof dir, "m%d", made);
			must(mkdir(dir, 0755), dir);
			must(mount("mnt", dir, NULL, MS_BIND, NULL), dir);
		}
		snprintf(name, sizeof name, "clone_newns_plus_%d_mounts", target);
		measure_clone(name, CLONE_NEWNS, -1);
	}
}

static void seccomp_one(int instructions)
{
	static struct sock_filter f[4096];
	char name[64];

	for (int i = 0; i < instructions - 1; i++)
		f[i] = (struct sock_filter)BPF_STMT(BPF_LD | BPF_W | BPF_ABS, 0);
	f[instructions - 1] = (struct sock_filter)BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW);
	struct sock_fprog prog = {.len = (unsigned short)instructions, .filter = f};
	int runs = n_runs < 50 ? n_runs : 50; /* each costs a process */

	for (int i = 0; i < runs; i++) {
		int p[2];
		int64_t took = 0;
		must(pipe(p), "pipe");
		pid_t pid = fork();
		if (pid == 0) {
			int64_t t = now();
			prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0);
			must(syscall(SYS_seccomp, SECCOMP_SET_MODE_FILTER, 0, &prog), "seccomp");
			took = now() - t;
			_exit(write(p[1], &took, sizeof took) != sizeof took);
		}
		close(p[1]);
		if (read(p[0], &took, sizeof took) != sizeof took)
			took = 0;
		close(p[0]);
		reap(pid);
		samples[i] = took;
	}
	snprintf(name, sizeof name, "seccomp_load_%d_instructions", instructions);
	report(name, runs);
}

static void write_pid(int dir, const char *file)
{
	int fd = openat(dir, file, O_WRONLY | O_CLOEXEC);

	must(fd, file);
	must(write(fd, "0", 1), file);
	close(fd);
}

static void nap_ms(long ms)
{
	nanosleep(&(struct timespec){ms / 1000, ms % 1000 * 1000000}, NULL);
}

/* Joining: an RCU grace period hides in the isolated case. */
static void measure_join(const char *name, int a, int b, long gap_ms, int runs)
{
	for (int i = 0; i < runs; i++) {
		nap_ms(gap_ms);
		int64_t t = now();
		write_pid(i & 1 ? a : b, "cgroup.procs");
		samples[i] = now() - t;
	}
	report(name, runs);
}

static void measure_cgroup(const char *base)
{
	int64_t *removal = calloc((size_t)n_runs, sizeof *removal);
	struct statfs sfs;

	if (chdir(base) < 0 || statfs(".", &sfs) < 0) {
		skip("cgroup_mkdir", strerror(errno));
		free(removal);
		return;
	}
	for (int i = 0; i < n_runs; i++) {
		int64_t t = now();
		must(mkdir("floor-a", 0755), "cgroup mkdir");
		samples[i] = now() - t;
		t = now();
		must(rmdir("floor-a"), "cgroup rmdir");
		removal[i] = now() - t;
	}
	report("cgroup_mkdir", n_runs);
	memcpy(samples, removal, (size_t)n_runs * sizeof *samples);
	free(removal);
	report("cgroup_rmdir", n_runs);

	must(mkdir("floor-a", 0755), "cgroup mkdir");
	must(mkdir("floor-b", 0755), "cgroup mkdir");
	int a = open("floor-a", O_DIRECTORY | O_RDONLY | O_CLOEXEC);
	int b = open("floor-b", O_DIRECTORY | O_RDONLY | O_CLOEXEC);
	fflush(stdout);
	pid_t pid = fork();
	if (pid == 0) {
		measure_join("cgroup_join_back_to_back", a, b, 0, n_runs);
		measure_join("cgroup_join_150_ms_apart", a, b, 150, n_runs < 30 ? n_runs : 30);
		fflush(stdout);
		_exit(0);
	}
	reap(pid);
	if (sfs.f_type == CGROUP2_SUPER_MAGIC)
		measure_clone("clone_into_cgroup", 0, a);
	else
		skip("clone_into_cgroup", "cgroup v1");
	close(a), close(b);
	must(rmdir("floor-a"), "cgroup rmdir");
	must(rmdir("floor-b"), "cgroup rmdir");
}

static void measure(const char *true_static, const char *cgroup, const char *true_dynamic)
{
	static const struct {
		const char *name;
		uint64_t flags;
	} clones[] = {
		{"clone", 0},
		{"clone_newpid", CLONE_NEWPID},
		{"clone_newns", CLONE_NEWNS},
		{"clone_newipc", CLONE_NEWIPC},
		{"clone_newuts", CLONE_NEWUTS},
		{"clone_newcgroup", CLONE_NEWCGROUP},
		{"clone_newuser", CLONE_NEWUSER},
		{"clone_newnet", CLONE_NEWNET},
		{"clone_pid_ns_ipc_uts", NAMESPACES},
		{"clone_pid_ns_ipc_uts_net", NAMESPACES | CLONE_NEWNET},
	};
	char rootfs[4096];

	printf("[");
	measure_exec("vfork_exec_static", true_static);
	measure_exec("vfork_exec_dynamic", true_dynamic);
	for (size_t i = 0; i < sizeof clones / sizeof *clones; i++)
		measure_clone(clones[i].name, clones[i].flags, -1);
	/* TRUE is the file "true" of the bench's root file system. */
	snprintf(rootfs, sizeof rootfs, "%s", true_static);
	*strrchr(rootfs, '/') = '\0';
	measure_run("run_default", rootfs, 1);
	measure_run("run_default_host_net", rootfs, 0);
	in_child(mounts_body);
	in_child(namespace_body);
	seccomp_one(45);
	seccomp_one(400);
	seccomp_one(1500);
	measure_cgroup(cgroup);
	printf("\n]\n");
	if (isatty(2))
		fprintf(stderr, "\r\033[K");
}

int main(int argc, char **argv)
{
	int host_net = argc > 2 && strcmp(argv[2], "--host-net") == 0;

	if (argc >= 5 && strcmp(argv[1], "run") == 0 && strcmp(argv[2], "--cgroups") == 0)
		return run_in_groups(argv[3], argv + 4);
	if (argc >= 4 + host_net && strcmp(argv[1], "run") == 0)
		return run(argv[2 + host_net], !host_net, argv + 3 + host_net);
	if (argc >= 5 && strcmp(argv[1], "measure") == 0) {
		n_runs = atoi(argv[2]);
		samples = n_runs > 0 ? calloc((size_t)n_runs, sizeof *samples) : NULL;
		if (!samples || argv[3][0] != '/')
			return 2;
		measure(argv[3], argv[4], argv[5]);
		return 0;
	}
	fprintf(stderr, "usage: floor run [--host-net|--cgroups] ROOTFS PROGRAM [ARG]\n"
			"       floor measure N /ROOTFS/true CGROUP [DYNAMIC-TRUE]\n");
	return 2;
}
