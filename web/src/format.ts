/** Figures as people read them. */

const DOLLARS = new Map<string, Intl.NumberFormat>();

/** $0.31, $14.20, $1,284; of less than a cent what there is: $0.0049. */
export function usd(amount: number, digits?: number): string {
  if (digits !== undefined) return dollars(amount, digits, digits);
  const size = Math.abs(amount);
  if (size >= 1000) return dollars(amount, 0, 0);
  return dollars(amount, 2, size < 0.01 ? digitsFor(size, 2) : 2);
}

export function usdPerHour(amount: number): string {
  return `${usd(amount)}/h`;
}

/** An amount that somebody sets, to the last digit: $1,284.40, $0.3125. See `settable`. */
export function usdExactly(amount: number): string {
  return dollars(amount, 2, settableDigits(amount));
}

/** Rounded to what can be shown: whole cents; of less than a dollar, hundredths of them. */
export function settable(amount: number): number {
  return Number(amount.toFixed(settableDigits(amount)));
}

export function settableDigits(amount: number): number {
  const size = Math.abs(amount);
  if (size >= 1) return 2;
  return Math.max(4, digitsFor(size, 3));
}

const MOST_DIGITS = 12;

/** Behind the point, so that there are as many that count. */
function digitsFor(size: number, counting: number): number {
  if (size === 0) return 2;
  return Math.min(MOST_DIGITS, counting - 1 - Math.floor(Math.log10(size)));
}

function dollars(amount: number, least: number, most: number): string {
  const kind = `${least} ${most}`;
  let format = DOLLARS.get(kind);
  if (!format) {
    format = new Intl.NumberFormat("en-US", {
      style: "currency",
      currency: "USD",
      minimumFractionDigits: least,
      maximumFractionDigits: most,
    });
    DOLLARS.set(kind, format);
  }
  return format.format(amount);
}

const UNITS: readonly (readonly [number, string, number, string])[] = [
  [86_400, "d", 3600, "h"],
  [3600, "h", 60, "min"],
  [60, "min", 1, "s"],
];

/** 42 s, 3 min 20 s, 2 h 5 min, 4 d 3 h: two parts at most. */
export function duration(seconds: number): string {
  if (!Number.isFinite(seconds)) return "–";
  if (seconds < 0) return `−${duration(-seconds)}`;
  if (seconds < 9.95) return `${trimmed(seconds, 1)} s`;
  for (const [size, name, part, partName] of UNITS) {
    const rounded = Math.round(seconds / part) * part;
    if (rounded < size) continue;
    const whole = Math.floor(rounded / size);
    const rest = Math.round((rounded - whole * size) / part);
    return rest && whole < 100 ? `${whole} ${name} ${rest} ${partName}` : `${whole} ${name}`;
  }
  return `${Math.round(seconds)} s`;
}

/** At most so many digits after the point, without zeros at the end. */
export function trimmed(value: number, digits: number): string {
  const text = value.toFixed(digits);
  return text.includes(".") ? text.replace(/\.?0+$/, "") : text;
}

/** Three digits that count: 0.0123, 4.56, 12,300. */
export function figure(value: number): string {
  if (!Number.isFinite(value)) return "–";
  if (value === 0) return "0";
  const size = Math.abs(value);
  if (size >= 1000) return Math.round(value).toLocaleString("en-US");
  if (size < 1e-3) return value.toExponential(1);
  return trimmed(value, Math.max(0, 2 - Math.floor(Math.log10(size))));
}

export function percent(part: number, digits = 0): string {
  return `${(part * 100).toFixed(digits)} %`;
}

/** "+12 %", "−3 %"; what is next to nothing says so. */
export function change(from: number, to: number): string {
  if (from === 0) return "–";
  const part = to / from - 1;
  if (Math.abs(part) < 0.0005) return "±0 %";
  const digits = Math.abs(part) < 0.1 ? 1 : 0;
  return `${part > 0 ? "+" : "−"}${(Math.abs(part) * 100).toFixed(digits)} %`;
}

// Made once: a table in which one scrolls asks for hundreds of them in a second.
const TIME = new Intl.DateTimeFormat(undefined, {
  hour: "2-digit",
  minute: "2-digit",
  second: "2-digit",
  hourCycle: "h23",
});
const DAY = new Intl.DateTimeFormat(undefined, { month: "short", day: "numeric" });
const WHOLE = new Intl.NumberFormat("en-US");

/** Of the server's clock: Unix seconds. */
export function clock(at: number): string {
  return TIME.format(at * 1000);
}

export function moment(at: number): string {
  return `${DAY.format(at * 1000)}, ${clock(at)}`;
}

export function whole(count: number): string {
  return WHOLE.format(count);
}

export function gpus(width: number, type: string | null): string {
  return type && width > 0 ? `${width}×${type}` : "–";
}

export function plural(count: number, one: string, many = `${one}s`): string {
  return `${whole(count)} ${count === 1 ? one : many}`;
}

/** "3 min ago": of what happened by the clock on the wall, which is not always the service's. */
export function ago(at: number, now = Date.now() / 1000): string {
  const passed = now - at;
  return passed < 60 ? "just now" : `${duration(passed)} ago`;
}
