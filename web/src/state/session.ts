/** Who is logged in. The token stays in this tab, or on this computer if the user wants that. */
import { useSyncExternalStore } from "react";

import { ApiError, Client } from "../api/client";

const KEY = "boa-token";
/** Written when somebody logs out: all tabs of this browser hear of it. */
const LEFT = "boa-logged-out";

export type Access = "unknown" | "open" | "needed" | "wrong";

const HANDED = "#token=";

/** What can stand in a header. */
const SENDABLE = /^[\u0020-\u007e\u0080-\u00ff]*$/;

export class Session {
  private token: string | null;
  private state: Access = "unknown";
  private loggingIn = false;
  private readonly listeners = new Set<() => void>();
  readonly client: Client;

  constructor() {
    this.token = handedOver() ?? stored();
    this.client = new Client({ token: () => this.token, refused: (sent) => this.refused(sent) });
    window.addEventListener("storage", (event) => this.heard(event));
  }

  /** Whether the service lets us in as we are. Throws if it cannot be asked. */
  async check(): Promise<void> {
    const sent = this.token;
    try {
      await this.client.get("/budget");
    } catch (problem) {
      if (!(problem instanceof ApiError && problem.status === 401)) throw problem;
      // `refused` has seen it, and may have found another token.
      if (this.token !== null && this.token !== sent) await this.check();
      return;
    }
    if (this.token === sent) this.set("open");
  }

  async login(token: string, remember: boolean): Promise<void> {
    if (!SENDABLE.test(token)) {
      throw new Error(
        "This token has letters or signs that no token can have. Is it the right one?",
      );
    }
    this.token = token;
    this.loggingIn = true;
    await this.check().finally(() => (this.loggingIn = false));
    if (this.access === "open") (remember ? localStorage : sessionStorage).setItem(KEY, token);
  }

  /** In every tab of this browser. */
  logout(): void {
    this.leave();
    localStorage.removeItem(KEY); // also one that is newer than ours
    localStorage.setItem(LEFT, String(Date.now()));
  }

  get hasToken(): boolean {
    return this.token !== null;
  }

  /** Another tab has logged out, or in. */
  private heard({ key, newValue }: StorageEvent): void {
    if (newValue === null) return;
    if (key === LEFT && this.token !== null) this.leave();
    if (key === KEY && (this.state === "needed" || this.state === "wrong")) {
      this.token = newValue;
      this.check().catch(() => undefined); // the form is still there
    }
  }

  private refused(sent: string | null): void {
    if (sent !== this.token) return; // an answer to what is no longer so
    this.forget();
    if (!this.loggingIn) this.token = stored(); // of another tab, and newer
    if (this.token === null) this.set(sent !== null || this.state === "wrong" ? "wrong" : "needed");
  }

  private leave(): void {
    this.forget();
    sessionStorage.removeItem(KEY);
    this.set("needed");
  }

  /** Only what is ours: another tab may have stored another one since. */
  private forget(): void {
    for (const storage of [sessionStorage, localStorage]) {
      if (storage.getItem(KEY) === this.token) storage.removeItem(KEY);
    }
    this.token = null;
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

function stored(): string | null {
  return sessionStorage.getItem(KEY) ?? localStorage.getItem(KEY);
}

/** The token in the address that `boa serve` prints (#token=…): taken, and gone from the address and
 * from the history, so that nobody reads it over a shoulder or copies it with a link. */
function handedOver(): string | null {
  const { hash, pathname, search } = window.location;
  if (!hash.startsWith(HANDED)) return null;
  const token = hash.slice(HANDED.length);
  window.history.replaceState(null, "", pathname + search);
  if (token === "" || !SENDABLE.test(token)) return null;
  sessionStorage.setItem(KEY, token);
  return token;
}

export const session = new Session();
export const client = session.client;

export function useAccess(): Access {
  return useSyncExternalStore(session.subscribe, () => session.access);
}
