/** What an axis is of: its words, its unit, and where it begins and ends. */
export type Unit = "number" | "usd" | "seconds" | "time" | "hours";

export interface Axis {
  label: string;
  unit?: Unit;
  log?: boolean;
  /** Begin at zero. Default for y. */
  zero?: boolean;
  /** Ticks at whole numbers only: half a GPU means nothing. */
  whole?: boolean;
  /** Fixed ends, instead of those of the data. */
  domain?: readonly [number, number];
}
