import { Fragment, memo } from "react";

import type { Event } from "../../api/types";
import { clock } from "../../format";
import { linkTo } from "../../state/hooks";
import { groupOf, kindWords, pieces, readable } from "./groups";
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
        {pieces(readable(event.text)).map((piece, index) => {
          if (piece.job) {
            return (
              <a key={index} href={linkTo("jobs", piece.job)}>
                {piece.text}
              </a>
            );
          }
          if (piece.node) {
            return (
              <a key={index} href={linkTo("cluster", piece.node)}>
                {piece.text}
              </a>
            );
          }
          return piece.text;
        })}
      </span>
    </li>
  );
});

/** Newest first, each day under its name. */
export function Lines({ events, short = false }: { events: readonly Event[]; short?: boolean }) {
  return (
    <ol className={short ? "events short" : "events"} reversed>
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
