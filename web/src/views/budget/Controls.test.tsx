import { cleanup, fireEvent, render, screen } from "@testing-library/react";
import userEvent from "@testing-library/user-event";
import { afterEach, expect, it, vi } from "vitest";

import { ApiError } from "../../api/client";
import type { Frontier } from "../../api/types";
import { client } from "../../state/session";
import { Controls } from "./Controls";

const FRONTIER: Frontier = {
  plan: 1,
  gain: 1,
  points: [
    { budget_per_hour: 10, average_jct_s: 3600 },
    { budget_per_hour: 80, average_jct_s: 495.2 },
  ],
  cheapest_per_hour: 10,
  fastest_per_hour: 80,
  fastest_jct_s: 495.2,
  now: 0,
};

function shown() {
  const pick = vi.fn();
  render(
    <Controls
      frontier={FRONTIER}
      scale={{ low: 1, high: 10_000 }}
      tried={10}
      budget={10}
      preview={{ data: null, error: null, settled: false }}
      pick={pick}
    />,
  );
  return pick;
}

async function wish(time: string): Promise<void> {
  await userEvent.type(screen.getByLabelText("I want jobs to take"), time);
  await userEvent.click(screen.getByRole("button", { name: "Find the budget" }));
}

afterEach(cleanup);

it("the slider stands at the budget, and picks another one", () => {
  const pick = shown();
  const slider = screen.getByLabelText<HTMLInputElement>("Try a budget");
  expect(slider.value).toBe("250");
  fireEvent.change(slider, { target: { value: "500" } });
  expect(pick).toHaveBeenLastCalledWith(100);
});

it("a typed amount is taken as soon as it is one", async () => {
  const pick = shown();
  const field = screen.getByLabelText<HTMLInputElement>("Budget in USD per hour");
  await userEvent.clear(field);
  expect(field.getAttribute("aria-invalid")).toBe("true");
  await userEvent.type(field, "25");
  expect(pick).toHaveBeenLastCalledWith(25);
});

it("a wished time is turned into the least budget, rounded up", async () => {
  const get = vi.spyOn(client, "get").mockResolvedValue({ budget_per_hour: 35.4512 });
  const pick = shown();
  await wish("14");
  expect(get).toHaveBeenCalledWith("/preview?jct_s=840");
  expect(pick).toHaveBeenCalledWith(35.46);
});

it("a time out of reach says what can be had", async () => {
  vi.spyOn(client, "get").mockRejectedValue(new ApiError(422, "jct_s: got 6", "jct_s"));
  const pick = shown();
  await wish("0.1");
  expect((await screen.findByRole("alert")).textContent).toBe(
    "Out of reach: the fastest plan takes 8 min 16 s, the cheapest 1 h.",
  );
  expect(pick).not.toHaveBeenCalled();
});

it("what is no time is not asked for", async () => {
  const get = vi.spyOn(client, "get");
  shown();
  await wish("soon");
  expect(screen.getByRole("alert").textContent).toContain("A time above 0");
  expect(get).not.toHaveBeenCalled();
});
