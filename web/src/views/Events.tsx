import { Empty } from "../parts/basics";

export function Events() {
  return <Empty title="Events" />;
}
