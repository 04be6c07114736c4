# SPDX-License-Identifier: GPL-2.0-or-later
"""The page of flightrec-report report --html, in a browser: its sums are those of stock perf, the user can choose a window by
mouse and keyboard, names of programs are only text, and the page makes no request."""
import os
import re
import shutil
import subprocess
import time
from collections import Counter

import pytest

import browser
from browser import Browser
from harness import (Daemon, end, meta, must, perf_clean, program, quiet_config, report_rows, run, samples_of, start, until,
                     until_ran)

EVENTS = "cpu-clock\nEvents=offcpu"
MAX_BYTES = 2_000_000
HACKED = "document.title='hacked'"
# Names of functions that end a script, an attribute, a string and a line, and one that is very long.
HOSTILE = [f"</script><script>{HACKED}</script>", f"<img src=x onerror={HACKED}>", "a\\\"'`${1}\n\x1b[31m\u202e&lt;", "long" * 1500]
HOSTILE_COMM = '"><script>x="\''
HOSTILE_THREAD = "</script><img s"  # the kernel keeps 15 bytes
PIDS = {}  # of the programs that run in the dump: "hostile", "flock". Other tests can run the same programs.


@pytest.fixture(autouse=True, scope="module")
def chromium():
    reason = browser.missing()
    if reason:
        pytest.skip(reason)


def make_page(dump, *args):
    path = dump.with_name(dump.name + ".html")
    must(program("flightrec-report"), "report", "--html", "-q", "-o", path, *args, dump, timeout=300)
    return path


def culprit(*args):
    return start(program("frtest-culprit"), *args, stdout=subprocess.DEVNULL)


def hostile_program(directory):
    """Builds a program whose functions have the names HOSTILE. They call each other, and the last one calls functions that compute.
    A child of it, with the name HOSTILE_THREAD, also sleeps, so it is woken."""
    names = [f"f{i}" for i in range(len(HOSTILE))]
    code = "#include <signal.h>\n#include <sys/prctl.h>\n#include <unistd.h>\n"
    code += "volatile unsigned long x; __attribute__((noinline)) void compute(void) { for (unsigned i = 0; i < 1000000; i++) x += i; }\n"
    # A function without calls has no frame pointer, so its caller is missing in the stack.
    for inner, outer in zip(["compute", "missing", *names], ["missing", *names]):
        code += f"__attribute__((noinline)) void {outer}(void) {{ {inner}(); x++; }}\n"
    code += f"""int main(void)
{{
    if (fork() == 0) {{
        prctl(PR_SET_PDEATHSIG, SIGKILL);
        prctl(PR_SET_NAME, "{HOSTILE_THREAD}");
        for (;; usleep(5000)) {names[-1]}();
    }}
    for (;;) {names[-1]}();
}}
"""
    (directory / "hostile.c").write_text(code)
    must("gcc", "-O1", "-fno-omit-frame-pointer", "-fno-optimize-sibling-calls", "-c", "-o", directory / "hostile.o", directory / "hostile.c")
    rename = [w for name, hostile in zip(names, HOSTILE) for w in ("--redefine-sym", f"{name}={hostile}")]
    must("objcopy", *rename, directory / "hostile.o")
    # The name of the file becomes the name of the process.
    path = directory / HOSTILE_COMM
    must("gcc", "-o", path, directory / "hostile.o")
    return path


@pytest.fixture(scope="module")
def dump(tmp_path_factory):
    """A dump with a CPU hog, threads that wait for locks, one of them until after the dump, and a program with hostile names."""
    directory = tmp_path_factory.mktemp("page")
    (directory / "state").mkdir()
    config = quiet_config(directory / "d.conf", f"[Recorder]\nEvents={EVENTS}\nCallGraph=fp\n[Dump]\nCacheObjects=no\n")
    d = Daemon(directory / "state", "--config", config).start()
    loads = []
    try:
        if "flightrec:offcpu" not in [e["name"] for e in d.status()["events"]]:
            pytest.skip("BPF programs are not permitted here")
        path = hostile_program(directory)
        time.sleep(8)  # explain needs a time before the loads
        hostile = start(path)
        loads += [culprit("-t", 300, "lock"), culprit("-t", 300, "hog"), hostile]
        lock = directory / "lock"
        loads.append(start("flock", "-F", lock, "sleep", 600))
        until("the lock of the file", lambda: run("flock", "-n", lock, "true").code != 0)
        loads.append(start("flock", "-F", lock, "true"))
        PIDS.update(hostile=hostile.pid, flock=loads[-1].pid)
        until_ran(loads[1], hostile, seconds=2)
        path = d.dump_by_control()
    finally:
        end(*loads)
        d.stop()
    return path


@pytest.fixture(scope="module")
def page_file(dump):
    return make_page(dump)


@pytest.fixture(scope="module")
def shared_browser():
    b = Browser()
    yield b
    b.close()


@pytest.fixture
def page(shared_browser, page_file):
    """The page, newly opened. At the end of each test, the console must have no message, and there must be no request."""
    b = shared_browser.open(page_file)
    b.media("light")
    yield b
    assert not b.complaints()
    assert b.driver.title != "hacked"


def perf_sums(path, window=None):
    """Returns {event: (samples, sum of periods)}, as perf script prints them. WINDOW has the first and the last ns that count; None:
    to the end."""
    count, periods = Counter(), Counter()
    only = ["--time", ",".join(f"{ns // 10**9}.{ns % 10**9:09}" if ns else "" for ns in window)] if window else []
    for line in perf_clean("script", "-i", path, *only, "--ns", "-G", "-F", "event,period").splitlines():
        m = re.match(r"\s*(\d+)\s+(\S+):", line)
        assert m, line
        count[m[2]] += 1
        periods[m[2]] += int(m[1])
    return {event: (count[event], periods[event]) for event in count if event != "flightrec:trigger"}


def report_sums(path, *args):
    """The same, as flightrec-report prints them."""
    out = must(program("flightrec-report"), "report", "-q", "--no-inline", *args, path).out
    found = re.findall(r"^# (\d+) samples of event '(.*)', event count (\d+)$", out, re.M)
    return {event: (int(n), int(sum_)) for n, event, sum_ in found if event != "flightrec:trigger"}


def shown_sum(page, title=None):
    """Chooses an event by its title. Returns (samples, sum of periods), as the page shows them."""
    if title:
        page.choose(title)
    shown = page.find("#sum")
    n = int(shown.get_attribute("data-samples"))
    assert shown.text.startswith(f"{n:,} sample"), shown.text
    return n, int(shown.get_attribute("data-weight"))


def page_sums(page):
    """The same as perf_sums(), as the page shows them for the chosen window."""
    titles = page.run("return [...document.querySelectorAll('#event option')].map((o) => o.textContent)")
    sums = {title.split(": ")[0]: shown_sum(page, title) for title in titles if not re.match("waits|.*, by waker", title)}
    page.choose("cpu-clock")
    return {event: sum_ for event, sum_ in sums.items() if sum_[0]}


def window_of(page):
    """Returns the chosen window, in ns from the begin of the recording, and the options of flightrec-report for it."""
    w = page.find("#window")
    options = re.findall(r'(--\w+)="(.*?)"', page.text("#command"))
    return int(w.get_attribute("data-from")), int(w.get_attribute("data-to")), [f"{name}={value}" for name, value in options]


def check_window(page, dump):
    """The sums of the chosen window are those of flightrec-report for the same window. Returns them."""
    sums = page_sums(page)
    from_ns, to_ns, options = window_of(page)
    assert sums == report_sums(dump, *options)
    # The times of perf are those of the samples; the window of the page begins with the first one.
    begin = meta(dump)["window"]["from_ns"]
    is_last = len(options) == 1
    assert is_last == (to_ns == page.run("return data.buckets * data.bucket_ns"))
    assert sums == perf_sums(dump, (begin + from_ns, None if is_last else begin + to_ns - 1))
    return sums


def test_sums_equal_those_of_perf(page, dump):
    assert page.run("return data.cpus") == os.cpu_count()
    assert page_sums(page) == perf_sums(dump) == report_sums(dump)
    # The waits by waker are the same waits, and the waits for work are a part of them.
    whole = perf_sums(dump)
    assert all(weight < 2**53 for _, weight in whole.values())  # a wait of a negative time would be more
    assert set(whole) == {"cpu-clock", "flightrec:offcpu", "flightrec:waiting", "flightrec:waker"}
    waits = tuple(map(sum, zip(whole["flightrec:offcpu"], whole["flightrec:waiting"])))
    for suffix in ("", ", by waker"):
        parts = [shown_sum(page, f"waits{suffix}: {kind}") for kind in ("locks, disks, CPU …", "for work, sleeps")]
        assert tuple(map(sum, zip(*parts))) == waits and all(n for n, _ in parts)


def test_rows_equal_those_of_perf_report(page, dump):
    # The function has no waits: the innermost function of a wait is in the kernel.
    wanted = samples_of(report_rows(dump), symbol="culprit_compute")
    rows = {name: int(samples.replace(",", "")) for name, _, samples, *_ in page.rows()}
    assert rows["culprit_compute"] == wanted > 0
    page.find("button[data-column=samples]").click()
    samples = [int(row[2].replace(",", "")) for row in page.rows()]
    assert samples == sorted(samples, reverse=True) and samples[0] > 0


def test_brush_by_mouse(page, dump):
    whole = page_sums(page)
    width = page.find("#heat").size["width"]
    page.drag("#heat", width * 0.5, width * 0.75)
    some = check_window(page, dump)
    assert 0 < some["cpu-clock"][0] < whole["cpu-clock"][0]
    first = window_of(page)
    page.drag("#lanes", width * 0.5, width * 0.9)
    less = check_window(page, dump)
    assert first[0] < window_of(page)[0] < window_of(page)[1] < first[1]
    assert less["cpu-clock"][0] < some["cpu-clock"][0]
    page.drag("#heat", width * 0.5, width * 0.5)  # a click
    assert page_sums(page) == whole and page.text("#window").startswith("The whole recording")


def test_brush_by_keyboard(page, dump):
    from selenium.webdriver import Keys
    page.keys("#heat", Keys.ARROW_LEFT)
    tenth = window_of(page)
    last = check_window(page, dump)
    page.keys("#heat", Keys.ARROW_LEFT)
    moved = window_of(page)
    assert moved[0] < tenth[0] and moved[1] < tenth[1] and moved[1] - moved[0] == tenth[1] - tenth[0]
    assert check_window(page, dump) != last
    page.chord(Keys.SHIFT, Keys.ARROW_RIGHT)
    assert window_of(page)[:2] == (moved[0], tenth[1])
    page.chord(Keys.CONTROL, Keys.ARROW_RIGHT)
    assert window_of(page)[:2] == tenth[:2] and check_window(page, dump) == last
    page.keys("#heat", "+")
    shorter = window_of(page)
    assert tenth[0] < shorter[0] < shorter[1] < tenth[1]
    page.keys("#heat", Keys.ESCAPE)
    assert page_sums(page) == perf_sums(dump)
    page.keys("#heat", "i")
    assert window_of(page)[0] > 0
    check_window(page, dump)
    page.keys("#heat", "a", "2")
    assert page.find("[data-view=wait]").get_attribute("aria-pressed") == "true"
    page.keys("#heat", "/")
    assert page.driver.switch_to.active_element.get_attribute("id") == "search"
    page.keys("#heat", "?")
    assert page.find("#keys").is_displayed()


def test_flame_graph(page):
    from selenium.webdriver import Keys
    boxes = "return boxes.map((b) => tree.name(b.node))"
    names = page.run(boxes)
    assert {"all", "frtest-culprit", "culprit_compute"} <= set(names)
    # Each frame is as wide as its part of the samples.
    assert page.run("""const all = boxes[0];
        return boxes.every((b) => Math.abs(b.w / all.w - now.total[b.node] / now.total[all.node]) < 0.001);""")
    page.keys("#flame", Keys.ARROW_DOWN)
    focus = page.run("return tree.name(state.focus)")
    page.keys("#flame", Keys.ENTER)
    assert page.run("return tree.name(state.zoom)") == focus and page.run("return boxes[1].w === boxes[0].w")
    assert focus in page.text("#tip")
    page.keys("#flame", Keys.ESCAPE)
    assert page.run(boxes) == names
    # By waker: the holder of the lock ended the waits of the thread in the middle.
    page.choose("waits, by waker: locks, disks, CPU …")
    wakers = page.run("""const top = boxes.filter((b) => tree.parent[b.node] === 0).map((b) => b.node);
        return top.map((n) => [tree.name(n), (tree.children[n] || []).map((k) => tree.name(k))]);""")
    assert "middle" in dict(wakers)["waker: holder"], wakers


def test_search_threads_and_sort(page):
    page.write("#search", "CULPRIT_compute")
    assert [r[0] for r in page.rows()] == ["culprit_compute"]
    found = float(re.search(r"found: ([\d.]+) %", page.text("#colors"))[1])
    assert 0 < found <= 100 and found >= float(page.rows()[0][4].split()[0])
    page.write("#search", "")
    assert len(page.rows()) > 1
    for column in ("name", "object", "samples", "self", "total"):
        page.find(f"button[data-column={column}]").click()
        once = page.rows()
        assert page.find(f"button[data-column={column}]").find_element("xpath", "..").get_attribute("aria-sort") in ("ascending", "descending")
        page.find(f"button[data-column={column}]").click()
        again = page.rows()
        assert len({r[0] for r in once}) > 1 and once != again
    page.run("const s = document.getElementById('rows-of'); s.value = 'threads'; s.dispatchEvent(new Event('change'))")
    page.run("state.allRows = true; drawTable()")
    process = f"pid {PIDS['hostile']}, tid {PIDS['hostile']}"
    samples = {r[0]: int(r[2].replace(",", "")) for r in page.rows() if r[1] == process}
    page.write("#task", str(PIDS["hostile"]))
    assert {r[0]: int(r[2].replace(",", "")) for r in page.rows()} == samples and samples[HOSTILE_COMM] > 0
    assert shown_sum(page)[0] == sum(samples.values())
    page.write("#task", "no such thread")
    assert "Nothing to show" in page.text("#more") and page.find("#sum").get_attribute("data-samples") == "0"


def test_compare_with_the_window_before(page, dump):
    # From the first sample of the program with hostile names on: before, it did not run.
    page.run("""const first = entries.bucket[entries.task.findIndex((t) => data.tasks[t][0] === arguments[0])];
        setWindow(first, data.buckets);""", PIDS["hostile"])
    page.find("#compare").click()
    page.settle()
    from_ns, to_ns, _ = window_of(page)
    assert from_ns > 0
    now, before = page_sums(page)["cpu-clock"][1], None
    assert "more than in the window before" in page.text("#colors")
    change = page.run("return [now.total[0], before.total[0], beforeScale()]")
    # The window before, chosen by itself, has the same sum.
    bucket_ns = page.run("return data.bucket_ns")
    a, b = page.run("return beforeWindow()")
    assert b * bucket_ns == from_ns
    page.run("setWindow(arguments[0], arguments[1])", a, b)
    before = check_window(page, dump).get("cpu-clock", (0, 0))[1]
    assert change[:2] == [now, before] and change[2] == pytest.approx((to_ns - from_ns) / ((b - a) * bucket_ns))
    # A function that did not run before is more by all of its time.
    page.run("setWindow(arguments[0], data.buckets)", b)
    page.write("#task", str(PIDS["hostile"]))
    row = next(r for r in page.rows() if r[0] == "compute")
    assert row[6] == "0" and row[7] == f"+{row[3]}"


def luminance(color):
    channels = [int(c) / 255 for c in re.findall(r"\d+", color)[:3]]
    linear = [c / 12.92 if c <= 0.03928 else ((c + 0.055) / 1.055)**2.4 for c in channels]
    return 0.2126 * linear[0] + 0.7152 * linear[1] + 0.0722 * linear[2]


def contrast(a, b):
    low, high = sorted((luminance(a), luminance(b)))
    return (high + 0.05) / (low + 0.05)


def test_dark_and_light(page):
    seen = {}
    for scheme in ("light", "dark"):
        page.media(scheme)
        color = "const s = getComputedStyle(document.querySelector(arguments[0])); return s[arguments[1]]"
        back = page.run(color, "body", "backgroundColor")
        for selector in ("body", "p.soft", "#cause", "pre", "#sum"):
            own = page.run(color, selector, "backgroundColor")
            behind = back if own in ("rgba(0, 0, 0, 0)", "transparent") else own
            assert contrast(page.run(color, selector, "color"), behind) >= 4.5, (scheme, selector)
        seen[scheme] = (back, page.run("return document.getElementById('lanes').toDataURL()"))
        # The texts in the flame graph and the lanes, on each of their colours.
        fills = page.run("return [INK, ...Object.values(FILL), ...KIND_FILLS]")
        assert page.run("return KIND_FILLS.length === data.kinds.length")
        rgb = ["rgb({}, {}, {})".format(*(int(f[i:i + 2], 16) for i in (1, 3, 5))) for f in fills]
        assert all(contrast(rgb[0], f) >= 4.5 for f in rgb[1:])
    assert luminance(seen["dark"][0]) < 0.1 < 0.8 < luminance(seen["light"][0]) and seen["dark"][1] != seen["light"][1]


def test_print(page):
    page.media("dark")
    page.run("""window.addEventListener("beforeprint", () => {
        window.printed = [getComputedStyle(document.body).backgroundColor, document.getElementById("heat").clientWidth]; });""")
    before = page.run("return document.getElementById('heat').clientWidth")
    pdf = page.driver.execute_cdp_cmd("Page.printToPDF", {"printBackground": True})["data"]
    assert len(pdf) > 20_000
    back, width = page.run("return window.printed")
    assert luminance(back) == 1 and width < before
    assert page.run("return document.getElementById('heat').clientWidth") == before


def test_everything_can_be_reached_by_keyboard(page):
    from selenium.webdriver import Keys
    page.run("document.activeElement.blur()")
    reached = set()
    for _ in range(60):
        page.driver.switch_to.active_element.send_keys(Keys.TAB)
        at = page.run("""const e = document.activeElement;
            return [e.id || e.dataset.column || e.dataset.view || "", getComputedStyle(e).outlineStyle];""")
        if at[0]:
            assert at[1] != "none", at
        reached.add(at[0])
    assert {"heat", "lanes", "flame", "event", "task", "search", "compare", "all", "incident", "help", "cpu", "wait", "name", "self"} <= reached
    for selector in ("#heat", "#lanes", "#flame"):
        assert len(page.find(selector).get_attribute("aria-label")) > 20


def test_lanes_say_why_a_thread_waits(page):
    from selenium.webdriver import Keys
    lane = page.run("return activeLanes.findIndex((l) => data.tasks[l.task][2] === 'middle')")
    assert lane >= 0
    page.run("state.allLanes = true; drawLanes()")
    page.keys("#lanes", *[Keys.ARROW_DOWN] * (lane + 1))
    texts = []
    for _ in range(12):
        page.keys("#lanes", Keys.ARROW_RIGHT)
        texts.append(page.text("#tip"))
    locks = [t for t in texts if re.match(r"middle \d+ waited: lock", t)]
    assert any("ended by holder" in t and "culprit_middle" in t for t in locks), texts
    page.keys("#lanes", Keys.ENTER)
    assert "only threads that match" in page.text("#sum")


def test_a_wait_that_has_not_ended(page, dump):
    """It is in the lanes up to the end of the recording, and in the flame graphs."""
    wait, lane = page.run("""const lane = lanes.find((l) => data.tasks[l.task][1] === arguments[0]), wait = lane.waits.at(-1);
        state.allLanes = true; state.lane = lane; state.wait = lane.waits.length - 1; drawLanes();
        return [wait, waitText(lane, wait)];""", PIDS["flock"])
    assert wait["isOpen"] and page.run("return data.kinds[arguments[0]]", wait["kind"]) == "lock"
    assert "flock" in lane and "waited: lock" in lane and "it has not ended" in lane and "ended by" not in lane
    end_ns = meta(dump)["window"]["to_ns"] - meta(dump)["window"]["from_ns"]
    # Times in the page are in µs, without their fractions.
    assert page.run("return activeLanes.indexOf(state.lane)") >= 0 and wait["to"] - wait["from"] > 1e9 and wait["to"] >= end_ns - 2000
    assert "the wait has not ended" in page.text("#lanes-about")
    page.choose("waits: locks, disks, CPU …")
    below = "return tree.children[tree.children[0].find((n) => tree.name(n) === arguments[0])].map((n) => tree.name(n))"
    assert page.run("return tree.children[0].map((n) => tree.name(n))").count("flock") == 1
    assert any(r[0] == "locks_lock_inode_wait" for r in page.rows())
    page.choose("waits, by waker: locks, disks, CPU …")
    assert "flock" in page.run(below, "waker: (nobody yet)")
    # Only the last window has it.
    page.choose("flightrec:waiting: waits that have not ended")
    assert shown_sum(page)[0] > 0
    page.run("setWindow(0, data.buckets - 1)")
    assert shown_sum(page)[0] == 0 and "No samples of this event in this window" in page.text("#more")


def test_without_samples(shared_browser, dump, tmp_path):
    """A page that shows nothing says why."""
    for args in (["--comm=no-such-name"], ["--event=flightrec:waker"]):
        path = tmp_path / "empty.html"
        must(program("flightrec-report"), "report", "--html", "-q", "-o", path, *args, dump)
        b = shared_browser.open(path)
        # New processes are found in other records, which are not filtered. Other tests make many.
        explanation = must(program("flightrec-report"), "explain", "-q", *args, dump).out
        assert ("Nothing can be said" in b.text("#cause")) == ("Nothing can be said" in explanation)
        assert "options of flightrec-report" in b.text("p.note")
        assert "There are no waits" in b.find("[data-view=wait]").get_attribute("title")
        if "--comm" in args[0]:
            assert "There are no samples" in b.text("#meaning") and "There are no samples" in b.text("#more")
        assert not b.complaints()


def page_and_explanation(dump):
    """Makes a page, and returns its path and what explain prints at the same time. Names of functions come from the files of other
    programs, too, which can vanish between the two."""
    def explain():
        return must(program("flightrec-report"), "explain", "-q", dump).out

    def both():
        before, path, after = explain(), make_page(dump), explain()
        return (path, after) if before == after else None

    return until("an explanation that stays the same", both)


def test_without_javascript(dump):
    page_file, explanation = page_and_explanation(dump)
    b = Browser(script=False)
    try:
        b.open(page_file)
        # Control characters of names are not in the page. The command that explain proposes has the path of the file on this
        # machine, so the page does not have it.
        lines = [line for line in explanation.splitlines() if not line.startswith("Next: ")]
        clean = [re.sub(r"[^ -~…]+", "", line).strip() for line in lines]
        shown = re.sub(r"[^ -~…\n]+", "", b.driver.find_element("id", "explanation").get_attribute("textContent"))
        assert [line for line in clean if line not in shown] == []
        first = re.search(r"^1\. (\S+): (.*)$", explanation, re.M)
        cause = " ".join(b.find("#cause").get_attribute("textContent").split())
        wanted = f"{first[1]} {first[2]}" if first else "Nothing unusual was found."
        assert cause == " ".join(re.sub(r"[^ -~…]+", "", wanted).split()), explanation
        assert "needs JavaScript" in b.text("noscript") and not b.find("#heat").is_displayed()
        assert not b.complaints()
    finally:
        b.close()


def test_hostile_names_are_only_text(page, page_file):
    """Names of functions, threads and files that contain HTML, quotes and control characters are shown, and do nothing."""
    names = page.run("return data.frames.map((f) => f[0])")
    assert HOSTILE[0] in names and HOSTILE[1] in names
    assert any(n.startswith("longlong") and len(n) <= 401 for n in names)
    assert {HOSTILE_COMM, HOSTILE_THREAD} <= {t[2] for t in page.run("return data.tasks")}
    elements = "return [...new Set([...document.querySelectorAll('*')].map((e) => e.localName))].sort()"
    before = page.run(elements)
    assert not {"img", "x"} & set(before) and page.run("return document.scripts.length") == 2
    # In the table, the sum, the hints of the flame graph and of the lanes, and as a waker's victim.
    for text in (*HOSTILE[:2], HOSTILE_COMM, HOSTILE_THREAD):
        page.write("#search", text)
        page.write("#task", text if text in (HOSTILE_COMM, HOSTILE_THREAD) else "")
        page.run("zoomTo(0)")
        page.run("""zoomTo([...tree.parent.keys()].find((node) => isFound(node) && now.total[node]));
            tellBox(boxes.find((b) => b.node === state.focus));""")
        assert page.text("#tip").startswith(text), text
        if text in HOSTILE:
            assert text in [r[0] for r in page.rows()]
            continue
        assert f"“{text}”" in page.text("#sum")
        page.run("const s = byId('rows-of'); s.value = 'threads'; s.dispatchEvent(new Event('change'))")
        assert {r[0] for r in page.rows()} == {text}
        page.run("state.allLanes = true; state.lane = lanes.find((l) => data.tasks[l.task][2] === arguments[0]); drawLanes()", text)
        page.keys("#lanes", "\ue014")  # the arrow to the right
        assert page.text("#tip").startswith(text), page.text("#tip")
        page.run("const s = byId('rows-of'); s.value = 'functions'; s.dispatchEvent(new Event('change'))")
    page.write("#task", "")
    page.choose("flightrec:waker: stacks of wakers")
    assert f"wakes {HOSTILE_THREAD}" in page.run("return tree.texts")
    assert set(page.run(elements)) <= set(before) and page.driver.title != "hacked"
    raw = page_file.read_bytes()
    assert raw.lower().count(b"<script") == 2 and raw.lower().count(b"</script") == 2  # the data and the program
    assert not [c for c in raw if c < 32 and c not in b"\n\t"]


def test_a_hostile_script_in_the_page_would_not_run(shared_browser, page_file, tmp_path):
    """The policy of the page allows only its own program: a second line of defence."""
    forged = tmp_path / "forged.html"
    forged.write_text(page_file.read_text().replace("<h2>What happened</h2>", f"<script>{HACKED}</script><img src=http://127.0.0.1:9/x>"))
    b = shared_browser.open(forged)
    assert b.driver.title != "hacked"
    said = b.complaints()
    assert any("Content Security Policy" in s and "inline script" in s for s in said) and any("127.0.0.1" in s for s in said), said


def test_hostile_file_names(shared_browser, dump, tmp_path):
    copy = tmp_path / f"<img src=x onerror={HACKED}>\x1b\xff.data"
    shutil.copy(dump, copy)
    b = shared_browser.open(make_page(copy).rename(tmp_path / "page.html"))
    assert f"<img src=x onerror={HACKED}>" in b.text("h1") and b.driver.title != "hacked" and not b.complaints()
    # Without the JSON of the dump, the trigger is known from its sample.
    assert "▼ the trigger" in b.text("#legend-trigger")


def test_a_file_of_perf_has_no_waits_and_no_trigger(shared_browser, tmp_path):
    path = tmp_path / "perf.data"
    must("perf", "record", "-q", "--timestamp-boundary", "-e", "cpu-clock", "-g", "-a", "-o", path, "--", program("frtest-culprit"), "-t", 2, "hog")
    b = shared_browser.open(make_page(path))
    assert b.text("#legend-trigger") == "This recording has no trigger." and "no waits" in b.text("#lanes-about")
    assert not b.find("[data-view=wait]").is_enabled() and not b.find("[data-view=waker]").is_enabled()
    n, weight = perf_sums(path)["cpu-clock"]
    assert b.find("#sum").get_attribute("data-samples") == str(n) and b.find("#sum").get_attribute("data-weight") == str(weight)
    b.run("setIncident()")
    assert not b.complaints()


def test_a_damaged_file(shared_browser, dump, tmp_path):
    """Either flightrec-report says what is wrong, or the page works and says it."""
    pages = 0
    for n, part in enumerate((0.3, 0.6, 0.9)):
        raw = bytearray(dump.read_bytes())
        at = int(len(raw) * part)
        raw[at:at + 512] = b"\xff" * 512
        broken = tmp_path / f"broken{n}.data"
        broken.write_bytes(raw)
        out = tmp_path / f"broken{n}.html"
        r = run(program("flightrec-report"), "report", "--html", "-o", out, broken)
        assert r.code in (0, 1), r
        if r.code:
            assert r.err.startswith("flightrec-report: ")
            continue
        pages += 1
        b = shared_browser.open(out)
        assert b.text("#sum") and not b.complaints()
    assert pages


@pytest.mark.long
def test_size_of_a_minute(tmp_path, recorder):
    """A page of 60 s of the whole machine under different loads, with the default events and stacks, has at most 2 MB."""
    d = recorder("--config", quiet_config(tmp_path / "d.conf", "[Dump]\nCacheObjects=no\n"))
    begin = time.monotonic()
    loads = [culprit("-t", 100, kind) for kind in ("lock", "hog", "forks", "library", "child")]
    loads.append(culprit("-t", 100, "-f", tmp_path / "data", "disk"))
    until("a minute", lambda: time.monotonic() - begin > 61, 90)
    path = d.dump_by_control()
    end(*loads)
    size = make_page(path).stat().st_size
    n = sum(count for count, _ in perf_sums(path).values())
    seconds = meta(path)["window"]["seconds"]
    print(f"{size} bytes for {n} samples of {seconds:.1f} s, {os.cpu_count()} CPUs")
    assert seconds > 60 and n > 5000 and size <= MAX_BYTES
