import type { ClassDocument, ClassList, LivePlan } from "../api/types";
import { Card, Empty, Shown } from "../parts/basics";
import { useAnswer, usePicture } from "../state/hooks";
import { client } from "../state/session";
import { List } from "./classes/List";
import { Page } from "./classes/Page";
import "./classes/classes.css";

const EVERY_MS = 15_000;
const DOCUMENTS = { key: "all classes", ask: documents };

/** What was learned of the jobs, class by class. */
export function Classes({ rest }: { rest: string[] }) {
  const [name] = rest;
  // A page of its own for each class: nothing of the one before is shown for the next.
  return name === undefined ? <All /> : <Page key={name} name={name} />;
}

function All() {
  const { plan: number } = usePicture();
  const known = useAnswer(DOCUMENTS, number, EVERY_MS);
  const plan = useAnswer<LivePlan>(number === null ? null : "/plan", number);
  return (
    <>
      <h1>Classes</h1>
      <p className="faint">
        Jobs of a class are alike. What the service measures of them decides how many GPUs the next
        one gets. JCT is the time from a job’s submission to its end.
      </p>
      <Shown answer={known} what="the classes">
        {(found) =>
          found.length === 0 ? <NoClass /> : <List classes={found} plan={plan.data?.plan ?? null} />
        }
      </Shown>
    </>
  );
}

function NoClass() {
  return (
    <Card>
      <Empty title="No class yet">
        <p>
          A class begins with its first job: <code className="mono">boa submit job.yaml</code>. Its{" "}
          <code className="mono">class</code> says which jobs it is like.
        </p>
      </Empty>
    </Card>
  );
}

/** What is known of each class, asked one by one. */
async function documents(signal: AbortSignal): Promise<ClassDocument[]> {
  const { classes } = await client.get<ClassList>("/classes", signal);
  return Promise.all(
    classes.map((name) =>
      client.get<ClassDocument>(`/classes/${encodeURIComponent(name)}`, signal),
    ),
  );
}
