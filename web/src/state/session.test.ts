import { afterEach, beforeEach, expect, test, vi } from "vitest";

import { Session } from "./session";

const answers = (status: number) => () =>
  Promise.resolve(new Response(JSON.stringify({ error: { message: "no" } }), { status }));

/** A service that lets in whoever sends this token. */
function wants(token: string) {
  return vi.spyOn(globalThis, "fetch").mockImplementation((_, init) => {
    const sent = new Headers(init?.headers).get("Authorization");
    return answers(sent === `Bearer ${token}` ? 200 : 401)();
  });
}

beforeEach(() => {
  localStorage.clear();
  sessionStorage.clear();
});
afterEach(() => void vi.restoreAllMocks());

test("a service without a token lets everybody in", async () => {
  vi.spyOn(globalThis, "fetch").mockImplementation(answers(200));
  const session = new Session();
  await session.check();
  expect(session.access).toBe("open");
  expect(session.hasToken).toBe(false);
});

test("without a token it is needed, with another one it is wrong", async () => {
  wants("right");
  const session = new Session();
  await session.check();
  expect(session.access).toBe("needed");
  await session.login("left", true);
  expect(session.access).toBe("wrong");
  expect(session.hasToken).toBe(false);
  expect(localStorage.length + sessionStorage.length).toBe(0);
});

test("the right token opens, and stays in this tab only", async () => {
  wants("right");
  const session = new Session();
  const told = vi.fn();
  session.subscribe(told);
  await session.login("right", false);
  expect(session.access).toBe("open");
  expect(told).toHaveBeenCalledOnce();
  expect(sessionStorage.getItem("boa-token")).toBe("right");
  expect(localStorage.getItem("boa-token")).toBeNull();
});

test("a remembered token is sent by the next session", async () => {
  wants("right");
  await new Session().login("right", true);
  sessionStorage.clear();
  const next = new Session();
  await next.check();
  expect(next.access).toBe("open");
});

test("logging out forgets the token everywhere", async () => {
  wants("right");
  const session = new Session();
  await session.login("right", true);
  session.logout();
  expect(session.access).toBe("needed");
  expect(localStorage.getItem("boa-token")).toBeNull();
  expect(new Session().hasToken).toBe(false);
});

test("a service that does not answer is not a wrong token, even after one", async () => {
  wants("right");
  const session = new Session();
  await session.login("left", false);
  vi.spyOn(globalThis, "fetch").mockRejectedValue(new TypeError("Failed to fetch"));
  await expect(session.login("right", false)).rejects.toThrow("The service does not answer.");
  expect(sessionStorage.getItem("boa-token")).toBeNull();
});

/** What the browser tells the other tabs. */
function told(key: string, newValue: string | null) {
  window.dispatchEvent(new StorageEvent("storage", { key, newValue }));
}

test("logging out in one tab logs out the others, also those that remember nothing", async () => {
  wants("right");
  const [here, there] = [new Session(), new Session()];
  await here.login("right", true);
  await there.login("right", false);
  here.logout();
  told("boa-logged-out", localStorage.getItem("boa-logged-out"));
  expect(there.access).toBe("needed");
  expect(there.hasToken).toBe(false);
  expect(localStorage.getItem("boa-token") ?? sessionStorage.getItem("boa-token")).toBeNull();
});

test("logging in for good in one tab opens those that wait for a token", async () => {
  wants("right");
  const waits = new Session();
  await waits.check();
  told("boa-token", "right");
  await vi.waitFor(() => expect(waits.access).toBe("open"));
});

test("a token that is no longer known does not take a newer one of another tab with it", async () => {
  wants("old");
  const session = new Session();
  await session.login("old", true);
  wants("new");
  localStorage.setItem("boa-token", "new");
  await session.check();
  expect(session.access).toBe("open");
  expect(localStorage.getItem("boa-token")).toBe("new");
});

test("a wrong token stays wrong, however many answers say so", async () => {
  wants("old");
  const session = new Session();
  await session.login("old", false);
  wants("new");
  await Promise.all([session.check(), session.check()]);
  await session.check();
  expect(session.access).toBe("wrong");
});

test("a wrong token is not made good by one that another tab has stored", async () => {
  wants("right");
  const session = new Session();
  localStorage.setItem("boa-token", "right");
  await session.login("left", false);
  expect(session.access).toBe("wrong");
  expect(localStorage.getItem("boa-token")).toBe("right");
});

test("an answer that comes after logging out does not log in again", async () => {
  wants("right");
  const session = new Session();
  await session.login("right", false);
  const late = session.check();
  session.logout();
  await late;
  expect(session.access).toBe("needed");
});

test("a token that cannot be sent is refused in plain words, before it is tried", async () => {
  const asked = wants("right");
  const session = new Session();
  await expect(session.login("€uro", false)).rejects.toThrow(/letters or signs/);
  expect(asked).not.toHaveBeenCalled();
});

test("a token in the address opens the page, and is gone from the address", async () => {
  wants("right");
  window.history.replaceState(null, "", "/#token=right");
  const session = new Session();
  expect(window.location.href).not.toContain("right");
  await session.check();
  expect(session.access).toBe("open");
  expect(sessionStorage.getItem("boa-token")).toBe("right");
  expect(localStorage.length).toBe(0);
});

test("one in the address that the service does not know leads to the form", async () => {
  wants("right");
  window.history.replaceState(null, "", "/#token=left");
  const session = new Session();
  await session.check();
  expect(session.access).toBe("wrong");
  expect(sessionStorage.length).toBe(0);
});
