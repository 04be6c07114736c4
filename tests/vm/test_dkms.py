# SPDX-License-Identifier: GPL-2.0-or-later
"""Installs, upgrades and removes the package flightrec-dkms, in a throw-away overlay over the system of this host."""
import os
import re
import shutil
import subprocess

import pytest

import kernel
from machine import SOURCE

VERSIONS = ["0.0.1", "0.0.2"]

# Runs $3 in an overlay over /. Its changes are in a tmpfs, which goes with the mount namespace.
OVERLAY = """set -e
mount -t tmpfs flightrec-test "$1"
mkdir "$1/upper" "$1/work" "$1/root"
mount -t overlay -o "lowerdir=/,upperdir=$1/upper,workdir=$1/work" overlay "$1/root"
for d in proc sys dev; do mount --rbind /$d "$1/root/$d"; done
mkdir -p "$1/root/packages"
mount --bind "$2" "$1/root/packages"
exec chroot "$1/root" sh -ec "$3"
"""

# For each kernel, prints the state, the file of the module and its vermagic.
SHOW = """
for k in {kernels}; do
    echo "$(dkms status -m flightrec -k $k) $(modinfo -k $k -F filename flightrec_mem) $(modinfo -k $k -F vermagic flightrec_mem)"
done
"""
LEFT = """
find /usr/src /usr/share/doc /var/lib/dkms /lib/modules /lib/udev/rules.d /var/lib/dpkg/info -iname '*flightrec[-_]*' -print
[ ! -e /var/lib/dkms/flightrec ] && [ ! -e /lib/systemd/system/flightrecd.service.d ]
"""


@pytest.fixture
def packages(tmp_path):
    """A directory with the package in two versions."""
    if os.geteuid() != 0:
        pytest.skip("not root: an overlay is not permitted")
    for tool in ("dkms", "unshare", "chroot", "dpkg-deb"):
        if not shutil.which(tool):
            pytest.skip(f"no {tool}")
    to = tmp_path / "packages"
    to.mkdir()
    for version in VERSIONS:
        subprocess.run([SOURCE / "dev", "--inside", "package_dkms", version, to], check=True, capture_output=True)
    return to


@pytest.fixture
def overlay(tmp_path, packages):
    """Runs a script in the overlay. The packages are in /packages."""
    work = tmp_path / "overlay"
    work.mkdir()
    probe = subprocess.run(["unshare", "--mount", "sh", "-c", OVERLAY, "sh", work, packages, "true"], capture_output=True, check=False)
    if probe.returncode:
        pytest.skip("an overlay over / is not possible here")

    def run(script):
        done = subprocess.run(["unshare", "--mount", "--propagation", "private", "sh", "-c", OVERLAY, "sh", work, packages, script],
                              stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, check=False,
                              env={"PATH": "/usr/sbin:/usr/bin:/sbin:/bin", "LC_ALL": "C", "DEBIAN_FRONTEND": "noninteractive"})
        assert done.returncode == 0, done.stdout
        return done.stdout

    return run


def installed(version, k):
    """Returns a pattern for the line of SHOW if the module of a version is installed."""
    file = f"/lib/modules/{k}/updates/dkms/flightrec_mem.ko"
    return re.escape(f"flightrec/{version}, {k}, x86_64: installed {file}") + rf"\S* {re.escape(k)} "


def test_the_package_builds_for_each_kernel_and_goes(overlay):
    kernels = [version for version in map(kernel.headers, kernel.SERIES) if version]
    if not kernels:
        pytest.skip("no headers of a kernel")
    show = SHOW.format(kernels=" ".join(kernels))
    first, upgraded, left = overlay(f"""
        echo 'autoinstall_all_kernels=yes' >>/etc/dkms/framework.conf
        dpkg -i /packages/flightrec-dkms_{VERSIONS[0]}_all.deb
        {show}
        echo ====
        sed -i /autoinstall/d /etc/dkms/framework.conf  # an upgrade builds for the newest kernel, and for that which runs
        dpkg -i /packages/flightrec-dkms_{VERSIONS[1]}_all.deb
        {show}
        dpkg --purge flightrec-dkms
        echo ====
        {LEFT}""").split("====\n")
    for k in kernels:
        assert re.search(rf"^{installed(VERSIONS[0], k)}", first, re.M), first
    assert re.search(rf"^{installed(VERSIONS[1], kernels[-1])}", upgraded, re.M), upgraded
    assert f"flightrec/{VERSIONS[0]}" not in upgraded
    assert left == "", left
