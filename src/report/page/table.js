// SPDX-License-Identifier: GPL-2.0-or-later
// The table of the functions or threads in the window.

const ROWS_FIRST = 50; // so many rows are shown at first
const ROWS_SHOWN = 1000;

// Sums by function. A function that is among its own callers counts once in "total".
function functionSums(sums) {
  const rows = new Map();
  for (let node = 1; node < tree.n; node++) {
    const frame = tree.frame(node);
    if (frame < 0 || !sums.total[node]) continue;
    let row = rows.get(frame);
    if (!row) rows.set(frame, row = { self: 0, total: 0, samples: 0 });
    // The last frame of a waking is a name, so its weight is that of the function above it.
    row.self += sums.self[node];
    row.samples += sums.selfCount[node];
    for (const child of choice().by === "waking" ? tree.children[node] || [] : [])
      if (tree.frame(child) < 0) {
        row.self += sums.self[child];
        row.samples += sums.selfCount[child];
      }
    if (!tree.repeats[node]) row.total += sums.total[node];
  }
  return rows;
}

function threadSums(sums) {
  return new Map([...sums.byTask].map(([task, sum]) => [task, { self: sum.weight, total: sum.weight, samples: sum.count }]));
}

function tableRows() {
  const isThreads = state.rows === "threads", sum = isThreads ? threadSums : functionSums;
  const rows = sum(now), old = state.compare ? sum(before) : new Map(), scale = beforeScale();
  for (const key of old.keys()) if (!rows.has(key)) rows.set(key, { self: 0, total: 0, samples: 0 });
  return [...rows].map(([key, row]) => {
    const earlier = (old.has(key) ? old.get(key).self : 0) * scale;
    const [pid, tid, comm] = isThreads ? data.tasks[key] : [];
    return {
      ...row, before: earlier, change: row.self - earlier,
      name: isThreads ? comm : frameName(key), object: !isThreads ? frameObject(key) : pid === null ? "several short threads" : `pid ${pid}, tid ${tid}`,
    };
  }).filter((row) => !state.search || row.name.toLowerCase().includes(state.search));
}

function sortRows(rows) {
  const { column, down } = state.sort;
  return rows.sort((a, b) => {
    const order = a[column] < b[column] ? -1 : a[column] > b[column] ? 1 : 0;
    return order ? (down ? -order : order) : b.total - a.total;
  });
}

function emptyTableText() {
  if (!now.count[0]) return `Nothing to show. ${emptyText()}`;
  return state.search ? `No row has “${state.search}” in its name.` : "Nothing to show: these samples have no stacks.";
}

function drawTable() {
  const rows = sortRows(tableRows()), body = byId("rows");
  body.textContent = "";
  const shown = state.allRows ? ROWS_SHOWN : ROWS_FIRST, button = byId("more-rows");
  for (const r of rows.slice(0, shown)) {
    const tr = document.createElement("tr");
    const cells = [[r.name], [r.object], [r.samples.toLocaleString("en"), "number"], [amount(r.self), "number"], [percent(r.self, now.total[0]), "number"],
      [amount(r.total), "number"], [amount(r.before), "number compared"], [signed(amount(r.change)), "number compared"]];
    for (const [text, kind] of cells) {
      const td = document.createElement("td");
      td.textContent = text;
      if (kind) td.className = kind;
      tr.append(td);
    }
    body.append(tr);
  }
  document.querySelector("table").className = state.compare ? "" : "alone";
  for (const button of document.querySelectorAll("button[data-column]")) {
    const isSorted = button.dataset.column === state.sort.column;
    button.parentElement.setAttribute("aria-sort", isSorted ? (state.sort.down ? "descending" : "ascending") : "none");
  }
  document.querySelector("button[data-column=name]").textContent = state.rows === "threads" ? "Thread" : "Function";
  document.querySelector("button[data-column=object]").textContent = state.rows === "threads" ? "Process" : "Object";
  button.hidden = rows.length <= ROWS_FIRST;
  button.textContent = state.allRows ? "Show fewer rows" : `Show ${plural(rows.length - ROWS_FIRST, "more row")}`;
  button.setAttribute("aria-expanded", state.allRows);
  byId("more").textContent = !rows.length ? emptyTableText() : rows.length > shown && state.allRows ? `${rows.length - shown} more: search, or sort by another column` : "";
}
