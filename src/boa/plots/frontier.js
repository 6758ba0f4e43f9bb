"use strict";
// Budget against average JCT; the mouse reads the exact frontier at any budget.

const W = 1000, H = 560, LEFT = 70, RIGHT = 20, TOP = 16, BOTTOM = 56;

function layout(d) {
  const bills = d.foretold.map((f) => f.bill), simulated = d.foretold.map((f) => f.jct);
  const low = Math.min(d.budgets[0], ...bills), high = Math.max(d.budgets[d.budgets.length - 1], ...bills);
  const room = 0.05 * (high - low);
  const highest = Math.max(d.jcts[0], ...d.glue.map((g) => g.jct), ...simulated);
  const lowest = Math.min(d.jcts[d.jcts.length - 1], ...simulated);
  const log = highest >= 5 * lowest;
  const bounds = log ? [lowest * 0.82, highest * 1.12]
    : [Math.max(0, lowest - Math.max(0.18 * (highest - lowest), 0.02 * lowest)), highest * 1.04];
  return {
    log, bounds, span: [low - room, high + room],
    x: scale([low - room, high + room], [LEFT, W - RIGHT], false),
    y: scale(bounds, [H - BOTTOM, TOP], log),
    unit: unitFor(Math.sqrt(d.jcts[0] * lowest)),
  };
}

function readings(d, budget) {
  const jct = interpolate(budget, d.budgets, d.jcts);
  const saved = jct - interpolate(budget + 1, d.budgets, d.jcts);
  const price = budget >= d.fastest ? 0 : step(budget, d.budgets, d.shadow_prices);
  const rows = [rate(budget, d.counts_gpus), ["average JCT", duration(jct)],
    [d.counts_gpus ? "one more GPU saves" : "one more $/h saves", saved > 0 ? duration(saved) : "nothing"],
    ["shadow price", `${significant(price)} s per ${d.counts_gpus ? "GPU" : "$/h"}`]];
  if (d.fastest_jct < jct) rows.push(["above the fastest", percent(jct / d.fastest_jct - 1)]);
  return { jct, rows };
}

function drawAxes(svg, d, l) {
  const [length, sign] = l.unit;
  for (const v of ticks(l.bounds[0] / length, l.bounds[1] / length, 6, l.log)) {
    const y = l.y(v * length);
    make(svg, "line", { class: "grid", x1: LEFT, x2: W - RIGHT, y1: y, y2: y });
    make(svg, "text", { x: LEFT - 9, y: y + 4, "text-anchor": "end" }, v.toLocaleString("en-US"));
  }
  for (const v of ticks(l.span[0], l.span[1], 8, false)) {
    make(svg, "line", { class: "axisline", x1: l.x(v), x2: l.x(v), y1: H - BOTTOM, y2: H - BOTTOM + 5 });
    make(svg, "text", { x: l.x(v), y: H - BOTTOM + 20, "text-anchor": "middle" }, v.toLocaleString("en-US"));
  }
  make(svg, "line", { class: "axisline", x1: LEFT, x2: W - RIGHT, y1: H - BOTTOM, y2: H - BOTTOM });
  make(svg, "line", { class: "axisline", x1: LEFT, x2: LEFT, y1: TOP, y2: H - BOTTOM });
  make(svg, "text", { class: "axis", x: (LEFT + W - RIGHT) / 2, y: H - 8, "text-anchor": "middle" },
    `${d.foretold.length ? "Budget, or bill" : "Budget"} (${d.counts_gpus ? "GPUs" : "USD per hour"})`);
  make(svg, "text", { class: "axis", transform: `translate(16 ${(TOP + H - BOTTOM) / 2}) rotate(-90)`,
    "text-anchor": "middle" }, `Average JCT (${sign})`);
}

function drawAsymptotes(svg, d, l) {
  if (d.cheapest >= l.span[0]) {
    const x = l.x(d.cheapest);
    make(svg, "rect", { x: LEFT, y: TOP, width: Math.max(0, x - LEFT), height: H - BOTTOM - TOP, fill: "#f3f4f6" });
    make(svg, "line", { class: "dashed", x1: x, x2: x, y1: TOP, y2: H - BOTTOM });
    make(svg, "text", { transform: `translate(${x - 7} ${(TOP + H - BOTTOM) / 2}) rotate(-90)`,
      "text-anchor": "middle" }, `cheapest ${rate(d.cheapest, d.counts_gpus)}`);
  }
  const y = l.y(d.fastest_jct);
  make(svg, "line", { class: "dashed", x1: LEFT, x2: W - RIGHT, y1: y, y2: y });
  make(svg, "text", { x: W - RIGHT - 4, y: y + 18, "text-anchor": "end" },
    `fastest ${duration(d.fastest_jct)}, from ${rate(d.fastest, d.counts_gpus)}`);
}

function drawCurve(svg, d, l) {
  const path = d.budgets.map((b, i) => `${i ? "L" : "M"}${l.x(b).toFixed(2)} ${l.y(d.jcts[i]).toFixed(2)}`);
  make(svg, "path", { class: "curve", d: path.join("") });
  for (const g of d.glue) make(svg, "circle", { class: "glue", cx: l.x(g.budget), cy: l.y(g.jct), r: 5 });
  drawForetold(svg, d, l);
  if (d.chosen) {
    make(svg, "circle", { cx: l.x(d.chosen.budget), cy: l.y(d.chosen.jct), r: 8, fill: "#0072b2",
      stroke: "#fff", "stroke-width": 2.5 });
  }
}

function drawForetold(svg, d, l) {
  const inside = (v) => Math.min(Math.max(v, l.bounds[0]), l.bounds[1]);
  const path = d.foretold.map((f, i) => `${i ? "L" : "M"}${l.x(f.bill).toFixed(2)} ${l.y(f.jct).toFixed(2)}`);
  if (path.length) make(svg, "path", { class: "foretold", d: path.join("") });
  for (const f of d.foretold) {
    const x = l.x(f.bill), y = l.y(f.jct);
    const [left, right] = [f.bill - f.bill_error, f.bill + f.bill_error]
      .map((b) => l.x(Math.min(Math.max(b, l.span[0]), l.span[1])));
    const [up, down] = [f.jct + f.jct_error, f.jct - f.jct_error].map((t) => l.y(inside(t)));
    make(svg, "line", { class: "error", x1: left, x2: right, y1: y, y2: y });
    make(svg, "line", { class: "error", x1: x, x2: x, y1: up, y2: down });
    make(svg, "rect", { x: x - 4, y: y - 4, width: 8, height: 8, fill: "#009e73" });
  }
}

function main() {
  const d = JSON.parse(document.getElementById("data").textContent);
  const l = layout(d);
  const svg = document.getElementById("chart");
  svg.setAttribute("viewBox", `0 0 ${W} ${H}`);
  drawAsymptotes(svg, d, l);
  drawAxes(svg, d, l);
  drawCurve(svg, d, l);
  const line = make(svg, "line", { class: "axisline", y1: TOP, y2: H - BOTTOM, visibility: "hidden" });
  const dot = make(svg, "circle", { r: 6, fill: "#0072b2", stroke: "#fff", "stroke-width": 2, visibility: "hidden" });
  svg.addEventListener("pointermove", (event) => {
    const box = svg.getBoundingClientRect();
    const px = ((event.clientX - box.left) / box.width) * W;
    const budget = Math.min(Math.max(l.x.back(px), d.budgets[0]), d.budgets[d.budgets.length - 1]);
    const { jct, rows } = readings(d, budget);
    const near = d.glue.find((g) => Math.abs(l.x(g.budget) - px) < 7);
    if (near) {
      const above = percent(near.jct / interpolate(near.budget, d.budgets, d.jcts) - 1);
      rows.push(["Algorithm 1", `${duration(near.jct)} (+${above})`]);
    }
    const told = d.foretold.find((f) => Math.abs(l.x(f.bill) - px) < 7);
    if (told) {
      rows.push(["foretold for", rate(told.budget, d.counts_gpus)]);
      rows.push(["bill", `${rate(told.bill, d.counts_gpus)} ± ${rate(told.bill_error, d.counts_gpus)}`]);
      rows.push(["JCT", `${duration(told.jct)} ± ${duration(told.jct_error)}`]);
    }
    const x = l.x(budget);
    for (const [key, value] of [["x1", x], ["x2", x], ["visibility", "visible"]]) line.setAttribute(key, value);
    for (const [key, value] of [["cx", x], ["cy", l.y(jct)], ["visibility", "visible"]]) dot.setAttribute(key, value);
    showTip(event, rows);
  });
  svg.addEventListener("pointerleave", () => {
    line.setAttribute("visibility", "hidden");
    dot.setAttribute("visibility", "hidden");
    hideTip();
  });
}

if (typeof document !== "undefined") main();
