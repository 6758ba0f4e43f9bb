import { useState } from "react";

import type { JobList } from "../api/types";
import { Card } from "../parts/basics";
import { linkTo, useAnswer, usePicture } from "../state/hooks";

const FILE = `cat > hello.yaml <<'END'
version: 1
class: hello
launcher: single
run: [python3, -c, "print('hello from a GPU')"]
gpus: {max: 1}
END`;

/** Three steps from an empty service to its first job; gone when that is there. */
export function FirstRun() {
  const { complete, jobs, ended } = usePicture();
  const none = complete && jobs.size === 0 && ended.size === 0;
  const ever = useAnswer<JobList>(none ? "/jobs?all=true&limit=1" : null);
  if (!none || ever.data?.jobs.length !== 0) return null;
  const submit = `export BOA_SERVER=${window.location.origin}\nboa submit hello.yaml`;
  return (
    <Card title="Your first job, in three steps">
      <ol className="first-run">
        <li>
          <p>Write down a job: a command, and its class. Jobs of a class are alike.</p>
          <Command text={FILE} name="the job file" />
        </li>
        <li>
          <p>
            Submit it. Where the service wants a token, <code>BOA_TOKEN</code> has it.
          </p>
          <Command text={submit} name="the submission" />
        </li>
        <li>
          <p>
            Look: it comes up under <a href={linkTo("jobs")}>Jobs</a>, with its log and its cost;
            the node that is rented for it under <a href={linkTo("cluster")}>Cluster</a>. At the
            terminal:
          </p>
          <Command text="boa logs -f 1" name="the log" />
        </li>
      </ol>
    </Card>
  );
}

function Command({ text, name }: { text: string; name: string }) {
  const [said, setSaid] = useState("Copy");
  const copy = () => {
    // Without HTTPS a browser has no clipboard for us: the text can still be marked.
    const clipboard = (navigator as Partial<Navigator>).clipboard;
    const done = clipboard?.writeText(text) ?? Promise.reject(new Error("no clipboard"));
    done.then(
      () => setSaid("Copied"),
      () => setSaid("Mark it to copy"),
    );
  };
  return (
    <div className="command">
      <pre className="mono">{text}</pre>
      <button type="button" onClick={copy} aria-label={`${said}: ${name}`}>
        {said}
      </button>
    </div>
  );
}
