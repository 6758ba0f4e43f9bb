import { useCallback, useEffect, useMemo, useState } from "react";

import { plural } from "../../format";
import { Empty, Loading, Problem } from "../../parts/basics";
import type { SweepList } from "../../api/types";
import { Table, type Order } from "../../parts/Table";
import { linkTo, useAnswer, usePicture, useQuery } from "../../state/hooks";
import type { SeenJob } from "../../state/live";
import { Asked, Clock, Prices } from "./cells";
import { columnsFor } from "./columns";
import { useEnded, type Ended } from "./ended";
import { chosen, classesOf, fromQuery, merged, NEWEST, toQuery, type Filters } from "./filters";
import { rememberList } from "./lastList";
import { StopDialog } from "./StopDialog";
import { inOneLine, type ListRow } from "./sweepRows";
import { Toolbar } from "./Toolbar";
import { pricesOf } from "./words";

const idOf = (row: ListRow) => row.id;
const SWEEPS_MS = 5000;
/** Sweeps that were opened, also while another page is looked at. */
const opened = new Set<string>();

/** How to open a line: a job has a page, a sweep shows its jobs. */
function useOpened(): [ReadonlySet<string>, (row: ListRow) => void] {
  const [open, setOpen] = useState<ReadonlySet<string>>(() => new Set(opened));
  const press = useCallback((row: ListRow) => {
    if (!row.group) {
      window.location.hash = linkTo("jobs", row.id);
      return;
    }
    if (!opened.delete(row.id)) opened.add(row.id);
    setOpen(new Set(opened));
  }, []);
  return [open, press];
}

/** What the service says of all sweeps that are in the list. */
function useSweeps(rows: readonly SeenJob[], all: boolean): SweepList["sweeps"] {
  const asked = rows.some((row) => row.sweep) ? `/sweeps?all=${all}&limit=1000` : null;
  const answer = useAnswer<SweepList>(asked, rows.length, SWEEPS_MS);
  return useMemo(() => answer.data?.sweeps ?? [], [answer.data]);
}

export function JobList() {
  const [query, setQuery] = useQuery();
  const filters = useMemo(() => fromQuery(query), [query]);
  const change = useCallback((next: Filters) => setQuery(toQuery(next)), [setQuery]);
  useEffect(() => rememberList(window.location.hash), [query]);
  const picture = usePicture();
  const ended = useEnded(filters);
  const { jobs: active, ended: seen } = picture;
  const all = useMemo(
    () => (filters.ended ? merged(active, seen, ended.rows) : [...active.values()]),
    [filters.ended, active, seen, ended.rows],
  );
  const { rows, counts } = useMemo(() => chosen(all, filters), [all, filters]);
  const classes = useMemo(() => classesOf(all), [all]);
  const prices = pricesOf(picture.nodes);
  useOlder(rows.length === 0 && ended.more, ended.next);
  const loading = !picture.complete || ended.loading;
  const unfiltered = !filters.search && !filters.jobClass && filters.states.length === 0;
  return (
    <section className="listing" aria-label="Jobs">
      <h1 className="unseen">Jobs</h1>
      <Toolbar filters={filters} onFilters={change} counts={counts} classes={classes} />
      {rows.length > 0 ? (
        <Prices value={prices}>
          <JobTable rows={rows} filters={filters} onFilters={change} onEnd={ended.next} />
        </Prices>
      ) : (
        <Nothing
          loading={loading}
          unfiltered={unfiltered}
          ended={filters.ended}
          older={ended.more && !ended.error}
        />
      )}
      {ended.error && <Problem error={ended.error} again={ended.again} />}
      <Summary shown={rows.length} active={active.size} ended={ended} filters={filters} />
    </section>
  );
}

interface JobTableProps {
  rows: readonly SeenJob[];
  filters: Filters;
  onFilters: (filters: Filters) => void;
  onEnd: () => void;
}

function JobTable({ rows, filters, onFilters, onEnd }: JobTableProps) {
  const [stopping, setStopping] = useState<SeenJob | null>(null);
  const [asked, setAsked] = useState<ReadonlySet<string>>(new Set());
  const close = useCallback(() => setStopping(null), []);
  const width = useWindowWidth();
  const severalOwners = rows.some(({ owner }) => owner !== rows[0]?.owner);
  const columns = useMemo(
    () => columnsFor(width, setStopping, severalOwners),
    [width, severalOwners],
  );
  const sweeps = useSweeps(rows, filters.ended);
  const [open, press] = useOpened();
  const inOrder = useMemo(
    () => inOneLine(rows, sweeps, open, columns, filters.order),
    [rows, sweeps, open, columns, filters.order],
  );
  return (
    <Asked value={asked}>
      <Clock>
        <Table
          // Another choice is looked at from its beginning.
          key={toQuery({ ...filters, order: NEWEST })}
          label="Jobs"
          rows={inOrder}
          columns={columns}
          id={idOf}
          order={filters.order}
          onOrder={(order: Order) => onFilters({ ...filters, order })}
          onOpen={press}
          onEnd={onEnd}
          height="max(16rem, calc(100vh - 13.5rem))"
        />
      </Clock>
      {stopping && (
        <StopDialog
          job={stopping}
          onStopped={({ id }) => setAsked((was) => new Set([...was, id]))}
          onClose={close}
        />
      )}
    </Asked>
  );
}

const STEP_PX = 20;

/** In coarse steps, so that dragging an edge does not draw everything at every pixel. */
function useWindowWidth(): number {
  const [width, setWidth] = useState(() => stepped(window.innerWidth));
  useEffect(() => {
    const look = () => setWidth(stepped(window.innerWidth));
    window.addEventListener("resize", look);
    return () => window.removeEventListener("resize", look);
  }, []);
  return width;
}

function stepped(width: number): number {
  return Math.floor(width / STEP_PX) * STEP_PX;
}

const OLDER_MS = 500;

/** Without a row there is nothing to scroll: what is older is then looked through by itself. */
function useOlder(wanted: boolean, next: () => void): void {
  useEffect(() => {
    if (!wanted) return undefined;
    const timer = setTimeout(next, OLDER_MS);
    return () => clearTimeout(timer);
  }, [wanted, next]);
}

interface NothingProps {
  loading: boolean;
  /** Whether there are older ones that were not looked at yet. */
  older: boolean;
  unfiltered: boolean;
  ended: boolean;
}

function Nothing({ loading, older, unfiltered, ended }: NothingProps) {
  if (older) return <Loading what="older jobs: none of the newer ones fits" />;
  if (loading) return <Loading what="jobs" />;
  if (!unfiltered) {
    return <Empty title="No job fits">Take away a filter, or look among the ended ones too.</Empty>;
  }
  return (
    <Empty title={ended ? "No jobs yet" : "No job is active"}>
      <p>
        Submit one with <code>boa submit job.yaml</code>. The folder <code>examples</code> of the
        project has files to begin with; <code>boa schema job</code> prints what one may say.
      </p>
    </Empty>
  );
}

interface SummaryProps {
  shown: number;
  active: number;
  ended: Ended;
  filters: Filters;
}

function Summary({ shown, active, ended, filters }: SummaryProps) {
  const parts = [`${plural(shown, "job")} shown`, `${active.toLocaleString("en-US")} active`];
  if (filters.ended && ended.loading) parts.push("loading ended ones…");
  else if (filters.ended && ended.more && shown > 0) parts.push("older ones follow as you scroll");
  return (
    <p className="faint small-print" role="status">
      {parts.join(" · ")}
    </p>
  );
}
