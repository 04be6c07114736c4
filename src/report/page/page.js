// SPDX-License-Identifier: GPL-2.0-or-later
// Joins the parts of the page: what the user does changes the state, and update() draws it.

let isRequested = false;

// Draws once for all changes before the next picture.
function requestUpdate() {
  if (isRequested) return;
  isRequested = true;
  requestAnimationFrame(() => {
    isRequested = false;
    update();
  });
}

function update() {
  if (tree !== treeOf(choice())) {
    tree = treeOf(choice());
    state.zoom = 0;
    state.focus = -1;
  }
  const wanted = state.task.trim().toLowerCase();
  tasks = data.tasks.map((t, i) => matchesTask(i, wanted));
  now = sumTree(tree, state.from, state.to, tasks);
  before = sumTree(tree, ...beforeWindow(), tasks);
  describe();
  drawHeat();
  drawLanes();
  drawFlame();
  drawTable();
}

function describe() {
  const from = state.from * data.bucket_ns, to = state.to * data.bucket_ns, isAll = from === 0 && state.to === data.buckets;
  byId("window").textContent = `${isAll ? "The whole recording" : "Window"}: ${describeTime(from)} to ${describeTime(Math.min(to, data.span_ns))}, ${duration(Math.min(to, data.span_ns) - from)}`;
  byId("window").dataset.from = from;
  byId("window").dataset.to = to;
  describeCommand(from, to, isAll);
  describeSum(Math.min(to, data.span_ns) - from);
  byId("meaning").textContent = MEANINGS[choice().by === "waking" ? "waking" : choice().view] + (state.compare ? ` ${compareText()}` : "");
  for (const button of document.querySelectorAll("[data-view]")) button.setAttribute("aria-pressed", button.dataset.view === choice().view);
  byId("all").setAttribute("aria-pressed", isAll);
  byId("incident").setAttribute("aria-pressed", !isAll && state.from === Math.floor(data.incident_ns / data.bucket_ns) && state.to === data.buckets);
  describeFlame();
}

// The same window for the terminal. Its last nanosecond is not in the window. The last window has no end, because the open waits
// and the trigger are later than the last sample.
function describeCommand(from, to, isAll) {
  const p = byId("command");
  p.textContent = "";
  if (isAll || data.wall_ns === null) return;
  const code = document.createElement("code");
  code.textContent = `--from="${exactTime(from)}"${state.to < data.buckets ? ` --to="${exactTime(to - 1)}"` : ""}`;
  p.append("The same for flightrec-report: ", code);
}

function describeSum(length) {
  const all = now.total[0], sum = byId("sum"), isTime = choice().unit === "ns";
  let text = `${plural(now.count[0], "sample")}, ${isTime ? amount(all) : `sum of periods ${amount(all)}`}`;
  if (isTime && length > 0) {
    const average = (all / length).toFixed(2);
    text += choice().view === "cpu" ? `: ${average} of ${plural(data.cpus, "CPU")} on average` : `: ${average} threads on average`;
  }
  if (state.compare) text += `; before, ${amount(before.total[0] * beforeScale())} (${signed(amount(all - before.total[0] * beforeScale()))})`;
  if (state.task) text += `; only threads that match “${state.task}”`;
  if (data.without_stack) text += `; ${plural(data.without_stack, "sample")} without their stacks, because there are too many`;
  if (data.left_out) text += `; ${plural(data.left_out, "sample")} of more events are left out`;
  sum.textContent = text;
  sum.dataset.samples = now.count[0];
  sum.dataset.weight = all;
}

function compareText() {
  const [from, to] = beforeWindow();
  if (from === to) return "There is no time before this window to compare with: choose a later one.";
  const window = `${relative(from * data.bucket_ns, 1)} to ${relative(to * data.bucket_ns, 1)}`;
  return `Compared with the window before, ${window}. The width is still the window itself, and a percentage is the change as a part of the larger one of the two windows. A function that ran only before is in the table.`
    + (to - from < state.to - state.from ? " The recording has less time before, so its numbers are scaled to the same length." : "");
}

// --- the user ---

function choose(i) {
  state.choice = i;
  byId("event").value = i;
  requestUpdate();
}

function chooseView(view) {
  const i = choices.findIndex((c) => c.view === view);
  if (i >= 0) choose(i);
}

function setCompare(on) {
  byId("compare").checked = state.compare = on;
  // The whole recording has no time before it.
  if (on && state.from === 0) setIncident();
  requestUpdate();
}

function setSort(column, isNumber) {
  state.sort = { column, down: state.sort.column === column ? !state.sort.down : isNumber };
  drawTable();
}

function globalKeys(event) {
  const isTyping = /^(INPUT|SELECT|TEXTAREA)$/.test(event.target.tagName) && event.target.type !== "checkbox";
  if (isTyping || event.ctrlKey || event.altKey || event.metaKey || byId("keys").open) return;
  const action = {
    a: setAll, i: setIncident, c: () => setCompare(!state.compare), 1: () => chooseView("cpu"), 2: () => chooseView("wait"),
    3: () => chooseView("waker"), "/": () => byId("search").focus(), "?": () => byId("keys").showModal(),
  }[event.key];
  if (!action) return;
  event.preventDefault();
  action();
}

function startControls() {
  const select = byId("event"), titles = { cpu: "On-CPU", wait: "Off-CPU", waker: "By waker", other: "Other events", none: "Nothing" };
  for (const view of Object.keys(titles)) {
    const group = document.createElement("optgroup");
    group.label = titles[view];
    choices.forEach((c, i) => {
      if (c.view !== view) return;
      const option = document.createElement("option");
      option.value = i;
      option.textContent = c.title;
      group.append(option);
    });
    if (group.childElementCount) select.append(group);
  }
  select.addEventListener("change", () => choose(Number(select.value)));
  for (const button of document.querySelectorAll("[data-view]")) {
    button.addEventListener("click", () => chooseView(button.dataset.view));
    if (choices.some((c) => c.view === button.dataset.view)) continue;
    button.disabled = true;
    button.title = { cpu: "There are no samples of CPU time.", other: "There are no other events." }[button.dataset.view]
      || (data.recorded.wait ? "There are no waits." : "There are no waits: record the event offcpu.");
  }
  byId("search").addEventListener("input", (event) => {
    state.search = event.target.value.trim().toLowerCase();
    requestUpdate();
  });
  byId("task").addEventListener("input", (event) => {
    state.task = event.target.value;
    requestUpdate();
  });
  byId("compare").addEventListener("change", (event) => setCompare(event.target.checked));
  byId("rows-of").addEventListener("change", (event) => {
    state.rows = event.target.value;
    drawTable();
  });
  byId("all").addEventListener("click", setAll);
  byId("incident").addEventListener("click", setIncident);
  byId("zoom-out").addEventListener("click", () => zoomTo(tree.parent[state.zoom]));
  byId("help").addEventListener("click", () => byId("keys").showModal());
  for (const button of document.querySelectorAll("button[data-column]"))
    button.addEventListener("click", () => setSort(button.dataset.column, button.parentElement.classList.contains("number")));
}

function startCanvases() {
  const tellers = {
    heat: [tellHeat, heatKeys], lanes: [tellLanes, lanesKeys],
    flame: [(event) => { const box = boxAt(event); tipOn(byId("flame"), box ? nodeText(box.node) : "", event.offsetX, event.offsetY); }, flameKeys],
  };
  brush(byId("heat"), heatScale, (event) => { if (event.offsetX >= leftOf(byId("heat").clientWidth)) setAll(); });
  brush(byId("lanes"), lanesScale, clickLanes);
  byId("flame").addEventListener("click", (event) => {
    const box = boxAt(event);
    if (box) zoomTo(box.node);
  });
  for (const [id, [tell, keys]] of Object.entries(tellers)) {
    byId(id).addEventListener("pointermove", tell);
    byId(id).addEventListener("pointerleave", () => tip(""));
    byId(id).addEventListener("blur", () => tip(""));
    byId(id).addEventListener("keydown", keys);
  }
  document.addEventListener("scroll", () => tip(""), { passive: true });
}

function start() {
  byId("interactive").hidden = false;
  byId("legend-trigger").textContent = data.marks.length ? `▼ the trigger: ${[...new Set(data.marks.map((m) => m[1]))].slice(0, 5).join(", ")}` : "This recording has no trigger.";
  startControls();
  startCanvases();
  describeLanes();
  document.addEventListener("keydown", globalKeys);
  window.addEventListener("resize", requestUpdate);
  window.matchMedia("(prefers-color-scheme: dark)").addEventListener("change", requestUpdate);
  const print = (on) => {
    document.documentElement.classList.toggle("print", on);
    update();
  };
  window.addEventListener("beforeprint", () => print(true));
  window.addEventListener("afterprint", () => print(false));
  byId("more-rows").addEventListener("click", () => {
    state.allRows = !state.allRows;
    drawTable();
  });
  byId("more-lanes").addEventListener("click", () => {
    state.allLanes = !state.allLanes;
    drawLanes();
  });
  update();
}

start();
