/** How wide words are in a chart, before they are drawn. */

const SIZE_PX = 11;
/** As the style sheet has it for `.chart text`. */
const LETTER_PX = 6.6;

let context: OffscreenCanvasRenderingContext2D | null | undefined;

/** In pixels, in the page's font; where nothing can be drawn, as wide as most letters are. */
export function textWidth(text: string): number {
  context ??= pen();
  return Math.ceil(context?.measureText(text).width ?? text.length * LETTER_PX) + 1;
}

function pen(): OffscreenCanvasRenderingContext2D | null {
  if (typeof OffscreenCanvas === "undefined") return null;
  const found = new OffscreenCanvas(1, 1).getContext("2d");
  const { fontFamily } = getComputedStyle(document.documentElement);
  if (found) found.font = `${SIZE_PX}px ${fontFamily}`;
  return found;
}
