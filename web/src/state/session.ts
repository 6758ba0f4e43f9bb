/** Who is logged in. The token stays in this tab, or on this computer if the user wants that. */
import { useSyncExternalStore } from "react";

import { ApiError, Client } from "../api/client";

const KEY = "boa-token";

export type Access = "unknown" | "open" | "needed" | "wrong";

export class Session {
  private token: string | null;
  private state: Access = "unknown";
  private readonly listeners = new Set<() => void>();
  readonly client: Client;

  constructor() {
    this.token = sessionStorage.getItem(KEY) ?? localStorage.getItem(KEY);
    this.client = new Client({ token: () => this.token, refused: () => this.refused() });
  }

  /** Whether the service lets us in as we are. Throws if it cannot be asked. */
  async check(): Promise<void> {
    try {
      await this.client.get("/budget");
    } catch (problem) {
      if (problem instanceof ApiError && problem.status === 401) return; // `refused` has seen it
      throw problem;
    }
    this.set("open");
  }

  async login(token: string, remember: boolean): Promise<void> {
    this.token = token;
    await this.check();
    if (this.access === "open") (remember ? localStorage : sessionStorage).setItem(KEY, token);
  }

  logout(): void {
    this.forget();
    this.set("needed");
  }

  get hasToken(): boolean {
    return this.token !== null;
  }

  private refused(): void {
    const had = this.token !== null;
    this.forget();
    this.set(had ? "wrong" : "needed");
  }

  private forget(): void {
    this.token = null;
    sessionStorage.removeItem(KEY);
    localStorage.removeItem(KEY);
  }

  get access(): Access {
    return this.state;
  }

  private set(state: Access): void {
    if (state === this.state) return;
    this.state = state;
    for (const listener of this.listeners) listener();
  }

  readonly subscribe = (listener: () => void): (() => void) => {
    this.listeners.add(listener);
    return () => this.listeners.delete(listener);
  };
}

export const session = new Session();
export const client = session.client;

export function useAccess(): Access {
  return useSyncExternalStore(session.subscribe, () => session.access);
}
