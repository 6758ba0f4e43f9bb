import { Empty } from "../parts/basics";

export function Classes() {
  return <Empty title="Classes" />;
}
