/** What a search over jobs, classes, nodes and views finds, best first. */

export interface Target {
  /** "job 41", "class": what it is, beside its name. */
  kind: string;
  name: string;
  href: string;
  /** Other words that it is found by. */
  also?: string;
}

const MOST = 12;

/** All words of the search are in it, in any order; those whose name begins with it come first. */
export function found(targets: readonly Target[], search: string): Target[] {
  const words = search.toLowerCase().split(/\s+/).filter(Boolean);
  const ranked = targets.flatMap((target, place) => {
    const name = target.name.toLowerCase();
    const all = `${name} ${target.kind} ${target.also ?? ""}`.toLowerCase();
    if (!words.every((word) => all.includes(word))) return [];
    return [{ target, place, rank: rankOf(name, target.kind, words.join(" ")) }];
  });
  ranked.sort((a, b) => a.rank - b.rank || a.place - b.place);
  const once = new Map(ranked.map(({ target }) => [target.href, target]));
  return [...once.values()].slice(0, MOST);
}

function rankOf(name: string, kind: string, whole: string): number {
  if (name === whole || kind.toLowerCase() === whole || kind.endsWith(` ${whole}`)) return 0;
  if (name.startsWith(whole)) return 1;
  return name.includes(whole) ? 2 : 3;
}

/** Where an arrow key leads in a list of so many, round its ends; null: it is no such key. */
export function step(at: number, count: number, key: string): number | null {
  if (count === 0) return null;
  if (key === "ArrowDown") return (at + 1) % count;
  if (key === "ArrowUp") return (at - 1 + count) % count;
  return null;
}
