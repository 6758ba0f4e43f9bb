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

function shown(typed: string | null = null) {
  const [pick, onTyped] = [vi.fn(), vi.fn()];
  render(
    <Controls
      typed={typed}
      onTyped={onTyped}
      frontier={FRONTIER}
      scale={{ low: 1, high: 10_000 }}
      tried={10}
      budget={10}
      preview={{ data: null, error: null, settled: false }}
      pick={pick}
    />,
  );
  return { pick, onTyped };
}

async function wish(time: string): Promise<void> {
  await userEvent.type(screen.getByLabelText("I want jobs to take"), time);
  await userEvent.click(screen.getByRole("button", { name: "Find the budget" }));
}

afterEach(cleanup);

it("the slider stands at the budget, and picks another one", () => {
  const { pick } = shown();
  const slider = screen.getByLabelText<HTMLInputElement>("Try a budget");
  expect(slider.value).toBe("250");
  fireEvent.change(slider, { target: { value: "500" } });
  expect(pick).toHaveBeenLastCalledWith(100);
});

it("what is typed as an amount is told as it is", () => {
  const { onTyped } = shown();
  const field = screen.getByLabelText<HTMLInputElement>("Budget in USD per hour");
  expect(field.value).toBe("10.00");
  fireEvent.change(field, { target: { value: "25" } });
  expect(onTyped).toHaveBeenLastCalledWith("25");
});

it("what is no amount stays where it is, with why, also when the field is left", () => {
  const { onTyped } = shown("12,34,5");
  const field = screen.getByLabelText<HTMLInputElement>("Budget in USD per hour");
  expect(field.value).toBe("12,34,5");
  expect(field.getAttribute("aria-invalid")).toBe("true");
  expect(screen.getByRole("alert").textContent).toContain("An amount above 0");
  fireEvent.blur(field);
  expect(onTyped).not.toHaveBeenCalled();
});

it("a wished time is turned into the least budget, rounded up", async () => {
  const get = vi.spyOn(client, "get").mockResolvedValue({ budget_per_hour: 35.4512 });
  const { pick } = shown();
  await wish("14");
  expect(get).toHaveBeenCalledWith("/preview?jct_s=840");
  expect(pick).toHaveBeenCalledWith(35.46);
});

it("a time out of reach says what can be had", async () => {
  vi.spyOn(client, "get").mockRejectedValue(new ApiError(422, "jct_s: got 6", "jct_s"));
  const { pick } = shown();
  await wish("0.1");
  expect((await screen.findByRole("alert")).textContent).toBe(
    "Out of reach: the fastest plan takes 8.3 min, the cheapest 1 h.",
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
