import type { ClassDocument } from "../../api/types";
import { duration, plural } from "../../format";
import { Card } from "../../parts/basics";
import { Wide } from "../../parts/Wide";
import { partWords } from "./model";

/** What a change of the number of GPUs costs a job in time. */
export function Rescaling({ known }: { known: ClassDocument }) {
  const engines = Object.entries(known.rescaling);
  return (
    <Card title="Rescaling time">
      <p>
        Planned with <b>{duration(known.rescale_s)}</b> for every change of the number of GPUs.{" "}
        {engines.length === 0 && "Not measured yet."}
      </p>
      {engines.map(([engine, parts]) => (
        <Parts key={engine} engine={engine} parts={parts} />
      ))}
    </Card>
  );
}

function Parts({ engine, parts }: { engine: string; parts: ClassDocument["rescaling"][string] }) {
  const count = parts.total?.count ?? 0;
  return (
    <Wide label="What a rescaling takes">
      <table className="plain">
        <caption className="chart-note">
          Measured on the engine {engine}: typical of {plural(count, "start")}
        </caption>
        <thead>
          <tr>
            <th>Part</th>
            <th className="numeric">Typical</th>
            <th className="numeric">Times</th>
          </tr>
        </thead>
        <tbody>
          {Object.entries(parts).map(([part, { mean_s, count: times }]) => (
            <tr key={part}>
              <td>{partWords(part)}</td>
              <td className="numeric">{duration(mean_s)}</td>
              <td className="numeric">{times.toLocaleString("en-US")}</td>
            </tr>
          ))}
        </tbody>
      </table>
    </Wide>
  );
}
