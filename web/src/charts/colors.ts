/** Colours that also differ for those who see few of them (after Okabe and Ito, Tol). */

export const COLORS = [
  "var(--c1)",
  "var(--c2)",
  "var(--c3)",
  "var(--c4)",
  "var(--c5)",
  "var(--c6)",
  "var(--c7)",
  "var(--c8)",
] as const;

export function colorAt(index: number): string {
  return COLORS[index % COLORS.length] ?? COLORS[0];
}

/**
 * Always the same for the same job. Neighbouring numbers are far apart; those whose hues are near
 * (8 or 13 apart) differ in lightness.
 */
export function colorOfJob(id: string): string {
  const number = Number(id);
  const known = Number.isFinite(number);
  const turn = known ? (number * 0.618033988749895) % 1 : 0;
  const shade = known ? ((Math.trunc(Math.abs(number)) % 3) - 1) * 9 : 0;
  return `hsl(${Math.round(turn * 360)} var(--job-s) calc(var(--job-l) + ${shade}%))`;
}
