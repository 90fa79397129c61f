# SPDX-License-Identifier: Apache-2.0
# shellcheck shell=bash
# processes.bash: to end a process later than at once. Numbers of processes come round, within two minutes where all suites run: a
# number that was noted may be somebody else's by the time that it is used. So a note has the start of the process, too. Between the
# look at it and the signal is no time for them to come round. tests/house/check-processes tries these functions.

# State and start (in ticks of the clock) of a process; nothing of one that is gone. Its name may have blanks and brackets.
process_facts() { # PID
	local stat fields
	stat=$(cat "/proc/$1/stat" 2>/dev/null) || return 0
	read -ra fields <<<"${stat##*) }"
	echo "${fields[0]} ${fields[19]}"
}

# Its note, PID:START. Nobody is meant by that of one that is gone.
note_process() { # PID
	local facts
	facts=$(process_facts "$1")
	echo "$1:${facts#* }"
}

# Is it still there, and running? One that has ended and waits for its parent is not.
is_running() { # NOTE
	local facts
	facts=$(process_facts "${1%%:*}")
	case $facts in
	'' | [ZX]*) return 1 ;;
	*) [ "${facts#* }" = "${1#*:}" ] ;;
	esac
}

signal_process() { # NOTE [SIGNAL]
	! is_running "$1" || kill "-${2-TERM}" "${1%%:*}" 2>/dev/null || true
}

# Waits until it has ended.
await_end() { # NOTE [SECONDS]
	local _
	for _ in $(seq $((${2-10} * 20))); do
		is_running "$1" || return 0
		sleep 0.05
	done
	return 1
}

# Ends it, and waits for that: TERM, then KILL.
end_process() { # NOTE
	signal_process "$1"
	await_end "$1" || { signal_process "$1" KILL; await_end "$1" || true; }
}

# What this shell, but no subshell of it, has started.
REMEMBERED=()
remember() { # PID...
	local pid
	for pid; do
		REMEMBERED+=("$(note_process "$pid")")
	done
}

# To those of these numbers that were remembered, or to all.
signal_remembered() { # SIGNAL [PID...]
	local note
	for note in "${REMEMBERED[@]}"; do
		[ $# = 1 ] || [[ " ${*:2} " == *" ${note%%:*} "* ]] || continue
		signal_process "$note" "$1"
	done
}
