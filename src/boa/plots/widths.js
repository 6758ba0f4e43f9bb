"use strict";
// For every class, GPUs by epoch and type; the mouse names what it points at.

const W = 340, H = 190, LEFT = 34, RIGHT = 8, TOP = 8, BOTTOM = 40;

function widest(panels) {
  return Math.max(...panels.flatMap((p) => p.lines.flatMap((l) => l.stretches.map((s) => s.width))));
}

function layout(panel, most) {
  const top = Math.max(1, Math.ceil(Math.log2(most)));
  return {
    doublings: Array.from({ length: top + 1 }, (_, n) => 2 ** n),
    x: scale([0, panel.epochs], [LEFT, W - RIGHT], false),
    y: scale([2 ** -0.6, 2 ** (top + 0.8)], [H - BOTTOM, TOP], true),
  };
}

function readings(panel, line, s) {
  const epochs = s.end === s.first + 1 ? `${s.end}` : `${s.first + 1}–${s.end}`;
  return [`${Number(s.width.toPrecision(4))} × ${s.gpu}`, ["epochs", `${epochs} of ${panel.epochs}`],
    ["share of jobs", percent(line.share)]];
}

function drawPanel(panel, colours, most) {
  const box = document.createElement("div");
  box.className = "panel";
  const name = document.createElement("h2");
  name.textContent = panel.name;
  const said = document.createElement("p");
  said.textContent = panel.said;
  box.append(name, said);
  const svg = make(box, "svg", { viewBox: `0 0 ${W} ${H}`, role: "img", "aria-label": `GPUs of ${panel.name}` });
  const l = layout(panel, most);
  for (const k of l.doublings) {
    make(svg, "line", { class: "grid", x1: LEFT, x2: W - RIGHT, y1: l.y(k), y2: l.y(k) });
    make(svg, "text", { x: LEFT - 7, y: l.y(k) + 4, "text-anchor": "end" }, k);
  }
  for (const v of ticks(0, panel.epochs, 5, false).filter(Number.isInteger)) {
    make(svg, "text", { x: l.x(v), y: H - BOTTOM + 17, "text-anchor": "middle" }, v);
  }
  make(svg, "line", { class: "axisline", x1: LEFT, x2: W - RIGHT, y1: H - BOTTOM, y2: H - BOTTOM });
  make(svg, "text", { x: (LEFT + W - RIGHT) / 2, y: H - 5, "text-anchor": "middle" }, "epochs done");
  for (const line of panel.lines) drawLine(svg, panel, line, colours, l);
  if (panel.lines.length <= 2) drawLabels(svg, panel, colours, l);
  return box;
}

// What the longest stretch of each line is; the lower line's label below it.
function drawLabels(svg, panel, colours, l) {
  const longest = panel.lines.map((n) => n.stretches.reduce((a, b) => (b.end - b.first > a.end - a.first ? b : a)));
  const lowest = Math.min(...longest.map((s) => s.width));
  longest.forEach((s, i) => {
    const below = longest.length > 1 && s.width === lowest;
    const share = longest.length > 1 ? `${percent(panel.lines[i].share)}: ` : "";
    make(svg, "text", { class: "halo", x: l.x((s.first + s.end) / 2), y: l.y(s.width) + (below ? 17 : -8),
      "text-anchor": "middle", style: `fill:${colours[s.gpu]}` }, `${share}${Number(s.width.toPrecision(4))}×${s.gpu}`);
  });
}

function drawLine(svg, panel, line, colours, l) {
  line.stretches.forEach((s, i) => {
    const before = line.stretches[i - 1];
    if (before) {
      make(svg, "line", { class: "axisline", x1: l.x(s.first), x2: l.x(s.first), y1: l.y(before.width), y2: l.y(s.width) });
    }
    const ends = { x1: l.x(s.first), x2: l.x(s.end), y1: l.y(s.width), y2: l.y(s.width) };
    make(svg, "line", { ...ends, stroke: colours[s.gpu], "stroke-width": 2 + 3 * line.share });
    const reach = make(svg, "line", { ...ends, stroke: "transparent", "stroke-width": 14, "pointer-events": "stroke" });
    reach.addEventListener("pointermove", (event) => showTip(event, readings(panel, line, s)));
    reach.addEventListener("pointerleave", hideTip);
  });
}

function main() {
  const d = JSON.parse(document.getElementById("data").textContent);
  const most = widest(d.panels);
  const holder = document.getElementById("panels");
  for (const panel of d.panels) holder.appendChild(drawPanel(panel, d.colours, most));
}

if (typeof document !== "undefined") main();
