/** Figures as people read them. */

const LEAST_USD = 1e-6;
/** Less is rounding of floats, not money. */

/** Cents, and below a dollar two significant digits: $2,191.24, $0.31, $0.090, $0.0012. The rules
 * of money, shares and time are those of `src/boa/amounts.py`; `tests/data/amounts.json` tests both. */
export function usd(amount: number): string {
  if (!Number.isFinite(amount)) return "–";
  const size = Math.abs(amount);
  let digits = 2;
  while (size >= LEAST_USD && size * 10 ** digits < 9.95) digits += 1;
  return dollars(Math.sign(amount) * rounded(size, digits), digits, digits);
}

/** "$27.62/h" */
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
  return size === 0 ? 4 : Math.max(4, Math.min(12, 2 - Math.floor(Math.log10(size))));
}

const DOLLARS = new Map<string, Intl.NumberFormat>();

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
  return format.format(amount || 0).replace("-", "−");
}

/** Halves up. */
function rounded(value: number, digits: number): number {
  const scale = 10 ** digits;
  if (value * scale >= Number.MAX_SAFE_INTEGER) return value;
  return Math.floor(value * scale + 0.5) / scale;
}

/** "1.5 ms", "34 ms", "0.19 s", "4.3 s", "12 s", "5.3 min", "1 h 12 min", "3 d 4 h". */
export function duration(seconds: number): string {
  if (!Number.isFinite(seconds)) return "–";
  const size = Math.abs(seconds);
  const words = size < 59.95 * 60 ? short(size) : long(size);
  return seconds < 0 && words !== "0 s" ? `−${words}` : words;
}

/** Less than an hour. */
function short(size: number): string {
  if (size < 0.0005) return "0 s";
  if (size < 0.0995) return `${rounded(1000 * size, size < 0.00995 ? 1 : 0)} ms`;
  if (size >= 59.5) return `${rounded(size / 60, 1)} min`;
  return `${rounded(size, size < 0.995 ? 2 : size < 9.95 ? 1 : 0)} s`;
}

/** An hour or more, in two units. */
function long(size: number): string {
  const minutes = rounded(size / 60, 0);
  if (minutes < 1440) return two(minutes, 60, "h", "min");
  const hours = rounded(size / 3600, 0);
  return hours >= 2400 ? `${whole(Math.floor(hours / 24))} d` : two(hours, 24, "d", "h");
}

function two(count: number, size: number, large: string, small: string): string {
  const rest = count % size;
  const whole = `${Math.floor(count / size)} ${large}`;
  return rest ? `${whole} ${rest} ${small}` : whole;
}

/** The UTC days from one moment to another: "Nov 19–30", "Nov 30", "Nov 30–Dec 2". */
export function days(since: number, until: number): string {
  const [first, last] = [new Date(since * 1000), new Date(Math.max(until - 1, since) * 1000)];
  const begin = UTC_DAY.format(first);
  if (first.toISOString().slice(0, 10) === last.toISOString().slice(0, 10)) return begin;
  const same = first.toISOString().slice(0, 7) === last.toISOString().slice(0, 7);
  return `${begin}–${same ? last.getUTCDate() : UTC_DAY.format(last)}`;
}

const UTC_DAY = new Intl.DateTimeFormat("en-US", {
  month: "short",
  day: "numeric",
  timeZone: "UTC",
});

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

/** 34 %, 0.25 %: small ones keep two digits. */
export function percent(part: number): string {
  const points = 100 * part;
  const size = Math.abs(points);
  if (size < 0.01) return size < 1e-6 ? "0 %" : "<0.01 %";
  return `${size >= 9.95 ? points.toFixed(0) : Number(points.toPrecision(2))} %`;
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
