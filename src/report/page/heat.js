// SPDX-License-Identifier: GPL-2.0-or-later
// The heat map: how busy each CPU was over time; and the window that the user chooses in it.

const heat = bytesOf(data.heat);
const heatColumns = data.cpus ? heat.length / data.cpus : 0;
const heatRow = Math.max(2, Math.min(24, 260 / Math.max(1, data.cpus)));
const heatScale = (width) => scaleOf(width, 0, data.buckets * data.bucket_ns);

function drawHeat() {
  const height = Math.max(1, data.cpus) * heatRow, [c, width] = prepare(byId("heat"), height + AXIS), scale = heatScale(width);
  for (let cpu = 0; cpu < data.cpus; cpu++) {
    if (heatRow >= 12 || cpu % 16 === 0) {
      c.fillStyle = style("--soft");
      c.fillText("CPU " + cpu, 8, cpu * heatRow + heatRow / 2);
    }
    for (let i = 0; i < heatColumns; i++) {
      const busy = heat[cpu * heatColumns + i] / 255, x = scale.x(i * data.heat_ns);
      if (!busy) continue;
      c.fillStyle = `rgba(214, 94, 40, ${0.12 + 0.88 * busy})`;
      c.fillRect(Math.floor(x), cpu * heatRow, Math.max(1, Math.floor(scale.x((i + 1) * data.heat_ns)) - Math.floor(x)), heatRow - 1);
    }
  }
  if (!data.cpus) {
    c.fillStyle = style("--soft");
    c.fillText(data.recorded.cpu ? "No samples of CPU time: nothing ran at the times of the samples."
      : "No samples of CPU time: record the event cycles or cpu-clock.", scale.left + 8, height / 2);
  }
  drawAxis(c, scale, height);
  drawIncident(c, scale, height);
  drawMarks(c, scale, height);
  drawWindow(c, scale, height);
}

// The begin of the incident, as a broken line.
function drawIncident(c, scale, height) {
  if (!data.cpus || data.incident_ns <= 0) return;
  const x = scale.x(data.incident_ns);
  c.strokeStyle = style("--text");
  c.lineWidth = 1.5;
  c.setLineDash([3, 3]);
  c.beginPath();
  c.moveTo(x, 0);
  c.lineTo(x, height);
  c.stroke();
  c.setLineDash([]);
}

// Makes the time outside of the window pale.
function drawWindow(c, scale, height) {
  if (state.from === 0 && state.to === data.buckets) return;
  const a = scale.x(state.from * data.bucket_ns), b = scale.x(state.to * data.bucket_ns);
  c.globalAlpha = 0.65;
  c.fillStyle = style("--panel");
  c.fillRect(scale.left, 0, a - scale.left, height);
  c.fillRect(b, 0, scale.right - b, height);
  c.globalAlpha = 1;
  c.strokeStyle = style("--accent");
  c.lineWidth = 2;
  c.strokeRect(a, 1, Math.max(2, b - a), height - 2);
}

function tellHeat(event) {
  const canvas = byId("heat"), scale = heatScale(canvas.clientWidth), ns = scale.ns(event.offsetX);
  const cpu = Math.floor(event.offsetY / heatRow), column = Math.floor(ns / data.heat_ns);
  if (ns < 0 || ns > scale.to || cpu >= data.cpus || column >= heatColumns) return tip("");
  const mark = data.marks.find(([at]) => Math.abs(Math.min(scale.x(at), scale.right) - event.offsetX) < 5);
  tipOn(canvas, `${describeTime(ns)}\nCPU ${cpu}: ${percent(heat[cpu * heatColumns + column], 255)} busy${mark ? `\ntrigger: ${mark[1]}` : ""}`,
    event.offsetX, event.offsetY);
}

// --- the window ---

function setWindow(from, to) {
  state.from = Math.max(0, Math.min(from, to - 1, data.buckets - 1));
  state.to = Math.min(data.buckets, Math.max(to, state.from + 1));
  requestUpdate();
}

const setAll = () => setWindow(0, data.buckets);
const setIncident = () => setWindow(Math.floor(data.incident_ns / data.bucket_ns), data.buckets);

// Lets the user drag a window in a canvas. SCALE is the function that returns its scale, and CLICK is called for a click.
function brush(canvas, scaleNow, click) {
  let begin = null, scale = null, isDrag = false;
  const bucket = (event) => Math.max(0, Math.min(data.buckets, Math.round(scale.ns(event.offsetX) / data.bucket_ns)));
  canvas.addEventListener("pointerdown", (event) => {
    if (event.button !== 0) return;
    scale = scaleNow(canvas.clientWidth);
    if (event.offsetX < scale.left) return click(event);
    begin = event.offsetX;
    isDrag = false;
    state.drag = [bucket(event), bucket(event)];
    canvas.setPointerCapture(event.pointerId);
  });
  canvas.addEventListener("pointermove", (event) => {
    if (begin === null) return;
    isDrag ||= Math.abs(event.offsetX - begin) > 3;
    state.drag[1] = bucket(event);
    const [a, b] = state.drag;
    // While the user drags in the lanes, their scale must not change: the heat map shows the window.
    if (isDrag && canvas.id === "heat") setWindow(Math.min(a, b), Math.max(a, b));
  });
  canvas.addEventListener("pointerup", (event) => {
    if (begin === null) return;
    const [a, b] = state.drag;
    begin = null;
    if (isDrag) setWindow(Math.min(a, b), Math.max(a, b));
    else click(event);
  });
  canvas.addEventListener("pointercancel", () => { begin = null; });
}

function heatKeys(event) {
  const step = Math.max(1, Math.round(data.buckets / 60)), length = state.to - state.from, isAll = length === data.buckets;
  const sign = { ArrowLeft: -1, ArrowRight: 1 }[event.key];
  if (sign && isAll && !event.shiftKey && !event.ctrlKey) {
    const tenth = Math.max(1, Math.round(data.buckets / 10));
    setWindow(sign > 0 ? 0 : data.buckets - tenth, sign > 0 ? tenth : data.buckets);
  } else if (sign && event.shiftKey) setWindow(state.from, Math.max(state.from + 1, state.to + sign * step));
  else if (sign && event.ctrlKey) setWindow(Math.min(state.to - 1, state.from + sign * step), state.to);
  else if (sign) {
    const from = Math.max(0, Math.min(data.buckets - length, state.from + sign * step));
    setWindow(from, from + length);
  } else if (event.key === "+") setWindow(state.from + Math.floor(length / 4), state.to - Math.floor(length / 4));
  else if (event.key === "-") setWindow(state.from - Math.ceil(length / 2), state.to + Math.ceil(length / 2));
  else if (event.key === "Escape") setAll();
  else return;
  event.preventDefault();
}
