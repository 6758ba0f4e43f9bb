import { Empty } from "../parts/basics";

export function WhatIf() {
  return <Empty title="WhatIf" />;
}
