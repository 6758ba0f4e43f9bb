import type { ReactNode } from "react";

/** A table that scrolls by itself where it is wider than its place, by keys too. */
export function Wide({ label, children }: { label: string; children: ReactNode }) {
  return (
    // Keys scroll only what can be focused.
    // eslint-disable-next-line jsx-a11y/no-noninteractive-tabindex
    <div className="scroll-x" role="group" aria-label={label} tabIndex={0}>
      {children}
    </div>
  );
}
