# SPDX-License-Identifier: GPL-2.0-or-later
"""flightrec-report bundle: a bundle opens where there is nothing but the program itself, and gives the same names. A bundle that
somebody else has made is refused, in bounded time and memory, and leaves no file behind."""
import ctypes
import io
import os
import platform
import shlex
import shutil
import signal
import subprocess
import tarfile
from pathlib import Path

import pytest

from conftest import CLONE_NEWNS, MNT_DETACH, MS_PRIVATE, MS_REC, call
from harness import EXIT, Daemon, die_with_parent, environment, must, program, quiet_config, run, script_of_loads, sidecar, start, until

PIVOT_ROOT = {"x86_64": 155, "aarch64": 41}
ROOT_BYTES = "1G"  # of the file system that has only the program and the bundle
FORMATS = ("folded", "pprof", "perfetto", "speedscope", "firefox")
NAME = "perf.data.sample"  # of the dump in a hostile bundle
# An inlined function and a static one, which have names only in debug information and in the symbol table.
LIBRARY = """
static volatile unsigned long sum;
static inline __attribute__((always_inline)) void inlined(unsigned n) { for (unsigned i = 0; i < n; i++) sum += i * sum; }
__attribute__((noipa)) static void hidden(unsigned n) { inlined(n); sum++; }
void in_library(unsigned n);
__attribute__((noipa)) void in_library(unsigned n) { hidden(n); sum++; }
"""
MAIN = """
void in_library(unsigned n);
static volatile unsigned long sum;
static inline __attribute__((always_inline)) void inlined_main(unsigned n) { for (unsigned i = 0; i < n; i++) sum += i * sum; }
__attribute__((noipa)) static void work(unsigned n) { inlined_main(n); sum++; }
int main(void) { for (;;) { work(300000); in_library(300000); sum++; } }
"""
CC = ("gcc", "-O2", "-g", "-fno-omit-frame-pointer", "-fno-optimize-sibling-calls")
KINDS = ("plain", "gone", "stripped", "without-id")
NAMES = {"plain": ("work", "inlined_main", "hidden", "inlined"), "gone": ("work", "inlined_main"),
         "stripped": ("work", "inlined_main"), "without-id": ("work", "inlined_main")}


def build(directory):
    """Builds the programs of KINDS, which share a library. Returns {kind: path}."""
    (directory / "library.c").write_text(LIBRARY)
    (directory / "main.c").write_text(MAIN)
    library = directory / "libown.so"
    must(*CC, "-fPIC", "-shared", "-Wl,--build-id", "-o", library, directory / "library.c")
    paths = {}
    for kind in KINDS:
        folder = directory / ("Ünüsual näme" if kind == "without-id" else kind)
        folder.mkdir()
        paths[kind] = folder / kind
        # The kinds must not have the same build-id.
        identity = "none" if kind == "without-id" else f"0x{KINDS.index(kind):02x}" + os.urandom(19).hex()
        must(*CC, f"-Wl,--build-id={identity}", f"-Wl,-rpath,{directory}", "-o", paths[kind], directory / "main.c", library)
    debug = paths["stripped"].parent / ".debug"
    debug.mkdir()
    must("objcopy", "--only-keep-debug", paths["stripped"], debug / "stripped.debug")
    must("strip", paths["stripped"])
    must("objcopy", f"--add-gnu-debuglink={debug / 'stripped.debug'}", paths["stripped"])
    return paths


class Recorded:
    """A dump of the programs, which have ended. It has nothing of other processes, whose files can be very large."""

    def __init__(self, directory):
        (directory / "state").mkdir()
        config = quiet_config(directory / "d.conf", "[Recorder]\nEvents=cpu-clock\nEvents=offcpu\nFrequency=499\nCallGraph=fp\n"
                              "[Dump]\nCacheObjects=512M\n")
        self.paths = build(directory)
        self.has_jit = run(program("frtest-jit"), "-t", "0.01").code != 77
        loads = [*(shlex.quote(str(p)) for p in self.paths.values()), *([f"{program('frtest-jit')} -t 600"] if self.has_jit else [])]
        daemon = Daemon(directory / "state", "--config", config, command=("sh", "-c", script_of_loads(*loads)))
        try:
            daemon.start()
            daemon.until_sampled("cpu-clock", 2000)
            self.paths["gone"].unlink()
            self.path = daemon.dump_by_control()
            until("copy of the file that is gone", lambda: list((daemon.directory / "debug").glob("**/gone/*/elf")))
            daemon.stop()
        finally:
            daemon.kill()


@pytest.fixture(scope="module")
def recorded(tmp_path_factory):
    return Recorded(tmp_path_factory.mktemp("bundle"))


@pytest.fixture(scope="module")
def bundle(recorded, tmp_path_factory):
    path = tmp_path_factory.mktemp("packed") / "x.tar.zst"
    r = must(program("flightrecctl"), "bundle", recorded.path, "-o", path)
    assert r.out.strip() == str(path)
    return path


class EmptyRoot:
    """A root directory with flightrec-report, the libraries that it needs, and nothing else: no /proc, no /sys, no other
    programs."""

    def __init__(self, root):
        self.root = root
        (root / "tmp").mkdir()
        self.add(Path(program("flightrec-report")), "flightrec-report")
        for line in must("ldd", program("flightrec-report")).out.splitlines():
            library = next((word for word in line.split() if word.startswith("/")), None)
            if library:
                self.add(Path(library), library[1:])

    def add(self, path, name):
        (self.root / name).parent.mkdir(parents=True, exist_ok=True)
        shutil.copy2(path, self.root / name)

    def enter(self):
        die_with_parent()
        call("unshare", CLONE_NEWNS)
        call("mount", b"none", b"/", None, MS_REC | MS_PRIVATE, None)
        os.chdir(self.root)
        if ctypes.CDLL(None, use_errno=True).syscall(PIVOT_ROOT[platform.machine()], b".", b".") < 0:
            raise OSError(ctypes.get_errno(), "pivot_root")
        call("umount2", b".", MNT_DETACH)
        os.chdir("/")

    def report(self, *args):
        """Returns the standard output of flightrec-report, as bytes."""
        env = environment(TMPDIR="/tmp")
        p = subprocess.run(["/flightrec-report", *map(str, args)], preexec_fn=self.enter, env=env, stdin=subprocess.DEVNULL,
                           capture_output=True, timeout=300)
        assert p.returncode == 0, p.stderr.decode()
        assert not list((self.root / "tmp").iterdir()), "the unpacked bundle is removed"
        return p.stdout


@pytest.fixture
def empty_root(tmpfs):
    if platform.machine() not in PIVOT_ROOT:
        pytest.skip("the number of the system call pivot_root is not known for this machine")
    return EmptyRoot(tmpfs(ROOT_BYTES))


def views():
    yield "explain",
    yield "explain", "--json=pretty"
    yield "report", "--min-percent=0"
    yield "report", "--flame"
    yield "report", "--html"
    for form in FORMATS:
        yield "export", f"--format={form}"


def here(recorded, *args):
    p = subprocess.run([program("flightrec-report"), *args, recorded.path], env=environment(),
                       capture_output=True, timeout=300, preexec_fn=die_with_parent)
    assert p.returncode == 0, p.stderr.decode()
    return p.stdout


def functions(folded):
    """Returns the names of all functions of folded stacks."""
    return {name for line in folded.decode().splitlines() for name in line.rsplit(" ", 1)[0].split(";")[1:]}


def test_a_bundle_gives_the_same_names_where_there_is_nothing_else(recorded, bundle, empty_root):
    empty_root.add(bundle, "x.tar.zst")
    for view in views():
        # The last line of explain is a command with the path of the file.
        expected = here(recorded, *view).replace(f" {recorded.path}\n".encode(), b" /x.tar.zst\n")
        assert empty_root.report(*view, "/x.tar.zst") == expected, view
    for kind, names in NAMES.items():
        found = functions(empty_root.report("export", "--format=folded", f"--comm={kind}", "/x.tar.zst"))
        missing = set(names) - found
        assert not missing, (kind, missing, found)
    if recorded.has_jit:
        found = functions(empty_root.report("export", "--format=folded", "--comm=frtest-jit", "/x.tar.zst"))
        assert "frtest_jit_one" in found, found
    # The kernel's functions have names, too, if this machine shows them.
    if any("0" * 16 != line[:16] for line in Path("/proc/kallsyms").read_text().splitlines()[:10]):
        assert functions(empty_root.report("export", "/x.tar.zst")) & {"do_syscall_64", "schedule", "entry_SYSCALL_64_after_hwframe",
                                                                       "el0t_64_sync"}


def test_the_dump_alone_has_no_names_there(recorded, empty_root):
    """So the test above can fail."""
    empty_root.add(recorded.path, "dump")
    found = functions(empty_root.report("export", "--format=folded", "/dump"))
    assert not found & {"work", "hidden", "in_library", "schedule"}, found


def members(bundle):
    return must("tar", "--zstd", "-tf", bundle).out.splitlines()


def test_a_bundle_has_the_dump_its_json_and_the_objects_of_its_samples(recorded, bundle, tmp_path):
    names = members(bundle)
    assert names[:2] == [recorded.path.name, sidecar(recorded.path).name]
    assert all(name.startswith(("debug/.build-id/", "files/", f"{recorded.path.name}.jit/")) for name in names[2:]), names
    must("tar", "--zstd", "-xf", bundle, "-C", tmp_path)
    for path in (recorded.path, sidecar(recorded.path)):
        assert (tmp_path / path.name).read_bytes() == path.read_bytes()
    assert len(list(tmp_path.glob("files/**/without-id"))) == 1 and len(list(tmp_path.glob("debug/**/debug"))) >= 1
    assert bundle.stat().st_mode & 0o777 == 0o600
    # Only the objects that samples are in: not all that are mapped.
    mine = tmp_path / "mine.tar.zst"
    must(program("flightrec-report"), "bundle", "-q", "--comm=gone", "-o", mine, recorded.path)
    assert len(members(mine)) < len(names) and not any("without-id" in name for name in members(mine))


def test_the_name_of_a_bundle(recorded, bundle, tmp_path):
    r = must(program("flightrec-report"), "bundle", "-q", recorded.path, cwd=tmp_path)
    made = tmp_path / f"{recorded.path.name}.tar.zst"
    assert r.out.strip() == made.name and made.exists() and not r.err
    r = run(program("flightrec-report"), "bundle", recorded.path, cwd=tmp_path)
    assert r.code == EXIT["error"] and "already a file" in r.err
    r = run(program("flightrec-report"), "bundle", made, "-o", tmp_path / "again", cwd=tmp_path)
    assert r.code == EXIT["usage"] and "is a bundle already" in r.err
    assert os.listdir(tmp_path) == [made.name]
    piped = tmp_path / "piped"
    with open(piped, "wb") as out:
        p = start(program("flightrecctl"), "bundle", recorded.path, "-o", "-", "--", "-q", stdout=out)
        assert p.wait() == 0
    assert members(piped) == members(bundle)


def test_latest_is_the_newest_dump(recorded, bundle, tmp_path):
    path = tmp_path / "latest.tar.zst"
    must(program("flightrec-report"), "bundle", "-D", recorded.path.parent, "-o", path, "latest")
    assert members(path) == members(bundle)


def test_no_room_for_a_bundle(recorded, tmpfs):
    place = tmpfs("64K")
    r = run(program("flightrec-report"), "bundle", "-o", place / "x.tar.zst", recorded.path)
    assert r.code == EXIT["no-space"] and "cannot write" in r.err, r
    assert not list(place.iterdir())


def test_no_room_to_open_a_bundle(bundle, tmpfs):
    place = tmpfs("64K")
    r = run(program("flightrec-report"), "report", bundle, env=environment(TMPDIR=str(place)))
    assert r.code in (EXIT["error"], EXIT["no-space"]) and str(bundle) in r.err and "TMPDIR" in r.err, r
    assert not list(place.iterdir())


@pytest.mark.parametrize("how", [signal.SIGKILL, signal.SIGTERM])
def test_the_unpacked_bundle_goes_with_the_program(bundle, tmp_path, how):
    """The program is killed while it has unpacked the bundle, and waits for somebody to read its output."""
    out, into = os.pipe()
    p = start(program("flightrec-report"), "report", "--html", bundle, stdout=into, stderr=subprocess.DEVNULL,
              env=environment(TMPDIR=str(tmp_path)))
    os.close(into)
    until("unpacked dump", lambda: list(tmp_path.glob("flightrec-*/perf.data.sample.*")) or p.poll() is not None)
    assert p.poll() is None
    folder, = tmp_path.iterdir()
    assert folder.stat().st_mode & 0o777 == 0o700
    p.send_signal(how)
    p.wait()
    os.close(out)
    until("end of the folder", lambda: not list(tmp_path.iterdir()))


# --- bundles that somebody else has made ---------------------------------------------------------------------

def entry(name, content=b"x", kind=tarfile.REGTYPE, link="", pax=None):
    info = tarfile.TarInfo(name)
    info.type, info.linkname, info.size = kind, link, len(content) if kind == tarfile.REGTYPE else 0
    info.pax_headers = pax or {}
    return info, io.BytesIO(content)


def pack(path, *entries):
    """Makes an archive with these members after a first one that looks like a dump."""
    raw = io.BytesIO()
    with tarfile.open(fileobj=raw, mode="w", format=tarfile.PAX_FORMAT) as tar:
        for info, content in entries:
            tar.addfile(info, content)
    compress(path, raw.getvalue())


def compress(path, data, *options):
    subprocess.run(["zstd", "-q", "-f", *options, "-o", str(path)], input=data, check=True, timeout=120)


def dump_entry():
    return entry(NAME, b"PERFILE2" + bytes(200))


LINKS = "is a link"
TYPES = "is not a regular file"
NAMES_UP = "has '.' or '..' in its name"
HOSTILE = {
    "up": ([entry("../outside")], NAMES_UP),
    "up-later": ([entry("files/../../outside")], NAMES_UP),
    "up-at-the-end": ([entry("files/..")], NAMES_UP),
    "dot": ([entry("./files/x")], NAMES_UP),
    "absolute": ([entry("/tmp/outside")], "has an absolute or a long name"),
    "long": ([entry("a/" * 600 + "x")], "has an absolute or a long name"),
    "no-name": ([entry("files//x")], "has an empty part in its name"),
    "symbolic-link": ([entry("files", kind=tarfile.SYMTYPE, link="/tmp"), entry("files/outside")], LINKS),
    "hard-link": ([entry("files/x", kind=tarfile.LNKTYPE, link="/etc/passwd")], LINKS),
    "device": ([entry("debug/null", kind=tarfile.CHRTYPE)], TYPES),
    "pipe": ([entry("debug/pipe", kind=tarfile.FIFOTYPE)], TYPES),
    "folder": ([entry("debug", kind=tarfile.DIRTYPE)], TYPES),
    "twice": ([entry("files/x"), entry("files/x")], "is there twice"),
    "dump-twice": ([dump_entry()], "is there twice"),
    "file-and-folder": ([entry("files"), entry("files/x")], "is there twice"),
    "terminal": ([entry("../\x1b]0;title\x07")], NAMES_UP),
    "sparse": ([entry("files/x", b"x", pax={"GNU.sparse.size": str(1 << 61), "GNU.sparse.numblocks": "1",
                                            "GNU.sparse.map": f"{(1 << 61) - 1},1"})], "needs more than"),
}


def open_hostile(path, folder):
    """Opens a bundle that must be refused. Returns the message."""
    folder.mkdir(exist_ok=True)
    limit = ("sh", "-c", 'ulimit -v 1000000; exec "$@"', "sh")
    r = run(*limit, program("flightrec-report"), "explain", path, env=environment(TMPDIR=str(folder)), timeout=120)
    assert r.code == EXIT["error"], r
    assert str(path) in r.err and not r.out, r
    assert all(c.isprintable() or c == "\n" for c in r.err), r
    assert not list(folder.iterdir()), "nothing stays behind"
    return r.err


@pytest.mark.parametrize("case", HOSTILE)
def test_a_hostile_bundle_is_refused(tmp_path, case):
    entries, why = HOSTILE[case]
    path = tmp_path / "x.tar.zst"
    pack(path, dump_entry(), *entries)
    err = open_hostile(path, tmp_path / "into")
    assert why in err, err
    assert sorted(os.listdir(tmp_path)) == ["into", path.name] and not Path("/tmp/outside").exists()


def test_an_archive_that_is_no_bundle_is_refused(tmp_path):
    path = tmp_path / "x.tar.zst"
    pack(path)
    assert "without members" in open_hostile(path, tmp_path / "into")
    pack(path, entry("files/x"))
    assert "is the first one, but is no dump" in open_hostile(path, tmp_path / "into")
    pack(path, entry("README", b"hello" * 100))
    assert "not a perf.data" in open_hostile(path, tmp_path / "into")
    compress(path, b"no archive " * 1000)
    assert "is damaged or is no bundle" in open_hostile(path, tmp_path / "into")
    compress(path, b"")
    open_hostile(path, tmp_path / "into")
    for kind in ("gz", "xz"):
        with tarfile.open(path, f"w:{kind}") as tar:
            tar.addfile(*dump_entry())
        open_hostile(path, tmp_path / "into")


def test_a_bundle_with_too_many_members_is_refused(tmp_path):
    path = tmp_path / "x.tar.zst"
    pack(path, dump_entry(), *(entry(f"{i}", b"") for i in range(20001)))
    assert "has too many members" in open_hostile(path, tmp_path / "into")


def test_a_bundle_that_becomes_very_large_is_refused(tmp_path):
    path = tmp_path / "x.tar.zst"
    head, _ = entry(NAME)
    head.size = 1 << 40
    raw = head.tobuf(tarfile.GNU_FORMAT)
    make = f"import sys; w = sys.stdout.buffer.write; w({raw!r}); z = bytes(1 << 20); [w(z) for i in range(1 << 10)]"
    must("sh", "-c", f'/usr/bin/python3 -c "$1" | zstd -q -o {path}', "sh", make)
    assert path.stat().st_size < 1 << 20
    assert "needs more than" in open_hostile(path, tmp_path / "into")


def test_a_bundle_that_needs_much_memory_is_refused(tmp_path):
    """A frame of zstd can ask for a window of 2 GiB."""
    path = tmp_path / "x.tar.zst"
    window = 21 << 3  # 2^(10 + 21) bytes
    block = (1000 << 3 | 1 << 1 | 1).to_bytes(3, "little") + b"x"  # the last one: 1000 times the same byte
    path.write_bytes(b"\x28\xb5\x2f\xfd" + bytes([0, window]) + block)
    assert "is damaged or is no bundle" in open_hostile(path, tmp_path / "into")


def test_a_bundle_that_is_cut_off_is_refused(bundle, tmp_path):
    data = bundle.read_bytes()
    path = tmp_path / "x.tar.zst"
    for cut in (5, 20, 100, 1000, len(data) // 3, len(data) // 2, len(data) * 9 // 10, len(data) - 100, len(data) - 1):
        path.write_bytes(data[:cut])
        assert "is damaged or is no bundle" in open_hostile(path, tmp_path / "into"), cut
