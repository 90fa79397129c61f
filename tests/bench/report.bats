#!/usr/bin/env bats
# SPDX-License-Identifier: Apache-2.0
# lean-bench report: what result files become. The files are made up; nothing is measured.

load ../lib/bench

CHECK=$BATS_TEST_DIRNAME/check-page.py

# result FILE BENCHMARK ROWS [JQ-FILTER]: a result with these rows.
result() {
	jq -n --arg b "$2" --argjson rows "$3" '{schema: 1, benchmark: $b, time: "2026-01-02T03:04:05Z",
		command: ["lean-bench", $b, "--runs", "3"],
		machine: {kernel: "6.1.0", architecture: "x86_64", cpu: "A Processor", cpus: 4, memory: "1 kB", cgroups: "hybrid", host_mounts: 20},
		commit: "0123456789abcdef", versions: {"lean-runtime": "lean-runtime version 9"}, programs: {"lean-runtime": "d1gest"},
		results: $rows}' | jq "${4-.}" >"$1"
}

START='[{"runtime": "lean-runtime", "config": "default", "mode": "isolated", "runs": 3, "failed": 0, "wall_us": {"min": 1000, "p50": 1234, "p99": 1500, "mean": 1250}, "syscalls": 300},
	{"runtime": "crun", "config": "default", "mode": "isolated", "runs": 3, "failed": 0, "wall_us": {"min": 4000, "p50": 5678, "p99": 9000, "mean": 6000}},
	{"runtime": "floor", "config": "default", "mode": "isolated", "runs": 3, "failed": 0, "wall_us": {"min": 500, "p50": 617, "p99": 900, "mean": 700}}]'

report() {
	run --separate-stderr "$BENCH" report "$@" --output out
}

# refuse FILE TEXT: one clear error, and nothing is written.
refuse() {
	report "$1"
	[ "$status" = 1 ] || { echo "status $status: $stderr" >&2; return 1; }
	[[ $stderr == "lean-bench: $1: "*"$2"* ]] || { echo "$stderr" >&2; return 1; }
	[ "${#stderr_lines[@]}" = 1 ]
	[ ! -e out ]
}

@test "a page and a Markdown file, without root: figures, ratio to the floor, machine, versions, digests, papers" {
	result start.json start "$START"
	chmod 777 .
	run --separate-stderr setpriv --reuid=65534 --regid=65534 --clear-groups env HOME="$PWD" \
		"$BENCH" report start.json --output out --plots out/plots
	[ "$status" = 0 ]
	python3 "$CHECK" out/report.html --svgs 2 --text "A Processor" --text 6.1.0 --text "lean-runtime version 9" \
		--text d1gest --text 0123456789abcdef --text "lean-bench start --runs 3" --text 1,234 --text 5,678 \
		--text "other hardware" --text "48 CPUs" --text 9.20
	grep -q 'min to p99' out/report.html
	grep -qF '| isolated | crun | 3 | 0 | 4,000 | 5,678 | 9,000 | 9.20 |' out/report.md
	[ "$(grep -c '^!\[' out/report.md)" = 2 ]
	for file in $(sed -n 's/^!\[.*\](\(.*\))$/\1/p' out/report.md); do
		python3 -c 'import sys, xml.etree.ElementTree as e; e.parse(sys.argv[1])' "out/$file"
	done
}

@test "nothing is divided by a floor that failed or took no turns" {
	result alone.json steady "$START" '.turns = false'
	report alone.json --no-plots
	[ "$status" = 0 ]
	grep -qF '5,678' out/report.md
	run ! grep -F '5,678 | 9,000 | 9.20 |' out/report.md
	result failed.json start "$START" '.results[2].failed = 1'
	report failed.json --no-plots
	[ "$status" = 0 ]
	grep -qF '5,678' out/report.md
	# The seed's own 9.20 is in another table.
	run ! grep -F '5,678 | 9,000 | 9.20 |' out/report.md
}

@test "samples become a distribution" {
	result start.json start "$START" '.results |= map(.samples_us = [range(50) | 1000 + 7 * .])'
	report start.json
	[ "$status" = 0 ]
	grep -q 'share of runs' out/report.html
	! grep -q 'min to p99, mark' out/report.html
}

@test "a number in the mode becomes an axis, with the paper's curve where it was measured alike" {
	result scale.json scale '[]' '.results = [range(1; 4) | {runtime: "liblean", config: "default",
		mode: "in process, \(.) processes", processes: ., runs: 9, failed: 0, per_second: (1000 * .)}]'
	report scale.json
	[ "$status" = 0 ]
	python3 "$CHECK" out/report.html --svgs 1 --text "scale: default: in process: by processes" --text "other hardware" --text 5,665
}

@test "the last number in the mode is the axis, and what is before it is named once" {
	result peak.json peak '[]' '.results = [("1 MB", "json") as $seed | range(1; 4) | {runtime: "fork", config: "default",
		mode: "\($seed), \(.) processes", processes: ., runs: 9, failed: 0, per_second: (1000 * .)}
		| if $seed == "json" then .function = $seed else .mb = 1 end]'
	report peak.json
	[ "$status" = 0 ]
	python3 "$CHECK" out/report.html --svgs 2 --text "peak: default: 1 MB: by processes" --text "peak: default · json: by processes"
}

@test "results of other machines or commits have sections of their own" {
	result a.json start "$START"
	result b.json start "$START" '.machine.cpu = "Another Processor"'
	result c.json start "$START" '.commit = "fedcba9876543210-dirty"'
	result d.json start "$START" '.machine.host_mounts = 25 | .programs = {"lean-runtime": "0ther"}'
	report a.json b.json c.json d.json
	[ "$status" = 0 ]
	[ "$(grep -c '<h2' out/report.html)" = 3 ]
	[ "$(grep -c '^## ' out/report.md)" = 3 ]
	python3 "$CHECK" out/report.html --text "3 different machines or commits" --text "changes that aren't committed" \
		--text "isn't the same program in all files"
	report a.json
	run ! grep -q 'different machines' out/report.html
}

@test "what a result says is text, whatever it is" {
	local evil='</title></td></svg><script>alert(1)</script><img src=x onerror=alert(2)> ]]> & $\\frac{1$ | `x` [a](javascript:b) \u0007\u202e SURROGATE'
	result evil.json start "$START" "walk(if type == \"string\" and . != \"start\" then . + \"$evil\" else . end)
		| .results[0] += {\"<script>\": 1, \"\\\"><b onclick=x>\": {p50: 2}, error: \"<script>\", samples_us: [1, 2], \"new key\": \"<i>\"}
		| .machine += {\"<script>\": \"<script>\"} | .versions += {\"<u>\": \"<script>\"} | .programs += {\"<u>\": \"<script>\"}"
	sed -i 's/SURROGATE/\\ud800/' evil.json
	report evil.json --plots out/plots
	[ "$status" = 0 ]
	python3 "$CHECK" out/report.html --text '<script>alert(1)</script><img src=x onerror=alert(2)>'
	# Markdown lets HTML through: nothing of it may be there, nor a link or a cell of its own.
	run ! grep -E '<[a-z/]' out/report.md
	run ! grep -F '](javascript' out/report.md
	# The rows of a table have as many cells as its head.
	sed 's/\\|//g' out/report.md | awk -F'|' '!/^\|/ { cells = 0; next } cells && NF != cells { bad = 1 } { cells = NF; rows++ }
		END { exit bad || rows < 5 }'
	find out/plots -name '*.svg' | grep -q .
	for file in out/plots/*.svg; do
		python3 -c 'import sys, xml.etree.ElementTree as e; e.parse(sys.argv[1])' "$file"
		run ! grep -E '<(script|img)' "$file"
	done
}

@test "a damaged or foreign file is one clear error" {
	result good.json start "$START"
	head -c 300 good.json >cut.json
	refuse cut.json "not JSON"
	: >empty.json
	refuse empty.json "not JSON"
	head -c 4096 /dev/urandom >noise.json
	refuse noise.json "not JSON"
	printf '[%.0s' $(seq 100000) >deep.json
	refuse deep.json "not JSON"
	refuse none.json "No such file"
	mkdir dir
	refuse dir "Is a directory"
	echo '[1]' >list.json
	refuse list.json "no result of lean-bench"
	echo '{"benchmark": "start"}' >half.json
	refuse half.json "no result of lean-bench"
	jq '.schema = 2' good.json >next.json
	refuse next.json "schema is 2"
	jq '.results = {}' good.json >norows.json
	refuse norows.json "no rows"
	jq '.results = [1]' good.json >nums.json
	refuse nums.json "no rows"
	jq '.results = [range(20001) | {}]' good.json >many.json
	refuse many.json "more than 20000 rows"
	report good.json cut.json
	[ "$status" = 1 ]
}

@test "odd figures are left out, and no reason to fail" {
	result odd.json start "$START" '.results += [{}, {runtime: 1, wall_us: 5, mode: null, config: []},
		{runtime: "x", config: "default", mode: "isolated", wall_us: {p50: -1, min: -5}, failed: "no", samples_us: ["a", 1]},
		{runtime: "y", config: "default", mode: "zero", wall_us: {p50: 0, min: 0, p99: 0}}]
		| .machine = 7 | .versions = [] | .command = "x" | .programs = null | .commit = null | .time = {}'
	sed -i 's/"syscalls": 300/"syscalls": 1e999, "huge": 1'"$(printf '0%.0s' $(seq 400))"', "nan": NaN/' odd.json
	report odd.json
	[ "$status" = 0 ] || { echo "$stderr" >&2; return 1; }
	python3 "$CHECK" out/report.html --text 1,234 --text unknown
}

@test "figures that are too far apart for an axis are in the table alone" {
	result tiny.json start "$START"
	sed -i 's/"p50": 617/"p50": 5e-324/; s/"min": 4000/"min": -1e308/; s/"p50": 5678/"p50": 1e308/; s/"p99": 9000/"p99": 1e308/' tiny.json
	report tiny.json
	[ "$status" = 0 ] || { echo "$stderr" >&2; return 1; }
	[[ $stderr == *"no figure, see the table"* ]]
	[[ $stderr != *Traceback* ]]
	python3 "$CHECK" out/report.html --text 1,234
}

@test "a link that waits beside the report leads nowhere" {
	result start.json start "$START"
	mkdir out
	echo mine >victim
	for name in report.html.new report.md.new report.html; do ln -s ../victim "out/$name"; done
	report start.json --no-plots
	[ "$status" = 0 ]
	[ "$(cat victim)" = mine ]
	[ -f out/report.html ]
	[ ! -L out/report.html ]
}

@test "results of every command that only has this to show: floor and what isn't known yet" {
	result floor.json floor '[{"name": "clone", "runs": 5, "min_us": 100, "p50_us": 111, "p99_us": 200}, {"name": "other", "runs": 0, "skipped": "cgroup v1"}]'
	result new.json brandnew '[{"candidate": "a+b", "driver": "overlay", "test": "read", "create_ms": {"min": 1, "p50": 2, "p99": 3}, "events": 17},
		{"candidate": "c", "driver": "vfs", "test": "read", "events": 18}, {"candidate": "d", "skipped": "d is not installed"}]'
	report floor.json new.json
	[ "$status" = 0 ]
	python3 "$CHECK" out/report.html --svgs 3 --text "cgroup v1" --text 111 --text "brandnew: read" --text "overlay" --text "d is not installed"
}

@test "rows that failed are told" {
	result bad.json start "$START" '.results[1] |= (.failed = 2 | .error = "status 1: no")'
	report bad.json
	python3 "$CHECK" out/report.html --text "1 of 3 rows had failures" --text "status 1: no"
	grep -q 'class="bad"' out/report.html
}

@test "without matplotlib: the error names Debian's package, and tables can be had" {
	result start.json start "$START"
	mkdir without
	echo 'raise ImportError("none")' >without/matplotlib.py
	export PYTHONPATH=$PWD/without LEAN_BENCH_PYTHON=1
	report start.json
	[ "$status" = 1 ]
	[[ $stderr == "lean-bench: "*python3-matplotlib* ]]
	[ ! -e out ]
	report start.json --no-plots
	[ "$status" = 0 ]
	python3 "$CHECK" out/report.html --svgs 0 --text 1,234
}
