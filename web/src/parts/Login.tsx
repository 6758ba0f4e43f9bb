import { useState, type SyntheticEvent } from "react";

import { wordsOf } from "../api/client";
import { session, type Access } from "../state/session";

/** All that somebody without a token sees. */
export function Login({ access }: { access: Access }) {
  const [token, setToken] = useState("");
  const [remember, setRemember] = useState(false);
  const [working, setWorking] = useState(false);
  const [problem, setProblem] = useState("");
  const submit = (event: SyntheticEvent) => {
    event.preventDefault();
    setWorking(true);
    setProblem("");
    session
      .login(token.trim(), remember)
      .catch((error: unknown) => setProblem(wordsOf(error)))
      .finally(() => setWorking(false));
  };
  const said = problem || (access === "wrong" ? "The service does not know this token." : "");
  return (
    <main className="login">
      <form className="card" onSubmit={submit}>
        <h1>BOA Constrictor</h1>
        <p>
          This service wants a token: your own, or the service&apos;s. Where it runs,{" "}
          <code>boa token show</code> prints an address that opens this page with it.
        </p>
        <label htmlFor="token">Token</label>
        <input
          id="token"
          type="password"
          autoComplete="current-password"
          value={token}
          onChange={(event) => setToken(event.target.value)}
          aria-invalid={said !== ""}
          aria-describedby="token-problem"
        />
        <label className="check">
          <input
            type="checkbox"
            checked={remember}
            onChange={(event) => setRemember(event.target.checked)}
          />
          Stay logged in on this computer
        </label>
        <p id="token-problem" className="field-problem" role="alert">
          {said}
        </p>
        <button type="submit" className="primary" disabled={working || token.trim() === ""}>
          {working ? "Asking…" : "Log in"}
        </button>
      </form>
    </main>
  );
}
