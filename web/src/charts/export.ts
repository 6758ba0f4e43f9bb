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
] as const;

/** A copy with every style written out: no sheet goes with it. */
export function standalone(svg: SVGSVGElement): string {
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
  copy.setAttribute("xmlns", "http://www.w3.org/2000/svg");
  const paper = document.createElementNS("http://www.w3.org/2000/svg", "rect");
  paper.setAttribute("width", "100%");
  paper.setAttribute("height", "100%");
  paper.setAttribute("fill", getComputedStyle(document.documentElement).getPropertyValue("--card"));
  copy.insertBefore(paper, copy.firstChild);
  return new XMLSerializer().serializeToString(copy);
}

export function download(name: string, type: string, text: string): void {
  const address = URL.createObjectURL(new Blob([text], { type }));
  const link = document.createElement("a");
  link.href = address;
  link.download = name;
  link.click();
  setTimeout(() => URL.revokeObjectURL(address), 10_000);
}

export function fileName(title: string, ending: string): string {
  const words = title.toLowerCase().replaceAll(/[^a-z0-9]+/g, "-");
  return `boa-${words.replaceAll(/^-|-$/g, "") || "chart"}.${ending}`;
}
