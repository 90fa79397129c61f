# SPDX-License-Identifier: Apache-2.0
"""The config.json of each configuration. All run the static `true` of the root file system."""
import json
import os

from .machine import cgroup_layout

NAMES = ("default", "docker")
_HERE = os.path.dirname(os.path.realpath(__file__))


def _mount(destination, kind, source, *options):
    return {"destination": destination, "type": kind, "source": source, "options": list(options)}


def _caps(names):
    return {which: list(names) for which in ("bounding", "effective", "permitted")}


_MASKED = ["/proc/acpi", "/proc/asound", "/proc/kcore", "/proc/keys", "/proc/latency_stats",
           "/proc/timer_list", "/proc/timer_stats", "/proc/sched_debug", "/sys/firmware",
           "/proc/scsi"]
_READONLY = ["/proc/bus", "/proc/fs", "/proc/irq", "/proc/sys", "/proc/sysrq-trigger"]


def default(args):
    """What runc's `spec` writes, on this host: no seccomp, no limits."""
    namespaces = ["pid", "network", "ipc", "uts", "mount"]
    if cgroup_layout() == "unified":
        namespaces.append("cgroup")
    return {
        "ociVersion": "1.0.2",
        "process": {
            "terminal": False, "user": {"uid": 0, "gid": 0}, "args": args, "cwd": "/",
            "env": ["PATH=/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin",
                    "TERM=xterm"],
            "capabilities": _caps(["CAP_AUDIT_WRITE", "CAP_KILL", "CAP_NET_BIND_SERVICE"]),
            "rlimits": [{"type": "RLIMIT_NOFILE", "hard": 1024, "soft": 1024}],
            "noNewPrivileges": True,
        },
        "root": {"path": "rootfs", "readonly": True},
        "hostname": "bench",
        "mounts": [
            _mount("/proc", "proc", "proc"),
            _mount("/dev", "tmpfs", "tmpfs", "nosuid", "strictatime", "mode=755", "size=65536k"),
            _mount("/dev/pts", "devpts", "devpts", "nosuid", "noexec", "newinstance",
                   "ptmxmode=0666", "mode=0620", "gid=5"),
            _mount("/dev/shm", "tmpfs", "shm", "nosuid", "noexec", "nodev", "mode=1777",
                   "size=65536k"),
            _mount("/dev/mqueue", "mqueue", "mqueue", "nosuid", "noexec", "nodev"),
            _mount("/sys", "sysfs", "sysfs", "nosuid", "noexec", "nodev", "ro"),
            _mount("/sys/fs/cgroup", "cgroup", "cgroup", "nosuid", "noexec", "nodev", "relatime",
                   "ro"),
        ],
        "linux": {
            "resources": {"devices": [{"allow": False, "access": "rwm"}]},
            "namespaces": [{"type": t} for t in namespaces],
            "maskedPaths": _MASKED, "readonlyPaths": _READONLY,
        },
    }


def _docker_seccomp(allow):
    rules = [{"names": allow, "action": "SCMP_ACT_ALLOW"}]
    for persona in (0x0, 0x8, 0x20000, 0x20008, 0xffffffff):
        rules.append({"names": ["personality"], "action": "SCMP_ACT_ALLOW",
                      "args": [{"index": 0, "value": persona, "op": "SCMP_CMP_EQ"}]})
    # clone without the namespace flags; clone3 cannot be told apart, so libc is sent back to clone.
    rules.append({"names": ["clone"], "action": "SCMP_ACT_ALLOW",
                  "args": [{"index": 0, "value": 0x7e020000, "valueTwo": 0,
                            "op": "SCMP_CMP_MASKED_EQ"}]})
    rules.append({"names": ["clone3"], "action": "SCMP_ACT_ERRNO", "errnoRet": 38})
    return {"defaultAction": "SCMP_ACT_ERRNO", "defaultErrnoRet": 1,
            "architectures": ["SCMP_ARCH_X86_64", "SCMP_ARCH_X86", "SCMP_ARCH_X32"],
            "syscalls": rules}


def _docker_devices():
    rules = [{"allow": False, "access": "rwm"}]
    for kind, major, minor in (("c", 1, 5), ("c", 1, 3), ("c", 1, 9), ("c", 1, 8), ("c", 5, 0),
                               ("c", 5, 1)):
        rules.append({"allow": True, "type": kind, "major": major, "minor": minor,
                      "access": "rwm"})
    return rules


def docker(args, bundle, name, parent="lean-bench"):
    """What dockerd writes for `docker run -m 512m --cpus 1`, root file system aside."""
    with open(os.path.join(_HERE, "docker.json"), encoding="utf-8") as f:
        data = json.load(f)
    config = default(args)
    config["process"]["capabilities"] = _caps(data["capabilities"])
    config["process"]["noNewPrivileges"] = False
    config["process"]["oomScoreAdj"] = 0
    del config["process"]["rlimits"]
    config["root"]["readonly"] = False
    for file in ("resolv.conf", "hostname", "hosts"):
        source = os.path.join(bundle, file)
        with open(source, "w", encoding="utf-8") as f:
            f.write("127.0.0.1 localhost\n" if file == "hosts" else "")
        config["mounts"].append(_mount("/etc/" + file, "bind", source, "rbind", "rprivate"))
    config["linux"].update({
        "cgroupsPath": f"/{parent}/{name}",
        "maskedPaths": data["maskedPaths"], "readonlyPaths": data["readonlyPaths"],
        "seccomp": _docker_seccomp(data["seccompAllow"]),
        "resources": {
            "devices": _docker_devices(),
            "memory": {"limit": 512 << 20, "swap": 1 << 30},
            "cpu": {"shares": 1024, "quota": 100000, "period": 100000},
            "pids": {"limit": 4096},
        },
    })
    return config


def write(config, bundle, name, args, parent="lean-bench"):
    os.makedirs(bundle, exist_ok=True)
    document = docker(args, bundle, name, parent) if config == "docker" else default(args)
    with open(os.path.join(bundle, "config.json"), "w", encoding="utf-8") as f:
        json.dump(document, f, indent=1)
