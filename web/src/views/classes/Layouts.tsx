import type { ClassOnType, TriedLayout } from "../../api/types";
import { duration, figure, gpus, plural } from "../../format";
import { Card } from "../../parts/basics";
import { Wide } from "../../parts/Wide";

/** How the model was laid out over GPUs, what that took, and why. */
export function Layouts({ type }: { type: ClassOnType }) {
  if (type.layouts.length === 0) return null;
  return (
    <Card title={`Layouts on ${type.name}`}>
      <Wide label={`Layouts on ${type.name}`}>
        <table className="plain" aria-label={`Layouts on ${type.name}`}>
          <thead>
            <tr>
              <th>GPUs</th>
              <th>Layout</th>
              <th className="numeric">Step</th>
              <th className="numeric">Samples/s</th>
              <th className="numeric">Memory</th>
              <th>Why</th>
            </tr>
          </thead>
          <tbody>
            {type.layouts.map((one) => (
              <tr key={`${one.width} ${one.nodes} ${one.layout} ${one.local_batch} ${one.passes}`}>
                <td>{placeWords(type.name, one)}</td>
                <td>{one.fastest ? <b>{one.layout}</b> : one.layout}</td>
                <td className="numeric">{one.step_s === null ? "–" : duration(one.step_s)}</td>
                <td className="numeric">
                  {one.samples_per_s === null ? "–" : figure(one.samples_per_s)}
                </td>
                <td className="numeric">{memoryWords(one)}</td>
                <td>{whyWords(one)}</td>
              </tr>
            ))}
          </tbody>
        </table>
      </Wide>
    </Card>
  );
}

function placeWords(type: string, one: TriedLayout): string {
  return one.nodes > 1 ? `${gpus(one.width, type)} on ${one.nodes} nodes` : gpus(one.width, type);
}

function memoryWords(one: TriedLayout): string {
  return one.peak_bytes === null ? "–" : `${figure(one.peak_bytes / 1e9)} GB`;
}

export function whyWords(one: TriedLayout): string {
  const size = `${plural(one.local_batch, "sample")} at a time`;
  if (one.out_of_memory) return `out of memory with ${size}`;
  return `${one.fastest ? "fastest; " : ""}${size}; ${one.why}`;
}
