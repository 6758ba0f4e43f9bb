import { act, cleanup, fireEvent, render, screen } from "@testing-library/react";
import { afterEach, beforeEach, expect, test, vi } from "vitest";

import { client } from "../../state/session";
import { Log } from "./Log";

beforeEach(() => void vi.useFakeTimers());
afterEach(() => {
  cleanup();
  vi.useRealTimers();
});

async function* pieces(text: string): AsyncGenerator<Uint8Array> {
  yield await Promise.resolve(new TextEncoder().encode(text));
}

test("who pauses at once sees what had come by then", async () => {
  vi.spyOn(client, "bytes").mockImplementation(() =>
    Promise.resolve([new Headers({ "boa-log-offset": "0" }), pieces("epoch 1\n")]),
  );
  render(<Log job="7" workers={1} over={false} />);
  await act(() => vi.advanceTimersByTimeAsync(1));
  const log = screen.getByLabelText("Log of worker 0");
  expect(log.textContent).toBe("Nothing printed yet.");
  fireEvent.click(screen.getByRole("button", { name: "Pause log" }));
  expect(log.textContent).toBe("epoch 1");
  expect(screen.getByText(/1 line · paused/)).toBeTruthy();
});
