import { cleanup, render, screen } from "@testing-library/react";
import { afterEach, beforeEach, expect, test, vi } from "vitest";

import { ApiError } from "../../api/client";
import { live } from "../../state/hooks";
import { NOTHING } from "../../state/live";
import { client } from "../../state/session";
import { Classes } from "../Classes";
import { known, onType, planned } from "./sample";

/** Answers by path; any other path is not there. */
function service(answers: Record<string, unknown>) {
  vi.spyOn(client, "get").mockImplementation((path) =>
    path in answers
      ? Promise.resolve(answers[path] as never)
      : Promise.reject(new ApiError(404, `there is no ${path} here`)),
  );
}

beforeEach(() => {
  live.picture = { ...NOTHING, connection: "live", heardAt: 1, plan: 9 };
  vi.stubGlobal(
    "ResizeObserver",
    class {
      observe() {
        /* nothing has a size here */
      }
      disconnect() {
        /* nor was any observed */
      }
    },
  );
});
afterEach(() => {
  cleanup();
  live.picture = NOTHING;
  vi.unstubAllGlobals();
});

const PLAN = {
  number: 9,
  plan: { classes: [planned("bert", { share: 1, gpu_type: "T4", widths: [2, 2] })] },
};

test("without a class it says how one begins", async () => {
  service({ "/classes": { classes: [] }, "/plan": PLAN });
  render(<Classes rest={[]} />);
  expect(await screen.findByText("No class yet")).toBeTruthy();
});

test("the list has what is known and what is planned, and – for what is not", async () => {
  service({
    "/classes": { classes: ["bert", "new"] },
    "/classes/bert": known("bert"),
    "/classes/new": known("new"),
    "/plan": PLAN,
  });
  render(<Classes rest={[]} />);
  const bert = (await screen.findByText("bert")).closest('[role="row"]');
  expect(bert?.textContent).toBe("bert52.51 h on 1×T42×T410 min$1.20100 %");
  const fresh = screen.getByText("new").closest('[role="row"]');
  expect(fresh?.textContent).toBe("new52.51 h on 1×T4not planned yet–––");
});

test("a class that nobody knows says so, with a way back", async () => {
  service({ "/plan": PLAN });
  render(<Classes rest={["nope"]} />);
  expect(await screen.findByText(/No job of a class “nope” was ever submitted/)).toBeTruthy();
  expect(screen.getByRole("link", { name: "See which classes there are" })).toBeTruthy();
});

test("a class's page has its reasons in the service's words, and its charts", async () => {
  service({
    "/plan": PLAN,
    "/classes/bert": known("bert"),
    "/classes/bert/why": {
      name: "bert",
      plan: 9,
      seconds_per_usd: 21,
      words: ["All epochs on 2×T4: worth it."],
      variants: [
        {
          share: 1,
          gpu_type: "T4",
          epochs: [{ first_epoch: 0, last_epoch: 1, width: 2, choices: [] }],
        },
      ],
      now: 0,
    },
  });
  render(<Classes rest={["bert"]} />);
  expect(await screen.findByText("All epochs on 2×T4: worth it.")).toBeTruthy();
  expect(screen.getByText(/One more dollar saves 21 s elsewhere/)).toBeTruthy();
  for (const chart of ["Speedup on T4", "Planned GPUs by epoch", "Work by epoch"]) {
    expect(screen.getByRole("figure", { name: chart })).toBeTruthy();
  }
  expect(screen.queryByRole("figure", { name: "Noise scale by epoch" })).toBeNull();
  expect(screen.getByText(/Not measured yet\./)).toBeTruthy();
});

test("a class that the plan does not know yet still shows what was learned", async () => {
  service({ "/plan": { plan: { classes: [] } }, "/classes/bert": known("bert") });
  render(<Classes rest={["bert"]} />);
  expect(await screen.findByRole("figure", { name: "Speedup on T4" })).toBeTruthy();
  expect(screen.getByText("The plan in force expects no jobs of this class.")).toBeTruthy();
  expect(screen.queryByRole("alert")).toBeNull();
});

test("a class's page says which width failed, and why, and not that nobody tried it", async () => {
  const failed = {
    width: 2,
    across_nodes: false,
    times: 3,
    reason: "exit code 1",
    said: "CUDA out of memory",
    at: 0,
    job: "1",
    again_at: null,
  };
  const curve = { widths: [1], speedup: [1], rate: [2] };
  const gpu_types = [onType("T4", { tried: 1, offered: 1, curve, failed: [failed] })];
  service({ "/plan": PLAN, "/classes/bert": known("bert", { gpu_types }) });
  render(<Classes rest={["bert"]} />);
  expect(
    await screen.findByText("2×T4 failed 3 times: exit code 1: CUDA out of memory; not used"),
  ).toBeTruthy();
  expect(screen.queryByText(/not tried/)).toBeNull();
});

test("a class's page says which layouts were tried, which is fastest, and why", async () => {
  const tried = {
    width: 2,
    nodes: 1,
    layout: "fsdp-keep",
    local_batch: 8,
    passes: 0,
    batch: 16,
    step_s: 0.5,
    samples_per_s: 32,
    peak_bytes: 34.5e9,
    out_of_memory: false,
    fastest: true,
    why: "to be measured beside ddp",
  };
  const failed = {
    ...tried,
    layout: "ddp",
    step_s: null,
    samples_per_s: null,
    peak_bytes: null,
    out_of_memory: true,
    fastest: false,
  };
  const gpu_types = [onType("T4", { layouts: [failed, tried] })];
  service({ "/plan": PLAN, "/classes/bert": known("bert", { gpu_types }) });
  render(<Classes rest={["bert"]} />);
  const table = await screen.findByRole("table", { name: "Layouts on T4" });
  const rows = [...table.querySelectorAll("tbody tr")].map((row) => row.textContent);
  expect(rows).toEqual([
    "2×T4ddp–––out of memory with 8 samples at a time",
    "2×T4fsdp-keep0.5 s3234.5 GBfastest; 8 samples at a time; to be measured beside ddp",
  ]);
});
