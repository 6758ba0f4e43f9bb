import type { EventList } from "../../api/types";
import { Card, Empty, Shown } from "../../parts/basics";
import { useAnswer } from "../../state/hooks";
import { Lines } from "./Lines";

const SHOWN = 200;

/** What happened to one job, newest first. */
export function JobEvents({ job, version }: { job: string; version: unknown }) {
  const path = `/events?job=${encodeURIComponent(job)}&limit=${SHOWN}`;
  const answer = useAnswer<EventList>(path, version);
  return (
    <Card title="What happened">
      <Shown answer={answer} what="its events">
        {({ events }) =>
          events.length === 0 ? (
            <Empty title="Nothing yet" />
          ) : (
            <Lines events={events.toReversed()} short />
          )
        }
      </Shown>
      {answer.data?.events.length === SHOWN && (
        <p className="faint small-print">The last {SHOWN}.</p>
      )}
    </Card>
  );
}
