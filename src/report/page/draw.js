// SPDX-License-Identifier: GPL-2.0-or-later
// What all drawings share: the state of the page, texts of amounts and times, and the axis of time.

const state = {
  from: 0, to: data.buckets, choice: 0, search: "", task: "", compare: false, zoom: 0, focus: -1, lane: null, wait: -1, allLanes: false, allRows: false,
  rows: "functions", sort: { column: "self", down: true },
};
// What update() has computed for the state.
let tree, now, before, tasks;

const choice = () => choices[state.choice];
const windowNs = () => (state.to - state.from) * data.bucket_ns;
// The window before: as long as the window, but the recording may have less time before.
const beforeWindow = () => [Math.max(0, state.from - (state.to - state.from)), state.from];
function beforeScale() {
  const [from, to] = beforeWindow();
  return to > from ? (state.to - state.from) / (to - from) : 0;
}

// --- colours ---

// The palette of Okabe and Ito, which people with any colour vision can tell apart, or lighter shades of it. Text on it is dark.
const INK = "#16181a";
const FILL = { user: "#f0c75e", kernel: "#8ec6ea", name: "#c3cad0", found: "#e39bc7", more: "#e8804d", less: "#6fa8dc", same: "#c3cad0" };
const RUNS = "#009e73";
// By the kinds of waits in page_lanes.c.
const KIND_FILLS = ["#e6b800", "#d55e00", "#cc79a7", "#56b4e9", "#4a88cc", "#b08428", "#8a8f94", "#8a8f94"];
const style = (name) => getComputedStyle(document.documentElement).getPropertyValue(name).trim();

// --- texts ---

function duration(ns) {
  const a = Math.abs(ns);
  // The limits are those at which a rounded number would have a digit more.
  return a >= 9.995e9 ? (ns / 1e9).toFixed(1) + " s" : a >= 9.9995e8 ? (ns / 1e9).toFixed(2) + " s" : a >= 9.995e5 ? (ns / 1e6).toFixed(1) + " ms"
    : a === 0 ? "0" : (ns / 1e3).toFixed(0) + " µs";
}
const amount = (weight) => (choice().unit === "ns" ? duration(weight) : Math.round(weight).toLocaleString("en"));
const percent = (part, all) => (all ? 100 * part / all : 0).toFixed(1) + " %";
const plural = (n, noun) => `${n.toLocaleString("en")} ${noun}${n === 1 ? "" : "s"}`;
const minus = (text) => text.replace("-", "−");
function signed(text) {
  return text.startsWith("-") ? minus(text) : text === "0" ? text : "+" + text;
}

// The time that is 0 in relative times.
const originNs = data.marks.length ? data.marks[0][0] : data.span_ns;
const originName = data.marks.length ? "the trigger" : "the end";

// The time of day, with DIGITS digits after the second; NS is from the begin of the recording.
function timeOfDay(ns, digits) {
  if (data.wall_ns === null) return "";
  const wall = BigInt(data.wall_ns) + BigInt(Math.round(ns));
  const time = new Date(Number(wall / 1000000n)).toISOString().slice(11, 19);
  return digits ? `${time}.${String(wall % 1000000000n).padStart(9, "0").slice(0, digits)}` : time;
}

function relative(ns, digits) {
  const s = (ns - originNs) / 1e9;
  return Math.abs(s) < 0.5 * 10 ** -digits ? "0 s" : minus((s > 0 ? "+" : "") + s.toFixed(digits)) + " s";
}

// A time for --from and --to of flightrec-report, which is exact.
function exactTime(ns) {
  const wall = BigInt(data.wall_ns) + BigInt(ns);
  const date = new Date(Number(wall / 1000000n)).toISOString().slice(0, 19).replace("T", " ");
  return `${date}.${String(wall % 1000000000n).padStart(9, "0")} UTC`;
}

function describeTime(ns) {
  const day = timeOfDay(ns, 3);
  return day ? `${day} UTC (${relative(ns, 3)})` : relative(ns, 3);
}

// --- canvases ---

// The pixels for the names of rows.
const leftOf = (width) => (width < 700 ? 104 : 150);

function prepare(canvas, height) {
  const isPrint = document.documentElement.classList.contains("print");
  const ratio = isPrint ? 2 : window.devicePixelRatio || 1, width = canvas.clientWidth;
  canvas.style.height = height + "px";
  canvas.width = Math.round(width * ratio);
  canvas.height = Math.round(height * ratio);
  const c = canvas.getContext("2d");
  c.scale(ratio, ratio);
  c.clearRect(0, 0, width, height);
  c.font = "12px system-ui, sans-serif";
  c.textBaseline = "middle";
  return [c, width];
}

// Writes TEXT, as much of it as there is room for.
function clipText(c, text, x, y, room) {
  if (room < 8) return;
  let fits = text.slice(0, 200);
  if (c.measureText(fits).width > room) {
    let low = 0, high = fits.length;
    while (low < high) {
      const middle = (low + high + 1) >> 1;
      if (c.measureText(fits.slice(0, middle) + "…").width <= room) low = middle;
      else high = middle - 1;
    }
    fits = low ? fits.slice(0, low) + "…" : "";
  }
  c.fillText(fits, x, y);
}

// A scale from time (ns) to x. It has the whole recording or a window of it.
function scaleOf(width, from, to) {
  const left = leftOf(width), perNs = (width - left - 8) / Math.max(1, to - from);
  return { left, right: width - 8, from, to, x: (ns) => left + (ns - from) * perNs, ns: (x) => from + (x - left) / perNs };
}

const AXIS = 34; // pixels

function tickNs(span, room) {
  for (let unit = 1000; ; unit *= 10)
    for (const n of [1, 2, 5]) if (span / (n * unit) <= Math.max(2, room)) return n * unit;
}

// Draws the time of day, and below it the time relative to the trigger.
function drawAxis(c, scale, y) {
  const step = tickNs(scale.to - scale.from, (scale.right - scale.left) / 110), digits = step >= 1e9 ? 0 : Math.min(6, Math.ceil(9 - Math.log10(step)));
  c.fillStyle = style("--soft");
  c.strokeStyle = style("--line");
  c.lineWidth = 1;
  c.textAlign = "left";
  c.fillText(data.wall_ns === null ? "" : "UTC", 8, y + 10);
  c.fillText(scale.left < 150 ? "relative" : `from ${originName}`, 8, y + 24);
  c.textAlign = "center";
  for (let ns = originNs + Math.ceil((scale.from - originNs) / step) * step; ns <= scale.to + (scale.to - scale.from) / 200; ns += step) {
    const x = scale.x(ns), at = Math.min(Math.max(x, scale.left + 24), scale.right - 30);
    c.beginPath();
    c.moveTo(x, y);
    c.lineTo(x, y + 4);
    c.stroke();
    c.fillText(timeOfDay(ns, Math.max(1, digits)), at, y + 10);
    c.fillText(relative(ns, digits), at, y + 24);
  }
  c.textAlign = "left";
}

// Draws the triggers, which can be a little after the last sample.
function drawMarks(c, scale, height) {
  c.strokeStyle = style("--text");
  c.fillStyle = style("--text");
  c.lineWidth = 2;
  for (const [ns] of data.marks) {
    if (ns < scale.from || (ns > scale.to && scale.to < data.span_ns)) continue;
    const x = Math.min(scale.x(ns), scale.right);
    c.beginPath();
    c.moveTo(x, 0);
    c.lineTo(x, height);
    c.stroke();
    c.beginPath();
    c.moveTo(x - 6, 0);
    c.lineTo(x + 6, 0);
    c.lineTo(x, 9);
    c.fill();
  }
}

function legend(element, items) {
  element.textContent = "";
  for (const [text, color] of items) {
    const item = document.createElement("span");
    if (color) {
      const mark = document.createElement("i");
      mark.style.background = color;
      item.append(mark);
    }
    item.append(text);
    element.append(item);
  }
}

// Shows TEXT near a point of the window, or hides it if it is empty.
function tip(text, x, y) {
  const box = byId("tip");
  box.hidden = !text;
  if (!text) return;
  box.textContent = text;
  box.style.left = Math.max(4, Math.min(x + 14, window.innerWidth - box.offsetWidth - 8)) + "px";
  box.style.top = (y + 20 + box.offsetHeight < window.innerHeight ? y + 18 : Math.max(4, y - box.offsetHeight - 12)) + "px";
}

function tipOn(canvas, text, x, y) {
  const at = canvas.getBoundingClientRect();
  tip(text, at.left + x, at.top + y);
}
