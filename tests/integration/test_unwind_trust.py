# SPDX-License-Identifier: GPL-2.0-or-later
"""A user spoils a copy of a library that root has, too. The copy has the same build-id, so it is the same object."""
import os
import re
import shutil
import struct
import subprocess
import time

import pytest

import callchains
from conftest import NOBODY, as_user, end_recorder
from harness import Daemon, finish_load, program, quiet_config, start

# Build-ids of the kernel disturb the perf of other tests (docs/design/10).
pytestmark = pytest.mark.alone
PROGRAM, LIBRARY = "frtest-chain", "frtest-chain-plugin.so"
SETTLE_S = 4  # side-band needs a second, and the look at suspects another one
ROOT_S = 6
CFA_OFFSET = re.compile(rb"([\x40-\x7f]\x0e)(.)", re.DOTALL)  # DW_CFA_advance_loc; DW_CFA_def_cfa_offset


def spoil(library):
    """Makes the CFAs of a library wrong."""
    section = library.with_suffix(".eh_frame")
    subprocess.run(["objcopy", "-O", "binary", "-j", ".eh_frame", "--set-section-flags", ".eh_frame=alloc", library, section],
                   check=True)
    spoiled, n = CFA_OFFSET.subn(lambda m: m[1] + bytes([m[2][0] + 0x40]), section.read_bytes())
    assert n > 0
    section.write_bytes(spoiled)
    subprocess.run(["objcopy", "--update-section", f".eh_frame={section}", library], check=True)


def give_build_id(library, build_id):
    """Without a build-id of its own, the library would be the same object as that of another test."""
    section = library.with_suffix(".note")
    section.write_bytes(struct.pack("<3I4s", 4, len(build_id), 3, b"GNU") + build_id)
    subprocess.run(["objcopy", "--update-section", f".note.gnu.build-id={section}", library], check=True)


@pytest.fixture
def places(open_dir):
    """The program with its library twice, of root and of nobody."""
    result = []
    for name in ("root", "nobody"):
        place = open_dir / name
        place.mkdir()
        for file in (PROGRAM, LIBRARY):
            shutil.copy(program(file), place)
            (place / file).chmod(0o755)
        result.append(place)
    build_id = os.urandom(20)
    for place in result:
        give_build_id(place / LIBRARY, build_id)
    spoil(result[1] / LIBRARY)
    for file in result[1].iterdir():
        os.chown(file, NOBODY, NOBODY)
    if os.statvfs(open_dir).f_flag & os.ST_NOSUID:
        pytest.skip("files in /tmp, which is nosuid, are not trusted")
    return result


def run_chain(place, seconds, prefix=()):
    return start(*prefix, place / PROGRAM, "-t", seconds, "call", stdout=-1, text=True)


# Some of those of the service (units/flightrecd.service.in), which may not follow the links of /proc/PID/map_files
SERVICE = ("perfmon", "bpf", "syslog", "sys_ptrace", "dac_read_search", "ipc_lock", "chown")


def without_suid(directory):
    """A prefix for a command which sees DIRECTORY with nosuid, as the service manager shows it to services with NoNewPrivileges=."""
    script = 'mount --bind "$0" "$0" && mount -o remount,bind,nosuid "$0" && exec "$@"'
    return "unshare", "--mount", "sh", "-c", script, directory


def record(state, places, root_prefix=(), **how):
    """Returns what the load of nobody and that of root have said, and the file. Nobody maps his library first and last."""
    # The build-id comes from the kernel. Without it, an object is known by its inode, and a copy is another object.
    config = quiet_config(state.parent / "trust.conf", "[Recorder]\nKernelBuildIDs=yes\nSidebandBuffer=8M\n")
    daemon = Daemon(state, "--config", config, "-F", "499", "-e", "cpu-clock/call-graph=unwind/", "-m", "8M", "-M", "128M", **how)
    try:
        daemon.start()
        first = run_chain(places[1], SETTLE_S + ROOT_S, as_user())
        time.sleep(SETTLE_S)
        root = run_chain(places[0], ROOT_S, root_prefix)
        time.sleep(0.5)
        last = run_chain(places[1], 2, as_user())
        said = [finish_load(p) for p in (first, last, root)]
        return said[0], said[2], daemon.dump_by_control()
    finally:
        end_recorder(daemon)


def wrong_of(said, stacks, from_s, to_s):
    """Returns how many stacks of the time there are, and how many of them are wrong."""
    mine = [s for s in stacks if s.tid == said["tid"] and said["from_ns"] + from_s * 10**9 < s.ns < said["from_ns"] + to_s * 10**9]
    return len(mine), len([s for s in mine if not re.fullmatch(said["expected"], callchains.names(s)) or not callchains.is_whole(s)])


def way(name, open_dir, places):
    """Returns how the recorder and the program of root are started."""
    if name == "as root":
        return {}
    service = {"prefix": as_user(*SERVICE), "binary": open_dir / "flightrecd"}
    if name == "as a service":
        return service
    if not os.access("/proc/1/root/", os.R_OK):
        pytest.skip("the root directory of pid 1 cannot be read here")
    view = without_suid(places[0])
    return {**service, "prefix": (*view, *service["prefix"]), "root_prefix": view}


@pytest.mark.parametrize("name", ["as root", "as a service", "services without new privileges"])
def test_a_forged_library_does_not_spoil_the_stacks_of_others(open_dir, nobodys_dir, places, name):
    how = way(name, open_dir, places)
    nobody, root, sample = record(nobodys_dir, places, **how)
    stacks = callchains.read(sample, pids={nobody["pid"], root["pid"]})
    n, wrong = wrong_of(nobody, stacks, SETTLE_S - 1.5, SETTLE_S)
    print(f"nobody, alone: {wrong} of {n} stacks are wrong")
    assert n > 20 and wrong > 0.9 * n, "the copy is not spoiled"
    n, wrong = wrong_of(root, stacks, SETTLE_S, ROOT_S)
    print(f"root: {wrong} of {n} stacks are wrong")
    assert n > 20 and wrong <= 0.01 * n
