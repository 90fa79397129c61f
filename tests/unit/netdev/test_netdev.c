/* SPDX-License-Identifier: Apache-2.0 */
/* netdev: plans, loopback, and devices that move between two namespaces of the test's own. */
#include "tests/unit/rootfs/child.h"

#include <arpa/inet.h>
#include <linux/if_addr.h>
#include <linux/if_link.h>
#include <net/if.h>
#include <sys/ioctl.h>
#include <sys/socket.h>

#include "src/base/fd.h"
#include "src/netdev/netdev.h"
#include "src/netdev/rtnl.h"

static struct lr_err err;

static struct oci_namespace net_ns[] = {{.type = "pid"}, {.type = "network"}};
static const struct oci_namespaces with_net = {.v = net_ns, .n = 2}, no_net = {.v = net_ns, .n = 1};

static const struct lr_netdev_plan *plan_of(struct oci_net_device *v, size_t n,
					    const struct oci_namespaces *namespaces,
					    struct lr_arena *arena)
{
	const struct oci_net_devices devices = {.v = v, .n = n};
	const struct lr_netdev_plan *plan = NULL;

	memset(&err, 0, sizeof(err));
	int r = lr_netdev_plan(&devices, namespaces, arena, &plan, &err);
	CHECK_INT(r, plan ? 0 : -err.code);
	return plan;
}

static int plan_code(struct oci_net_device *v, size_t n)
{
	struct lr_arena *arena = lr_arena_new();
	const struct lr_netdev_plan *plan = plan_of(v, n, &with_net, arena);

	lr_arena_free(arena);
	return plan ? 0 : err.code;
}

TEST(plan_checks_names)
{
	static const char *const bad[] = {
		".", "..", "a/b", "a:b", "a b", "a\tb", "0123456789abcdef", "a%s", "%d%d", "%"};

	for (size_t i = 0; i < sizeof(bad) / sizeof(bad[0]); i++) {
		struct oci_net_device v[] = {{.host_name = "eth0", .name = bad[i]}};
		CHECK_INT(plan_code(v, 1), EINVAL);
		CHECK_STR(err.path, "linux.netDevices.eth0");
		CHECK_HAS(err.msg, bad[i]);
	}
	struct oci_net_device ok[] = {{.host_name = "eth0", .name = "eth%d"},
				      {.host_name = "0123456789abcde"},
				      {.host_name = "eth1", .name = "eth%d"},
				      {.host_name = "eth2", .name = ""}};
	CHECK_INT(plan_code(ok, 4), 0);
	struct oci_net_device host[] = {{.host_name = "a/b", .name = "x"}};
	CHECK_INT(plan_code(host, 1), EINVAL);
	struct oci_net_device empty[] = {{.host_name = ""}};
	CHECK_INT(plan_code(empty, 1), EINVAL);
}

TEST(plan_wants_unique_names_and_a_namespace)
{
	struct lr_arena *arena = lr_arena_new();
	struct oci_net_device v[] = {{.host_name = "eth0", .name = "eth1"}, {.host_name = "eth1"}};

	CHECK_INT(plan_code(v, 2), EINVAL);
	CHECK_STR(err.path, "linux.netDevices.eth1");
	CHECK(!plan_of(v, 1, &no_net, arena));
	CHECK_STR(err.path, "linux.netDevices");
	CHECK(plan_of(NULL, 0, &no_net, arena));
	const struct lr_netdev_plan *plan = plan_of(NULL, 0, NULL, arena);
	REQUIRE(plan);
	CHECK_INT(lr_netdev_move(plan, -1, &err), 0);
	lr_arena_free(arena);
}

static unsigned flags_of(const char *name)
{
	struct ifreq q = {0};
	int fd = socket(AF_UNIX, SOCK_DGRAM | SOCK_CLOEXEC, 0);

	snprintf(q.ifr_name, sizeof(q.ifr_name), "%s", name);
	int r = ioctl(fd, SIOCGIFFLAGS, &q);
	close(fd);
	return r < 0 ? 0 : (unsigned short)q.ifr_flags;
}

static void body_lo(void)
{
	int fds = open_fds(), fd = LR_NOFD;

	CHECK(!(flags_of("lo") & IFF_UP));
	CHECK_INT(lr_netdev_lo_up(&fd, &err), 0);
	lr_close(fd);
	CHECK((flags_of("lo") & (IFF_UP | IFF_RUNNING)) == (IFF_UP | IFF_RUNNING));
	CHECK_INT(lr_netdev_lo_up(&fd, &err), 0);
	lr_close(fd);
	CHECK_INT(open_fds(), fds);
	/* It carries packets. */
	struct sockaddr_in a = {.sin_family = AF_INET, .sin_addr = {htonl(INADDR_LOOPBACK)}};
	socklen_t len = sizeof(a);
	int s = socket(AF_INET, SOCK_DGRAM | SOCK_CLOEXEC, 0);
	CHECK_INT(bind(s, (void *)&a, len), 0);
	CHECK_INT(getsockname(s, (void *)&a, &len), 0);
	CHECK_INT(sendto(s, "x", 1, 0, (void *)&a, len), 1);
	char c;
	CHECK_INT(recv(s, &c, 1, 0), 1);
	deny(SYS_ioctl, EPERM);
	CHECK_INT(lr_netdev_lo_up(&fd, &err), -EPERM);
	CHECK_HAS(err.msg, "loopback");
}

TEST(loopback_comes_up)
{
	NEED_ROOT();
	in_child(body_lo, CLONE_NEWNET);
}

/* ---- move ---------------------------------------------------------------------------------- */

/* A minimal "ip link add NAME type KIND". */
static int add_link(const char *name, const char *kind)
{
	struct {
		struct nlmsghdr h;
		struct ifinfomsg i;
		char attrs[128];
	} q = {.h = {.nlmsg_len = NLMSG_LENGTH(sizeof(q.i)),
		     .nlmsg_type = RTM_NEWLINK,
		     .nlmsg_flags = NLM_F_REQUEST | NLM_F_ACK | NLM_F_CREATE | NLM_F_EXCL}};
	char *end = (char *)&q + q.h.nlmsg_len;
	struct rtattr *a = (void *)end;
	a->rta_type = IFLA_IFNAME;
	a->rta_len = (unsigned short)RTA_LENGTH(strlen(name) + 1);
	memcpy(RTA_DATA(a), name, strlen(name) + 1);
	end += RTA_ALIGN(a->rta_len);
	struct rtattr *info = (void *)end;
	struct rtattr *k = RTA_DATA(info);
	k->rta_type = IFLA_INFO_KIND;
	k->rta_len = (unsigned short)RTA_LENGTH(strlen(kind));
	memcpy(RTA_DATA(k), kind, strlen(kind));
	info->rta_type = IFLA_LINKINFO;
	info->rta_len = (unsigned short)RTA_LENGTH(RTA_ALIGN(k->rta_len));
	end += RTA_ALIGN(info->rta_len);
	q.h.nlmsg_len = (unsigned)(end - (char *)&q);

	int fd = socket(AF_NETLINK, SOCK_RAW | SOCK_CLOEXEC, NETLINK_ROUTE);
	char buf[4096];
	int r = -EIO;
	if (send(fd, &q, q.h.nlmsg_len, 0) > 0 && recv(fd, buf, sizeof(buf), 0) > 0)
		r = ((struct nlmsgerr *)NLMSG_DATA((struct nlmsghdr *)buf))->error;
	close(fd);
	return r;
}

static int index_of(const char *name)
{
	return (int)if_nametoindex(name);
}

static void add_addr(const char *dev, int family, const char *ip, int prefix, const char *label,
		     int scope)
{
	struct lr_rtnl h;
	struct lr_rtnl_addr a = {
		.head = {.ifa_family = (unsigned char)family,
			 .ifa_prefixlen = (unsigned char)prefix,
			 .ifa_scope = (unsigned char)scope},
		.has_local = true,
		.has_peer = true,
		.flags = family == AF_INET6 ? IFA_F_NODAD : 0,
	};

	CHECK_INT(inet_pton(family, ip, a.local), 1);
	memcpy(a.peer, a.local, sizeof(a.peer));
	if (label)
		snprintf(a.label, sizeof(a.label), "%s", label);
	CHECK_INT(lr_rtnl_open(&h), 0);
	int r = lr_rtnl_addr_add(&h, index_of(dev), &a);
	if (r < 0)
		printf("# %s: %s (%s)\n", ip, strerror(-r), h.why);
	CHECK_INT(r, 0);
	close(h.fd);
}

/* "10.0.0.1/24[label],..." of a device in the caller's namespace. */
static const char *addrs_of(const char *dev)
{
	static char text[512];
	struct lr_arena *arena = lr_arena_new();
	struct lr_rtnl_addrs v;
	struct lr_rtnl h;
	size_t n = 0;

	text[0] = '\0';
	CHECK_INT(lr_rtnl_open(&h), 0);
	CHECK_INT(lr_rtnl_addrs(&h, index_of(dev), arena, &v), 0);
	for (size_t i = 0; i < v.n; i++) {
		char ip[64];
		inet_ntop(v.v[i].head.ifa_family, v.v[i].has_local ? v.v[i].local : v.v[i].peer, ip,
			  sizeof(ip));
		n += (size_t)snprintf(text + n, sizeof(text) - n, "%s/%d[%s]%s", ip,
				      v.v[i].head.ifa_prefixlen, v.v[i].label,
				      i + 1 < v.n ? "," : "");
	}
	close(h.fd);
	lr_arena_free(arena);
	return text;
}

/* A second namespace, without a process in it. */
static int other_ns(int *own)
{
	*own = open("/proc/self/ns/net", O_RDONLY | O_CLOEXEC);
	CHECK_INT(unshare(CLONE_NEWNET), 0);
	int fd = open("/proc/self/ns/net", O_RDONLY | O_CLOEXEC);
	CHECK_INT(setns(*own, CLONE_NEWNET), 0);
	return fd;
}

static int move(struct oci_net_device *v, size_t n, int ns)
{
	struct lr_arena *arena = lr_arena_new();
	const struct lr_netdev_plan *plan = plan_of(v, n, &with_net, arena);
	char line[1200];
	int r = -EINVAL;

	if (plan) {
		int fds = open_fds();
		r = lr_netdev_move(plan, ns, &err);
		CHECK_INT(open_fds(), fds);
		if (r < 0)
			printf("# said: %s\n", lr_err_format(&err, line, sizeof(line)));
	}
	lr_arena_free(arena);
	return r;
}

/* A kind of device that this kernel makes and that can move; NULL: none. */
static const char *kind;

static void body_probe(void)
{
	static const char *const kinds[] = {"dummy", "ifb", "veth"};

	for (size_t i = 0; i < sizeof(kinds) / sizeof(kinds[0]); i++) {
		if (add_link("probe", kinds[i]) == 0)
			_exit((int)i + 10);
	}
}

static void probe(void)
{
	static const char *const kinds[] = {"dummy", "ifb", "veth"};

	pid_t pid = fork();
	if (pid == 0) {
		if (unshare(CLONE_NEWNET) == 0)
			body_probe();
		_exit(0);
	}
	int status = wait_for(pid);
	if (WIFEXITED(status) && WEXITSTATUS(status) >= 10)
		kind = kinds[WEXITSTATUS(status) - 10];
}

#define NEED_DEVICES()                                                                             \
	do {                                                                                       \
		NEED_ROOT();                                                                       \
		probe();                                                                           \
		if (!kind)                                                                         \
			SKIP("the kernel makes no dummy, ifb or veth network device here");        \
	} while (0)

static void body_move(void)
{
	struct oci_net_device v[] = {{.host_name = "d0", .name = "eth0"}, {.host_name = "d1"}};
	int own, ns = other_ns(&own);

	CHECK_INT(add_link("d0", kind), 0);
	CHECK_INT(add_link("d1", kind), 0);
	add_addr("d0", AF_INET, "10.9.8.7", 24, NULL, RT_SCOPE_UNIVERSE);
	add_addr("d0", AF_INET, "10.9.9.7", 16, "d0:x", RT_SCOPE_UNIVERSE);
	add_addr("d0", AF_INET, "169.254.1.1", 16, NULL, RT_SCOPE_LINK);
	add_addr("d0", AF_INET6, "2001:db8::5", 64, NULL, RT_SCOPE_UNIVERSE);
	CHECK_INT(move(v, 2, ns), 0);
	CHECK_INT(index_of("d0"), 0);
	CHECK_INT(index_of("d1"), 0);
	/* Back in the namespace we came from. */
	struct stat a, b;
	CHECK_INT(stat("/proc/self/ns/net", &a), 0);
	CHECK_INT(fstat(own, &b), 0);
	CHECK(a.st_ino == b.st_ino);

	CHECK_INT(setns(ns, CLONE_NEWNET), 0);
	CHECK(index_of("eth0") > 0);
	CHECK(flags_of("eth0") & IFF_UP);
	CHECK(flags_of("d1") & IFF_UP);
	CHECK_STR(addrs_of("eth0"), "10.9.8.7/24[eth0],10.9.9.7/16[eth0:x],2001:db8::5/64[]");
	CHECK_STR(addrs_of("d1"), "");
}

TEST(devices_move_with_their_addresses)
{
	NEED_DEVICES();
	in_child(body_move, CLONE_NEWNET);
}

static void body_template(void)
{
	struct oci_net_device v[] = {{.host_name = "d0", .name = "net%d"},
				     {.host_name = "d1", .name = "net%d"}};
	int own, ns = other_ns(&own);

	CHECK_INT(add_link("d0", kind), 0);
	CHECK_INT(add_link("d1", kind), 0);
	CHECK_INT(setns(ns, CLONE_NEWNET), 0);
	CHECK_INT(add_link("net0", kind), 0);
	CHECK_INT(setns(own, CLONE_NEWNET), 0);
	CHECK_INT(move(v, 2, ns), 0);
	CHECK_INT(setns(ns, CLONE_NEWNET), 0);
	CHECK(index_of("net1") > 0);
	CHECK(index_of("net2") > 0);
}

TEST(templates_take_the_first_free_number)
{
	NEED_DEVICES();
	in_child(body_template, CLONE_NEWNET);
}

static void body_rollback(void)
{
	struct oci_net_device v[] = {{.host_name = "d0", .name = "eth0"},
				     {.host_name = "d1", .name = "taken"}};
	int own, ns = other_ns(&own);

	CHECK_INT(add_link("d0", kind), 0);
	CHECK_INT(add_link("d1", kind), 0);
	add_addr("d0", AF_INET, "10.9.8.7", 24, "d0:y", RT_SCOPE_UNIVERSE);
	CHECK_INT(setns(ns, CLONE_NEWNET), 0);
	CHECK_INT(add_link("taken", kind), 0);
	CHECK_INT(setns(own, CLONE_NEWNET), 0);
	CHECK_INT(move(v, 2, ns), -EEXIST);
	CHECK_STR(err.path, "linux.netDevices.d1");
	CHECK_HAS(err.msg, "taken");
	CHECK(index_of("d0") > 0);
	CHECK(index_of("d1") > 0);
	CHECK(!(flags_of("d0") & IFF_UP)); /* as it was */
	CHECK_STR(addrs_of("d0"), "10.9.8.7/24[d0:y]");
}

TEST(a_failure_brings_everything_back)
{
	NEED_DEVICES();
	in_child(body_rollback, CLONE_NEWNET);
}

static void body_refuse(void)
{
	struct oci_net_device missing[] = {{.host_name = "none", .name = "x"}};
	struct oci_net_device lo[] = {{.host_name = "lo", .name = "x"}};
	int own, ns = other_ns(&own);

	CHECK_INT(move(missing, 1, ns), -ENODEV);
	CHECK_STR(err.path, "linux.netDevices.none");
	CHECK_INT(move(lo, 1, ns), -EINVAL);
	CHECK_HAS(err.msg, "loopback");
	CHECK_INT(move(lo, 1, own), -EINVAL);
	CHECK_HAS(err.msg, "runtime's own");
	int file = open("/dev/null", O_RDONLY | O_CLOEXEC);
	CHECK(move(missing, 1, file) < 0);
}

TEST(move_refuses)
{
	NEED_ROOT();
	in_child(body_refuse, CLONE_NEWNET);
}
