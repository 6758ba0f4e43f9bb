import { useState } from "react";

import { wordsOf } from "../../api/client";
import type { NotifyTarget, NotifyTargets, NotifyTested } from "../../api/types";
import { Card, Shown } from "../../parts/basics";
import { useAnswer } from "../../state/hooks";
import { client } from "../../state/session";

const EVERY_MS = 15_000;

/** Whom the service tells of ends, failures and money, with a test for each. */
export function Notifications() {
  const answer = useAnswer<NotifyTargets>("/notify", 0, EVERY_MS);
  return (
    <Card title="Notifications">
      <Shown answer={answer} what="whom notices go to">
        {({ targets }) =>
          targets.length === 0 ? (
            <p className="faint">Nobody is told of anything: boa.yaml has no notify.</p>
          ) : (
            <ul className="plain" aria-label="Notifications">
              {targets.map((target) => (
                <Target key={target.name} target={target} />
              ))}
            </ul>
          )
        }
      </Shown>
    </Card>
  );
}

function Target({ target }: { target: NotifyTarget }) {
  const [said, setSaid] = useState("");
  const test = () => {
    setSaid("sending…");
    client.post<NotifyTested>(`/notify/${encodeURIComponent(target.name)}/test`).then(
      (tested) => setSaid(tested.delivered ? "the test was delivered" : tested.error),
      (problem: unknown) => setSaid(wordsOf(problem)),
    );
  };
  const where = target.to ? `${target.kind}, ${target.to}` : target.kind;
  return (
    <li className="row spread">
      <span>
        <b>{target.name}</b> <span className="faint">{where}</span> · {target.tell.join(", ")} ·{" "}
        {newest(target)}
      </span>
      <span className="row">
        <span role="status" className="faint">
          {said}
        </span>
        <button type="button" onClick={test}>
          Send a test
        </button>
      </span>
    </li>
  );
}

/** How the newest notice has fared, and what waits. */
export function newest({ last, waiting }: NotifyTarget): string {
  const behind = waiting > 0 ? `${waiting.toLocaleString("en-US")} waiting` : "";
  if (!last) return behind || "none yet";
  if (last.state === "delivered") return behind || "the newest was delivered";
  const tried = last.tries > 0 ? `tried ${last.tries}×: ${last.error}` : "not tried yet";
  return last.state === "given_up" ? `given up, ${tried}` : [behind, tried].join(", ");
}
