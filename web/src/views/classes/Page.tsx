import { ApiError } from "../../api/client";
import type { ClassDocument, LivePlan, PlanClass } from "../../api/types";
import { ChartsOf } from "../../charts/Frame";
import { duration, figure, plural, usd, usdPerHour } from "../../format";
import { Card, Empty, Shown, Stat } from "../../parts/basics";
import { linkTo, useAnswer, usePicture } from "../../state/hooks";
import { NOT_PLANNED, plannedWords } from "../planned";
import { Payer, useIsShared, usePayer } from "../teams/Payer";
import { NoiseScale, PlannedWidths, Work } from "./EpochCharts";
import { Estimate } from "./Estimate";
import { Layouts } from "./Layouts";
import { ofPlan, sizeOf } from "./model";
import { Rescaling } from "./Rescaling";
import { Speedup } from "./Speedup";
import { WhyWidth } from "./WhyWidth";

const EVERY_MS = 15_000;

export function Page({ name }: { name: string }) {
  const { plan: number } = usePicture();
  const path = `/classes/${encodeURIComponent(name)}`;
  const answer = useAnswer<ClassDocument>(path, number, EVERY_MS);
  const plan = useAnswer<LivePlan>(number === null ? null : "/plan", number);
  const mine = ofPlan(plan.data?.plan ?? null, name);
  return (
    <>
      <p>
        <a href={linkTo("classes")}>← All classes</a>
      </p>
      <h1>{name}</h1>
      {isUnknown(answer.error) ? (
        <Unknown name={name} />
      ) : (
        <Shown answer={answer} what={name}>
          {(known) => (
            <ChartsOf value={`class ${name}`}>
              <Known known={known} plan={mine} number={number} />
            </ChartsOf>
          )}
        </Shown>
      )}
    </>
  );
}

function isUnknown(error: Error | null): boolean {
  return error instanceof ApiError && error.status === 404;
}

function Unknown({ name }: { name: string }) {
  return (
    <Card>
      <Empty title={`No job of a class “${name}” was ever submitted`}>
        <p>
          <a href={linkTo("classes")}>See which classes there are</a>, or submit a job with{" "}
          <code className="mono">class: {name}</code>.
        </p>
      </Empty>
    </Card>
  );
}

interface KnownProps {
  known: ClassDocument;
  plan: PlanClass | null;
  number: number | null;
}

function Known({ known, plan, number }: KnownProps) {
  const [isShared, payer] = [useIsShared(), usePayer(known.class)];
  return (
    <>
      <p className="faint">
        Where its curves start from: {known.prior}. Jobs ask for {known.gpus.min} to{" "}
        {known.gpus.max} GPUs
        {known.gpus.types.length > 0 && ` of ${known.gpus.types.join(" or ")}`}
        {known.weight !== 1 && `, and count ${figure(known.weight)} times in the average`}.
        {isShared && (
          <>
            {" "}
            Its jobs are paid for by <Payer of={payer} />.
          </>
        )}
      </p>
      <Figures known={known} plan={plan} />
      <div className="two">
        {known.gpu_types.map((type) => (
          <Card key={type.name}>
            <Speedup known={known} type={type} plan={plan} />
          </Card>
        ))}
      </div>
      <Estimate known={known} />
      <Card title="Why this many GPUs">
        <WhyWidth name={known.class} number={number} isPlanned={plan !== null} />
      </Card>
      <div className="two">
        {plan && known.epochs > 1 && <PlannedWidths plan={plan} />}
        {known.epochs > 1 && <Work known={known} />}
        <NoiseScale known={known} />
        <Rescaling known={known} />
      </div>
      {known.gpu_types.map((type) => (
        <Layouts key={type.name} type={type} />
      ))}
    </>
  );
}

function Figures({ known, plan }: { known: ClassDocument; plan: PlanClass | null }) {
  const size = sizeOf(known);
  return (
    <div className="stats">
      <Stat
        label="Jobs so far"
        value={known.jobs.toLocaleString("en-US")}
        note={`${known.succeeded.toLocaleString("en-US")} succeeded`}
      />
      <Stat label="Arrivals" value={`${figure(known.arrivals_per_hour)}/h`} note="on average" />
      <Stat
        label="Mean work"
        value={size ? duration(size.seconds) : "–"}
        note={size ? `on ${size.on}, ${plural(known.epochs, "epoch")}` : "not known yet"}
      />
      <Stat
        label="Planned JCT"
        value={plan ? duration(plan.average_jct_s) : "–"}
        note={plan ? "average, submission to end" : NOT_PLANNED}
      />
      <Stat
        label="Planned cost"
        value={plan ? `${usd(plan.cost_per_job)} a job` : "–"}
        note={plan ? usdPerHour(plan.spend_per_hour) : NOT_PLANNED}
      />
      <Stat label="Planned GPUs" value={<Planned plan={plan} />} />
    </div>
  );
}

function Planned({ plan }: { plan: PlanClass | null }) {
  const words = plannedWords(plan);
  return <span className={words.length > 14 ? "stat-long" : ""}>{words}</span>;
}
