import type { EventList } from "../../api/types";
import { Card } from "../../parts/basics";
import { linkTo, useAnswer, usePicture } from "../../state/hooks";
import { groupOf } from "./groups";
import { Lines } from "./Lines";

const LOOKED_AT = 200;
const SHOWN = 6;
const EVERY_MS = 10_000;

/** The newest that was decided about money, with its reasons. */
export function MoneyEvents() {
  const { budget } = usePicture();
  const path = `/events?limit=${LOOKED_AT}`;
  const { data } = useAnswer<EventList>(path, budget?.budget_per_hour ?? 0, EVERY_MS);
  const found = (data?.events ?? []).filter((event) => groupOf(event) === "money");
  if (found.length === 0) return null;
  return (
    <Card
      title="What was decided about money"
      tools={<a href={`${linkTo("events")}?group=money`}>All of it</a>}
    >
      <Lines events={found.slice(-SHOWN).toReversed()} short />
    </Card>
  );
}
