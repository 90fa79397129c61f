#!/usr/bin/env bats
# SPDX-License-Identifier: Apache-2.0
# Seeds of containers that listen: their children do so, too, in network namespaces of their own.

load ../lib/helpers.bash
load seeds.bash

setup() {
	seeds_setup
	needs_seedtool
	NETNS=
}
teardown() {
	common_teardown
	[ -z "$NETNS" ] || ip netns del "$NETNS"
}

# program TEXT: it runs as the container's, behind what all of them have.
python() {
	rm -rf "$R"
	"$LR_LIB/mkpython" "$R" || skip "no python3 to copy"
	cfg --arg p 'import asyncio, os, select, socket, struct, sys, time
sys.stderr = open("/err", "w", buffering=1)
asked = 0
async def answer(reader, writer):
    global asked
    await reader.readline()
    asked += 1
    writer.write(b"%d\n" % asked)
    await writer.drain()
    writer.close()
def is_ready(_):
    open("/n", "w").write("1\n")
async def serve(*servers):
    for s in servers:
        await s
    is_ready(1)
    await asyncio.Event().wait()
'"$1" '.process.args = ["/usr/bin/python3", "-c", $p] | .process.env += ["PYTHONDONTWRITEBYTECODE=1"]'
}

start() {
	rm -f "$N"
	rt_bg run --detach --bundle "$BUNDLE" "$ID"
	wait_until test -s "$N" || fail "it says: $(cat "$R/err")"
}

child() {
	new_id CHILD
	cfg --arg id "$CHILD" '.linux.cgroupsPath = "/" + $id'
	grow "$CHILD"
}

# By a file: a child that there is after all would keep a pipe open, and who reads it waiting.
no_child() { # ID WORDS...: what is said
	local code=0 words
	rt_bg restore --engine fork --detach --image-path "$IMG" --bundle "$BUNDLE" "$1" >refused.out 2>&1 || code=$?
	[ "$code" -ne 0 ] || fail "there is a child"
	for words in "${@:2}"; do
		assert_has "$(cat refused.out)" "$words"
	done
}

# In the network namespace of that container: what the server there says to a line.
ask() { # ID ADDRESS
	timeout 20 nsenter -t "$(pid_of "$1")" -n python3 -c 'import socket, sys
a = sys.argv[1]
if a[0] in "/@":
    s = socket.socket(socket.AF_UNIX, socket.SOCK_SEQPACKET if len(sys.argv) > 2 else socket.SOCK_STREAM)
    s.connect(a.replace("@", "\0"))
else:
    s = socket.create_connection(a.rsplit(":", 1))
s.send(b"?\n")
print(s.recv(100).decode().strip())' "${@:2}"
}

listens() { # ID: state, how many may wait, where
	nsenter -t "$(pid_of "$1")" -n ss -Hltn | awk '{ print $1, $3, $4 }' | sort
}

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
    listens(8003, (socket.SOL_SOCKET, socket.SO_RCVTIMEO, struct.pack("ll", 5, 0)))]
try:
    all.append(listens(8005, proto=262))
except OSError:
    open("/no-mptcp", "w")
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
	[ -e "$R/no-mptcp" ] || assert_has "$output" "is not of TCP"
	assert_eq "$(grep -c "not of a pair" <<<"$output")" 2
	assert_eq "$(status_of)" running
}
