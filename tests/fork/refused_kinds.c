/* SPDX-License-Identifier: Apache-2.0 */
/* Descriptors of kinds that no seed carries. Where the machine has none, there is a file "no-KIND". */
#include "tests/fork/refused.h"

#include <arpa/inet.h>
#include <fcntl.h>
#include <linux/bpf.h>
#include <linux/dma-heap.h>
#include <linux/kvm.h>
#include <linux/perf_event.h>
#include <linux/udmabuf.h>
#include <netinet/in.h>
#include <sched.h>
#include <signal.h>
#include <stdint.h>
#include <string.h>
#include <sys/fanotify.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <unistd.h>

#ifndef SYS_landlock_create_ruleset
#define SYS_landlock_create_ruleset 444
#endif
#ifndef SYS_pidfd_open
#define SYS_pidfd_open 434
#endif
#ifndef SYS_io_uring_setup
#define SYS_io_uring_setup 425
#endif

static void or_not(long fd, const char *without)
{
	if (fd < 0)
		say(without);
}

/* In a network namespace where everybody may: it is its process's, and seen all the same. */
static void icmp(void)
{
	static const char all[] = "0 2147483647";

	if (fork())
		return;
	be_a_child("r-icmp");
	need(unshare(CLONE_NEWNET), "unshare");
	int fd = open("/proc/sys/net/ipv4/ping_group_range", O_WRONLY | O_CLOEXEC);
	need((int)write(fd, all, sizeof(all) - 1), "ping_group_range");
	close(fd);
	need(socket(AF_INET, SOCK_DGRAM, IPPROTO_ICMP), "icmp");
	wait_for_ever();
}

static void sockets(void)
{
	const struct sockaddr_in any = {.sin_family = AF_INET};

	need(socket(AF_NETLINK, SOCK_RAW, 0), "netlink");
	or_not(socket(AF_PACKET, SOCK_RAW, 0), "no-packet");
	need(socket(AF_INET, SOCK_RAW, IPPROTO_UDP), "raw");
	or_not(socket(AF_VSOCK, SOCK_STREAM, 0), "no-vsock");
	or_not(socket(38 /* AF_ALG */, SOCK_SEQPACKET, 0), "no-alg");
	need(socket(AF_INET6, SOCK_DGRAM, 0), "udp");
	int bound = socket(AF_INET, SOCK_STREAM, 0);
	need(bind(bound, (const struct sockaddr *)&any, sizeof(any)), "bind");
	need(socket(AF_UNIX, SOCK_STREAM, 0), "unix");
	need(socket(AF_UNIX, SOCK_DGRAM, 0), "unix");
	icmp();
}

static int map(void)
{
	const union bpf_attr attr = {
		.map_type = BPF_MAP_TYPE_ARRAY, .key_size = 4, .value_size = 4, .max_entries = 1};

	return (int)syscall(SYS_bpf, BPF_MAP_CREATE, &attr, sizeof(attr));
}

static int prog(void)
{
	static const struct bpf_insn code[] = {
		{.code = BPF_ALU64 | BPF_MOV | BPF_K, .dst_reg = BPF_REG_0},
		{.code = BPF_JMP | BPF_EXIT}};
	const union bpf_attr attr = {.prog_type = BPF_PROG_TYPE_SOCKET_FILTER,
				     .insns = (uintptr_t)code,
				     .insn_cnt = 2,
				     .license = (uintptr_t) "Apache-2.0"};

	return (int)syscall(SYS_bpf, BPF_PROG_LOAD, &attr, sizeof(attr));
}

static int perf(void)
{
	struct perf_event_attr attr = {.type = PERF_TYPE_SOFTWARE,
				       .size = sizeof(attr),
				       .config = PERF_COUNT_SW_CPU_CLOCK,
				       .exclude_kernel = 1};

	return (int)syscall(SYS_perf_event_open, &attr, 0, -1, -1, 0);
}

static int dma_buf(void)
{
	struct dma_heap_allocation_data heap = {.len = 4096, .fd_flags = O_RDWR | O_CLOEXEC};
	int device = open("/dev/dma_heap/system", O_RDWR | O_CLOEXEC);

	if (device >= 0)
		return ioctl(device, DMA_HEAP_IOCTL_ALLOC, &heap) < 0 ? -1 : (int)heap.fd;
	device = open("/dev/udmabuf", O_RDWR | O_CLOEXEC);
	if (device < 0)
		return -1;
	int memory = (int)syscall(SYS_memfd_create, "dma", 2U /* MFD_ALLOW_SEALING */);
	need(ftruncate(memory, 4096), "ftruncate");
	need(fcntl(memory, F_ADD_SEALS, F_SEAL_SHRINK), "seal");
	const struct udmabuf_create u = {.memfd = (uint32_t)memory, .size = 4096};
	return ioctl(device, UDMABUF_CREATE, &u);
}

/* Of a process outside, of a thread, and of one that a child would not have yet. */
static void processes(void)
{
	int later[2];
	pid_t pid;

	need((int)syscall(SYS_pidfd_open, getppid(), 0), "pidfd");
	or_not(syscall(SYS_pidfd_open, getpid(), O_EXCL), "no-pidfd-thread"); /* Linux 6.9 */
	need(pipe2(later, O_CLOEXEC), "pipe");
	if (fork() == 0) {
		be_a_child("r-early");
		need((int)read(later[0], &pid, sizeof(pid)), "read");
		need((int)syscall(SYS_pidfd_open, pid, 0), "pidfd");
		wait_for_ever();
	}
	pid = fork();
	if (pid == 0) {
		be_a_child("r-late");
		wait_for_ever();
	}
	need((int)write(later[1], &pid, sizeof(pid)), "write");
}

void kinds(void)
{
	uint64_t handled = 1;
	int kvm = open("/dev/kvm", O_RDWR | O_CLOEXEC);

	or_not(kvm, "no-kvm");
	or_not(ioctl(kvm, KVM_CREATE_VM, 0), "no-kvm-vm");
	or_not(open("/dev/net/tun", O_RDWR | O_CLOEXEC), "no-tun");
	or_not(map(), "no-bpf");
	or_not(prog(), "no-bpf-prog");
	or_not(perf(), "no-perf");
	or_not(dma_buf(), "no-dma-buf");
	or_not(syscall(SYS_landlock_create_ruleset, &handled, sizeof(handled), 0), "no-landlock");
	or_not(syscall(SYS_userfaultfd, O_CLOEXEC), "no-userfaultfd");
	sockets();
	processes();
}

void kinds_that_wait(void)
{
	uint32_t uring[30] = {0}; /* struct io_uring_params */

	or_not(syscall(SYS_io_uring_setup, 1, uring), "no-io-uring");
	or_not(open("/dev/fuse", O_RDWR | O_CLOEXEC), "no-fuse");
	or_not(fanotify_init(FAN_CLASS_NOTIF, O_RDONLY), "no-fanotify");
}
