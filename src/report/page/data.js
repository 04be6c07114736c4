// SPDX-License-Identifier: GPL-2.0-or-later
// The page of flightrec-report: it has all its data in itself, and makes no request. docs/design/95-the-page.md describes
// the data. The files of the folder are one script.
"use strict";

const data = JSON.parse(document.getElementById("data").textContent);
const byId = (id) => document.getElementById(id);

function bytesOf(text) {
  const raw = atob(text), bytes = new Uint8Array(raw.length);
  for (let i = 0; i < raw.length; i++) bytes[i] = raw.charCodeAt(i);
  return bytes;
}

// Reads the numbers of a base64 text, which are varints (seven bits a byte), as N columns.
function columnsOf(text, n) {
  const bytes = bytesOf(text), columns = Array.from({ length: n }, () => []);
  for (let i = 0, k = 0; i < bytes.length; k = (k + 1) % n) {
    let value = 0, factor = 1, byte;
    do {
      byte = bytes[i++];
      value += (byte & 127) * factor;
      factor *= 128;
    } while (byte & 128);
    columns[k].push(value);
  }
  return columns;
}

// Entries: the samples of one source, task, stack and other task in one bucket of time.
const entries = (() => {
  const [bucket, source, task, stack, other, count, weight] = columnsOf(data.entries, 7);
  for (let i = 1; i < bucket.length; i++) bucket[i] += bucket[i - 1];
  return { n: bucket.length, bucket, source, task, stack: stack.map((s) => s - 1), other, count, weight };
})();

// Stacks: each is the number of its innermost node. The parent of a node is its caller, and has a smaller number.
const stacks = (() => {
  const [distance, frame] = columnsOf(data.stacks, 2);
  return { parent: distance.map((d, i) => (d ? i - d : -1)), frame };
})();

const frameName = (f) => data.frames[f][0];
const frameObject = (f) => data.objects[data.frames[f][1]];
const frameIsKernel = (f) => data.frames[f][2] === 1;
const otherName = (o) => (o ? data.others[o - 1] : "(unknown)");

// --- what the user can look at ---

// A choice is one or several sources, in one of the views. "by" says what the first frames are.
const choices = (() => {
  const list = [], waits = data.sources.flatMap((s, i) => (s.kind === "wait" ? [{ ...s, i }] : []));
  const numbers = (sources) => sources.map((s) => s.i);
  const add = (view, title, sources, unit, by) => list.push({ view, title, sources, unit, by });
  data.sources.forEach((s, i) => { if (s.kind === "cpu") add("cpu", s.event, [i], s.unit, "thread"); });
  for (const [view, by, suffix] of [["wait", "thread", ""], ["waker", "waker", ", by waker"]]) {
    const busy = waits.filter((s) => !s.idle), idle = waits.filter((s) => s.idle);
    if (busy.length) add(view, `waits${suffix}: locks, disks, CPU …`, numbers(busy), "ns", by);
    if (idle.length) add(view, `waits${suffix}: for work, sleeps`, numbers(idle), "ns", by);
    for (const event of new Set(waits.map((s) => s.event))) {
      const of = waits.filter((s) => s.event === event);
      add(view, `${event}${suffix}: ${of[0].open ? "waits that have not ended" : "all waits"}`, numbers(of), "ns", by);
    }
  }
  data.sources.forEach((s, i) => { if (s.kind === "waking") add("waker", `${s.event}: stacks of wakers`, [i], s.unit, "waking"); });
  data.sources.forEach((s, i) => { if (s.kind === "other") add("other", s.event, [i], s.unit, "thread"); });
  return list.length ? list : [{ view: "none", title: "no samples", sources: [], unit: "", by: "thread" }];
})();

const MEANINGS = {
  cpu: "The threads and functions that used the CPUs. Threads are at the top, and callers are above the functions that they call.",
  wait: "The time that threads did not run, by where they waited. The width is the time of all threads together.",
  waker: "The time that threads waited, by who ended the wait: at the top the waker, then the thread that waited, then where it waited.",
  waking: "What wakers did when they ended a wait. The width is how long the woken threads had waited. The last frame says who was woken.",
  other: "The samples of this event.",
  none: "There are no samples: the recording has none, or none that the options of flightrec-report chose.",
};

// --- trees ---

// Makes the tree of all entries of a choice. Labels are frames, or texts behind them. A parent has a smaller number than its
// children; node 0 is "all".
function makeTree(choice) {
  const nFrames = data.frames.length, texts = [], textOf = new Map(), children = new Map(), leaves = new Map();
  const parent = [-1], label = [-1], list = [], leaf = [];
  const textLabel = (text) => {
    if (!textOf.has(text)) textOf.set(text, nFrames + texts.push(text) - 1);
    return textOf.get(text);
  };
  const child = (of, l) => {
    const key = of * 4194304 + l; // there are fewer labels: page_data.c has limits for stacks and others
    let node = children.get(key);
    if (node === undefined) {
      children.set(key, node = parent.push(of) - 1);
      label.push(l);
    }
    return node;
  };
  const find = (prefix, stack) => {
    const path = [];
    let node = prefix;
    for (let s = stack; s >= 0; s = stacks.parent[s]) {
      const known = leaves.get(prefix * 4194304 + s);
      if (known !== undefined) { node = known; break; }
      path.push(s);
    }
    while (path.length) {
      const s = path.pop();
      node = child(node, stacks.frame[s]);
      leaves.set(prefix * 4194304 + s, node);
    }
    return node;
  };
  for (let i = 0; i < entries.n; i++) {
    if (!choice.sources.includes(entries.source[i])) continue;
    const comm = data.tasks[entries.task[i]][2], other = otherName(entries.other[i]);
    let node;
    if (choice.by === "waker") node = find(child(child(0, textLabel(`waker: ${other}`)), textLabel(comm)), entries.stack[i]);
    else node = find(child(0, textLabel(comm)), entries.stack[i]);
    if (choice.by === "waking") node = child(node, textLabel(`wakes ${other}`));
    list.push(i);
    leaf.push(node);
  }
  const tree = { n: parent.length, parent, label, texts, nFrames, list, leaf };
  tree.name = (node) => (node === 0 ? "all" : label[node] < nFrames ? frameName(label[node]) : texts[label[node] - nFrames]);
  tree.frame = (node) => (node > 0 && label[node] < nFrames ? label[node] : -1);
  tree.children = sortedChildren(tree);
  tree.repeats = repeatsOf(tree);
  return tree;
}

// The children of each node, in the order of their names, so that a frame keeps its place when the window changes.
function sortedChildren(tree) {
  const all = Array.from({ length: tree.n }, () => null);
  for (let i = 1; i < tree.n; i++) (all[tree.parent[i]] ||= []).push(i);
  for (const list of all) if (list) list.sort((a, b) => (tree.name(a) < tree.name(b) ? -1 : tree.name(a) > tree.name(b) ? 1 : 0));
  return all;
}

// Whether a function is also among its own callers: then the sum of its outermost call already has it.
function repeatsOf(tree) {
  const repeats = new Uint8Array(tree.n), open = new Map(), walk = [[0, false]];
  while (walk.length) {
    const [node, isDone] = walk.pop(), l = tree.label[node];
    if (isDone) {
      open.set(l, open.get(l) - 1);
      continue;
    }
    repeats[node] = open.get(l) > 0 ? 1 : 0;
    open.set(l, (open.get(l) || 0) + 1);
    walk.push([node, true]);
    for (const child of tree.children[node] || []) walk.push([child, false]);
  }
  return repeats;
}

function treeOf(choice) {
  return (choice.tree ||= makeTree(choice));
}

// The entries are in the order of time. Returns the index of the first one in LIST that is of BUCKET or later.
function firstIn(list, bucket) {
  let low = 0, high = list.length;
  while (low < high) {
    const middle = (low + high) >> 1;
    if (entries.bucket[list[middle]] < bucket) low = middle + 1;
    else high = middle;
  }
  return low;
}

// Sums the entries of a window: "self" without the functions that a node calls, "total" with them. TASKS says which tasks.
function sumTree(tree, from, to, tasks) {
  const self = new Float64Array(tree.n), total = new Float64Array(tree.n), selfCount = new Float64Array(tree.n);
  const end = firstIn(tree.list, to), byTask = new Map();
  for (let k = firstIn(tree.list, from); k < end; k++) {
    const i = tree.list[k], task = entries.task[i];
    if (!tasks[task]) continue;
    self[tree.leaf[k]] += entries.weight[i];
    selfCount[tree.leaf[k]] += entries.count[i];
    const sum = byTask.get(task);
    if (sum) {
      sum.weight += entries.weight[i];
      sum.count += entries.count[i];
    } else byTask.set(task, { weight: entries.weight[i], count: entries.count[i] });
  }
  total.set(self);
  const count = selfCount.slice();
  for (let node = tree.n - 1; node > 0; node--) {
    total[tree.parent[node]] += total[node];
    count[tree.parent[node]] += count[node];
  }
  return { self, selfCount, total, count, byTask };
}

function matchesTask(task, wanted) {
  const [pid, tid, comm] = data.tasks[task];
  return !wanted || comm.toLowerCase().includes(wanted) || String(pid) === wanted || String(tid) === wanted;
}
