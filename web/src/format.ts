/** Figures as people read them. */

const DOLLARS = new Map<number, Intl.NumberFormat>();

/** $0.31, $14.20, $1,284. */
export function usd(amount: number, digits?: number): string {
  const size = Math.abs(amount);
  const shown = digits ?? (size >= 1000 ? 0 : 2);
  let format = DOLLARS.get(shown);
  if (!format) {
    format = new Intl.NumberFormat("en-US", {
      style: "currency",
      currency: "USD",
      minimumFractionDigits: shown,
      maximumFractionDigits: shown,
    });
    DOLLARS.set(shown, format);
  }
  return format.format(amount);
}

export function usdPerHour(amount: number): string {
  return `${usd(amount)}/h`;
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

/** Of the server's clock: Unix seconds. */
export function clock(at: number): string {
  return new Date(at * 1000).toLocaleTimeString([], {
    hour: "2-digit",
    minute: "2-digit",
    second: "2-digit",
    hour12: false,
  });
}

export function moment(at: number): string {
  const date = new Date(at * 1000);
  const day = date.toLocaleDateString([], { month: "short", day: "numeric" });
  return `${day}, ${clock(at)}`;
}

export function gpus(width: number, type: string | null): string {
  return type && width > 0 ? `${width}×${type}` : "–";
}

export function plural(count: number, one: string, many = `${one}s`): string {
  return `${count.toLocaleString("en-US")} ${count === 1 ? one : many}`;
}
