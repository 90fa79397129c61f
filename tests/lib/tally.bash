# SPDX-License-Identifier: Apache-2.0
# What becomes of a suite's TAP (tests/run-all): counts, and what failed. A test that did not run is a failure, and so is, where
# CI is true, a skip without a reason of tests/skips. tests/house/check-tally tries it.
#
# $logs/SUITE.tap is that TAP; beside it come SUITE.counts ("passed failed skipped"), SUITE.skips and SUITE.failed.

skips=$(dirname "${BASH_SOURCE[0]}")/../skips

# Is this a reason that tests/skips has?
may_skip() { # REASON
	local pattern
	while read -r pattern; do
		# shellcheck disable=SC2053 # a pattern
		[[ $1 != $pattern ]] || return 0
	done < <(sed -n 's/ | .*//p' "$skips" | grep -v '^#')
	return 1
}

# Puts each skip of a suite into its list of those that are all right, or of those that are not.
check_skips() { # SUITE
	local line
	grep -i -a -E '^ok .*# *skip' "$logs/$1.tap" | sed -E "s/^ok [0-9]* *-? */$1: /" | while read -r line; do
		if [ "${CI-}" = true ] && ! may_skip "$(sed -E 's/.*# *[sS][kK][iI][pP] *//' <<<"$line")"; then
			echo "$line (not in tests/skips)" >>"$logs/$1.refused"
		else
			echo "$line" >>"$logs/$1.skips"
		fi
	done
}

# Counts a suite, and shows what failed.
count() { # SUITE EXIT-CODE SECONDS
	local suite=$1 code=$2 file=$logs/$1.tap ok bad skip plan
	skip=$(grep -c -i -a -E '^ok .*# *skip' "$file")
	bad=$(grep -c -a '^not ok' "$file")
	ok=$(($(grep -c -a '^ok' "$file") - skip))
	plan=$(sed -n 's/^1\.\.\([0-9]*\).*/\1/p' "$file" | head -n 1)
	grep -a -A 40 '^not ok' "$file" | grep -a -v '^ok' | sed "s/^not ok/$suite: not ok/"
	grep -a -A 3 '^not ok' "$file" | grep -a -v -E '^(ok|--)' | cut -c 1-240 | sed -E "s/^not ok *[0-9]* *-? */$suite: /; t; s/^/    /" >"$logs/$suite.failed"
	if [ -n "$plan" ] && [ "$plan" -gt $((ok + bad + skip)) ]; then
		echo "$suite: $((plan - ok - bad - skip)) of $plan tests did not run (exit code $code)" | tee -a "$logs/$suite.failed"
		bad=$((bad + plan - ok - bad - skip))
	elif [ "$code" != 0 ] && [ "$bad" = 0 ]; then
		echo "$suite: exit code $code; the end of $file:" | tee -a "$logs/$suite.failed"
		tail -n 30 "$file"
		bad=1
	elif [ $((ok + bad + skip)) = 0 ]; then
		echo "$suite: no test ran" | tee -a "$logs/$suite.failed"
		bad=1
	fi
	: >"$logs/$suite.refused"
	check_skips "$suite"
	sed 's/^/not ok: did not run: /' "$logs/$suite.refused" | tee -a "$logs/$suite.failed"
	bad=$((bad + $(wc -l <"$logs/$suite.refused")))
	skip=$((skip - $(wc -l <"$logs/$suite.refused")))
	echo "$ok $bad $skip" >"$logs/$suite.counts"
	echo "$suite: $ok passed, $bad failed, $skip skipped in $3 s"
}
