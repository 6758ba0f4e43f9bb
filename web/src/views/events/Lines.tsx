import { Fragment, memo } from "react";

import type { Event, EventPart } from "../../api/types";
import { clock } from "../../format";
import { linkTo } from "../../state/hooks";
import { groupOf, kindWords, shownText } from "./groups";
import "./events.css";

/** One event: when, of which kind, and what happened, with links to whom. */
const Line = memo(function Line({ event }: { event: Event }) {
  const group = groupOf(event);
  return (
    <li className={group === "trouble" ? "event trouble" : "event"}>
      <time dateTime={new Date(event.at * 1000).toISOString()}>{clock(event.at)}</time>
      <span className="event-kind">
        {group === "trouble" && <span aria-hidden="true">⚠ </span>}
        {kindWords(event.kind)}
      </span>
      <span className="event-text">
        {event.parts.map((part, index) => {
          const link = linkOf(part);
          if (link === null) return shownText(part);
          return (
            <a key={index} href={link}>
              {shownText(part)}
            </a>
          );
        })}
      </span>
    </li>
  );
});

/** Where a piece of an event's sentence leads to; null: nowhere. */
function linkOf({ job, node }: EventPart): string | null {
  if (job !== undefined) return linkTo("jobs", job);
  return node === undefined ? null : linkTo("cluster", String(node));
}

/** Newest first, each day under its name. */
export function Lines({ events, short = false }: { events: readonly Event[]; short?: boolean }) {
  return (
    // A short list scrolls: keys do that only where it can be focused.
    // eslint-disable-next-line jsx-a11y/no-noninteractive-tabindex
    <ol className={short ? "events short" : "events"} reversed tabIndex={short ? 0 : undefined}>
      {events.map((event, index) => {
        const newer = events[index - 1];
        const day = dayOf(event.at);
        return (
          <Fragment key={event.number}>
            {(!newer || dayOf(newer.at) !== day) && <li className="event-day">{day}</li>}
            <Line event={event} />
          </Fragment>
        );
      })}
    </ol>
  );
}

const DAY = new Intl.DateTimeFormat([], { weekday: "long", month: "long", day: "numeric" });

function dayOf(at: number): string {
  return DAY.format(at * 1000);
}
