# SPDX-License-Identifier: GPL-2.0-or-later
"""Each subcommand of stock perf that reads a perf.data file can read the files of flightrec. perf and flightrecd record the
same short load at the same time. Then each command of a table is run for three files: perf's file, the dump and the merged
file. All outputs must match the pattern of the command."""
import re
from concurrent.futures import ThreadPoolExecutor

import pytest

from harness import Daemon, last_cpu, merge, meta, must, perf, program

pytestmark = pytest.mark.long
EVENTS = ("sched:sched_switch", "sched:sched_wakeup", "sched:sched_wakeup_new", "sched:sched_stat_runtime", "sched:sched_migrate_task",
          "sched:sched_process_fork", "sched:sched_process_exit", "raw_syscalls:sys_enter", "raw_syscalls:sys_exit",
          "lock:contention_begin", "lock:contention_end", "kmem:kmalloc", "kmem:mm_page_alloc", "kmem:mm_page_free",
          "irq:irq_handler_entry", "irq:irq_handler_exit", "irq:softirq_raise", "irq:softirq_entry", "irq:softirq_exit",
          "workqueue:workqueue_activate_work", "workqueue:workqueue_execute_start", "workqueue:workqueue_execute_end",
          "power:cpu_idle", "power:cpu_frequency", "cpu-clock/freq=999/")
# There is one recording with stacks and one without, because some subcommands need stacks of each event, and others work
# differently if there are stacks.
KINDS = {"stacks": ("--call-graph=fp",), "plain": ()}
LOAD = "date +%s.%N; {burn} -u 0.05 -c {cpu} & echo burn=$!; {pingpong} -t 0.02 & wait; date +%s.%N"

PINGPONG = r"frtest-p[io]ng"
# No scripts in Perl, because perf damages its memory when it runs them, also with its own files.
# Commands, each with a pattern of its output. FILE is the file to read, and OUT is a file that the command writes.
STACKS = [
    ("annotate -i FILE --stdio -s frtest_burn_hot", r"Percent.*cpu-clock"),
    ("buildid-list -i FILE", r"frtest-burn"),
    ("buildid-list -i FILE --with-hits", r"frtest-burn"),
    ("c2c report -i FILE --stdio", r"Trace Event Information"),
    ("data convert -i FILE --to-ctf OUT", r""),
    ("data convert -i FILE --to-json OUT", r'"comm": "frtest-'),
    ("diff FILE FILE", r"frtest_burn_hot"),
    ("evlist -i FILE --trace-fields", r"sched:sched_switch: trace_fields: prev_comm"),
    ("inject -i FILE -o OUT", r""),
    ("inject -b -i FILE -o OUT", r""),
    ("inject -s -i FILE -o OUT", r""),
    ("kmem -i FILE --slab --caller stat", r"Total bytes requested: +[1-9]"),
    ("kmem -i FILE --page stat", r"Total allocation requests +: +[1-9]"),
    ("kvm --host -i FILE report --stdio -g none -s comm,sym", r"frtest_burn_hot"),
    ("kwork -k irq,softirq,workqueue report -i FILE", r"Kwork Name"),
    ("kwork -k irq,softirq,workqueue latency -i FILE", r"Kwork Name"),
    ("kwork -k softirq timehist -i FILE", r""),
    ("lock contention -i FILE", r"contended"),
    ("lock contention -t -i FILE", r"contended"),
    ("lock info -t -i FILE", r"Thread ID"),
    ("lock report -i FILE", r"acquired"),
    ("mem -i FILE report --stdio", r""),
    ("report -i FILE --header-only -I", r"# cpuid : \S+"),
    ("report -i FILE --stdio", r"frtest_burn_hot"),
    ("sched -i FILE latency", PINGPONG),
    ("sched -i FILE map", r"=> frtest-"),
    ("sched -i FILE replay -r 1", r"nr_run_events"),
    ("sched -i FILE script -F comm,time,event", r"sched:sched_switch"),
    ("sched timehist -i FILE", PINGPONG + r"\[.* <- \S+ <- "),
    ("sched timehist -i FILE -I -S", r"Idle stats"),
    ("sched timehist -i FILE --state -w -n -M -V", PINGPONG + r"\[.* <- \S+ <- "),
    ("sched timehist -i FILE -s", PINGPONG),
    ("script -i FILE --show-task-events --show-mmap-events", r"PERF_RECORD_MMAP2.*frtest-burn"),
    # Only one process, because another process of the machine can have a name that is not UTF-8, and Python fails at such a
    # name.
    ("script --comm frtest-burn -s SCRIPTS/python/stackcollapse.py -i FILE", r"frtest-burn.*;main"),
    ("script --comm frtest-burn -s SCRIPTS/python/syscall-counts.py -i FILE", r"syscall events"),
    ("stat report -i FILE", r""),
    ("timechart -i FILE -o OUT", r"<svg"),
    ("timechart -T -i FILE -o OUT", r"frtest-"),
    ("trace -i FILE -o OUT", r"frtest-"),
    ("trace -s -i FILE -o OUT", r"frtest-burn \("),
    ("trace --sched -i FILE -o OUT", r"frtest-"),
    # Some of these fields and sort keys are in perf's own recording, and some are not.
    ("script -i FILE -F comm,tid,pid,time,cpu,event,ip,sym,dso,symoff,period,misc,tod,flags,insn", r"frtest_burn_hot"),
    ("report -i FILE --stdio -g none -s pid,comm,dso,sym,cpu,socket,cgroup,dso_size,local_weight,transaction", r"frtest_burn_hot"),
    ("report -i FILE --stdio -g none -s prev_comm,next_comm", r"frtest-"),
    ("report -i FILE --stdio -g none -s time,comm,trace", r"frtest-"),
] + [(f"script -i FILE -F event,{field}", r"") for field in ("uregs", "brstack", "data_src", "weight", "phys_addr", "bpf-output")]
PLAIN = [
    ("annotate -i FILE --stdio -s frtest_burn_hot", r"Percent.*cpu-clock"),
    ("data convert -i FILE --to-json OUT", r'"comm": "frtest-'),
    ("diff FILE FILE", r"frtest_burn_hot"),
    ("evlist -i FILE -v", r"sched:sched_switch: type: 2"),
    ("lock contention -t -i FILE", r"contended"),
    ("report -i FILE --stdio", r"frtest_burn_hot"),
    ("sched -i FILE latency", PINGPONG),
    ("sched timehist -i FILE", PINGPONG),
    ("script -i FILE", PINGPONG),
    ("script -i FILE -F event,period", r""),
    ("script -i FILE -F comm,ip,sym", r"frtest_burn_hot"),
    ("timechart -i FILE -o OUT", r"<svg"),
    ("trace -i FILE -o OUT", r"frtest-"),
]
SCRIPTS = "/usr/lib/perf-core/scripts"
# perf sched replay prints this if a task that has just been reaped wakes another task, because the kernel gives -1 as the pid
# of the reaped task.
FAULT_OF_PERF = "pid 4294967295 exceeds limit"
TABLE = {"stacks": STACKS, "plain": PLAIN}


def events(names):
    return [x for name in names for x in ("-e", name)]


@pytest.fixture(scope="module", params=KINDS)
def recorded(request, tmp_path_factory):
    """The recordings of one load: (kind, directory, {"own": perf's file, "dump": the dump, "merge": the merged file}, the pid of
    the load's frtest-burn)."""
    directory = tmp_path_factory.mktemp(request.param)
    state, cpu = directory / "state", last_cpu()
    state.mkdir()
    what = (*events(EVENTS), "-m", "16M", "-C", cpu, *KINDS[request.param])  # has room while others use the CPUs
    d = Daemon(state, "-M", "64M", *what).start()
    try:
        load = LOAD.format(burn=program("frtest-burn"), pingpong=program("frtest-pingpong"), cpu=cpu)
        # taskset starts perf, and so the load, on the CPU `cpu`, because perf records names only on the CPU that it samples.
        said = must("taskset", "-c", cpu, "perf", "record", "-k", "CLOCK_MONOTONIC", *what, "-o",
                    directory / "own", "--", "sh", "-c", load).out
        burn = re.search(r"^burn=(\d+)$", said, re.M)[1]
        dump = d.dump_by_control("--from", f"@{said.split()[0]}", "--to", f"@{said.split()[-1]}")
        assert not d.lost_to_others()
        d.stop()
    finally:
        d.kill()
    assert merge(state, "--keep").code == 0
    return request.param, directory, {"own": directory / "own", "dump": dump, "merge": state / "perf.data"}, burn


def read(directory, name, path, command):
    """Runs a command of the table for the file PATH. Returns the exit code, all that the command prints and writes, and its
    standard error."""
    out = directory / f"{name}.{abs(hash(command))}"
    words = {"FILE": str(path), "OUT": str(out)}
    r = perf(*[words.get(w, w) for w in command.replace("SCRIPTS", SCRIPTS).split()], cwd=directory)
    written = out.read_text(errors="replace") if out.is_file() else ""
    return r.code, r.out + r.err + written, r.err


def judge(recorded, case):
    """Returns two values: whether perf can read its own file; and a text about what is wrong with the files of flightrec, or
    None."""
    _, directory, files, _ = recorded
    command, wanted = case
    own = read(directory, "own", files["own"], command)
    if own[0] != 0 or not re.search(wanted, own[1]):
        return False, None
    for name in ("dump", "merge"):
        if name == "dump" and command.startswith("kwork"):
            continue  # perf kwork crashes when it reads compressed records, also those of perf record -z
        code, text, err = read(directory, name, files[name], command)
        if FAULT_OF_PERF in err:
            continue
        if code != 0 or not re.search(wanted, text):
            return True, f"perf {command}, {name}: exit code {code}, no {wanted!r}: {err[:300]}"
        if err.strip() and not own[2].strip():
            return True, f"perf {command}, {name}: complains: {err[:300]}"
    return True, None


def test_perf_reads_our_files_as_its_own(recorded):
    table = TABLE[recorded[0]]
    with ThreadPoolExecutor(2) as pool:
        found = list(pool.map(lambda case: judge(recorded, case), table))
    wrong = [w for _, w in found if w]
    assert not wrong, "\n".join(wrong)
    # If perf could not read its own file, this test would show nothing. `perf lock` may have nothing to report.
    own = [command for (command, wanted), (read_it, _) in zip(table, found) if wanted and not read_it and not command.startswith("lock")]
    assert len(own) <= len(table) / 20, f"perf does not read its own file: {own}"


def test_an_event_with_a_weight_is_one_sample(recorded):
    _, directory, files, burn = recorded
    window = meta(files["dump"])["window"]

    def runs(name):
        """Returns the times and weights of the load's frtest-burn in the window of the dump. Another test can run one, too. If
        it started on another CPU, perf's own file does not have its name."""
        lines = read(directory, name, files[name], f"script -i FILE --ns --pid {burn} -F time,event,period")[1].split("\n")
        found = [line.split()[:2] for line in lines if "sched_stat_runtime" in line]
        return sorted((time.rstrip(":"), weight) for time, weight in found
                      if window["from_ns"] <= round(float(time.rstrip(":")) * 1e9) <= window["to_ns"])

    # the program alternates between CPU time and system calls, so the kernel counts its run time many times
    own = [weight for _, weight in runs("own")]
    assert len(own) > 5
    for name in ("dump", "merge"):
        assert sorted(weight for _, weight in runs(name)) == sorted(own), name


def test_cpuid_is_as_perf_writes_it(recorded):
    _, directory, files, _ = recorded
    found = {name: re.search(r"# cpuid : (\S+)", read(directory, name, path, "report -i FILE --header-only")[1])
             for name, path in files.items()}
    assert found["own"] and len({m and m[1] for m in found.values()}) == 1, found
