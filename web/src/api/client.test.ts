// @vitest-environment node
import { afterEach, expect, test, vi } from "vitest";

import { ApiError, Client, isAbort, Unreachable } from "./client";

function client(token: string | null = null) {
  const refused = vi.fn();
  return { refused, client: new Client({ token: () => token, refused }) };
}

function answering(status: number, body: string) {
  return vi
    .spyOn(globalThis, "fetch")
    .mockImplementation(() => Promise.resolve(new Response(body, { status })));
}

async function problemOf(asked: Promise<unknown>): Promise<unknown> {
  return asked.then(
    () => expect.fail("it said yes"),
    (problem: unknown) => problem,
  );
}

afterEach(() => void vi.restoreAllMocks());

test("the token goes with every request, and no answer is kept by the browser", async () => {
  const fetched = answering(200, "{}");
  await client("secret").client.put("/budget", { budget_per_hour: 3 });
  const [address, init] = fetched.mock.calls[0] ?? [];
  expect(address).toBe("/api/v1/budget");
  expect(init).toMatchObject({ method: "PUT", body: '{"budget_per_hour":3}', cache: "no-store" });
  const headers = new Headers(init?.headers);
  expect(headers.get("Authorization")).toBe("Bearer secret");
  expect(headers.get("Content-Type")).toBe("application/json");
});

test("without a token none is sent", async () => {
  const fetched = answering(200, "{}");
  await client().client.get("/budget");
  const [, init] = fetched.mock.calls[0] ?? [];
  expect(new Headers(init?.headers).has("Authorization")).toBe(false);
});

test("a 401 is told to the session as well as to who asked", async () => {
  answering(401, '{"error": {"message": "wrong token"}}');
  const { client: asking, refused } = client("old");
  const problem = await problemOf(asking.get("/budget"));
  expect(problem).toBeInstanceOf(ApiError);
  expect(refused).toHaveBeenCalledOnce();
});

test("an error has the service's words, its status and its field", async () => {
  const error = { message: "budget_per_hour: got -1; expected > 0", field: "budget_per_hour" };
  answering(422, JSON.stringify({ error }));
  const { client: asking, refused } = client();
  const problem = await problemOf(asking.post("/budget"));
  expect(problem).toMatchObject({ status: 422, ...error });
  expect(refused).not.toHaveBeenCalled();
});

test("an error that is not the service's own still says its number", async () => {
  answering(502, "<html>Bad gateway</html>");
  const problem = await problemOf(client().client.get("/budget"));
  expect(problem).toMatchObject({ status: 502, message: "The service answered 502." });
});

test("nobody there, or something else than the service: it does not answer", async () => {
  vi.spyOn(globalThis, "fetch").mockRejectedValue(new TypeError("Failed to fetch"));
  expect(await problemOf(client().client.get("/budget"))).toBeInstanceOf(Unreachable);
  answering(200, "<html>Log in to the hotel's network</html>");
  expect(await problemOf(client().client.get("/budget"))).toBeInstanceOf(Unreachable);
});

test("who stops waiting is not told that the service is away", async () => {
  const stop = new AbortController();
  vi.spyOn(globalThis, "fetch").mockImplementation((_, init) => {
    const signal = init?.signal;
    return new Promise((_resolve, reject) => {
      signal?.addEventListener("abort", () => reject(new DOMException("stopped", "AbortError")));
    });
  });
  const asked = problemOf(client().client.get("/budget", stop.signal));
  stop.abort();
  expect(isAbort(await asked)).toBe(true);
});
