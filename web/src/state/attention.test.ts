import { afterEach, beforeEach, expect, test, vi } from "vitest";

import { Attention, GIVE_BACK_MS } from "./attention";

class Page extends EventTarget {
  visibilityState: DocumentVisibilityState = "visible";

  turn(state: DocumentVisibilityState): void {
    this.visibilityState = state;
    this.dispatchEvent(new Event("visibilitychange"));
  }
}

function watched(page: Page): { attention: Attention; told: boolean[] } {
  const attention = new Attention(page as unknown as Document);
  const told: boolean[] = [];
  attention.subscribe(() => told.push(attention.seen));
  return { attention, told };
}

beforeEach(() => void vi.useFakeTimers());
afterEach(() => void vi.useRealTimers());

test("a tab that stays in the background is not seen any more, and is again at once", () => {
  const page = new Page();
  const { attention, told } = watched(page);
  page.turn("hidden");
  vi.advanceTimersByTime(GIVE_BACK_MS - 1);
  expect(attention.seen).toBe(true);
  vi.advanceTimersByTime(1);
  expect(attention.seen).toBe(false);
  page.turn("visible");
  expect(attention.seen).toBe(true);
  expect(told).toEqual([false, true]);
});

test("who only looks elsewhere for a moment loses nothing", () => {
  const page = new Page();
  const { told } = watched(page);
  page.turn("hidden");
  vi.advanceTimersByTime(GIVE_BACK_MS / 2);
  page.turn("visible");
  vi.advanceTimersByTime(GIVE_BACK_MS * 2);
  expect(told).toEqual([]);
});
