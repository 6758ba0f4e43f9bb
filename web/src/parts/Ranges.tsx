import type { Range } from "../state/ranges";

interface RangesProps {
  of: readonly Range[];
  range: Range;
  onRange: (range: Range) => void;
}

/** How far back one looks. */
export function Ranges({ of, range, onRange }: RangesProps) {
  return (
    <span className="choice" role="group" aria-label="How far back">
      {of.map((name) => (
        <button
          key={name}
          type="button"
          aria-pressed={name === range}
          onClick={() => onRange(name)}
        >
          {name}
        </button>
      ))}
    </span>
  );
}
