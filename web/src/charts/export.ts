/** Charts as files: SVG that looks the same elsewhere, CSV of the figures. */

const COPIED = [
  "fill",
  "fill-opacity",
  "stroke",
  "stroke-width",
  "stroke-dasharray",
  "stroke-opacity",
  "opacity",
  "font-family",
  "font-size",
  "font-weight",
  "text-anchor",
  "paint-order",
  "stroke-linejoin",
] as const;

export interface LegendEntry {
  name: string;
  color: string;
  dashed?: boolean;
  kind?: string;
}

const SVG = "http://www.w3.org/2000/svg";
const TITLE_PX = 26;
const LINE_PX = 18;
const LETTER_PX = 6.6;

/** A copy with every style written out, its title and legend above: no page goes with it. */
export function standalone(
  svg: SVGSVGElement,
  title: string,
  legend: readonly LegendEntry[] = [],
): string {
  const copy = svg.cloneNode(true) as SVGSVGElement;
  const from = [svg, ...svg.querySelectorAll<SVGElement>("*")];
  const to = [copy, ...copy.querySelectorAll<SVGElement>("*")];
  from.forEach((element, index) => {
    const style = getComputedStyle(element);
    const target = to[index];
    for (const name of COPIED) {
      const value = style.getPropertyValue(name);
      if (value) target?.setAttribute(name, value);
    }
    target?.removeAttribute("class");
    target?.removeAttribute("style");
  });
  for (const extra of copy.querySelectorAll("[data-only-screen]")) extra.remove();
  addHeading(copy, title, legend);
  return new XMLSerializer().serializeToString(copy);
}

/** Makes room above, on paper of the page's colour. */
function addHeading(copy: SVGSVGElement, title: string, legend: readonly LegendEntry[]): void {
  const [width, drawn] = sizeOf(copy);
  const entries = legend.length > 1 ? placed(legend, width) : [];
  const rows = entries.at(-1)?.row ?? -1;
  const above = TITLE_PX + (rows + 1) * LINE_PX;
  const height = drawn + above;
  copy.setAttribute("width", String(width));
  copy.setAttribute("height", String(height));
  copy.setAttribute("viewBox", `0 ${-above} ${width} ${height}`);
  const paper = { x: 0, y: -above, width, height, fill: "var(--card)" };
  const parts = [element("rect", paper)];
  const size = { "font-size": 12, fill: "var(--ink)" };
  parts.push(element("text", { x: 6, y: 18 - above, ...size, "font-weight": 600 }, title));
  for (const { entry, x, row } of entries) {
    const y = TITLE_PX + (row + 0.5) * LINE_PX - above;
    const { color: fill } = entry;
    const line = { x1: x, x2: x + 18, y1: y, y2: y, stroke: fill, "stroke-width": 3 };
    const dashes = entry.dashed ? { "stroke-dasharray": "4 3" } : {};
    const dot = entry.kind === "dots";
    parts.push(
      dot
        ? element("circle", { cx: x + 9, cy: y, r: 4, fill })
        : element("line", { ...line, ...dashes }),
      element("text", { x: x + 24, y: y + 4, ...size, "font-size": 11 }, entry.name),
    );
  }
  copy.prepend(...parts);
}

/** In pixels; by its box where it is as wide as there is room. */
function sizeOf(svg: SVGSVGElement): [width: number, height: number] {
  const box = (svg.getAttribute("viewBox") ?? "").split(/[\s,]+/).map(Number);
  const side = (name: string, index: number) => Number(svg.getAttribute(name)) || (box[index] ?? 0);
  return [side("width", 2), side("height", 3)];
}

/** Beside each other as far as there is room. Letters are taken to be as wide as most are. */
function placed(legend: readonly LegendEntry[], width: number) {
  let [x, row] = [6, 0];
  return legend.map((entry) => {
    const wide = 40 + entry.name.length * LETTER_PX;
    if (x > 6 && x + wide > width) [x, row] = [6, row + 1];
    const at = { entry, x, row };
    x += wide;
    return at;
  });
}

function element(
  name: string,
  attributes: Record<string, string | number>,
  text?: string,
): SVGElement {
  const made = document.createElementNS(SVG, name);
  for (const [key, value] of Object.entries(attributes)) made.setAttribute(key, resolved(value));
  if (text !== undefined) made.textContent = text;
  return made;
}

/** Elsewhere nobody knows our names for colours, nor which theme was on. */
function resolved(value: string | number): string {
  const text = String(value);
  if (!text.includes("var(")) return text;
  const probe = document.createElement("span");
  probe.style.color = text;
  document.body.append(probe);
  const found = getComputedStyle(probe).color;
  probe.remove();
  return found;
}

export function download(name: string, type: string, text: BlobPart): void {
  const address = URL.createObjectURL(new Blob([text], { type }));
  const link = document.createElement("a");
  link.href = address;
  link.download = name;
  link.click();
  setTimeout(() => URL.revokeObjectURL(address), 10_000);
}

const LONGEST = 120;
/** Some systems take no longer names than about twice that. */

export function fileName(title: string, ending: string): string {
  const words = title
    .toLowerCase()
    .replaceAll(/[^a-z0-9]+/g, "-")
    .replace(/^-/, "");
  return `boa-${words.slice(0, LONGEST).replace(/-$/, "") || "chart"}.${ending}`;
}
