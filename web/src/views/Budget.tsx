import { Empty } from "../parts/basics";

export function Budget() {
  return <Empty title="Budget" />;
}
