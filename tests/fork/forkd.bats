#!/usr/bin/env bats
# SPDX-License-Identifier: Apache-2.0
# lean-forkd under attack: parts of tests/forkd/run, for SECURITY.md, whose rows name tests of bats. With
# LR_FORKD_SAID, what all of it has printed, none is run again.

load ../lib/helpers.bash

setup() {
	needs_root
	lean_only "a daemon"
	build=$(realpath "$(dirname "$LEAN_RUNTIME")/../..")
	[ -x "$build/src/forkd/lean-forkd" ] || build=$build-lib
	[ -x "$build/src/forkd/lean-forkd" ] || skip "lean-forkd is not built" # no OpenSSL
}

# Each line was said, and to be right.
part() { # PART LINE...
	local line
	if [ -n "${LR_FORKD_SAID-}" ]; then
		output=$(cat "$LR_FORKD_SAID")
	else
		run timeout 200 "$BATS_TEST_DIRNAME/../forkd/run" "$build" "$1"
	fi
	for line in "${@:2}"; do
		grep -q "^ok [0-9]* - $line\$" <<<"$output" || fail "$output"
	done
}

@test "forkd: more threads wait for pages than anybody counts, and one discards some" {
	part crowded 'more threads wait for pages than anybody counts, and one discards some'
}

@test "forkd: a child that forks more often than there are descriptors is ended, with all its forks" {
	part few 'a child that forks more often than the daemon has descriptors is ended'
}

@test "forkd: memory that grows where the program had a file is zeros" {
	part grown 'memory that grows where the program had a file is zeros'
}

@test "forkd: a program parts its memory, maps over it or locks it before it has come" {
	part changed 'memory that is changed before it has come: changed' 'memory that is changed before it has come: split' \
		'memory that is changed before it has come: parted'
}

@test "forkd: a keeper that could not be started is started later" {
	command -v strace >/dev/null || skip "strace is not installed"
	part keepers 'a keeper that could not be started is started later'
}

@test "forkd: kill -9 of the daemon: its children end, and see no zeros" {
	part deaths 'kill -9 of the daemon: its children end, and see no zeros' \
		'which ends the children of a daemon that was started before it'
}

@test "forkd: a ticket is good after lean-forkd has begun anew, and a seed that ended has ended" {
	part restarts 'a ticket is good after the next daemon has begun: SIGKILL' 'a ticket is good after the next daemon has begun: SIGTERM' \
		'a seed that was revoked stays revoked' 'a lease that ran out while no daemon ran is over'
	part kept 'until the lease is over: then nobody has, and there is no keeper' 'SIGINT keeps nothing'
}

@test "forkd: killed at any moment of a hand-over, the next lean-forkd has the seed, and nobody else" {
	command -v strace >/dev/null || skip "strace is not installed"
	part cut_short 'killed at any moment of a hand-over, the next daemon has the seed, and nobody else' 'and it can be removed'
}

@test "forkd: what a keeper has half handed over stays with it, and a deaf one is not waited for" {
	part stuck 'what a keeper has half handed over stays with it' 'who listens and never answers is not waited for without end' \
		'who has no room for all seeds leaves them to the next one'
}

@test "forkd: of two that begin at once, one does, and answers" {
	command -v strace >/dev/null || skip "strace is not installed"
	part at_once 'of two that begin at once, one does, and answers'
}

@test "forkd: a keeper tells other users nothing" {
	part heirs 'a keeper tells other users nothing' 'and still has what nobody took'
}

@test "forkd: what a keeper hands over is believed of root and its own user alone, and checked" {
	part heirs 'what a keeper hands over: honest' 'what a keeper hands over: another version' \
		'what a keeper hands over: a descriptor that can be changed' 'what a keeper hands over: pages that can be changed' \
		'what a keeper hands over: the name of another seed' 'nothing is taken from somebody else, and their socket stays'
}

@test "forkd: standard descriptors that were closed are no connection and no file" {
	part bare 'standard descriptors that were closed are no connection and no file'
}

@test "forkd: pages and processes of a seed are for the connection that showed its ticket" {
	part fakes 'local socket: pages of a seed without its ticket' 'local socket: and processes of it' \
		'local socket: with the ticket, pages come'
}

@test "forkd: descriptors that are not what they should be" {
	part fakes 'local socket: a seed in files without seals' 'local socket: sealed, it is held' \
		'local socket: a directory that is no cgroup' 'local socket: nothing was written there' \
		'local socket: a FIFO in place of a userfaultfd' 'local socket: one without events in place of a userfaultfd'
}

@test "forkd: a seed that is still filled is read no further than it is, and whole when it is sealed" {
	part fakes 'local socket: a page that has not come is not read' 'local socket: and is, when it has' \
		'local socket: but it was never sealed: damaged' 'local socket: pages that can shrink while they are filled'
}

@test "forkd: another user of the host gets nothing by the socket, whatever its mode" {
	part fakes 'local socket: another user gets nothing'
}

@test "forkd: another seed with the id of ours, fetched first, is not ours" {
	part twins 'another seed with the id of ours, fetched first, is not ours' 'and can be told from it'
}

@test "forkd: a ticket in a file of somebody else, and a daemon of somebody else" {
	part owners "a ticket in a file of somebody else is refused" 'a daemon of somebody else gets no ticket'
}

@test "forkd: who proves nothing keeps nobody out, and no memory" {
	part strangers 'who proves nothing keeps nobody out' 'nor the pages of a seed that was revoked' 'nor its name'
}

@test "forkd: pages without a proof, by a proof that was heard, or by another secret" {
	part hostile 'hostile peer: a wrong secret is refused' 'hostile peer: pages without a proof' \
		'hostile peer: a proof that was heard before proves nothing' 'hostile peer: a ticket lets in'
}

@test "forkd: an answer to another question, or one that is too short, is nobody's page" {
	part servers 'a host that is wrong each third time, and a child that sees nothing of it: the tag of another question' \
		'a host that is wrong each third time, and a child that sees nothing of it: a byte less' \
		'a host that is wrong each third time, and a child that sees nothing of it: honest'
}

@test "forkd: a wrong secret, and a ticket without TLS, get nothing" {
	part answers 'a wrong secret is none' 'a ticket that others may read is refused'
	part hostile 'a daemon without --plain takes no such ticket'
}

@test "forkd: who reads by RDMA has the pages of its own seed, while its ticket is good, and only reads" {
	[ -e "$build/tests/forkd/librdmacm.so.1" ] || skip "lean-forkd is built without RDMA"
	part rdma_reader 'hostile reader: and not in ours' 'hostile reader: nothing behind the end' \
		'hostile reader: nothing is written' 'hostile reader: without the control connection nothing is read' \
		'hostile reader: nor of a seed that was revoked' 'all tries were made: reader'
}

@test "forkd: a token lets one connection by RDMA in, and only the newest one does" {
	[ -e "$build/tests/forkd/librdmacm.so.1" ] || skip "lean-forkd is built without RDMA"
	part rdma_reader 'hostile reader: no key without a connection' 'hostile reader: a token of zeros' 'hostile reader: half a token' \
		'hostile reader: a token when there is a newer one' 'hostile reader: a token lets in' 'hostile reader: and lets nobody in a second time'
}

@test "forkd: by RDMA no more memory is pinned, and no more is read, than the options allow" {
	[ -e "$build/tests/forkd/librdmacm.so.1" ] || skip "lean-forkd is built without RDMA"
	part rdma_limits 'by TCP from a host with --rdma off' 'by TCP from a host with --rate 1000000000' \
		'by TCP from a host with --rdma-memory 1000000'
}

@test "forkd: what RDMA does not bring comes by TCP, or is told, and is never zeros" {
	[ -e "$build/tests/forkd/librdmacm.so.1" ] || skip "lean-forkd is built without RDMA"
	part rdma 'by RDMA: events' 'by one connection for all children, and nothing by TCP' 'an adapter that does not answer: by TCP' \
		'pages that can not be pinned: by TCP' 'a revoked seed is not read by RDMA, and its child is told why it ends'
}

@test "forkd: who comes by many addresses of the host keeps nobody from RDMA" {
	[ -e "$build/tests/forkd/librdmacm.so.1" ] || skip "lean-forkd is built without RDMA"
	part rdma_addresses 'by RDMA at more addresses than there are places, and those before stay'
}

@test "forkd: where the kernel module of a seed's host is said to be is believed as far as it can be true" {
	part module_hosts "a hostile host: module: port 70000: the module connects to nothing" \
		"a hostile host: module: the tag of another question: the module connects to nothing" \
		"a hostile host: module: half an entry, and silence: the module connects to nothing" \
		'and where nobody answers it' 'however often it is asked, no descriptor is left' 'a host that is right: the module reads itself'
}

@test "forkd: what the kernel module is let in to has the pages of the seed" {
	part module_hosts 'what it is let in to has other pages than the seed, as with the token of another one'
}
