# SPDX-License-Identifier: GPL-2.0-or-later
"""Fixtures: a container (called machine) with a real systemd and the package of flightrec, and the package with a higher
version, for an upgrade; the kernels of Debian with the modules of kmod/."""
import contextlib
import functools
import os
import signal
import subprocess
from pathlib import Path

import pytest

import kernel
import machine as vm

UPGRADE = "9.9.9"


def on_term(signum, frame):
    raise KeyboardInterrupt


def pytest_configure(config):
    config.addinivalue_line("markers", "container: needs the package, and runs in a container that has the kernel of this machine")
    signal.signal(signal.SIGTERM, on_term)  # so that fixtures clean up also at a SIGTERM


@pytest.fixture(scope="session")
def debs(tmp_path_factory):
    """The paths of two packages: flightrec, and the same package with a higher version. Beside each is flightrec-agent."""
    reason = vm.missing()
    if reason:
        pytest.skip(reason)
    build = Path(os.environ.get("FLIGHTREC_PACKAGE_BUILD", vm.BUILD / "release"))
    if not (build / "CPackConfig.cmake").is_file():
        pytest.skip(f"no package: {build} is not built; ./dev package does it")
    out = tmp_path_factory.mktemp("deb")
    made = []
    for name, options in (("first", []), ("upgrade", ["-D", f"CPACK_PACKAGE_VERSION={UPGRADE}"])):
        done = subprocess.run(["cpack", "-G", "DEB", "-B", out / name, *options], cwd=build, capture_output=True, text=True)
        assert done.returncode == 0, done.stdout + done.stderr
        made.append(next((out / name).glob("flightrec_*.deb")))
    return made


@pytest.fixture(scope="session")
def root(debs):
    try:
        return vm.root_for(debs[0], vm.agent_beside(debs[0]))
    except (subprocess.SubprocessError, OSError) as e:
        pytest.skip(f"no Debian to boot: {e} {getattr(e, 'output', '') or ''}")


@pytest.fixture(scope="session")
def kernel_with_modules(tmp_path_factory):
    """kernel_with_modules(SERIES) returns a kernel and a directory with its modules. They are built once."""
    @functools.cache
    def build(series):
        made, to = kernel.Kernel(series), tmp_path_factory.mktemp(f"kmod-{series}")
        printed = made.build(to)
        assert "warning" not in printed and "error" not in printed, printed
        return made, to / "kmod"

    def make(series):
        reason = kernel.missing(series)
        return pytest.skip(reason) if reason else build(series)

    return make


@contextlib.contextmanager
def booted(root, debs, share):
    """Boots a machine, installs the package, and waits until the recorder runs. The user alice is a member of the group
    flightrec. In the machine, the packages are /share/first.deb and /share/upgrade.deb, and those of the agent are
    /share/agent-first.deb and /share/agent-upgrade.deb. On the host, the same files are in the directory SHARE."""
    for name, deb in zip(("first.deb", "upgrade.deb"), debs):
        os.link(deb, share / name)
        os.link(vm.agent_beside(deb), share / f"agent-{name}")
    m = vm.Machine(root, share)
    try:
        m.install("/share/first.deb")
        m.run("useradd", "-m", "-G", "flightrec", "alice")
        m.wait_active()
        yield m
        print(m.run("journalctl", "--no-pager", "-o", "short-monotonic", check=False).stdout[-20000:])
    finally:
        m.stop()


@pytest.fixture
def service(root, debs, tmp_path):
    """A machine that only this test uses."""
    with booted(root, debs, tmp_path) as m:
        yield m


@pytest.fixture(scope="module")
def shared(root, debs, tmp_path_factory):
    """A machine that several tests share: tests that change neither the service nor its configuration."""
    with booted(root, debs, tmp_path_factory.mktemp("machine")) as m:
        yield m
