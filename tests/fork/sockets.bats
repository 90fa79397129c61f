#!/usr/bin/env bats
# SPDX-License-Identifier: Apache-2.0
# Seeds of containers that listen by TCP, or have other sockets: their children do so, too, in network namespaces of
# their own.

load ../lib/helpers.bash
load seeds.bash
load servers.bash

@test "sockets: a server answers at its address and port in the child, and the parent goes on" {
	python '
async def main():
    await serve(asyncio.start_server(answer, "0.0.0.0", 8080, backlog=77), asyncio.start_server(answer, "::1", 8081))
asyncio.run(main())'
	start
	assert_eq "$(ask "$ID" 127.0.0.1:8080)" 1
	assert_eq "$(ask "$ID" ::1:8081)" 2
	seed "$ID"
	child
	assert_eq "$(ask "$CHILD" 127.0.0.1:8080)" 3
	assert_eq "$(ask "$CHILD" ::1:8081)" 4
	assert_eq "$(ask "$ID" 127.0.0.1:8080)" 3
	assert_eq "$(ask "$ID" ::1:8081)" 4
	assert_has "$(listens "$ID")" "LISTEN 77 0.0.0.0:8080"
	assert_eq "$(listens "$CHILD")" "$(listens "$ID")"
	# Its child's child.
	IMG=$PWD/again
	seed "$CHILD"
	rt delete --force "$CHILD"
	child
	assert_eq "$(ask "$CHILD" 127.0.0.1:8080)" 5
}

@test "sockets: who waits to be accepted is the parent's, and not the child's" {
	python '
s = socket.create_server(("127.0.0.1", 8080))
is_ready(1)
while not os.path.exists("/go"):
    time.sleep(0.01)
n = 0
s.setblocking(False)
while True:
    try:
        a, _ = s.accept()
        n += 1
        a.sendall(b"%d\n" % n)
    except BlockingIOError:
        time.sleep(0.01)'
	start
	nsenter -t "$(pid_of)" -n python3 -c 'import socket
s = socket.create_connection(("127.0.0.1", 8080))
print("there", flush=True)
print(s.recv(10).decode().strip(), flush=True)' >waited 2>&1 </dev/null 3>&- &
	wait_until grep -q there waited
	seed "$ID"
	child
	: >"$R/go"
	assert_eq "$(ask "$CHILD" 127.0.0.1:8080)" 1
	wait_until eval '[ "$(tail -n 1 waited)" = 1 ]'
	assert_eq "$(ask "$ID" 127.0.0.1:8080)" 2
}

@test "sockets: two processes share one, by epoll, and two have one each at the same port" {
	python '
s = socket.create_server(("127.0.0.1", 8080))
s.setblocking(False)
def each():
    t = socket.socket()
    t.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEPORT, 1)
    t.bind(("127.0.0.1", 8081))
    t.listen(5)
    return t
second = os.fork() == 0
t = each()
t.setblocking(False)
e = select.epoll()
e.register(s, select.EPOLLIN | select.EPOLLEXCLUSIVE)
e.register(t, select.EPOLLIN)
with open("/ready%d" % second, "w") as f:
    f.write("1")
if second:
    os.setsid()
while not (os.path.exists("/ready0") and os.path.exists("/ready1")):
    time.sleep(0.01)
is_ready(1)
while True:
    if second and os.path.exists("/die"):
        os._exit(0)
    for fd, _ in e.poll(0.1):
        try:
            c, _ = (s if fd == s.fileno() else t).accept()
            c.sendall(b"%d\n" % second)
            c.close()
        except BlockingIOError:
            pass'
	start
	seed "$ID"
	child
	assert_eq "$(listens "$CHILD")" "$(listens "$ID")"
	assert_eq "$(listens "$CHILD" | grep -c :8081)" 2
	# The kernel chooses one of the two for each that comes.
	for port in 8080 8081; do
		ask "$CHILD" 127.0.0.1:$port
	done
	both() {
		ask "$CHILD" 127.0.0.1:8081 >>answers
		grep -q 0 answers && grep -q 1 answers
	}
	wait_until both
	# Without the second one, the first has what comes to the socket of both.
	: >"$R/die"
	wait_until eval '[ "$(listens "$CHILD" | grep -c :8081)" = 1 ]'
	assert_eq "$(ask "$CHILD" 127.0.0.1:8080)" 0
}

@test "sockets: options of one that listens come along" {
	python '
options = [(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1), (socket.SOL_SOCKET, socket.SO_KEEPALIVE, 1), (socket.IPPROTO_TCP, socket.TCP_KEEPIDLE, 71),
    (socket.IPPROTO_TCP, socket.TCP_KEEPINTVL, 17), (socket.IPPROTO_TCP, socket.TCP_KEEPCNT, 3), (socket.IPPROTO_TCP, socket.TCP_NODELAY, 1),
    (socket.IPPROTO_TCP, socket.TCP_DEFER_ACCEPT, 3), (socket.SOL_SOCKET, socket.SO_SNDBUF, 30000), (socket.SOL_SOCKET, socket.SO_RCVBUF, 40000),
    (socket.IPPROTO_TCP, socket.TCP_USER_TIMEOUT, 5000), (socket.IPPROTO_IP, 15, 1), (socket.IPPROTO_IPV6, socket.IPV6_V6ONLY, 0)]
s = socket.socket(socket.AF_INET6)
for level, name, value in options:
    s.setsockopt(level, name, value)
s.bind(("::", 8080))
s.listen(9)
s.setsockopt(socket.IPPROTO_TCP, socket.TCP_FASTOPEN, 6)
s.setblocking(False)
while True:
    with open("/options.new", "w") as f:
        for level, name, _ in options + [(socket.IPPROTO_TCP, socket.TCP_FASTOPEN, 0)]:
            print(level, name, s.getsockopt(level, name), file=f)
        print(os.get_blocking(s.fileno()), os.get_inheritable(s.fileno()), s.getsockname(), file=f)
    os.rename("/options.new", "/options")
    is_ready(1)
    time.sleep(0.01)'
	start
	seed "$ID"
	rt delete --force "$ID"
	mv "$R/options" before
	: >>"$R/options.new" # if it was just writing
	grow "$ID"
	wait_until test -s "$R/options"
	diff before "$R/options"
	assert_has "$(cat before)" "False False ('::', 8080, 0, 0)"
	assert_has "$(listens "$ID")" "LISTEN 9 *:8080"
}

@test "sockets: a port below 1024 takes what it took: CAP_NET_BIND_SERVICE, or a sysctl" {
	python '
async def main():
    await serve(asyncio.start_server(answer, "127.0.0.1", 80))
asyncio.run(main())'
	with_caps CAP_NET_BIND_SERVICE
	start
	assert_eq "$(ask "$ID" 127.0.0.1:80)" 1
	seed "$ID"
	child
	assert_eq "$(ask "$CHILD" 127.0.0.1:80)" 2
	rt delete --force "$CHILD"
	# A forged one, of a container that never could.
	cfg '.process.capabilities |= map_values(. - ["CAP_NET_BIND_SERVICE"])'
	for m in permitted effective inheritable ambient bounding; do
		"$SEEDTOOL" forge "$IMG" creds 0 "$m" 0
	done
	new_id CHILD
	cfg --arg id "$CHILD" '.linux.cgroupsPath = "/" + $id'
	no_child "$CHILD" "listen at 127.0.0.1:80" CAP_NET_BIND_SERVICE
	cfg '.linux.sysctl["net.ipv4.ip_unprivileged_port_start"] = "80"'
	child
	assert_eq "$(ask "$CHILD" 127.0.0.1:80)" 2
}

@test "sockets: an option that would be missed is refused by its name" {
	python '
import array
def listens(level, name, value, family=socket.AF_INET):
    s = socket.socket(family)
    s.setsockopt(level, name, value)
    s.listen()
    return s
code = array.array("Q", [6 | 0xffff << 32]) # one instruction: return 0xffff
all = [listens(socket.SOL_SOCKET, socket.SO_MARK, 5), listens(socket.SOL_SOCKET, socket.SO_PRIORITY, 3),
    listens(socket.SOL_SOCKET, socket.SO_SNDTIMEO, struct.pack("ll", 0, 5000)), listens(socket.SOL_SOCKET, 62, 1), # SO_BINDTOIFINDEX
    listens(socket.IPPROTO_IP, socket.IP_TOS, 0x20), listens(socket.IPPROTO_IP, 19, 1), # IP_TRANSPARENT
    listens(socket.IPPROTO_IPV6, socket.IPV6_TCLASS, 0x20, socket.AF_INET6), listens(socket.IPPROTO_IPV6, 75, 1, socket.AF_INET6), # _TRANSPARENT
    listens(socket.SOL_SOCKET, 26, struct.pack("HP", 1, code.buffer_info()[0]))] # SO_ATTACH_FILTER
is_ready(1)
while True:
    time.sleep(1)'
	with_caps CAP_NET_ADMIN CAP_NET_RAW
	start
	run ! rt checkpoint --engine fork --image-path "$IMG" "$ID"
	for what in "with a mark" "with a priority" "with a timeout" "listens at one device" "with a type of service" "with a traffic class" \
		"with a filter"; do
		assert_eq "$what $(grep -c "$what" <<<"$output")" "$what 1"
	done
	assert_eq "$(grep -c "a transparent socket" <<<"$output")" 2
	assert_eq "$(status_of)" running
}

@test "sockets: an address that somebody has, or nobody: one error says where, and what to do" {
	python '
async def main():
    await serve(asyncio.start_server(answer, "192.0.2.7", 8080))
asyncio.run(main())'
	NETNS=fs$$
	ip netns add "$NETNS"
	ip -n "$NETNS" link set lo up
	ip -n "$NETNS" address add 192.0.2.7/32 dev lo
	cfg --arg n "/run/netns/$NETNS" '.linux.namespaces |= map(if .type == "network" then .path = $n else . end)'
	start
	seed "$ID"
	cfg --arg id "$ID-b" '.linux.cgroupsPath = "/" + $id'
	no_child "$ID-b" "listen at 192.0.2.7:8080, as the seed did" "address already in use" linux.namespaces
	assert_eq "$(ask "$ID" 192.0.2.7:8080)" 1
	cfg '.linux.namespaces |= map(del(.path))'
	no_child "$ID-b" "listen at 192.0.2.7:8080, as the seed did" "does not have this address"
	assert_eq "$(rt list -q)" "$ID"
	rt delete --force "$ID"
	cfg --arg n "/run/netns/$NETNS" '.linux.namespaces |= map(if .type == "network" then .path = $n else . end)'
	grow "$ID"
	assert_eq "$(ask "$ID" 192.0.2.7:8080)" 1
}

@test "sockets: one that listens by MPTCP does so again, or by TCP where there is none" {
	[ -e /proc/sys/net/mptcp/enabled ] || skip "no MPTCP in this kernel"
	python '
def listens(family, *address):
    s = socket.socket(family, socket.SOCK_STREAM, 262)
    s.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
    if family == socket.AF_INET6:
        s.setsockopt(socket.IPPROTO_IPV6, socket.IPV6_V6ONLY, 0)
    s.bind(address)
    s.listen(44)
    return s
all = [listens(socket.AF_INET, "127.0.0.1", 8080), listens(socket.AF_INET6, "::", 8081)]
asked = 0
is_ready(1)
while True:
    for s in select.select(all, [], [])[0]:
        a, _ = s.accept()
        a.recv(100)
        asked += 1
        a.send(b"%d by %d\n" % (asked, s.getsockopt(socket.SOL_SOCKET, socket.SO_PROTOCOL)))
        a.close()'
	start
	if ! seed "$ID" >said 2>&1; then
		grep -q "does not say whether for IPv6 alone" said || fail "$(cat said)"
		skip "a kernel that does not say whether MPTCP listens for IPv6 alone"
	fi
	child
	assert_eq "$(ask "$CHILD" 127.0.0.1:8080)" "1 by 262"
	assert_eq "$(ask "$CHILD" 127.0.0.1:8081)" "2 by 262"
	assert_eq "$(ask "$CHILD" ::1:8081)" "3 by 262"
	assert_has "$(listens "$CHILD")" "LISTEN 44 127.0.0.1:8080"
	assert_eq "$(listens "$CHILD")" "$(listens "$ID")"
	cfg '.linux.sysctl["net.mptcp.enabled"] = "0"'
	child
	assert_eq "$(ask "$CHILD" 127.0.0.1:8080)" "1 by 6"
	assert_eq "$(ask "$CHILD" ::1:8081)" "2 by 6"
}

@test "sockets: connections are refused, or with --tcp-close closed in the child, and the parent keeps them" {
	python '
l = socket.create_server(("127.0.0.1", 8080), backlog=0)
a = socket.create_connection(("127.0.0.1", 8080))
b, _ = l.accept()
a.setblocking(False)
a.setsockopt(socket.SOL_SOCKET, socket.SO_KEEPALIVE, 1)
# There is room for one; the last of them is told nothing.
waiting = [socket.socket() for _ in range(4)]
for s in waiting:
    s.setblocking(False)
    s.connect_ex(("127.0.0.1", 8080))
c = waiting[3]
e = select.epoll()
e.register(a, select.EPOLLIN)
over = socket.create_server(("127.0.0.1", 8081))
d = socket.create_connection(("127.0.0.1", 8081))
f, _ = over.accept()
f.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
f.close()
def tell(call, *args):
    try:
        return call(*args)
    except OSError as x:
        return type(x).__name__
while True:
    hung = any(events & select.EPOLLHUP for _, events in e.poll(0))
    with open("/out.new", "w") as out:
        print("reads", tell(a.recv, 9), tell(b.recv, 9, socket.MSG_DONTWAIT), tell(c.recv, 9), file=out)
        print("writes", [tell(s.send, b"x") for s in (a, b, c)] if hung else tell(a.send, b"x"), file=out)
        print("blocks", os.get_blocking(a.fileno()), os.get_blocking(b.fileno()), file=out)
        print("keeps", a.getsockopt(socket.SOL_SOCKET, socket.SO_KEEPALIVE), file=out)
        print("peer", tell(a.getpeername), file=out)
    os.rename("/out.new", "/out")
    is_ready(1)
    time.sleep(0.01)'
	start
	wait_until grep -q "reads BlockingIOError b.x. BlockingIOError" "$R/out"
	run ! rt checkpoint --engine fork --image-path "$IMG" "$ID"
	assert_has "$output" "a TCP connection, and --tcp-close is not given"
	seed "$ID" --tcp-close
	copy
	rm "$BUNDLE/rootfs/out"
	: >>"$BUNDLE/rootfs/out.new" # if it was just writing
	child
	# What it says first may be what it had found when it became a seed.
	wait_until grep -q "reads b'' b'' b''" "$BUNDLE/rootfs/out"
	assert_eq "$(cat "$BUNDLE/rootfs/out")" "reads b'' b'' b''
writes ['BrokenPipeError', 'BrokenPipeError', 'BrokenPipeError']
blocks False True
keeps 1
peer OSError"
	# What is read was sent since: one byte each time.
	rm "$R/out"
	wait_until grep -q "reads BlockingIOError b.x. BlockingIOError" "$R/out"
	assert_has "$(cat "$R/out")" "peer ('127.0.0.1', 8080)"
	assert_eq "$(listens "$CHILD")" "$(listens "$ID")"
	OPTION=--tcp-close no_child "$CHILD-b" "--tcp-close is for restore with --engine=criu"
}

# A child that asks for no signature would listen to everybody.
@test "sockets: of very many the kernel is asked once" {
	command -v strace >/dev/null || skip "strace is not installed"
	python 'sockets = []
for i in range(200):
    s = socket.socket()
    s.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEPORT, 1)
    s.bind(("", 8080))
    u = socket.socket(socket.AF_UNIX)
    u.bind("\0%d" % i)
    for s in s, u:
        s.listen(1)
        sockets.append(s)
is_ready(1)
while True:
    time.sleep(1)'
	start
	traced -ocalls --trace=socket checkpoint --engine fork --image-path "$IMG" "$ID" || fail "it was not saved"
	jq -e '.endpoints | length == 400' <<<"$("$SEEDTOOL" dump "$IMG")"
	# Of TCP and of Unix sockets, while it runs, and when it is held.
	assert_eq "$(grep -c NETLINK_SOCK_DIAG calls)" 4
}

@test "sockets: one that listens to what is signed alone (TCP_MD5SIG) is refused by name" {
	python '
def signs(family, *address):
    s = socket.socket(family)
    s.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
    s.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEPORT, 1)
    s.bind(address)
    s.listen()
    return s
def key(s, peer):
    try:
        s.setsockopt(socket.IPPROTO_TCP, 14, peer.ljust(128, b"\0") + struct.pack("BBHi", 0, 0, 3, 0) + b"key".ljust(80, b"\0"))
    except OSError as e:
        return str(e)
open_to_all = [signs(socket.AF_INET, "127.0.0.1", 8080), signs(socket.AF_INET6, "::1", 8081)]
is_ready(1)
while not os.path.exists("/go"):
    time.sleep(0.01)
signed = [signs(socket.AF_INET, "127.0.0.1", 8080), signs(socket.AF_INET6, "::1", 8081)]
said = key(signed[0], struct.pack("=H6s", socket.AF_INET, b"\0\0\1\2\3\4")) or key(signed[1], struct.pack("=HHI", socket.AF_INET6, 0, 0) + b"\0" * 15 + b"\1")
open("/n", "w").write(said or "2")
while True:
    time.sleep(1)'
	start
	seed "$ID"
	: >"$R/go"
	wait_until eval '[ "$(count)" != 1 ]'
	[ "$(cat "$N")" = 2 ] || skip "no TCP_MD5SIG here: $(cat "$N")"
	run ! rt checkpoint --engine fork --image-path "$IMG" "$ID"
	assert_has "$output" "descriptor 6: a socket that listens to what is signed alone (TCP_MD5SIG)"
	assert_has "$output" "descriptor 7: a socket that listens to what is signed alone (TCP_MD5SIG)"
	assert_has "$output" "cannot carry 2 of"
	assert_eq "$(status_of)" running
}

@test "sockets: what is not carried is refused by name, and the container is left alone" {
	python '
def listens(port, *options, **how):
    s = socket.socket(**how)
    for level, name, value in options:
        s.setsockopt(level, name, value)
    s.bind(("127.0.0.1", port))
    s.listen()
    return s
all = [listens(8001, (socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 5))), listens(8002, (socket.SOL_SOCKET, socket.SO_BINDTODEVICE, b"lo")),
    listens(8003, (socket.SOL_SOCKET, socket.SO_RCVTIMEO, struct.pack("ll", 5, 0))), listens(8004, (socket.IPPROTO_IP, 21, 255))]
six = socket.socket(socket.AF_INET6)
six.setsockopt(socket.IPPROTO_IPV6, 73, 255)
six.bind(("::1", 8008))
six.listen()
udp = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
udp.bind(("127.0.0.1", 8006))
bound = socket.socket()
bound.bind(("127.0.0.1", 8007))
is_ready(1)
while True:
    time.sleep(1)'
	start
	run ! rt checkpoint --engine fork --image-path "$IMG" "$ID"
	assert_has "$output" "with SO_LINGER"
	assert_has "$output" "listens at one device"
	assert_has "$output" "with a timeout"
	# Else the child would listen to the whole network.
	assert_has "$output" "to who is near alone (IP_MINTTL)"
	assert_has "$output" "to who is near alone (IPV6_MINHOPCOUNT)"
	assert_has "$output" "a UDP socket"
	assert_has "$output" "a TCP socket that neither listens nor is connected"
	assert_eq "$(status_of)" running
}

# Of those that any program may choose, one that a socket does not begin with here.
another_congestion() {
	local name own
	own=$(cat /proc/sys/net/ipv4/tcp_congestion_control)
	for name in $(cat /proc/sys/net/ipv4/tcp_allowed_congestion_control); do
		[ "$name" = "$own" ] || {
			echo "$name"
			return
		}
	done
}

@test "sockets: how a server keeps out of congestion is its child's, and one that says nothing begins as its namespace does" {
	local other own
	other=$(another_congestion)
	own=$(cat /proc/sys/net/ipv4/tcp_congestion_control)
	[ -n "$other" ] || skip "this kernel has one congestion control"
	python '
async def tell(reader, writer):
    writer.write(writer.get_extra_info("socket").getsockopt(socket.IPPROTO_TCP, 13, 16).rstrip(b"\0") + b"\n")
    await writer.drain()
    writer.close()
def listens(port, name=None):
    s = socket.create_server(("127.0.0.1", port))
    if name:
        s.setsockopt(socket.IPPROTO_TCP, 13, name)
    return s
async def main():
    await serve(asyncio.start_server(tell, sock=listens(8080, b"'"$other"'")), asyncio.start_server(tell, sock=listens(8081)))
asyncio.run(main())'
	start
	assert_eq "$(ask "$ID" 127.0.0.1:8080)" "$other"
	seed "$ID"
	assert_eq "$(rt seed inspect "$IMG" | jq -c '[.endpoints[].congestion] | sort')" "[\"\",\"$other\"]"
	child
	assert_eq "$(ask "$CHILD" 127.0.0.1:8080)" "$other"
	assert_eq "$(ask "$CHILD" 127.0.0.1:8081)" "$own"
	rt delete --force "$CHILD"
	cfg --arg o "$other" '.linux.sysctl["net.ipv4.tcp_congestion_control"] = $o'
	child
	assert_eq "$(ask "$CHILD" 127.0.0.1:8081)" "$other"
	rt delete --force "$CHILD"
	# One that the kernel does not have: "none", and what is behind it.
	for i in 0 1; do
		[ "$("$SEEDTOOL" dump "$IMG" | jq -r ".endpoints[$i].congestion")" != "$other" ] || "$SEEDTOOL" forge "$IMG" endpoints "$i" congestion 0x656e6f6e
	done
	new_id CHILD
	cfg --arg id "$CHILD" '.linux.cgroupsPath = "/" + $id | del(.linux.sysctl)'
	no_child "$CHILD" 'congestion control \"none' "127.0.0.1:8080 (TCP_CONGESTION)" "modprobe tcp_none"
	[ ! -e "$ROOT/$CHILD" ]
}

@test "sockets: a congestion control that this host keeps to itself takes CAP_NET_ADMIN in a child, too" {
	local kept
	kept=$(tr ' ' '\n' </proc/sys/net/ipv4/tcp_available_congestion_control | grep -vxF -f <(tr ' ' '\n' </proc/sys/net/ipv4/tcp_allowed_congestion_control) | head -1)
	[ -n "$kept" ] || skip "this host keeps no congestion control to itself"
	python '
s = socket.create_server(("127.0.0.1", 8080))
s.setsockopt(socket.IPPROTO_TCP, 13, b"'"$kept"'")
is_ready(1)
while True:
    time.sleep(1)'
	with_caps CAP_NET_ADMIN
	start
	seed "$ID"
	assert_eq "$(rt seed inspect "$IMG" | jq -r '.endpoints[].congestion')" "$kept"
	child
	rt delete --force "$CHILD"
	cfg '.process.capabilities |= map_values(. - ["CAP_NET_ADMIN"])'
	for m in permitted effective inheritable ambient bounding; do
		"$SEEDTOOL" forge "$IMG" creds 0 "$m" 0
	done
	new_id CHILD
	cfg --arg id "$CHILD" '.linux.cgroupsPath = "/" + $id'
	no_child "$CHILD" "congestion control \\\"$kept\\\" of 127.0.0.1:8080" "it takes CAP_NET_ADMIN"
}

@test "sockets: a policy of IPsec of some socket is refused by name, as nobody tells whose it is" {
	python '
def listens(port):
    s = socket.socket()
    s.bind(("127.0.0.1", port))
    s.listen()
    return s
all = listens(8001)
if os.path.exists("/policy"):
    other, ever = socket.socket(), (1 << 64) - 1
    selector = bytes(32) + struct.pack("HHHHHBBBxxxiI", 0, 0, 0, 0, socket.AF_INET, 0, 0, 0, 0, 0)
    other.setsockopt(socket.IPPROTO_IP, 17, selector + struct.pack("8Q", ever, ever, ever, ever, 0, 0, 0, 0) + bytes(32)
        + struct.pack("IIBBBBxxxx", 0, 0, 1, 0, 0, 0)) # IP_XFRM_POLICY: out, allowed
is_ready(1)
while True:
    time.sleep(1)'
	with_caps CAP_NET_ADMIN
	touch "$R/policy"
	start
	run ! rt checkpoint --engine fork --image-path "$IMG" "$ID"
	assert_has "$output" "perhaps has a policy of IPsec (IP_XFRM_POLICY)"
	assert_eq "$(status_of)" running
	rt delete --force "$ID"
	# One that may administer its network, and has no policies.
	rm "$R/policy"
	start
	seed "$ID"
	rt delete --force "$ID"
	# And who may not can't have given its sockets any, whatever others in its namespace did.
	NETNS=fs$$
	ip netns add "$NETNS"
	cat >ipsec.py <<-'END'
		import socket, struct, time
		ever, s = (1 << 64) - 1, socket.socket()
		selector = bytes(32) + struct.pack("HHHHHBBBxxxiI", 0, 0, 0, 0, socket.AF_INET, 0, 0, 0, 0, 0)
		s.setsockopt(socket.IPPROTO_IP, 17, selector + struct.pack("8Q", ever, ever, ever, ever, 0, 0, 0, 0) + bytes(32)
		    + struct.pack("IIBBBBxxxx", 0, 0, 1, 0, 0, 0))
		print("has", flush=True)
		time.sleep(60)
	END
	ip netns exec "$NETNS" python3 ipsec.py >ipsec.out 3>&- &
	local policies=$!
	wait_until grep has ipsec.out
	ip -n "$NETNS" link set lo up
	cfg --arg p "/run/netns/$NETNS" '.linux.namespaces |= map(if .type == "network" then .path = $p else . end)
		| .process.capabilities |= map_values(. - ["CAP_NET_ADMIN"])'
	start
	seed "$ID"
	kill "$policies"
}
