import { useCallback, useMemo, useState } from "react";

import type { Event } from "../api/types";
import { download, fileName } from "../charts/export";
import { plural } from "../format";
import { Card, Empty, Loading, Problem } from "../parts/basics";
import { usePicture, useQuery } from "../state/hooks";
import { useFeed, type Feed } from "./events/feed";
import {
  eventsCsv,
  found,
  fromQuery,
  GROUPS,
  saveWords,
  toggled,
  toQuery,
  type EventFilters,
  type Group,
} from "./events/groups";
import { Lines } from "./events/Lines";
import { SearchBox } from "./jobs/Toolbar";
import "./jobs/jobs.css";

const STEP = 200;

/** What the service decided and what happened to it, in its own words, as it happens. */
export function Events() {
  const [query, setQuery] = useQuery();
  const filters = useMemo(() => fromQuery(query), [query]);
  const change = useCallback((next: EventFilters) => setQuery(toQuery(next)), [setQuery]);
  const feed = useFeed();
  const all = feed.kept?.events;
  const { events, counts } = useMemo(() => found(all ?? [], filters), [all, filters]);
  if (!feed.kept) {
    if (feed.error) return <Problem error={feed.error} again={feed.again} />;
    return <Loading what="events" />;
  }
  return (
    <section className="listing" aria-label="Events">
      <Tools filters={filters} onFilters={change} counts={counts} events={events} />
      {feed.error && <Problem error={feed.error} again={feed.again} />}
      <Card>
        <List events={events} feed={feed} loaded={feed.kept.events.length} />
      </Card>
    </section>
  );
}

interface ToolsProps {
  filters: EventFilters;
  onFilters: (filters: EventFilters) => void;
  counts: Record<Group, number>;
  events: readonly Event[];
}

const SAVES = "Those that are loaded and fit; “Show older ones” loads more";

function Tools({ filters, onFilters, counts, events }: ToolsProps) {
  const { lastEvent } = usePicture();
  const save = () => download(fileName("events", "csv"), "text/csv", eventsCsv(events));
  return (
    <div className="events-tools">
      <SearchBox
        label="Search events"
        hint="words, job 17, node 3"
        value={filters.search}
        onChange={(search) => onFilters({ ...filters, search })}
      />
      <div className="chips" role="group" aria-label="Events to show">
        {GROUPS.map(([group, words]) => (
          <button
            key={group}
            type="button"
            className="chip"
            aria-pressed={filters.groups.includes(group)}
            onClick={() => onFilters(toggled(filters, group))}
          >
            {words} <b>{counts[group].toLocaleString("en-US")}</b>
          </button>
        ))}
      </div>
      <button type="button" onClick={save} disabled={events.length === 0} title={SAVES}>
        {saveWords(events.length, lastEvent)}
      </button>
    </div>
  );
}

interface ListProps {
  /** Newest first. */
  events: readonly Event[];
  feed: Feed;
  loaded: number;
}

function List({ events, feed, loaded }: ListProps) {
  const [shown, setShown] = useState(STEP);
  const rest = feed.kept !== null && feed.kept.floor > 0;
  const more = () => {
    setShown(shown + STEP);
    if (events.length < shown + STEP && rest) feed.older();
  };
  const seen = events.slice(0, shown);
  return (
    <>
      {seen.length === 0 ? (
        <Empty title={loaded > 0 ? "No event fits" : "Nothing has happened yet"}>
          {loaded > 0
            ? "Take away a filter, or load older ones."
            : "Events come with the first job: boa submit job.yaml"}
        </Empty>
      ) : (
        <Lines events={seen} />
      )}
      <div className="events-more">
        {(events.length > shown || rest) && (
          <button type="button" onClick={more} disabled={feed.loadingOlder}>
            {feed.loadingOlder ? "Loading…" : "Show older ones"}
          </button>
        )}
        <span className="faint small-print" role="status">
          {plural(seen.length, "event")} shown, of {loaded.toLocaleString("en-US")} loaded
          {rest ? "; there are older ones" : ""}
        </span>
      </div>
    </>
  );
}
