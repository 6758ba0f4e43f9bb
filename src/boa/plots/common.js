"use strict";
// Shared by both pages: words for numbers, scales and ticks, SVG elements, the tooltip.

function unitFor(seconds) {
  const a = Math.abs(seconds);
  if (a >= 172800) return [86400, "d"];
  if (a >= 7200) return [3600, "h"];
  if (a >= 180) return [60, "min"];
  return [1, "s"];
}

function significant(value, digits = 3) {
  if (value === 0 || Math.abs(value) >= 10 ** (digits - 1)) {
    return value.toLocaleString("en-US", { maximumFractionDigits: 0 });
  }
  return Math.abs(value) < 1e-3 ? value.toExponential(1) : value.toPrecision(digits);
}

function duration(seconds) {
  const [length, sign] = unitFor(seconds);
  return `${significant(seconds / length)} ${sign}`;
}

function rate(spend, countsGpus) {
  const amount = spend.toLocaleString("en-US", { minimumFractionDigits: 2, maximumFractionDigits: 2 });
  return countsGpus ? `${amount.replace(/\.00$/, "")} GPUs` : `$${amount}/h`;
}

function percent(share) {
  const points = 100 * share;
  return `${Math.abs(points) >= 9.95 ? points.toFixed(0) : Number(points.toPrecision(2))} %`;
}

// The value at x of a line through sorted points (xs, ys).
function interpolate(x, xs, ys) {
  if (x <= xs[0]) return ys[0];
  for (let i = 1; i < xs.length; i++) {
    if (x <= xs[i]) {
      const run = xs[i] - xs[i - 1];
      return run > 0 ? ys[i - 1] + ((ys[i] - ys[i - 1]) * (x - xs[i - 1])) / run : ys[i];
    }
  }
  return ys[ys.length - 1];
}

// The value of a step function that holds ys[i] from xs[i] on.
function step(x, xs, ys) {
  let value = ys[0];
  for (let i = 0; i < xs.length && xs[i] <= x; i++) value = ys[i];
  return value;
}

function scale(domain, range, log) {
  const f = log ? Math.log : (v) => v;
  const [a, b] = domain.map(f);
  const [c, d] = range;
  const to = (v) => c + ((f(v) - a) / (b - a)) * (d - c);
  to.back = (p) => {
    const v = a + ((p - c) / (d - c)) * (b - a);
    return log ? Math.exp(v) : v;
  };
  return to;
}

// Round numbers inside [low, high], about `count` of them.
function ticks(low, high, count, log) {
  if (log) {
    const found = [];
    const steps = high / low > 20 ? [1, 2, 5] : [1, 1.5, 2, 3, 5, 7];
    for (let e = Math.floor(Math.log10(low)); e <= Math.log10(high); e++) {
      for (const s of steps) found.push(Number((s * 10 ** e).toPrecision(6)));
    }
    return found.filter((v) => v >= low && v <= high);
  }
  const raw = (high - low) / count;
  const power = 10 ** Math.floor(Math.log10(raw));
  const size = [1, 2, 2.5, 5, 10].map((s) => s * power).find((s) => s >= raw);
  const found = [];
  for (let n = Math.ceil(low / size); n * size <= high; n++) found.push(Number((n * size).toPrecision(10)));
  return found;
}

function make(parent, name, attributes = {}, text = null) {
  const node = document.createElementNS("http://www.w3.org/2000/svg", name);
  for (const [key, value] of Object.entries(attributes)) node.setAttribute(key, value);
  if (text !== null) node.textContent = text;
  parent.appendChild(node);
  return node;
}

// rows: [title, [name, value], ...]
function showTip(event, rows) {
  const tip = document.getElementById("tip");
  tip.replaceChildren();
  const title = document.createElement("b");
  title.textContent = rows[0];
  tip.appendChild(title);
  for (const [name, value] of rows.slice(1)) {
    const line = document.createElement("span");
    const left = document.createElement("i");
    left.textContent = name;
    line.append(left, document.createTextNode(value));
    tip.appendChild(line);
  }
  const { offsetWidth: w, offsetHeight: h } = tip;
  const x = event.clientX + 16 + w > innerWidth ? event.clientX - 16 - w : event.clientX + 16;
  tip.style.left = `${Math.max(4, x)}px`;
  tip.style.top = `${Math.max(4, Math.min(innerHeight - h - 4, event.clientY - h - 12))}px`;
  tip.style.visibility = "visible";
}

function hideTip() {
  document.getElementById("tip").style.visibility = "hidden";
}
