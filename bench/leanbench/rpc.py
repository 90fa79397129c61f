# SPDX-License-Identifier: Apache-2.0
"""rpc: empty requests to a lean-forkd that holds a seed, by one connection for each client (ping.c): what each page that
somebody touches costs at least. `tls` is as between hosts, `plain` without TLS (--plain). Both are on this host, and take turns by
slices of a second, so clients and daemon share its processors."""
import os
import subprocess

from leanbench import machine, options, seedlings, turns, ways
from leanbench.workspace import Failure, progress

SLICE_S = 1
COLUMNS = (("answer p50 us", ("answer_us", "p50"), lambda v: f"{v:.1f}"),
           ("answer p99 us", ("answer_us", "p99"), lambda v: f"{v:.1f}"))


def add(sub, common):
    s = sub.add_parser("rpc", parents=[common], help="empty requests to lean-forkd, without any seed")
    s.add_argument("--clients", type=options.several(64), default="1,2,4,8,10", metavar="N,...")
    s.add_argument("--seconds", type=options.at_least(1), default=5, help="of each row, in slices of one")
    s.set_defaults(way=["forkd"], criu=None, rdma=None, forkd=None)


def _slice(program, ticket, clients):
    """(requests, seconds, p50, p99)"""
    done = subprocess.run([program, ticket, str(clients), str(SLICE_S)], stdin=subprocess.DEVNULL, stdout=subprocess.PIPE,
                          stderr=subprocess.PIPE, text=True, timeout=seedlings.PATIENCE_S, check=False)
    words = done.stdout.split()
    if done.returncode or len(words) != 4:
        raise Failure("ping: " + (done.stderr.strip() or f"status {done.returncode}"))
    return int(words[0]), float(words[1]), int(words[2]) / 1000, int(words[3]) / 1000


def _middle(values):
    return sorted(values)[len(values) // 2]


def row_of(name, clients, slices, problem):
    row = {"runtime": name, "config": "default", "mode": f"{clients} clients", "clients": clients,
           "runs": sum(s[0] for s in slices) + bool(problem), "failed": int(bool(problem))}
    if problem:
        row["error"] = problem
    if slices:
        row["per_second"] = round(sum(s[0] for s in slices) / sum(s[1] for s in slices), 1)
        row["answer_us"] = {"p50": _middle([s[2] for s in slices]), "p99": _middle([s[3] for s in slices])}
    return row


def _measure(args, program, tickets, clients):
    slices, problems = {name: [] for name in tickets}, {}
    for i, order in enumerate(turns.orders(tickets, args.seconds, clients)):
        for name in order:
            progress(f"rpc: {name}, {clients} clients, {i + 1}/{args.seconds}")
            if name in problems:
                continue
            try:
                slices[name].append(_slice(program, tickets[name], clients))
            except Failure as e:
                problems[name] = str(e)
    return [row_of(name, clients, slices[name], problems.get(name)) for name in tickets]


def run(args, work):
    program, rows = seedlings.built("bench", "ping", "lean-bench-ping"), []
    with seedlings.Nursery(args, work) as nursery:
        if not program or not nursery.ways:
            return nursery.skipped or [dict(seedlings.SKIPPED, runtime="tls", skipped="lean-bench-ping is not built")]
        plain = os.path.join(work.path, "plain.sock")
        nursery.daemon(seedlings.forkd(), plain, ["--plain", "--listen", f"127.0.0.1:{machine.free_port()}"])
        parent = nursery.parent("parent", seedlings.Memory(1))
        try:
            seeds = {"tls": nursery.seed(nursery.ways[0], parent)[0],
                     "plain": nursery.seed(ways.Way("plain", here=plain, there=plain), parent)[0]}
            for n in args.clients:
                rows += _measure(args, program, {name: seed.ticket for name, seed in seeds.items()}, n)
            for seed in seeds.values():
                seed.remove()
        finally:
            parent.remove()
        return rows
