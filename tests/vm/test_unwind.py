# SPDX-License-Identifier: GPL-2.0-or-later
"""Runs the unit tests of the unwinder on the kernels of Debian. They can run BPF programs at the exit of kernel functions, which some
hosts cannot, and the verifier of each kernel refuses other programs."""
import os
from pathlib import Path

import pytest

import kernel
import machine

BIN = Path(os.environ.get("FLIGHTREC_BIN", machine.BUILD / "dev/bin"))


@pytest.mark.parametrize("series", kernel.SERIES)
def test_the_unwinder_runs_on_this_kernel(series, tmp_path):
    reason = kernel.missing(series)
    if reason:
        pytest.skip(reason)
    share = tmp_path / "share"
    share.mkdir()
    programs = [BIN / "test-unwind-unwinder", "/usr/bin/sleep"]
    vm = kernel.MiniVM(kernel.Kernel(series), share, programs=programs, memory=1024, smp=2)
    try:
        vm.start("test-unwind-unwinder || exit 1; ! dmesg | grep -E 'BUG|WARNING'")
        out = vm.wait()
    finally:
        vm.kill()
    assert "OK ] test_a_new_map_is_noted_and_then_known" in out, out
