import { cleanup, render, screen } from "@testing-library/react";
import userEvent from "@testing-library/user-event";
import { afterEach, expect, it, vi } from "vitest";

import { ApiError } from "../../api/client";
import type { TraceChoices } from "../../api/types";
import { client } from "../../state/session";
import { Ask } from "./Ask";
import type { Sensible } from "./question";

const TRACES = { about: "", jobs: 160, hours: 20 };
const CHOICES: TraceChoices = {
  traces: [
    { ...TRACES, name: "day", gpu_types: ["T4", "V100"], budgets: [60, 87] },
    { ...TRACES, name: "own", gpu_types: ["T4", "A100"], budgets: [15, 30] },
  ],
  policies: ["boa", "sia-autoscale", "fixed"],
  policy_choices: [
    { name: "boa", about: "", knob: "budget", several_gpu_types: true },
    { name: "pollux-autoscale", about: "", knob: "target_efficiency", several_gpu_types: false },
    { name: "sia-autoscale", about: "", knob: "target_efficiency", several_gpu_types: true },
    { name: "fixed", about: "", knob: "width", several_gpu_types: false },
  ],
  billing: "node",
};

function shown(sensible: Sensible | null = null) {
  const onAsked = vi.fn();
  render(<Ask choices={CHOICES} sensible={sensible} today={30} onAsked={onAsked} />);
  return onAsked;
}

const simulate = () => userEvent.click(screen.getByRole("button", { name: "Simulate" }));
const budgets = () => screen.getByLabelText<HTMLInputElement>("Budgets in USD per hour");

afterEach(cleanup);

it("says what budgets count, and at which money policies are compared", () => {
  shown();
  expect(screen.getByText(/count the bill.*at the same bill/)).toBeTruthy();
});

it("asks about one's own jobs at sensible budgets unless told otherwise", async () => {
  const simulation = { id: "4" };
  const post = vi.spyOn(client, "post").mockResolvedValue({ simulation });
  const onAsked = shown();
  await simulate();
  expect(post).toHaveBeenCalledExactlyOnceWith("/what-if", {
    trace: "own",
    policies: ["boa", "sia-autoscale"],
    budgets: [15, 30],
    gpu_types: ["T4", "A100"],
  });
  expect(onAsked).toHaveBeenCalledWith(simulation);
});

it("asks about budgets that the workload can make use of, until somebody types others", async () => {
  shown({ cheapest_per_hour: 20, fastest_per_hour: 60 });
  expect(budgets().value).toBe("21, 30, 35, 46, 60");
  await userEvent.clear(budgets());
  expect(budgets().value).toBe("");
  await userEvent.click(screen.getByRole("radio", { name: /^own/ }));
  expect(budgets().value).toBe("");
});

it("takes the budgets and a type of the trace that is picked", async () => {
  shown();
  await userEvent.click(screen.getByRole("radio", { name: /^day/ }));
  expect(budgets().value).toBe("60, 87");
  expect(screen.getByRole<HTMLInputElement>("checkbox", { name: "T4" }).checked).toBe(true);
  expect(screen.getByRole<HTMLInputElement>("checkbox", { name: "V100" }).checked).toBe(false);
});

it("asks nothing while a field is wrong, and says which", async () => {
  const post = vi.spyOn(client, "post");
  shown();
  await userEvent.clear(budgets());
  await userEvent.type(budgets(), "60, ten");
  await simulate();
  expect(screen.getByRole("alert").id).toBe(budgets().getAttribute("aria-describedby"));
  expect(screen.getByRole("alert").textContent).toContain("“ten”");
  expect(post).not.toHaveBeenCalled();
});

it("shows what the service says no with beside the field that it names", async () => {
  vi.spyOn(client, "post").mockRejectedValue(new ApiError(422, "budgets[0]: no", "budgets[0]"));
  const onAsked = shown();
  await simulate();
  expect((await screen.findByRole("alert")).id).toBe("budgets-problem");
  expect(onAsked).not.toHaveBeenCalled();
});

it("offers the service’s own calendar where it follows one, to the policies that can follow it", async () => {
  const post = vi.spyOn(client, "post").mockResolvedValue({ simulation: { id: "6" } });
  const policy_choices = CHOICES.policy_choices.map((one) => ({
    ...one,
    follows_calendar: one.knob !== "width",
  }));
  const choices = { ...CHOICES, policy_choices, calendar: ["day", "night"] };
  render(<Ask choices={choices} sensible={null} today={30} onAsked={vi.fn()} />);
  const box = () => screen.getByRole<HTMLInputElement>("checkbox", { name: /service’s calendar/ });
  const fixed = () => screen.getByRole<HTMLInputElement>("checkbox", { name: "fixed" });
  expect(box().checked).toBe(true);
  expect(fixed().disabled).toBe(true);
  await simulate();
  expect(post.mock.lastCall?.[1]).toMatchObject({ trace: "own", calendar: "own" });
  await userEvent.click(box());
  await userEvent.click(fixed());
  await simulate();
  expect(post.mock.lastCall?.[1]).not.toHaveProperty("calendar");
  await userEvent.click(box());
  expect(fixed().checked).toBe(false);
});

it("speaks of no calendar where the service follows none", () => {
  shown();
  expect(screen.queryByText(/calendar/)).toBeNull();
});

it("sends a file along that was chosen", async () => {
  const post = vi.spyOn(client, "post").mockResolvedValue({ simulation: { id: "5" } });
  shown();
  await userEvent.click(screen.getByRole("radio", { name: /a file/ }));
  await simulate();
  expect(screen.getByRole("alert").textContent).toBe("Choose a file.");
  const text = "name,arrival_s\n";
  const file = new File([text], "mine.csv", { type: "text/csv" });
  file.text = () => Promise.resolve(text); // jsdom's has none
  await userEvent.upload(screen.getByLabelText("Trace file"), file);
  await screen.findByText(/mine.csv is read/);
  await simulate();
  expect(post.mock.lastCall?.[1]).toMatchObject({
    trace_file: { name: "mine.csv", text },
    gpu_types: ["T4"],
  });
});
