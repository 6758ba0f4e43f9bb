/** Requests to the service: one way to send the token, one kind of error. */

import type { ErrorAnswer } from "./types";

export const API = "/api/v1";
const PATIENCE_MS = 35_000;

/** What the service said no with, in its own words. */
export class ApiError extends Error {
  constructor(
    readonly status: number,
    message: string,
    readonly field?: string,
  ) {
    super(message);
    this.name = "ApiError";
  }
}

/** Nobody answered: the service is away, or the network is. */
export class Unreachable extends Error {
  constructor() {
    super("The service does not answer.");
    this.name = "Unreachable";
  }
}

export interface Credentials {
  token: () => string | null;
  /** Called when the service wants a token, or another one than was sent. */
  refused: (sent: string | null) => void;
}

export class Client {
  constructor(private readonly who: Credentials) {}

  get<T>(path: string, signal?: AbortSignal): Promise<T> {
    return this.json<T>(path, signal ? { signal } : {});
  }

  post<T>(path: string, body?: unknown): Promise<T> {
    return this.json<T>(path, sending("POST", body));
  }

  put<T>(path: string, body: unknown): Promise<T> {
    return this.json<T>(path, sending("PUT", body));
  }

  patch<T>(path: string, body: unknown): Promise<T> {
    return this.json<T>(path, sending("PATCH", body));
  }

  /** The body of an answer that goes on, piece by piece, until it ends or is aborted. */
  async *text(path: string, accept: string, signal: AbortSignal): AsyncGenerator<string> {
    const response = await this.send(path, { signal, headers: { Accept: accept } });
    const decoder = new TextDecoder();
    for await (const piece of piecesOf(response)) yield decoder.decode(piece, { stream: true });
  }

  /** The same as bytes, with the headers that came first. */
  async bytes(path: string, signal: AbortSignal): Promise<[Headers, AsyncGenerator<Uint8Array>]> {
    const response = await this.send(path, { signal, headers: { Accept: "text/plain" } });
    return [response.headers, piecesOf(response)];
  }

  private async json<T>(path: string, init: RequestInit): Promise<T> {
    const limit = AbortSignal.timeout(PATIENCE_MS);
    const signal = init.signal ? AbortSignal.any([init.signal, limit]) : limit;
    const response = await this.send(path, { ...init, signal });
    try {
      return (await response.json()) as T;
    } catch (problem) {
      if (isAbort(problem)) throw problem;
      throw new Unreachable(); // it broke off, or something between us and the service answered
    }
  }

  private async send(path: string, init: RequestInit): Promise<Response> {
    const headers = new Headers(init.headers);
    const token = this.who.token();
    if (token) headers.set("Authorization", `Bearer ${token}`);
    let response: Response;
    try {
      response = await fetch(API + path, { ...init, headers, cache: "no-store" });
    } catch (problem) {
      if (init.signal?.aborted && !isTimeout(init.signal)) throw problem;
      throw new Unreachable();
    }
    if (response.ok) return response;
    const error = await errorOf(response);
    if (error.status === 401) this.who.refused(token);
    throw error;
  }
}

async function* piecesOf(response: Response): AsyncGenerator<Uint8Array> {
  if (!response.body) return;
  const reader = response.body.getReader();
  try {
    for (;;) {
      const { done, value } = await reader.read();
      if (done) return;
      yield value;
    }
  } finally {
    await reader.cancel().catch(() => undefined);
  }
}

function sending(method: string, body: unknown): RequestInit {
  if (body === undefined) return { method };
  return { method, body: JSON.stringify(body), headers: { "Content-Type": "application/json" } };
}

function isTimeout(signal: AbortSignal): boolean {
  return signal.reason instanceof DOMException && signal.reason.name === "TimeoutError";
}

async function errorOf(response: Response): Promise<ApiError> {
  try {
    const { error } = (await response.json()) as ErrorAnswer;
    return new ApiError(response.status, error.message, error.field);
  } catch {
    return new ApiError(response.status, `The service answered ${response.status}.`);
  }
}

/** Whether an error only says that somebody has stopped waiting. */
export function isAbort(problem: unknown): boolean {
  return problem instanceof DOMException && problem.name === "AbortError";
}

/** Whatever was thrown, as an error. */
export function asError(problem: unknown): Error {
  return problem instanceof Error ? problem : new Error(String(problem));
}

/** What went wrong, in words. */
export function wordsOf(problem: unknown): string {
  return asError(problem).message;
}
