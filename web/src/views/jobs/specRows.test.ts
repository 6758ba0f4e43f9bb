import { expect, test } from "vitest";

import { commandText, specRows } from "./specRows";

test("values of variables stay hidden, their names do not", () => {
  const rows = specRows({ env: { HF_TOKEN: "secret", SEED: "1" } });
  expect(rows).toEqual([["environment", "HF_TOKEN, SEED"]]);
});

test("variables and the environment of Python have names of their own", () => {
  const rows = specRows({ env: { SEED: "1" }, environment: "conda:torch24", package: "ab12" });
  expect(rows).toEqual([
    ["environment", "SEED"],
    ["Python environment", "conda:torch24"],
    ["package", "ab12"],
  ]);
});

test("limits of GPUs read as a sentence", () => {
  const rows = specRows({ version: 1, gpus: { min: 1, max: 8, types: ["T4", "A100"] } });
  expect(rows).toEqual([["GPUs", "1 to 8 of T4 or A100"]]);
});

test("the command comes first", () => {
  const rows = specRows({ class: "bert", run: ["make"], grace_s: 30 });
  expect(rows.map(([name]) => name)).toEqual(["command", "class", "grace time, seconds"]);
});

test("a command is shown as one would type it", () => {
  expect(commandText(["python", "train.py", "--name", "a b"])).toBe("python train.py --name 'a b'");
  expect(commandText(["/bin/sh", "-c", "python train.py | tee log"])).toBe(
    "python train.py | tee log",
  );
  expect(commandText("make")).toBe("make");
});
