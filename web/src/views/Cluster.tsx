import { Empty } from "../parts/basics";

export function Cluster() {
  return <Empty title="Cluster" />;
}
