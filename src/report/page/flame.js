// SPDX-License-Identifier: GPL-2.0-or-later
// The flame graph of the window, and its difference to the window before.

const ROW = 18;
const ROWS_MIN = 12, ROWS_MAX = 36; // below the zoomed frame
const NARROW = 0.03; // of the width: narrower frames do not make the graph higher
// The frames that the graph shows, for the mouse and the keyboard: {node, x, w, row}.
let boxes = [];

const isFound = (node) => state.search !== "" && node > 0 && tree.name(node).toLowerCase().includes(state.search);

// How much more than before, as a share of all samples of the larger window: -1 to 1.
function changeOf(node) {
  const scale = beforeScale(), all = Math.max(now.total[0], before.total[0] * scale);
  return all ? (now.total[node] - before.total[node] * scale) / all : 0;
}

function mix(color, part) {
  const hex = (text, i) => parseInt(text.slice(1 + 2 * i, 3 + 2 * i), 16);
  return "rgb(" + [0, 1, 2].map((i) => Math.round(hex(FILL.same, i) + (hex(color, i) - hex(FILL.same, i)) * part)).join(",") + ")";
}

const NO_CHANGE = 0.01;

function fillOf(node) {
  if (isFound(node)) return FILL.found;
  if (state.compare) {
    const change = changeOf(node);
    if (Math.abs(change) < NO_CHANGE) return FILL.same;
    return mix(change > 0 ? FILL.more : FILL.less, Math.min(1, 0.4 + Math.abs(change) * 2));
  }
  const frame = tree.frame(node);
  return frame < 0 ? FILL.name : frameIsKernel(frame) ? FILL.kernel : FILL.user;
}

// Places the frames: the callers of the zoomed one over the full width, then itself and its callees.
function layFlame(width) {
  const above = [], open = [];
  boxes = [];
  for (let node = tree.parent[state.zoom]; node >= 0; node = tree.parent[node]) above.unshift(node);
  above.forEach((node, row) => boxes.push({ node, x: 0, w: width, row }));
  open.push({ node: state.zoom, x: 0, w: width, row: above.length });
  let isCut = false;
  while (open.length) {
    const box = open.pop();
    if (box.w < 0.5 || !now.total[box.node]) continue;
    if (box.row >= above.length + ROWS_MAX) { isCut = true; continue; }
    boxes.push(box);
    let x = box.x;
    for (const child of tree.children[box.node] || []) {
      const w = box.w * now.total[child] / now.total[box.node];
      open.push({ node: child, x, w, row: box.row + 1 });
      x += w;
    }
  }
  // A few narrow and deep stacks would make the graph very high.
  const rows = boxes.reduce((most, b) => (b.w >= NARROW * width ? Math.max(most, b.row) : most), ROWS_MIN), all = boxes.length;
  boxes = boxes.filter((b) => b.row <= rows);
  return isCut || boxes.length < all;
}

function labelOf(node) {
  const change = changeOf(node);
  const sign = state.compare && Math.abs(change) >= NO_CHANGE ? `${minus((change > 0 ? "+" : "") + (100 * change).toFixed(0))} % ` : "";
  return sign + tree.name(node);
}

function drawFlame() {
  const canvas = byId("flame"), width = canvas.clientWidth, isCut = layFlame(width), isEmpty = !now.total[0] || !now.total[state.zoom];
  const depth = zoomDepth();
  const rows = boxes.reduce((most, b) => Math.max(most, b.row), 0) + 1 + (isCut || isEmpty ? 1 : 0), [c] = prepare(canvas, rows * ROW + 2);
  for (const { node, x, w, row } of boxes) {
    c.fillStyle = fillOf(node);
    c.globalAlpha = row < depth ? 0.55 : 1; // the callers of the zoomed frame
    c.fillRect(x, row * ROW, Math.max(0.5, w - (w > 3 ? 1 : 0)), ROW - 1);
    c.globalAlpha = 1;
    if (w > 24) {
      c.fillStyle = INK;
      clipText(c, labelOf(node), x + 4, row * ROW + ROW / 2, w - 8);
    }
    if (node !== state.focus) continue;
    c.strokeStyle = INK;
    c.lineWidth = 2.5;
    c.strokeRect(x + 1, row * ROW + 1, Math.max(2, w - 3), ROW - 3);
  }
  c.fillStyle = style("--soft");
  if (isEmpty) c.fillText(emptyText(), 8, (rows - 1) * ROW + ROW / 2);
  else if (isCut) c.fillText("Deeper frames are not drawn: zoom in to see them.", 8, (rows - 1) * ROW + ROW / 2);
  byId("zoom-out").disabled = state.zoom === 0;
}

function zoomDepth() {
  let depth = 0;
  for (let node = state.zoom; node > 0; node = tree.parent[node]) depth++;
  return depth;
}

function emptyText() {
  if (choice().view === "none") return MEANINGS.none;
  if (now.total[0]) return "The zoomed function has no samples in this window. Zoom out.";
  return state.task ? "No samples of this thread in this window." : "No samples of this event in this window.";
}

function nodeText(node) {
  const frame = tree.frame(node), total = now.total[node];
  let text = tree.name(node) + (frame < 0 ? "" : `\n${frameObject(frame)}`);
  text += `\n${amount(total)}, ${percent(total, now.total[0])} of the window, ${plural(now.count[node], "sample")}`;
  if (now.self[node] && now.self[node] !== total) text += `\nwithout the functions that it calls: ${amount(now.self[node])}`;
  if (state.compare) {
    const scaled = before.total[node] * beforeScale();
    text += `\nwindow before: ${amount(scaled)} (${signed(amount(total - scaled))})`;
  }
  return text;
}

function tellBox(box) {
  tipOn(byId("flame"), box ? nodeText(box.node) : "", box ? Math.max(0, box.x) : 0, box ? (box.row + 1) * ROW - 12 : 0);
}

const boxAt = (event) => boxes.find((b) => event.offsetX >= b.x && event.offsetX < b.x + b.w && Math.floor(event.offsetY / ROW) === b.row);

function zoomTo(node) {
  state.zoom = Math.max(0, node);
  state.focus = state.zoom || -1;
  drawFlame();
}

function flameKeys(event) {
  const at = boxes.find((b) => b.node === state.focus) || boxes[0];
  if (!at) return;
  const beside = boxes.filter((b) => b.row === at.row).sort((a, b) => a.x - b.x), i = beside.indexOf(at);
  const below = boxes.filter((b) => tree.parent[b.node] === at.node && b.row === at.row + 1).sort((a, b) => b.w - a.w);
  const next = {
    ArrowDown: below[0], ArrowUp: boxes.find((b) => b.node === tree.parent[at.node]), ArrowRight: beside[i + 1], ArrowLeft: beside[i - 1],
  };
  if (event.key === "Enter") zoomTo(at.node);
  else if (event.key === "Escape" || event.key === "Backspace") zoomTo(tree.parent[state.zoom]);
  else if (event.key in next) state.focus = (next[event.key] || at).node;
  else return;
  event.preventDefault();
  drawFlame();
  tellBox(boxes.find((b) => b.node === state.focus));
}

// What the colours mean, and how much of the window the search has found.
function describeFlame() {
  const items = state.compare
    ? [["more than in the window before", FILL.more], ["less", FILL.less], ["change below 1 % of the window", FILL.same]]
    : [["thread", FILL.name], ["function of a program", FILL.user], ["function of the kernel", FILL.kernel]];
  if (state.search) items.push([`found: ${percent(foundTotal(), now.total[0])} of the window`, FILL.found]);
  legend(byId("colors"), items);
}

// The sum of the found frames; a found frame below another one counts once.
function foundTotal() {
  let sum = 0;
  const open = [0];
  while (open.length) {
    const node = open.pop();
    if (isFound(node)) sum += now.total[node];
    else for (const child of tree.children[node] || []) if (now.total[child]) open.push(child);
  }
  return sum;
}
