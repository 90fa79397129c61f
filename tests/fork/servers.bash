# SPDX-License-Identifier: Apache-2.0
# What the tests of containers that listen share.

setup() {
	seeds_setup
	needs_seedtool
	NETNS=
}
teardown() {
	local rc=0
	common_teardown || rc=1
	[ -z "$NETNS" ] || ip netns del "$NETNS"
	return "$rc"
}

# The container's program, behind what all of them have.
python() { # TEXT
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

child() {
	new_id CHILD
	cfg --arg id "$CHILD" '.linux.cgroupsPath = "/" + $id'
	grow "$CHILD"
}

# A bundle of the same files; the seed's parent goes on in the first one. It is paused meanwhile, as cp
# fails where a file is renamed.
copy() {
	rm -rf other
	rt pause "$ID"
	cp -a "$BUNDLE" other
	rt resume "$ID"
	BUNDLE=$PWD/other
}

# By a file: a child that there is after all would keep a pipe open, and who reads it waiting.
no_child() { # ID WORDS...: what is said
	local code=0 words
	rt_bg restore --engine fork --detach --image-path "$IMG" --bundle "$BUNDLE" ${OPTION:+"$OPTION"} "$1" >refused.out 2>&1 || code=$?
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
