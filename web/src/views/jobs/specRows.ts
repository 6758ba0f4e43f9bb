/** A job's spec as lines to read. */

const NAMES: Readonly<Record<string, string>> = {
  grace_s: "grace time, seconds",
  workdir: "folder",
  environment: "Python environment",
  checkpoint_dir: "folder of checkpoints",
};

/** The command first. Names of variables only: their values may be secrets. */
export function specRows(spec: Readonly<Record<string, unknown>>): [string, string][] {
  const rows: [string, string][] = [];
  for (const [key, value] of Object.entries(spec)) {
    if (key === "version" || value === null) continue;
    if (key === "env") {
      const names = Object.keys(value as object);
      rows.push(["environment", names.length > 0 ? names.join(", ") : "nothing beside the usual"]);
    } else if (key === "run") rows.push(["command", commandText(value)]);
    else if (key === "gpus") rows.push(["GPUs", limitsText(value)]);
    else rows.push([NAMES[key] ?? key.replaceAll("_", " "), plainText(value)]);
  }
  const isCommand = ([name]: [string, string]) => name === "command";
  return [...rows.filter(isCommand), ...rows.filter((row) => !isCommand(row))];
}

/** As one would type it. */
export function commandText(run: unknown): string {
  if (!Array.isArray(run)) return String(run);
  const words = run.map(String);
  if (words.length === 3 && words[1] === "-c" && /(^|\/)(ba)?sh$/.test(words[0] ?? "")) {
    return words[2] ?? "";
  }
  return words.map(quoted).join(" ");
}

function quoted(word: string): string {
  if (/^[\w@%+=:,./-]+$/.test(word)) return word;
  return `'${word.replaceAll("'", `'\\''`)}'`;
}

function limitsText(value: unknown): string {
  const { min, max, types } = value as { min?: number; max?: number; types?: string[] };
  const kinds = types && types.length > 0 ? ` of ${types.join(" or ")}` : "";
  return `${min ?? 1} to ${max ?? "any number"}${kinds}`;
}

function plainText(value: unknown): string {
  return typeof value === "string" ? value : JSON.stringify(value);
}
