import { act, cleanup, render, screen } from "@testing-library/react";
import { userEvent } from "@testing-library/user-event";
import { afterEach, beforeEach, expect, test, vi } from "vitest";

import type { Live } from "./api/types";
import { App, titleOf } from "./App";
import { live } from "./state/hooks";
import { NOTHING } from "./state/live";
import { session } from "./state/session";

const REFUSED = { error: { message: "this service wants a token" } };
const LIVE: Live = { now: 1000, complete: true, speed: 1, version: "0.1", counts: {} };

let cut: () => void = () => undefined;

/** A service with a token (null: without one) that knows of little else than its stream. */
function service(token: string | null, role = "admin") {
  return vi.spyOn(globalThis, "fetch").mockImplementation((address, init) => {
    const sent = new Headers(init?.headers).get("Authorization");
    if (token !== null && sent !== `Bearer ${token}`) return answer(REFUSED, 401);
    if (address === "/api/v1/live") return Promise.resolve(new Response(stream()));
    if (address === "/api/v1/budget") return answer({});
    if (address === "/api/v1/whoami") return answer({ name: "mia", role, team: "" });
    return answer({ error: { message: "not here" } }, 404);
  });
}

function answer(body: unknown, status = 200): Promise<Response> {
  return Promise.resolve(new Response(JSON.stringify(body), { status }));
}

function stream(): ReadableStream<Uint8Array> {
  return new ReadableStream({
    start(controller) {
      controller.enqueue(new TextEncoder().encode(`data: ${JSON.stringify(LIVE)}\n\n`));
      cut = () => controller.close();
    },
  });
}

beforeEach(() => {
  sessionStorage.clear();
  localStorage.clear();
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
  window.location.hash = "#/cluster";
});
afterEach(() => {
  cleanup();
  act(() => session.logout());
  live.picture = NOTHING;
  vi.restoreAllMocks();
  vi.unstubAllGlobals();
});

test("who has no token sees the login and nothing else, and no stream is opened", async () => {
  const fetched = service("secret");
  render(<App />);
  expect(await screen.findByLabelText("Token")).toBeTruthy();
  expect(screen.queryByRole("navigation")).toBeNull();
  expect(fetched.mock.calls.map(([address]) => address)).not.toContain("/api/v1/live");
});

test("a wrong token says so, the right one opens, and logging out closes again", async () => {
  service("secret");
  render(<App />);
  await userEvent.type(await screen.findByLabelText("Token"), "guess{Enter}");
  expect((await screen.findByRole("alert")).textContent).toBe(
    "The service does not know this token.",
  );
  await userEvent.clear(screen.getByLabelText("Token"));
  await userEvent.type(screen.getByLabelText("Token"), "secret{Enter}");
  expect(await screen.findByText("live")).toBeTruthy();
  await userEvent.click(screen.getByRole("button", { name: "Log out" }));
  expect(screen.getByLabelText("Token")).toBeTruthy();
  expect(screen.queryByText("Cluster")).toBeNull();
});

test("a service that breaks off is said to be gone, and what it said stays", async () => {
  service(null);
  render(<App />);
  expect(await screen.findByText("live")).toBeTruthy();
  act(() => cut());
  const alert = await screen.findByText(/The service does not answer/);
  expect(alert.textContent).toContain("What you see is the last that it said");
  expect(screen.getByText("no connection")).toBeTruthy();
  expect(await screen.findByText("live")).toBeTruthy();
  expect(screen.queryByText(/The service does not answer/)).toBeNull();
});

test("the title says where one is, and on the first page how much is spent", () => {
  const money = { spend_now_per_hour: 21.76, budget_per_hour: 60 };
  expect(titleOf("jobs", [], null)).toBe("Jobs · BOA");
  expect(titleOf("jobs", ["41"], null)).toBe("job 41 · BOA");
  expect(titleOf("classes", ["bert"], null)).toBe("bert · BOA");
  expect(titleOf("budget", [], null)).toBe("Budget · BOA");
  expect(titleOf("budget", [], money)).toBe("$21.76/h of $60.00/h · BOA");
});

test.each(["admin", "member", "viewer"])(
  "the audit log is in the menu of admins: %s",
  async (role) => {
    service("secret", role);
    await session.login("secret", false);
    render(<App />);
    await screen.findByTitle(`mia, ${role}`); // who one is has been answered
    expect(screen.queryByRole("link", { name: "Audit" }) !== null).toBe(role === "admin");
  },
);
