/** Files that jobs leave: fetched whole, and their sizes in words. */
import type { Client } from "../../api/client";

const UNITS = ["B", "KB", "MB", "GB", "TB"];

/** In a unit that leaves up to three digits: 812 B, 4.1 KB, 35 MB. */
export function bytesText(count: number): string {
  let value = count;
  let unit = 0;
  while (value >= 1024 && unit < UNITS.length - 1) {
    value /= 1024;
    unit += 1;
  }
  const digits = unit === 0 || value >= 10 ? 0 : 1;
  return `${value.toFixed(digits)} ${UNITS[unit] ?? ""}`;
}

export async function wholeArtifact(client: Client, job: string, path: string): Promise<Blob> {
  const query = new URLSearchParams({ path });
  const asked = `/jobs/${encodeURIComponent(job)}/artifacts/file?${query.toString()}`;
  const [, pieces] = await client.bytes(asked, new AbortController().signal);
  const parts: BlobPart[] = [];
  for await (const piece of pieces) parts.push(piece as BlobPart);
  return new Blob(parts, { type: "application/octet-stream" });
}
