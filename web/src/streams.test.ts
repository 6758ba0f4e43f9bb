import { expect, test } from "vitest";

import { classOf, payerIn, streamWords } from "./streams";

test("a stream names its class, and who pays where people decide that", () => {
  expect([classOf("bert"), payerIn("bert"), streamWords("bert")]).toEqual(["bert", null, "bert"]);
  const named = "bert@eve@lab";
  expect([classOf(named), payerIn(named)]).toEqual(["bert", "eve@lab"]);
  expect(streamWords(named)).toBe("bert, paid by eve@lab");
});
