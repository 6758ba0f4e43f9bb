/** The last lines of a log, as they come in pieces. */

export const MOST_LINES = 2000;
const LONGEST_LINE = 4000;
// Colours and the like, which terminals understand and a page does not.
// eslint-disable-next-line no-control-regex
const ESCAPES = /\u001b\[[0-9;?]*[ -/]*[@-~]/g;

export class LogBuffer {
  private readonly lines: string[] = [];
  private open = "";
  /** Lines that were there and are no longer kept. */
  dropped = 0;

  constructor(private readonly most = MOST_LINES) {}

  add(piece: string): void {
    const parts = (this.open + piece).split("\n");
    this.open = (parts.pop() ?? "").slice(-2 * LONGEST_LINE);
    for (const line of parts) this.lines.push(cleaned(line));
    const over = this.lines.length - this.most;
    if (over > 0) {
      this.lines.splice(0, over);
      this.dropped += over;
    }
  }

  clear(): void {
    this.lines.length = 0;
    this.open = "";
  }

  get count(): number {
    return this.lines.length + (this.open ? 1 : 0);
  }

  text(): string {
    const open = cleaned(this.open);
    return open ? [...this.lines, open].join("\n") : this.lines.join("\n");
  }
}

/** As a terminal would leave it: a progress bar writes over itself. */
function cleaned(line: string): string {
  const whole = line.replace(/\r+$/, "");
  const left = whole.slice(whole.lastIndexOf("\r") + 1).replaceAll(ESCAPES, "");
  return left.length > LONGEST_LINE ? `${left.slice(0, LONGEST_LINE)}…` : left;
}
