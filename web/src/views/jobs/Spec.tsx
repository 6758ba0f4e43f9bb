import { Card } from "../../parts/basics";
import { specRows } from "./specRows";

/** The job as it was submitted. Values of variables may be secrets: only their names are shown. */
export function Spec({ spec }: { spec: Readonly<Record<string, unknown>> }) {
  return (
    <Card>
      <details className="spec">
        <summary>As submitted</summary>
        <dl className="facts">
          {specRows(spec).map(([name, text]) => (
            <div key={name}>
              <dt>{name}</dt>
              <dd className="mono">{text}</dd>
            </div>
          ))}
        </dl>
      </details>
    </Card>
  );
}
