import { createContext, useContext, useRef, type ReactNode } from "react";

import { csv } from "./data";
import { download, fileName, standalone, type LegendEntry } from "./export";

/** What the charts below belong to, for the names of their files: a job, a class. */
export const ChartsOf = createContext("");

export interface FrameProps {
  title: string;
  /** One line below: what to see in it. */
  note?: ReactNode;
  /** The figures, header first. */
  table: () => (string | number | null)[][];
  legend?: readonly LegendEntry[];
  controls?: ReactNode;
  children: ReactNode;
}

/** What every chart has around it: a title, a legend, and buttons that save it. */
export function Frame({ title, note, table, legend, controls, children }: FrameProps) {
  const body = useRef<HTMLDivElement>(null);
  const file = `${useContext(ChartsOf)} ${title}`;
  const saveSvg = () => {
    const svg = body.current?.querySelector("svg");
    if (svg) download(fileName(file, "svg"), "image/svg+xml", standalone(svg, title, legend));
  };
  const saveCsv = () => download(fileName(file, "csv"), "text/csv", csv(table()));
  return (
    <figure className="chart" aria-label={title}>
      <figcaption>
        <span className="chart-title">{title}</span>
        <span className="chart-tools">
          {controls}
          <button type="button" className="quiet" onClick={saveSvg} aria-label={`${title} as SVG`}>
            SVG
          </button>
          <button type="button" className="quiet" onClick={saveCsv} aria-label={`${title} as CSV`}>
            CSV
          </button>
        </span>
      </figcaption>
      {note && <p className="chart-note">{note}</p>}
      {legend && legend.length > 1 && (
        <ul className="legend">
          {legend.map((entry) => (
            <li key={entry.name}>
              <svg width="18" height="10" aria-hidden="true">
                {entry.kind === "dots" ? (
                  <circle cx="9" cy="5" r="4" fill={entry.color} />
                ) : (
                  <line
                    x1="0"
                    x2="18"
                    y1="5"
                    y2="5"
                    stroke={entry.color}
                    strokeWidth="3"
                    strokeDasharray={entry.dashed ? "4 3" : undefined}
                  />
                )}
              </svg>
              {entry.name}
            </li>
          ))}
        </ul>
      )}
      <div ref={body}>{children}</div>
    </figure>
  );
}
