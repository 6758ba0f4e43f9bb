import { cleanup, render, screen } from "@testing-library/react";
import { userEvent } from "@testing-library/user-event";
import { afterEach, beforeEach, expect, test, vi } from "vitest";

import * as files from "./export";
import { ChartsOf, Frame } from "./Frame";

const saved = vi.fn<typeof files.download>();

beforeEach(() => {
  saved.mockReset();
  vi.spyOn(files, "download").mockImplementation(saved);
});
afterEach(cleanup);

function shown() {
  render(
    <Frame
      title="Spend, by day"
      legend={[
        { name: "spent", color: "var(--c1)" },
        { name: "planned", color: "red", kind: "dots" },
      ]}
      table={() => [
        ["day", "usd"],
        ["Monday", 3.5],
      ]}
    >
      <svg className="drawn" width="100%" height="10" viewBox="0 0 300 10">
        <text className="chart-word">three</text>
        <line data-only-screen="" />
      </svg>
    </Frame>,
  );
}

test("the CSV button saves the figures", async () => {
  shown();
  await userEvent.click(screen.getByRole("button", { name: "Spend, by day as CSV" }));
  const text = "day,usd\r\nMonday,3.5\r\n";
  expect(saved).toHaveBeenCalledExactlyOnceWith("boa-spend-by-day.csv", "text/csv", text);
});

test("the SVG button saves a picture that needs no sheet, without what is only for the screen", async () => {
  shown();
  await userEvent.click(screen.getByRole("button", { name: "Spend, by day as SVG" }));
  const [name, type, text] = saved.mock.calls[0] ?? [];
  expect([name, type]).toEqual(["boa-spend-by-day.svg", "image/svg+xml"]);
  expect(text).toContain('xmlns="http://www.w3.org/2000/svg"');
  expect(text).toContain("three");
  expect(text).toContain("Spend, by day");
  expect(text).toContain('viewBox="0 -44 300 54"');
  expect(text).toMatch(/<line[^>]*\/><text[^>]*>spent</);
  expect(text).not.toContain("class=");
  expect(text).not.toContain("only-screen");
});

test("files of a job's or a class's charts are named after it too", async () => {
  render(
    <ChartsOf value="job 41">
      <Frame title="Loss" table={() => [["step", "loss"]]}>
        <svg />
      </Frame>
    </ChartsOf>,
  );
  await userEvent.click(screen.getByRole("button", { name: "Loss as CSV" }));
  expect(saved.mock.calls[0]?.[0]).toBe("boa-job-41-loss.csv");
});
