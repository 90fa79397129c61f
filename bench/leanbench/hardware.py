# SPDX-License-Identifier: Apache-2.0
"""What some ways to continue a seed need besides programs: the kernel module lean_seed, and an RDMA device with an address.
What isn't there is a Failure that says what is missing; what a daemon counts tells whether it was used."""
import errno
import glob
import ipaddress
import json
import os
import re
import socket
import subprocess

from leanbench.workspace import Failure

MODULE = "/dev/lean-seed"
DEVICES = "/sys/class/infiniband"
NETWORK = "/sys/class/net"


def check_module(path=MODULE):
    """The daemons open it as we do."""
    try:
        os.close(os.open(path, os.O_RDWR | os.O_CLOEXEC))
    except OSError as e:
        if e.errno in (errno.ENOENT, errno.ENXIO, errno.ENODEV):
            raise Failure(f"the kernel module lean_seed is not loaded: there is no {path} (docs/module.md)") from None
        raise Failure(f"{path}: {e.strerror}") from None


def _text(path):
    """The kernel has no words for places that are empty: EINVAL."""
    try:
        with open(path, encoding="utf-8") as f:
            return f.read().strip()
    except OSError:
        return ""


def _networks(device, devices, network):
    """The network devices that an RDMA device has its addresses of: its own words, as for RoCE, or a neighbour (IPoIB)."""
    named = {_text(path) for path in glob.glob(f"{devices}/{device}/ports/*/gid_attrs/ndevs/*")}
    beside = {path.split("/")[-4] for path in glob.glob(f"{network}/*/device/infiniband/{device}")}
    return sorted(filter(None, named | beside))


def _addresses(name):
    done = subprocess.run(["ip", "-json", "-4", "address", "show", "dev", name, "up"], stdin=subprocess.DEVNULL,
                          capture_output=True, text=True, check=False)
    if done.returncode:
        return []
    return [a["local"] for link in json.loads(done.stdout or "[]") for a in link.get("addr_info", ()) if "local" in a]


def rdma_address(wanted=None, devices=DEVICES, network=NETWORK):
    """An IPv4 address of the RDMA device of that name, or of the first that has one; or what was asked for, if it is an
    address: then lean-forkd says whether there is an adapter at it."""
    try:
        return str(ipaddress.IPv4Address(wanted or ""))
    except ValueError:
        pass
    there = sorted(os.listdir(devices)) if os.path.isdir(devices) else []
    if not there:
        raise Failure("this host has no RDMA device (docs/remote-fork.md: By RDMA)")
    if wanted and wanted not in there:
        raise Failure(f"there is no RDMA device {wanted}; there are " + ", ".join(there))
    for device in [wanted] if wanted else there:
        for name in _networks(device, devices, network):
            for address in _addresses(name):
                return address
    raise Failure(f"no RDMA device has a network device that is up, with an IPv4 address: {wanted or ', '.join(there)}")


def figure(metrics, name):
    """What a lean-forkd tells of itself by its socket for that."""
    with socket.socket(socket.AF_UNIX) as s:
        try:
            s.connect(metrics)
            text = b"".join(iter(lambda: s.recv(65536), b"")).decode()
        except OSError as e:
            raise Failure(f"lean-forkd tells no figures: {e.strerror}") from None
    found = re.search(rf"^lean_forkd_{name} (\d+)$", text, re.MULTILINE)
    if not found:
        raise Failure(f"lean-forkd has no figure {name}")
    return int(found[1])
