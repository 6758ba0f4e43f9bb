import { Card, Empty, Loading } from "../parts/basics";
import { linkTo, usePicture } from "../state/hooks";
import { Page } from "./teams/Page";
import { Shares, Tree } from "./teams/Tree";

/** `#/teams`: all who share the budget; `#/teams/vision`: the page of one. */
export function Teams({ rest }: { rest: string[] }) {
  const { budget } = usePicture();
  const [name] = rest;
  if (!budget) return <Loading what="the teams" />;
  const parts = budget.parts ?? [];
  if (parts.length === 0) return <NobodyShares />;
  if (name !== undefined) return <Page key={name} name={name} budget={budget} parts={parts} />;
  return (
    <>
      <h1>Teams</h1>
      <p className="faint">
        They share one budget. What a team is guaranteed it gets whenever it wants it; what it
        leaves, others may have, and it gets more until that is paid back. Nobody’s jobs are stopped
        for it.
      </p>
      <Card title="Who spends it now">
        <Shares budget={budget} parts={parts} />
      </Card>
      <Card title="What each has">
        <Tree parts={parts} label="Teams" />
      </Card>
    </>
  );
}

function NobodyShares() {
  return (
    <>
      <h1>Teams</h1>
      <Card>
        <Empty title="Nobody shares this budget">
          <p>
            <code className="mono">parts</code> in <code className="mono">boa.yaml</code> names
            teams, what each is guaranteed, and whose jobs it pays for.{" "}
            <a href={linkTo("budget")}>See the budget</a>
          </p>
        </Empty>
      </Card>
    </>
  );
}
