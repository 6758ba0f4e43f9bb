/** Streams: plans go by class, and by who pays where that depends on who submits a job. */

const PAID_BY = "@";

export function classOf(stream: string): string {
  return stream.split(PAID_BY, 1)[0] ?? stream;
}

/** The part of the budget that a stream names; null: its class says who pays. */
export function payerIn(stream: string): string | null {
  const at = stream.indexOf(PAID_BY);
  return at < 0 ? null : stream.slice(at + 1);
}

/** "bert", or "bert, paid by vision". */
export function streamWords(stream: string): string {
  const payer = payerIn(stream);
  return payer === null ? stream : `${classOf(stream)}, paid by ${payer}`;
}
