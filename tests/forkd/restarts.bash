# SPDX-License-Identifier: Apache-2.0
# Parts of tests/forkd/run: a daemon ends, and the next one has its seeds.

# Of a daemon that has ended, too.
keepers_of() { # NAME
	local p
	for p in $(pgrep -f "^$forkd --control $dir/$1 serve"); do
		[ "$(cat "/proc/$p/comm" 2>/dev/null)" != lean-keeper ] || echo "$p"
	done
}

# How many processes have the pages of the seed in that directory.
holders() { # DIRECTORY
	local p n=0
	for p in $(pgrep -f "^$forkd --control $dir/"); do
		[ -z "$(find "/proc/$p/fd" -lname "$1/pages" 2>/dev/null)" ] || n=$((n + 1))
	done
	echo $n
}

says() { # WORD COMMAND...
	[ "$("${@:2}")" = "$1" ]
}

until_is() { # WORD COMMAND...: soon
	until_true says "$@"
}

new_seed() { # NAME DIRECTORY [LEASE]; its ticket is in DIRECTORY.ticket. $size: pages
	mkdir "$dir/$2" && "$tool" make "$dir/$2" "${size:-500}" && ticket "$1" "$dir/$2" ${3:+"$3"} && cp -p "$dir/ticket" "$dir/$2.ticket"
}

use() { # DIRECTORY
	cp -p "$dir/$1.ticket" "$dir/ticket"
	id=$(cut -d: -f4 "$dir/ticket")
}

restarts() {
	local signal before
	start "$one" re --listen 192.0.2.1:7490 && size=16384 new_seed re stays && new_seed re gone && ask re rm "$id" && new_seed re short 1s
	for signal in KILL TERM KILL; do
		before=$started
		signal_remembered $signal "$before"
		until_is '' comm_of "$before"
		[ $signal = TERM ] || sleep 2
		start "$one" re --listen 192.0.2.1:7490 && use stays && ask re list | grep -q "^$id held" && child b read 64 >"$dir/out"
		ok "a ticket is good after the next daemon has begun: SIG$signal" $?
	done
	before=$started # which has kept no page yet:
	start "$two" rc && use stays && slow_child rc && signal_remembered KILL "$before" && sleep 1 && start "$one" re --listen 192.0.2.1:7490 && sleep 1
	kill -0 "$slow" && ! grep -q WRONG "$dir/slow"
	ok 'a child on another host waits for it' $?
	use gone && ask rc fetch "file:$dir/ticket" | grep -q revoked && ! ask re extend "$id" 1h
	ok 'a seed that was revoked stays revoked' $?
	use short && ask rc fetch "file:$dir/ticket" | grep -q expired
	ok 'a lease that ran out while no daemon ran is over' $?
	use stays && ask re rm "$id"
	was_ended rc
	ok 'what the next daemon holds can be revoked there' $?
	until_is 0 holders "$dir/stays" && [ "$(holders "$dir/gone")$(holders "$dir/short")" = 00 ]
	ok 'nobody has its memory any more' $?
	kill "$(serving re)"
	until_is '' keepers_of re && [ ! -e "$dir/re.keeper" ] && [ ! -e "$dir/re" ]
	ok 'a daemon that holds nothing leaves nothing' $?
}

# How long it is kept, and what ends that.
kept() {
	start "$one" ke --listen 192.0.2.1:7491 && new_seed ke lapses 6s
	signal_remembered KILL "$started"
	until_is 1 holders "$dir/lapses"
	ok 'a keeper has the seed of a daemon that was killed' $?
	until_is 0 holders "$dir/lapses" && until_is '' keepers_of ke && [ ! -e "$dir/ke.keeper" ]
	ok 'until the lease is over: then nobody has, and there is no keeper' $?
	start "$one" ke --listen 192.0.2.1:7491 --keep 1s && new_seed ke second && signal_remembered TERM "$started" && until_is '' keepers_of ke &&
		[ "$(holders "$dir/second")" = 0 ] && [ ! -e "$dir/ke.keeper" ]
	ok 'or as long as --keep says' $?
	start "$one" ke --listen 192.0.2.1:7491 && new_seed ke third && signal_remembered INT "$started" && until_is '' keepers_of ke &&
		[ "$(holders "$dir/third")" = 0 ] && [ ! -e "$dir/ke.keeper" ]
	ok 'SIGINT keeps nothing' $?
	start "$one" ke --listen 192.0.2.1:7491 && new_seed ke fourth && signal_remembered TERM "$started" && sleep 1 && [ -n "$(keepers_of ke)" ] &&
		rm "$dir/ke.keeper" && until_is '' keepers_of ke && [ "$(holders "$dir/fourth")" = 0 ]
	ok 'where the name of its socket is removed, it is not kept' $?
	start "$one" ke --listen 192.0.2.1:7491 && new_seed ke fifth && signal_remembered TERM "$started" && sleep 1
	start "$one" ke && until_is 0 holders "$dir/fifth" && [ -z "$(ask ke list)" ]
	ok 'a daemon that holds no seeds takes none, and nobody has them' $?
	signal_remembered INT "$started"
}

# Whatever instant the next daemon is killed at, the seed is held, once, by who comes then.
cut_short() {
	local point code=0 n=0 cut
	command -v strace >/dev/null || { skip "strace is not installed" cut_short; return; }
	start "$one" cu --listen 192.0.2.1:7492 && new_seed cu whole
	for point in connect:1 getsockopt:1 recvmsg:1 recvmsg:2 bind:1 bind:2 bind:3 listen:3 lstat:1 newfstatat:1 unlink:1 clone3:1 \
		rename:1 sendto:1 accept4:1; do
		signal_remembered KILL "$started"
		timeout 20 ip netns exec "$one" strace -qq -o /dev/null -e "trace=${point%:*}" -e "inject=${point%:*}:signal=KILL:when=${point#*:}" \
			"$forkd" --control "$dir/cu" serve --listen 192.0.2.1:7492 >>"$dir/cu.log" 2>&1 &
		cut=$!
		remember "$cut"
		disown
		[ "$point" != accept4:1 ] || { sleep 1.5 && ask cu list >/dev/null; }
		patience=200 until_is '' comm_of "$cut" && n=$((n + 1)) || { echo "# not reached: $point" && signal_remembered KILL "$cut" && kill -9 $(serving cu); }
		start "$one" cu --listen 192.0.2.1:7492
		use whole
		[ "$(ask cu list | grep -c "^$id held")" = 1 ] && until_is 2 holders "$dir/whole" && [ "$(keepers_of cu | wc -l)" = 1 ] ||
			{ code=1 && echo "# killed at $point: $(ask cu list), $(holders "$dir/whole") have it"; }
	done
	start "$two" cub && [ $n -ge 10 ] && child cub read 64 >"$dir/out" || code=1
	ok 'killed at any moment of a hand-over, the next daemon has the seed, and nobody else' $code
	kill -9 "$(serving cub)" # a peer that has the ticket may read on for a while
	ask cu rm "$id" && until_is 0 holders "$dir/whole"
	ok 'and it can be removed' $?
}

# Nor does it matter what fails meanwhile: it is held, or the log says that it is not.
faulted() {
	local point code=0 n=0 cut
	command -v strace >/dev/null || { skip "strace is not installed" faulted; return; }
	start "$one" fa --listen 192.0.2.1:7496 && new_seed fa safe
	for point in socket:1=ENOMEM connect:1=EPERM getsockopt:1=ENOMEM recvmsg:1=EIO recvmsg:2=ENOMEM bind:1=EPERM bind:2=ENOMEM \
		bind:3=EPERM clone3:1=EAGAIN rename:1=EPERM sendto:1=ENOMEM pread64:1=EIO fcntl:5=EMFILE; do
		signal_remembered KILL "$started"
		sleep 0.3
		: >"$dir/fault"
		timeout 20 ip netns exec "$one" strace -qq -o "$dir/trace" -e "trace=${point%%:*}" \
			-e "inject=${point%%:*}:error=${point#*=}:when=$(cut -d: -f2 <<<"${point%=*}")" \
			"$forkd" --control "$dir/fa" serve --listen 192.0.2.1:7496 >"$dir/fault" 2>&1 &
		cut=$!
		remember "$cut"
		disown
		sleep 1.5
		! grep -q INJECTED "$dir/trace" || n=$((n + 1))
		signal_remembered KILL "$cut"
		# shellcheck disable=SC2046 # one word each
		kill -9 $(serving fa) 2>/dev/null
		until_is '' serving fa
		start "$one" fa --listen 192.0.2.1:7496
		use safe
		if grep -q 'is not any more' "$dir/fault" && [ -z "$(ask fa list)" ]; then
			until_is 0 holders "$dir/safe" && (umask 077 && ask fa add "$dir/safe" >"$dir/safe.ticket") || code=1
		else
			[ "$(ask fa list | grep -c "^$id held")" = 1 ] && until_is 2 holders "$dir/safe" || code=1
		fi
		[ $code = 0 ] || { echo "# $point: $(cat "$dir/fault" | tail -n 2): $(ask fa list), $(holders "$dir/safe")" && break; }
	done
	[ $n -ge 8 ] || { code=1 && echo "# $n of them were reached"; }
	ok 'whatever fails in a hand-over, the seed is held, or that is said' $code
	ask fa rm "$id" && until_is 0 holders "$dir/safe"
	ok 'and it can be removed, too' $?
	signal_remembered INT "$started"
}

comm_of() { # PID
	cat "/proc/$1/comm" 2>/dev/null
}

serving() { # NAME: but for keepers
	local p
	for p in $(pgrep -f "^$forkd --control $dir/$1 serve"); do
		[ "$(comm_of "$p")" = lean-keeper ] || echo "$p"
	done
}

# Who says that it is a keeper, or the next daemon.
heirs() {
	local how started_too
	start "$one" he --listen 192.0.2.1:7493 && new_seed he sample && signal_remembered KILL "$started" && sleep 1
	chmod 711 "$dir" && chmod 666 "$dir/he.keeper"
	[ "$(python3 "$here/keeper.py" ask "$dir/he.keeper" 65534)" = nothing ] && [ "$(python3 "$here/keeper.py" ask "$dir/he.keeper" 0)" = LEANKEEP ]
	ok 'a keeper tells other users nothing' $?
	[ "$(holders "$dir/sample")" = 1 ] && start "$one" he --listen 192.0.2.1:7493 && ask he list | grep -q held
	ok 'and still has what nobody took' $?
	signal_remembered INT "$started"
	until_is '' keepers_of he
	while read -r how; do
		rm -f "$dir/fk.keeper"
		python3 "$here/keeper.py" give "$dir/fk.keeper" "$how" "$dir/sample" 2>/dev/null &
		remember $!
		disown
		until_is yes exists "$dir/fk.keeper"
		: >"$dir/fk.log"
		start "$one" fk --listen 192.0.2.1:7494
		started_too=$?
		case $how in
		honest | 'nothing at first') [ $started_too = 0 ] && [ "$(ask fk list | grep -c held)" = 1 ] ;;
		'a lease that is over') [ $started_too = 0 ] && ask fk list | grep -q ' expired ' && ! ask fk list | grep -q ' held ' ;;
		*) [ $started_too = 0 ] && [ -z "$(ask fk list)" ] && grep -q -e 'another version' -e 'is no keeper' -e 'is not any more' "$dir/fk.log" ;;
		esac
		ok "what a keeper hands over: $how" $?
		signal_remembered INT "$started"
		until_is '' keepers_of fk
	done < <(python3 "$here/keeper.py" list)
	mkdir -m 777 "$dir/all"
	python3 "$here/keeper.py" give "$dir/all/x.keeper" other "$dir/sample" 2>/dev/null &
	remember $!
	disown
	until_is yes exists "$dir/all/x.keeper"
	timeout 60 "$forkd" --control "$dir/all/x" serve --listen 192.0.2.1:7495 >"$dir/out" 2>&1
	[ $? = 1 ] && grep -q 'neither root nor us' "$dir/out" && [ -S "$dir/all/x.keeper" ]
	ok 'nothing is taken from somebody else, and their socket stays' $?
	chmod 700 "$dir"
}

# It does not begin, and whoever is in the way still has what it had.
no_start() { # WORDS: what is said
	until_is yes exists "$dir/st.keeper"
	timeout 50 "$forkd" --control "$dir/st" serve --listen 127.0.0.1:7497 >"$dir/out" 2>&1
	[ $? = 1 ] && grep -q "$1" "$dir/out" && [ ! -e "$dir/st" ] && [ ! -e "$dir/st.keeper~" ] && [ -S "$dir/st.keeper" ]
}

stuck() {
	local n
	mkdir "$dir/some" && "$tool" make "$dir/some" 10
	python3 "$here/keeper.py" give "$dir/st.keeper" half "$dir/some" 2>/dev/null &
	remember $!
	disown
	no_start 'handed over 1 of 2 seeds'
	ok 'what a keeper has half handed over stays with it' $?
	rm -f "$dir/st.keeper"
	python3 "$here/keeper.py" deaf "$dir/st.keeper" 2>/dev/null &
	remember $!
	disown
	no_start 'for what was held'
	ok 'who listens and never answers is not waited for without end' $?
	rm -f "$dir/st.keeper"
	start "$one" st --listen 192.0.2.1:7498
	for n in {1..20}; do
		size=2 new_seed st "room$n"
	done
	signal_remembered KILL "$started"
	until_is '' comm_of "$started"
	! prlimit --nofile=24 timeout 50 "$forkd" --control "$dir/st" serve --listen 127.0.0.1:7497 >"$dir/out" 2>&1 && grep -q 'too many open files' "$dir/out" &&
		start "$one" st --listen 192.0.2.1:7498 && [ "$(ask st list | grep -c held)" = 20 ]
	ok 'who has no room for all seeds leaves them to the next one' $?
	signal_remembered INT "$started"
}

# Two begin in the same instant, where one that was killed has left its socket.
at_once() {
	local slow
	command -v strace >/dev/null || { skip "strace is not installed" at_once; return; }
	start "$one" at --listen 192.0.2.1:7499 && signal_remembered KILL "$started" && until_is '' keepers_of at
	ip netns exec "$one" strace -qq -o /dev/null -e trace=unlink -e inject=unlink:delay_enter=2000000:when=1 \
		"$forkd" --control "$dir/at" serve --listen 192.0.2.1:7500 >>"$dir/at.log" 2>&1 &
	slow=$!
	remember "$slow"
	disown
	until_is '' serving at
	sleep 0.5
	ip netns exec "$one" timeout 30 "$forkd" --control "$dir/at" serve --listen 192.0.2.1:7499 >"$dir/out" 2>&1
	[ $? = 1 ] && grep -q 'answers at' "$dir/out" && ask at list >/dev/null && [ ! -e "$dir/at.lock" ]
	ok 'of two that begin at once, one does, and answers' $?
	# shellcheck disable=SC2046 # one word each
	kill -INT $(serving at)
}

exists() { # PATH
	[ ! -e "$1" ] || echo yes
}
