// SPDX-License-Identifier: GPL-2.0-or-later
// The page of flightrec-report: it has all its data in itself, and makes no request.
"use strict";

const data = JSON.parse(document.getElementById("data").textContent);
const byId = (id) => document.getElementById(id);
const KINDS = ["CPU", "lock", "disk", "memory", "file server", "uninterruptible"];
const KIND_COLORS = ["#e0b000", "#d0413b", "#8a55c8", "#2f9e8f", "#3b78d0", "#8a8f94"];

// --- data ---

function bytesOf(text) {
  const raw = atob(text), bytes = new Uint8Array(raw.length);
  for (let i = 0; i < raw.length; i++) bytes[i] = raw.charCodeAt(i);
  return bytes;
}

// Reads the numbers of a base64 text: varints, seven bits a byte.
function numbersOf(text) {
  const bytes = bytesOf(text), numbers = [];
  for (let i = 0; i < bytes.length;) {
    let value = 0, factor = 1, byte;
    do {
      byte = bytes[i++];
      value += (byte & 127) * factor;
      factor *= 128;
    } while (byte & 128);
    numbers.push(value);
  }
  return numbers;
}

// Entries: the samples of one source, task and stack in one bucket of time.
const entries = (() => {
  const n = numbersOf(data.entries), list = [];
  let bucket = 0;
  for (let i = 0; i < n.length; i += 6) {
    bucket += n[i];
    list.push({ bucket, source: n[i + 1], task: n[i + 2], stack: n[i + 3] - 1, count: n[i + 4], weight: n[i + 5] });
  }
  return list;
})();
const nodes = (() => {
  const n = numbersOf(data.stacks), parent = [], frame = [];
  for (let i = 0; i < n.length; i += 2) {
    parent.push(n[i] - 1);
    frame.push(n[i + 1]);
  }
  return { parent, frame };
})();
const heat = bytesOf(data.heat);
const frameName = (f) => data.frames[f][0];
const frameObject = (f) => data.objects[data.frames[f][1]];

// A choice is what the user can look at: one source of samples, or several together.
const choice = () => data.choices[state.choice];

const state = {
  from: 0, to: data.buckets, choice: 0, search: "", task: "", diff: false, zoom: [],
  sort: { column: "self", down: true }, focus: null,
};

function matchesTask(task) {
  const t = data.tasks[task], wanted = state.task.trim().toLowerCase();
  return !wanted || t[2].toLowerCase().includes(wanted) || String(t[0]) === wanted || String(t[1]) === wanted;
}

// Sums the entries of a window as a tree of frames. The root is "all".
function sumTree(from, to) {
  const root = { frame: -1, total: 0, self: 0, count: 0, children: new Map(), parent: null };
  for (const e of entries) {
    if (e.bucket < from || e.bucket >= to || !choice().sources.includes(e.source) || !matchesTask(e.task)) continue;
    const path = [];
    for (let s = e.stack; s >= 0; s = nodes.parent[s]) path.push(nodes.frame[s]);
    let at = root;
    at.total += e.weight;
    at.count += e.count;
    for (let i = path.length - 1; i >= 0; i--) {
      let next = at.children.get(path[i]);
      if (!next) at.children.set(path[i], next = { frame: path[i], total: 0, self: 0, count: 0, children: new Map(), parent: at });
      next.total += e.weight;
      next.count += e.count;
      at = next;
    }
    at.self += e.weight;
    at.selfCount = (at.selfCount || 0) + e.count;
  }
  return root;
}

// Sums by function: `self` without the functions that it calls, `total` with them; a recursion counts once.
function sumFunctions(from, to) {
  const sums = new Map();
  for (const e of entries) {
    if (e.bucket < from || e.bucket >= to || !choice().sources.includes(e.source) || !matchesTask(e.task)) continue;
    const seen = new Set();
    for (let s = e.stack, first = true; s >= 0; s = nodes.parent[s], first = false) {
      const f = nodes.frame[s];
      let sum = sums.get(f);
      if (!sum) sums.set(f, sum = { frame: f, self: 0, total: 0, samples: 0 });
      if (first) {
        sum.self += e.weight;
        sum.samples += e.count;
      }
      if (!seen.has(f)) sum.total += e.weight;
      seen.add(f);
    }
  }
  return sums;
}

function windowBefore() {
  const length = state.to - state.from;
  return [Math.max(0, state.from - length), state.from];
}

// --- texts ---

const seconds = (bucket) => (bucket * data.bucket_ms / 1000).toFixed(2);
function amount(weight) {
  if (choice().unit !== "ns") return weight.toLocaleString("en");
  return weight >= 1e9 ? (weight / 1e9).toFixed(2) + " s" : weight >= 1e6 ? (weight / 1e6).toFixed(1) + " ms" : (weight / 1e3).toFixed(0) + " µs";
}
const percent = (part, all) => (all ? 100 * part / all : 0).toFixed(1) + " %";

// --- drawing ---

const style = (name) => getComputedStyle(document.documentElement).getPropertyValue(name).trim();

function prepare(canvas, height) {
  const ratio = window.devicePixelRatio || 1, width = canvas.clientWidth;
  canvas.style.height = height + "px";
  canvas.width = Math.round(width * ratio);
  canvas.height = Math.round(height * ratio);
  const c = canvas.getContext("2d");
  c.scale(ratio, ratio);
  c.clearRect(0, 0, width, height);
  c.font = "12px system-ui, sans-serif";
  c.textBaseline = "middle";
  return [c, width, height];
}

const LEFT = 120; // pixels for the names of rows

function timeToX(bucket, width) {
  return LEFT + bucket / data.buckets * (width - LEFT);
}

function xToTime(x, width) {
  return Math.max(0, Math.min(data.buckets, Math.round((x - LEFT) / (width - LEFT) * data.buckets)));
}

function drawWindow(c, width, height) {
  c.fillStyle = "rgba(11, 99, 206, 0.16)";
  const x = timeToX(state.from, width);
  if (state.from > 0 || state.to < data.buckets) c.fillRect(x, 0, Math.max(2, timeToX(state.to, width) - x), height);
  if (data.trigger_ms === null) return;
  c.strokeStyle = style("--more");
  c.lineWidth = 2;
  c.beginPath();
  const at = timeToX(data.trigger_ms / data.bucket_ms, width);
  c.moveTo(at, 0);
  c.lineTo(at, height);
  c.stroke();
}

function drawHeat() {
  const row = Math.max(6, Math.min(22, 260 / data.cpus));
  const [c, width, height] = prepare(byId("heat"), row * data.cpus + 18);
  const step = (width - LEFT) / data.buckets;
  for (let cpu = 0; cpu < data.cpus; cpu++) {
    if (row >= 12 || cpu % 8 === 0) {
      c.fillStyle = style("--soft");
      c.fillText("CPU " + cpu, 8, cpu * row + row / 2);
    }
    for (let b = 0; b < data.buckets; b++) {
      const busy = heat[cpu * data.buckets + b] / 255;
      if (!busy) continue;
      c.fillStyle = `rgba(214, 94, 40, ${0.12 + 0.88 * busy})`;
      c.fillRect(timeToX(b, width), cpu * row, Math.ceil(step) , row - 1);
    }
  }
  c.fillStyle = style("--soft");
  for (let i = 0; i <= 10; i++) {
    const b = data.buckets * i / 10;
    c.textAlign = i === 10 ? "right" : i === 0 ? "left" : "center";
    c.fillText(seconds(b) + " s", timeToX(b, width), row * data.cpus + 10);
  }
  c.textAlign = "left";
  drawWindow(c, width, row * data.cpus);
}

function drawLanes() {
  const row = 16;
  const [c, width, height] = prepare(byId("lanes"), Math.max(1, data.lanes.length) * row + 4);
  data.lanes.forEach((lane, i) => {
    const y = i * row + 2, t = data.tasks[lane.task], runs = bytesOf(lane.runs);
    c.fillStyle = style("--soft");
    c.fillText(`${t[2]} ${t[1]}`.slice(0, 19), 4, y + row / 2);
    for (let b = 0; b < runs.length; b++) {
      if (!runs[b]) continue;
      c.fillStyle = `rgba(60, 160, 80, ${0.25 + 0.75 * runs[b] / 255})`;
      c.fillRect(timeToX(b, width), y, Math.max(1, (width - LEFT) / data.buckets), row - 3);
    }
    for (const [start, length, kind] of lane.waits) {
      c.fillStyle = KIND_COLORS[kind];
      c.fillRect(timeToX(start / data.bucket_ms, width), y + 2, Math.max(1, length / data.bucket_ms / data.buckets * (width - LEFT)), row - 7);
    }
  });
  drawWindow(c, width, height);
}

// The frames that the flame graph shows, for the mouse and the keyboard: {x, y, w, node, before}.
let boxes = [];
let tree, treeBefore;
const ROW = 18;

function findNode(root, path) {
  let at = root;
  for (const frame of path) at = at && at.children.get(frame);
  return at || null;
}

function colorOf(node, before, scale) {
  if (node.frame < 0) return style("--other");
  if (state.search && frameName(node.frame).toLowerCase().includes(state.search)) return style("--found");
  if (state.diff) {
    const change = (node.total - (before ? before.total * scale : 0)) / Math.max(1, tree.total);
    if (Math.abs(change) < 0.002) return style("--other");
    return change > 0 ? style("--more") : style("--less");
  }
  return data.frames[node.frame][2] ? style("--kernel") : style("--user");
}

function depthOf(node) {
  let most = 0;
  for (const child of node.children.values()) most = Math.max(most, 1 + depthOf(child));
  return most;
}

function drawFlame() {
  const zoomed = findNode(tree, state.zoom);
  if (!zoomed) state.zoom = [];
  const root = zoomed || tree, canvas = byId("flame");
  const [c, width] = prepare(canvas, Math.min(60, depthOf(root) + 1 + state.zoom.length) * ROW + 4);
  const [from, to] = windowBefore(), scale = to > from ? (state.to - state.from) / (to - from) : 0;
  boxes = [];
  const draw = (node, before, x, w, y) => {
    if (w < 0.7 || y > 59) return;
    boxes.push({ x, y: y * ROW, w, node, before });
    c.fillStyle = colorOf(node, before, scale);
    c.fillRect(x, y * ROW, Math.max(0.7, w - 0.6), ROW - 1);
    if (w > 28) {
      c.fillStyle = "#fff";
      c.save();
      c.beginPath();
      c.rect(x, y * ROW, w - 2, ROW);
      c.clip();
      c.fillText(node.frame < 0 ? "all" : frameName(node.frame), x + 4, y * ROW + ROW / 2);
      c.restore();
    }
    if (boxes.length && state.focus === node) {
      c.strokeStyle = style("--text");
      c.lineWidth = 2;
      c.strokeRect(x + 1, y * ROW + 1, Math.max(2, w - 3), ROW - 3);
    }
    let at = x;
    const children = [...node.children.values()].sort((a, b) => frameName(a.frame) < frameName(b.frame) ? -1 : 1);
    for (const child of children) {
      const part = w * child.total / Math.max(1, node.total);
      draw(child, before && before.children.get(child.frame), at, part, y + 1);
      at += part;
    }
  };
  const above = [];
  for (let n = root.parent; n; n = n.parent) above.unshift(n);
  above.forEach((n, i) => {
    boxes.push({ x: 0, y: i * ROW, w: width, node: n });
    c.fillStyle = style("--other");
    c.fillRect(0, i * ROW, width, ROW - 1);
    c.fillStyle = "#fff";
    c.fillText(n.frame < 0 ? "all" : frameName(n.frame), 4, i * ROW + ROW / 2);
  });
  draw(root, findNode(treeBefore, state.zoom), 0, width, above.length);
  if (!root.total) {
    c.fillStyle = style("--soft");
    c.fillText("no samples in this window", 8, ROW / 2);
  }
}

function tell(box) {
  if (!box) return;
  const n = box.node, where = n.frame < 0 ? "all" : `${frameName(n.frame)} (${frameObject(n.frame)})`;
  let text = `${where}: ${amount(n.total)}, ${percent(n.total, tree.total)}, ${n.count} samples`;
  if (state.diff) text += `; before: ${amount(box.before ? box.before.total : 0)}`;
  byId("tip").textContent = text;
}

function drawTable() {
  const now = sumFunctions(state.from, state.to), before = sumFunctions(...windowBefore());
  const rows = [...now.values()].map((r) => ({
    ...r, name: frameName(r.frame), object: frameObject(r.frame), before: before.has(r.frame) ? before.get(r.frame).self : 0,
  })).filter((r) => !state.search || r.name.toLowerCase().includes(state.search));
  const { column, down } = state.sort;
  rows.sort((a, b) => (a[column] < b[column] ? -1 : a[column] > b[column] ? 1 : 0) * (down ? -1 : 1));
  const body = byId("rows");
  body.textContent = "";
  for (const r of rows.slice(0, 200)) {
    const tr = document.createElement("tr");
    const cells = [[r.name], [r.object], [r.samples, 1], [amount(r.self), 1], [percent(r.self, tree.total), 1], [amount(r.total), 1], [amount(r.before), 1]];
    for (const [text, isNumber] of cells) {
      const td = document.createElement("td");
      td.textContent = text;
      if (isNumber) td.className = "number";
      tr.append(td);
    }
    body.append(tr);
  }
  document.querySelectorAll("th[data-column]").forEach((th) =>
    th.setAttribute("aria-sort", th.dataset.column === column ? (down ? "descending" : "ascending") : "none"));
  byId("more").textContent = rows.length > 200 ? `${rows.length - 200} more functions` : "";
}

function update() {
  tree = sumTree(state.from, state.to);
  treeBefore = sumTree(...windowBefore());
  byId("sum").textContent = `${seconds(state.from)} s to ${seconds(state.to)} s: ${tree.count} samples, ${amount(tree.total)}`;
  drawHeat();
  drawFlame();
  drawLanes();
  drawTable();
}

// --- the user ---

function setWindow(from, to) {
  state.from = Math.max(0, Math.min(from, to, data.buckets - 1));
  state.to = Math.min(data.buckets, Math.max(from, to, state.from + 1));
  update();
}

function brush(canvas) {
  let begin = null;
  const time = (event) => xToTime(event.offsetX, canvas.clientWidth);
  canvas.addEventListener("pointerdown", (event) => {
    begin = time(event);
    canvas.setPointerCapture(event.pointerId);
  });
  canvas.addEventListener("pointermove", (event) => {
    if (begin !== null && time(event) !== begin) setWindow(begin, time(event));
  });
  canvas.addEventListener("pointerup", (event) => {
    if (begin !== null && time(event) === begin) setWindow(0, data.buckets);
    begin = null;
  });
  canvas.addEventListener("keydown", (event) => {
    const step = Math.max(1, Math.round(data.buckets / 60)), grow = event.shiftKey;
    if (event.key === "ArrowRight") setWindow(grow ? state.from : state.from + step, Math.min(data.buckets, state.to + step));
    else if (event.key === "ArrowLeft") setWindow(grow ? state.from : Math.max(0, state.from - step), Math.max(state.from + 1, state.to - step));
    else if (event.key === "Escape") setWindow(0, data.buckets);
    else if (event.key === "Enter") setWindow(Math.max(0, data.buckets - 10 * step), data.buckets);
    else return;
    event.preventDefault();
  });
}

function pathOf(node) {
  const path = [];
  for (; node.parent; node = node.parent) path.unshift(node.frame);
  return path;
}

function flameKeys(event) {
  const at = state.focus && boxes.find((b) => b.node === state.focus) || boxes[0];
  if (!at) return;
  const children = [...at.node.children.values()].sort((a, b) => b.total - a.total);
  const beside = at.node.parent ? boxes.filter((b) => b.node.parent === at.node.parent) : [at];
  const next = {
    ArrowDown: children[0], ArrowUp: at.node.parent,
    ArrowRight: (beside[beside.indexOf(at) + 1] || at).node, ArrowLeft: (beside[beside.indexOf(at) - 1] || at).node,
  }[event.key];
  if (event.key === "Enter") state.zoom = pathOf(at.node);
  else if (event.key === "Escape" || event.key === "Backspace") state.zoom = state.zoom.slice(0, -1);
  else if (next) state.focus = next;
  else return;
  event.preventDefault();
  drawFlame();
  tell(boxes.find((b) => b.node === state.focus));
}

function start() {
  const select = byId("event");
  data.choices.forEach((e, i) => {
    const option = document.createElement("option");
    option.value = i;
    option.textContent = e.title;
    select.append(option);
  });
  select.addEventListener("change", () => { state.choice = Number(select.value); state.zoom = []; state.focus = null; update(); });
  byId("search").addEventListener("input", (event) => { state.search = event.target.value.trim().toLowerCase(); drawFlame(); drawTable(); });
  byId("task").addEventListener("input", (event) => { state.task = event.target.value; update(); });
  byId("diff").addEventListener("change", (event) => { state.diff = event.target.checked; drawFlame(); });
  byId("reset").addEventListener("click", () => { state.zoom = []; setWindow(0, data.buckets); });
  brush(byId("heat"));
  brush(byId("lanes"));
  const flame = byId("flame");
  const boxAt = (event) => boxes.filter((b) => event.offsetX >= b.x && event.offsetX < b.x + b.w && event.offsetY >= b.y && event.offsetY < b.y + ROW).pop();
  flame.addEventListener("mousemove", (event) => tell(boxAt(event)));
  flame.addEventListener("click", (event) => {
    const box = boxAt(event);
    if (!box) return;
    state.zoom = pathOf(box.node);
    state.focus = box.node;
    drawFlame();
    tell(box);
  });
  flame.addEventListener("keydown", flameKeys);
  document.querySelectorAll("th[data-column]").forEach((th) => {
    const sort = () => {
      state.sort = { column: th.dataset.column, down: state.sort.column === th.dataset.column ? !state.sort.down : th.className === "number" };
      drawTable();
    };
    th.addEventListener("click", sort);
    th.addEventListener("keydown", (event) => { if (event.key === "Enter") sort(); });
  });
  const legend = byId("kinds");
  [["running", "rgb(60, 160, 80)"], ...KINDS.map((k, i) => ["waits: " + k, KIND_COLORS[i]])].forEach(([name, color]) => {
    const item = document.createElement("span"), mark = document.createElement("i");
    mark.style.background = color;
    item.append(mark, name);
    legend.append(item);
  });
  window.addEventListener("resize", update);
  window.matchMedia("(prefers-color-scheme: dark)").addEventListener("change", update);
  update();
}

start();
