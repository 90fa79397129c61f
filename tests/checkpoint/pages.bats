#!/usr/bin/env bats
# SPDX-License-Identifier: Apache-2.0
# Memory that does not go through the image directory: a page server, and pages that are fetched when they are
# touched; both over loopback.

load helpers.bash

setup() {
	checkpoint_setup
}
teardown() {
	show_logs
	signal_remembered TERM
	common_teardown
}

free_port() {
	python3 -c 'import socket; s = socket.socket(); s.bind(("127.0.0.1", 0)); print(s.getsockname()[1])'
}

listens() { # PORT
	grep -q "$(printf ':%04X 00000000:0000 0A' "$1")" /proc/net/tcp
}

page_server() { # DIR: its port is $PORT
	mkdir -p "$1"
	PORT=$(free_port)
	criu page-server --images-dir "$1" --address 127.0.0.1 --port "$PORT" </dev/null >"$1/server.log" 2>&1 3>&- &
	remember $!
	wait_until listens "$PORT" || fail "$(cat "$1/server.log")"
}

pages_in() { # DIR: bytes
	cat "$1"/pages-*.img 2>/dev/null | wc -c
}

# Without those of its children, of whom a dump may find one more than the other. The number of its file is in its pagemap,
# behind two words of magic, a length and a tag, seven bits a byte.
pages_of_first() { # DIR: bytes
	local byte bits=0 id=0
	for byte in $(od -An -tu1 -j13 -N5 "$1/pagemap-1.img"); do
		id=$((id | (byte & 127) << bits))
		bits=$((bits + 7))
		[ "$byte" -ge 128 ] || break
	done
	wc -c <"$1/pages-$id.img"
}

@test "checkpoint: --page-server: the pages are with the server, and not in the image directory" {
	start_counter
	page_server "$PWD/served"
	checkpoint "$ID" --page-server "127.0.0.1:$PORT"
	at=$(count)
	assert_eq "$(pages_in "$IMG")" 0
	[ "$(pages_in served)" -gt 0 ]
	# What the server wrote is the rest of the images.
	cp served/pages-*.img served/pagemap-*.img "$IMG/"
	restore "$ID"
	counts_on "$at"
}

@test "checkpoint: pre-dump and dump by page servers, one the parent of the other" {
	criu check --feature mem_dirty_track >/dev/null 2>&1 || skip "the kernel does not track writes to memory"
	start_counter
	page_server "$PWD/p1"
	rt_bg checkpoint --pre-dump --image-path "$PWD/p1" --page-server "127.0.0.1:$PORT" "$ID"
	[ "$(pages_of_first p1)" -gt 0 ]
	counts_on "$(count)"
	# The server has to know the parent, too.
	mkdir img
	ln -s ../p1 img/parent
	page_server "$PWD/img"
	checkpoint "$ID" --parent-path ../p1 --page-server "127.0.0.1:$PORT"
	at=$(count)
	[ "$(pages_of_first img)" -lt "$(pages_of_first p1)" ]
	restore "$ID"
	counts_on "$at"
}

@test "checkpoint: --page-server where nobody listens leaves the container running" {
	start_counter
	run rt checkpoint --image-path "$IMG" --page-server "127.0.0.1:$(free_port)" "$ID"
	assert_one_error
	assert_eq "$(status_of)" running
	counts_on "$(count)"
}

@test "checkpoint and restore: --lazy-pages: told by --status-fd, memory comes when it is touched" {
	# Without it criu cannot make its pipes as large as it wants, which it finds out when it serves.
	has_cap 24 || skip "CAP_SYS_RESOURCE is missing"
	start_counter
	PORT=$(free_port)
	mkfifo told
	# It serves until all is fetched, as with runc, so it is in the background.
	"$LEAN_RUNTIME" --root "$ROOT" checkpoint --image-path "$IMG" --lazy-pages --page-server "127.0.0.1:$PORT" \
		--status-fd 7 "$ID" </dev/null 7>told >dump.log 2>&1 3>&- &
	dump=$!
	remember "$dump"
	# One byte, NUL, when criu has dumped all but the pages and listens.
	assert_eq "$(timeout 60 head -c 1 told | od -An -tx1 | tr -d ' ')" 00 || fail "$(cat dump.log)"
	at=$(count)
	criu lazy-pages -v4 --page-server --address 127.0.0.1 --port "$PORT" --images-dir "$IMG" --work-dir "$IMG" \
		</dev/null >lazy.log 2>&1 3>&- &
	remember $!
	wait_until [ -S "$IMG/lazy-pages.socket" ] || fail "$(cat lazy.log)"
	# The old one is still held where it was.
	new_id NEW
	cfg --arg c "/$NEW" '.linux.cgroupsPath = $c'
	restore "$NEW" --lazy-pages --work-path "$IMG"
	counts_on "$at"
	wait "$dump" || fail "$(cat dump.log)"
	assert_has "$(cat lazy.log)" "UFFD transferred pages"
}
