import { Empty } from "../parts/basics";

export function Jobs() {
  return <Empty title="Jobs" />;
}
