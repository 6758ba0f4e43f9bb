/** Nodes for tests. */
import type { Node } from "../../api/types";

export function node(id: number, with_: Partial<Node> = {}): Node {
  const held = with_.held ?? [];
  return {
    id,
    gpu_type: "T4",
    gpus: 4,
    used_gpus: held.reduce((sum, part) => sum + part.gpus, 0),
    state: "ready",
    price: 1.1,
    price_per_hour: 4.4,
    requested_at: 900,
    billed_from: 905,
    ready_at: 950,
    released_at: null,
    empty_since: null,
    address: "10.0.0.1",
    reason: "",
    worth_per_hour: null,
    draining: false,
    why: "",
    held,
    ...with_,
  };
}

export function held(node: number, ...parts: [job: string, gpus: number][]): Node["held"] {
  return parts.map(([job, gpus]) => ({ job, node, gpus }));
}
