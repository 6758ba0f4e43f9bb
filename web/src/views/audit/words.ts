/** Lines of the audit log in words. */
import type { AuditLine } from "../../api/types";
import { moment, usdExactly } from "../../format";

type Said = AuditLine["before"];

/** Only what is different, and what it was. */
export function changed(before: Said, after: Said): string {
  const [old, now] = [before ?? {}, after ?? {}];
  const keys = [...new Set([...Object.keys(old), ...Object.keys(now)])];
  return keys
    .filter((key) => plain(old[key]) !== plain(now[key]))
    .map((key) => {
      const name = key.replaceAll("_", " ");
      const was = old[key] ?? null;
      return was === null
        ? `${name} ${told(key, now[key])}`
        : `${name} ${told(key, was)} → ${told(key, now[key])}`;
    })
    .join(", ");
}

/** Who it was, as far as the service knew. */
export function whoOf({ who, role }: AuditLine): string {
  if (who) return `${who} (${role})`;
  return role ? "no token wanted" : "nobody known";
}

/** Whether it was not done. */
export function isRefused({ what, result }: AuditLine): boolean {
  return what === "refused" || result !== "done";
}

/** Times as times, and money as money. */
function told(key: string, value: unknown): string {
  if (typeof value !== "number") return plain(value);
  if (key.endsWith("_at")) return moment(value);
  return key.endsWith("_per_hour") ? usdExactly(value) : plain(value);
}

function plain(value: unknown): string {
  if (value === null || value === undefined || value === "") return "none";
  if (Array.isArray(value)) return value.map(plain).join(" ");
  return typeof value === "string" ? value : JSON.stringify(value);
}
