// SPDX-License-Identifier: GPL-2.0-or-later
// The lanes: when each thread ran in the window, and what it waited for.

const LANE_ROW = 18;
const LANES_FIRST = 16; // so many lanes are shown at first
const lanes = data.lanes.map((lane) => ({ task: lane.task, isCause: lane.cause, runs: bytesOf(lane.runs), waits: [] }));
(() => {
  const [lane, from, length, kind, other, tid, stack] = columnsOf(data.waits, 7);
  for (let i = 0; i < lane.length; i++)
    lanes[lane[i]].waits.push({
      from: from[i] * 1000, to: (from[i] + length[i]) * 1000, kind: kind[i] >> 1, isOpen: kind[i] % 2 === 1, other: other[i], tid: tid[i],
      stack: stack[i] - 1,
    });
  for (const l of lanes) l.waits.sort((a, b) => a.from - b.from);
})();

// The last kind: an open wait whose stack does not say what it is for.
const KIND_OPEN = data.kinds.length - 1;

// How much a wait counts in the order of the threads, as in page_lanes.c. On a busy machine, all threads wait for a CPU.
const weightOf = (kind) => (kind === KIND_OPEN ? 0 : kind === 0 ? 0.25 : 1);

// The threads that did something in the window: those that the explanation names, then the busiest.
let activeLanes = [];

function chooseLanes() {
  const from = state.from * data.bucket_ns, to = state.to * data.bucket_ns;
  const score = (lane) => {
    let sum = 0;
    for (let i = Math.floor(from / data.run_ns); i < Math.min(to / data.run_ns, lane.runs.length); i++) sum += lane.runs[i] / 255 * data.run_ns;
    for (const w of lane.waits) sum += weightOf(w.kind) * Math.max(0, Math.min(w.to, to) - Math.max(w.from, from));
    return sum;
  };
  activeLanes = lanes.map((lane) => ({ lane, score: score(lane) })).filter((x) => x.score > 0)
    .sort((a, b) => b.lane.isCause - a.lane.isCause || b.score - a.score).map((x) => x.lane);
  const more = activeLanes.length - LANES_FIRST, button = byId("more-lanes");
  button.hidden = more <= 0;
  button.textContent = state.allLanes ? "Show fewer threads" : `Show ${plural(more, "more thread")}`;
  button.setAttribute("aria-expanded", state.allLanes);
}

const lanesShown = () => (state.allLanes ? activeLanes : activeLanes.slice(0, LANES_FIRST));
const lanesScale = (width) => scaleOf(width, state.from * data.bucket_ns, state.to * data.bucket_ns);
const laneName = (lane) => `${data.tasks[lane.task][2]} ${data.tasks[lane.task][1]}`;

// A wait for a CPU is a low box, so that it is not mistaken for another wait if colours look the same. An open wait that can be
// one for work is a line.
function waitBox(wait, y) {
  if (wait.kind === KIND_OPEN) return [y + LANE_ROW / 2 - 2, 3];
  return wait.kind === 0 ? [y + 8, LANE_ROW - 10] : [y + 3, LANE_ROW - 6];
}

// A wait that has not ended has an arrow at its end.
function drawOpenEnd(c, scale, y) {
  const x = Math.min(scale.right, scale.x(data.span_ns));
  c.beginPath();
  c.moveTo(x - 1, y + 3);
  c.lineTo(x + 6, y + LANE_ROW / 2);
  c.lineTo(x - 1, y + LANE_ROW - 3);
  c.fill();
}

function drawLane(c, scale, lane, i) {
  const y = i * LANE_ROW;
  c.globalAlpha = tasks[lane.task] ? 1 : 0.25;
  c.fillStyle = style(lane === state.lane || lane.isCause ? "--text" : "--soft");
  c.font = `${lane.isCause ? "bold " : ""}12px system-ui, sans-serif`;
  clipText(c, laneName(lane), 6, y + LANE_ROW / 2, scale.left - 10);
  c.font = "12px system-ui, sans-serif";
  const last = Math.min(scale.to / data.run_ns, lane.runs.length);
  for (let i = Math.floor(scale.from / data.run_ns); i < last; i++) {
    if (!lane.runs[i]) continue;
    const x = Math.max(scale.left, Math.floor(scale.x(i * data.run_ns))), to = Math.min(scale.right, Math.floor(scale.x((i + 1) * data.run_ns)));
    c.fillStyle = RUNS;
    c.globalAlpha = (tasks[lane.task] ? 1 : 0.25) * (0.25 + 0.75 * lane.runs[i] / 255);
    c.fillRect(x, y + 1, Math.max(1, to - x), LANE_ROW - 2);
  }
  c.globalAlpha = tasks[lane.task] ? 1 : 0.25;
  lane.waits.forEach((wait, k) => {
    if (wait.to < scale.from || wait.from > scale.to) return;
    const a = Math.max(scale.left, scale.x(wait.from)), b = Math.min(scale.right, scale.x(wait.to)), [top, height] = waitBox(wait, y);
    c.fillStyle = KIND_FILLS[wait.kind];
    c.fillRect(a, top, Math.max(1.5, b - a), height);
    if (wait.isOpen && state.to === data.buckets) drawOpenEnd(c, scale, y);
    if (b - a > 50 && wait.kind > 0 && wait.kind !== KIND_OPEN) {
      c.fillStyle = INK;
      clipText(c, `${data.kinds[wait.kind]} ${duration(wait.to - wait.from)}`, a + 4, y + LANE_ROW / 2, b - a - 8);
    }
    if (lane !== state.lane || k !== state.wait) return;
    c.strokeStyle = style("--text");
    c.lineWidth = 2;
    c.strokeRect(a - 1, top - 1, Math.max(1.5, b - a) + 2, height + 2);
  });
  c.globalAlpha = 1;
}

function drawLanes() {
  chooseLanes();
  const shown = lanesShown(), rows = Math.max(1, shown.length) * LANE_ROW + 2, [c, width] = prepare(byId("lanes"), rows + AXIS), scale = lanesScale(width);
  shown.forEach((lane, i) => drawLane(c, scale, lane, i));
  if (!shown.length) {
    c.fillStyle = style("--soft");
    c.fillText("In this window, no thread ran, and no wait was recorded.", scale.left + 8, LANE_ROW / 2);
  }
  drawAxis(c, scale, rows);
  drawMarks(c, scale, rows);
}

// The innermost function of the kernel, and those of the program.
function stackText(stack) {
  const names = [];
  let kernel = 0, user = 0;
  for (let s = stack; s >= 0 && user < 5; s = stacks.parent[s]) {
    const f = stacks.frame[s];
    if (frameIsKernel(f) ? kernel++ === 0 : ++user) names.push(frameName(f));
  }
  return names.length ? `\nstack: ${names.join(" < ")}` : "";
}

function waitText(lane, wait) {
  const what = wait.kind === 0 ? "could run, but waited for a CPU" : `waited: ${data.kinds[wait.kind]}`;
  const to = wait.isOpen ? "the end of the recording: it has not ended" : describeTime(wait.to);
  const by = wait.kind === 0 || wait.isOpen || !wait.other ? "" : `\nthe wait was ended by ${otherName(wait.other)}${wait.tid ? ` (thread ${wait.tid})` : ""}`;
  const length = `${duration(wait.to - wait.from)}${wait.from === 0 ? " or longer: it began before the recording" : ""}`;
  return `${laneName(lane)} ${what}, ${length}\n${describeTime(wait.from)} to ${to}${by}${stackText(wait.stack)}`;
}

function waitAt(lane, ns, nearNs) {
  let found = -1;
  lane.waits.forEach((w, k) => {
    if (w.from <= ns + nearNs && w.to >= ns - nearNs && (found < 0 || w.to - w.from > lane.waits[found].to - lane.waits[found].from)) found = k;
  });
  return found;
}

function tellLanes(event) {
  const canvas = byId("lanes"), scale = lanesScale(canvas.clientWidth), lane = lanesShown()[Math.floor(event.offsetY / LANE_ROW)];
  if (!lane) return tip("");
  const ns = scale.ns(event.offsetX), wait = event.offsetX < scale.left ? -1 : waitAt(lane, ns, scale.ns(scale.left + 2) - scale.from);
  const runs = lane.runs[Math.floor(ns / data.run_ns)];
  const [pid, tid] = data.tasks[lane.task];
  let text = `${data.tasks[lane.task][2]}, pid ${pid}, tid ${tid}`;
  if (event.offsetX < scale.left) text += "\nA click shows only this thread.";
  else if (wait >= 0) text = waitText(lane, lane.waits[wait]);
  else text += `\n${describeTime(ns)}\n${runs ? `ran ${percent(runs, 255)} of ${duration(data.run_ns)}` : "slept, waited for work, or nothing is known"}`;
  tipOn(canvas, text, event.offsetX, event.offsetY);
}

function onlyLane(lane) {
  byId("task").value = state.task = String(data.tasks[lane.task][1]);
  requestUpdate();
}

function clickLanes(event) {
  const lane = lanesShown()[Math.floor(event.offsetY / LANE_ROW)];
  if (!lane) return;
  if (event.offsetX < leftOf(byId("lanes").clientWidth)) onlyLane(lane);
}

function lanesKeys(event) {
  const lane = state.lane, shown = lanesShown();
  if (event.key === "ArrowDown" || event.key === "ArrowUp") {
    state.lane = shown[Math.max(0, Math.min(shown.length - 1, shown.indexOf(lane) + (event.key === "ArrowDown" ? 1 : -1)))] || null;
    state.wait = -1;
  } else if ((event.key === "ArrowLeft" || event.key === "ArrowRight") && lane) {
    const from = state.from * data.bucket_ns, to = state.to * data.bucket_ns;
    const waits = lane.waits.map((w, k) => k).filter((k) => lane.waits[k].to > from && lane.waits[k].from < to);
    const at = waits.indexOf(state.wait) + (event.key === "ArrowRight" ? 1 : -1);
    if (waits.length) state.wait = waits[Math.max(0, Math.min(waits.length - 1, at))];
  } else if (event.key === "Enter" && lane) onlyLane(lane);
  else if (event.key === "Escape") {
    state.lane = null;
    byId("task").value = state.task = "";
    requestUpdate();
  } else return;
  event.preventDefault();
  drawLanes();
  const chosen = state.lane, wait = chosen && chosen.waits[state.wait], canvas = byId("lanes");
  const x = wait ? Math.max(lanesScale(canvas.clientWidth).left, lanesScale(canvas.clientWidth).x(wait.from)) : 0;
  tipOn(canvas, !chosen ? "" : wait ? waitText(chosen, wait) : `${laneName(chosen)}: ${plural(chosen.waits.length, "wait")}`, x, (lanesShown().indexOf(chosen) + 1) * LANE_ROW);
}

function describeLanes() {
  const texts = { 0: "could run, but waited for a CPU (low box)", [KIND_OPEN]: `waits at the end: for ${data.kinds[KIND_OPEN]} (line)` };
  const found = new Set(lanes.flatMap((lane) => lane.waits.map((w) => w.kind)));
  const kinds = data.kinds.map((kind, i) => [texts[i] || `waits: ${kind}`, KIND_FILLS[i]]).filter((_, i) => found.has(i));
  legend(byId("kinds"), [["ran (a strong colour: most of the time)", RUNS], ...kinds]);
  let text = "The threads with the most CPU time and waits in the chosen window; first, with a bold name, those that are causes by the explanation. An empty place: the thread slept, waited for work, or nothing is known.";
  if (lanes.some((lane) => lane.waits.some((w) => w.isOpen))) text += " An arrow at the end: the wait has not ended.";
  if (!data.recorded.wait) text += " There are no waits: record the event offcpu to see what threads wait for.";
  if (data.waits_left_out) text += ` ${plural(data.waits_left_out, "short wait")} of the shown threads are not drawn.`;
  byId("lanes-about").textContent = text;
}
