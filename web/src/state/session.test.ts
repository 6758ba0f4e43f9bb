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
