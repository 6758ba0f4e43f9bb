import { cleanup, fireEvent, render, screen } from "@testing-library/react";
import { afterEach, expect, test, vi } from "vitest";

import { ApiError } from "../../api/client";
import { moment } from "../../format";
import { client } from "../../state/session";
import { bodyOf, Estimate } from "./Estimate";
import { known } from "./sample";

afterEach(cleanup);

const FOUND = {
  class: "bert",
  basis: "jobs",
  succeeded: 12,
  time_s: 7200,
  cost_usd: 5,
  time_range: { low: 6000, high: 9000 },
  jct_s: 8000,
  jct_range: { low: 7000, high: 12000 },
  cost_range: null,
  spread_jobs: 12,
  ways: [
    {
      share: 1,
      time_s: 7200,
      cost_usd: 5,
      stages: [
        { first_epoch: 0, last_epoch: 1, gpu_type: "T4", width: 1, time_s: 2400, cost_usd: 1 },
        { first_epoch: 2, last_epoch: 2, gpu_type: "T4", width: 4, time_s: 4800, cost_usd: 4 },
      ],
    },
  ],
  before: { waiting: 2, gpus: 6, jobs: ["3", "4"], wait_s: 600, boot_s: 0 },
  displaces: [],
  put_off: null,
  probe: null,
  priorities: [
    {
      priority: "background",
      weight: 1,
      jct_s: null,
      cost_usd: 0,
      others_s: 0,
      class_others_s: 0,
      class_usd_per_hour: 0,
    },
  ],
  plan: 7,
  words: "About 7,200 s for $5. It would start in about 0.4 s.",
};

test("an estimate shows time, cost, who waits, and the width of every epoch", async () => {
  const asked = vi.spyOn(client, "post").mockResolvedValue({ estimate: FOUND, now: 0 });
  render(<Estimate known={known("bert")} />);
  fireEvent.change(screen.getByLabelText("Most GPUs"), { target: { value: "4" } });
  fireEvent.change(screen.getByLabelText("Total work"), { target: { value: "1e6" } });
  fireEvent.click(screen.getByRole("button", { name: "Estimate" }));
  expect(await screen.findByText("About 2 h for $5. It would start in about 0.4 s.")).toBeTruthy();
  expect(screen.getByText("in 10 min")).toBeTruthy();
  expect(screen.getByText(/2 jobs wait before it for 6 GPUs/).textContent).toContain("3, 4");
  expect(screen.getByRole("link", { name: "4" }).getAttribute("href")).toBe("#/jobs/4");
  expect(screen.getByText("12 jobs")).toBeTruthy();
  const priorities = screen.getByRole("table", { name: "What each priority costs" });
  expect(priorities.textContent).toContain("backgroundas GPUs are empty$0.00–");
  expect(screen.getByText(/the range is that of 12 jobs; GPUs as in plan 7/)).toBeTruthy();
  expect(screen.getByText("1–2")).toBeTruthy();
  expect(screen.getByText("4×T4")).toBeTruthy();
  expect(asked.mock.calls[0]?.[0]).toBe("/jobs/estimate");
  expect(asked.mock.calls[0]?.[1]).toMatchObject({ total_work: 1e6, gpus: { max: 4 } });
});

test("a job that would wait for other hours says when it starts, and why", async () => {
  const until = new Date(2026, 10, 19, 20, 0).getTime() / 1000;
  const why = "waits for night, from Thu 2026-11-19 20:00 CET on: it takes 7,200 s then";
  const estimate = { ...FOUND, put_off: { until, why } };
  vi.spyOn(client, "post").mockResolvedValue({ estimate, now: 0 });
  render(<Estimate known={known("bert")} />);
  fireEvent.click(screen.getByRole("button", { name: "Estimate" }));
  expect(await screen.findByText(moment(until))).toBeTruthy();
  expect(screen.getByText(/^it waits for night, .* on: it takes 2 h then$/)).toBeTruthy();
  expect(screen.queryByText(/jobs wait before it/)).toBeNull();
});

test("an estimate names the running jobs that would give up GPUs, and what that costs", async () => {
  const displaces = [
    { job: "12", gpus: 1, preempted: false, seconds: 30, lost_s: 0, cost_usd: 0.02 },
    { job: "9", gpus: 2, preempted: true, seconds: 90, lost_s: 60, cost_usd: 1.5 },
  ];
  vi.spyOn(client, "post").mockResolvedValue({ estimate: { ...FOUND, displaces }, now: 0 });
  render(<Estimate known={known("bert")} />);
  fireEvent.click(screen.getByRole("button", { name: "Estimate" }));
  const said = await screen.findByText(/^Costs others/);
  expect(said.textContent).toBe(
    "Costs others: job 12 gives up 1 GPU (30 s, $0.020); " +
      "job 9 gives up 2 GPUs and waits (1.5 min, 1 min of it lost work, $1.50)",
  );
  expect(screen.getByRole("link", { name: "job 9" }).getAttribute("href")).toBe("#/jobs/9");
});

test("of a class that nobody knows it has the offer of a probe", async () => {
  const words = "A probe of 300 s on 1×T4 would tell, for at most $0.08.";
  const unknown = { ...FOUND, basis: null, time_s: null, cost_usd: null, ways: [], words };
  vi.spyOn(client, "post").mockResolvedValue({ estimate: unknown, now: 0 });
  render(<Estimate known={known("new")} />);
  fireEvent.click(screen.getByRole("button", { name: "Estimate" }));
  expect(await screen.findByText(words.replace("300 s", "5 min"))).toBeTruthy();
});

test("what the service would not take is said in its words", async () => {
  vi.spyOn(client, "post").mockRejectedValue(new ApiError(422, "gpus.max: got 'many'"));
  render(<Estimate known={known("bert")} />);
  fireEvent.change(screen.getByLabelText("Most GPUs"), { target: { value: "many" } });
  fireEvent.click(screen.getByRole("button", { name: "Estimate" }));
  expect((await screen.findByRole("alert")).textContent).toBe("gpus.max: got 'many'");
});

test("words that are no numbers reach the service as they are", () => {
  expect(bodyOf(known("bert"), "many", " ")).toMatchObject({ gpus: { max: "many" } });
  expect(bodyOf(known("bert"), "4", " ")).not.toHaveProperty("total_work");
});
