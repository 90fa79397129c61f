# SPDX-License-Identifier: Apache-2.0
"""floor: each part of a container by itself, and the cheapest whole."""
import glob
import json
import os
import subprocess

from leanbench import options
from leanbench.workspace import Failure


def _cgroup_directory():
    """Where this machine's cgroups can be made: version 2 if it has one, else the pids controller."""
    for base in ("/sys/fs/cgroup/unified", "/sys/fs/cgroup/pids"):
        if os.path.exists(os.path.join(base, "cgroup.procs")):
            return base
    if os.path.exists("/sys/fs/cgroup/cgroup.controllers"):
        return "/sys/fs/cgroup"
    raise Failure("no cgroup hierarchy")


def add(sub, common):
    s = sub.add_parser("floor", parents=[common], help="what the kernel asks for the parts")
    s.add_argument("--runs", type=options.at_least(1), default=200)


def run(args, work):
    cgroup = os.path.join(_cgroup_directory(), work.parent + "-floor")
    os.mkdir(cgroup)
    try:
        done = subprocess.run([work.program("floor"), "measure", str(args.runs),
                               os.path.join(work.rootfs, "true"), cgroup, "/bin/true"],
                              stdout=subprocess.PIPE, check=True)
    finally:
        for path in (*glob.glob(os.path.join(cgroup, "floor-*")), cgroup):
            os.rmdir(path)
    return json.loads(done.stdout)
