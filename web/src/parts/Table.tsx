import {
  memo,
  useCallback,
  useEffect,
  useRef,
  useState,
  type KeyboardEvent,
  type ReactNode,
} from "react";

export interface Column<Row> {
  key: string;
  head: string;
  /** A CSS grid track, such as "minmax(8rem, 2fr)". */
  track: string;
  /** The same where the window is narrow. */
  narrow?: string;
  cell: (row: Row) => ReactNode;
  /** What to sort by; left out: the column cannot be sorted by. */
  value?: (row: Row) => string | number | null;
  numeric?: boolean;
  /** Left out where the screen is narrow. */
  optional?: boolean;
}

export interface Order {
  key: string;
  down: boolean;
}

interface TableProps<Row> {
  label: string;
  rows: readonly Row[];
  columns: readonly Column<Row>[];
  id: (row: Row) => string;
  order: Order;
  onOrder: (order: Order) => void;
  onOpen?: (row: Row) => void;
  /** Called when the end comes into sight. */
  onEnd?: () => void;
  height?: string;
}

const ROW_PX = 40;
const SPARE = 8;
/** Rows above and below what is seen, so that scrolling shows no gaps. */

/** A table of any length: only the rows in sight are in the page. */
export function Table<Row>(props: TableProps<Row>) {
  const { label, rows, columns, id, order, onOrder, onOpen, onEnd, height = "70vh" } = props;
  const { body, look, first, last } = useSight(rows.length, order, onEnd);
  return (
    <div
      className="table"
      role="table"
      aria-label={label}
      aria-rowcount={rows.length + 1}
      style={tracksOf(columns)}
    >
      <div className="table-head" role="row">
        {columns.map((column) => (
          <Head key={column.key} column={column} order={order} onOrder={onOrder} />
        ))}
      </div>
      <div
        ref={body}
        className="table-body"
        role="rowgroup"
        style={{ maxHeight: height }}
        onScroll={look}
      >
        <div style={{ height: rows.length * ROW_PX, position: "relative" }}>
          {rows.slice(first, last).map((row, index) => (
            <MemoLine
              key={id(row)}
              row={row}
              columns={columns}
              index={first + index}
              {...(onOpen && { onOpen })}
            />
          ))}
        </div>
      </div>
    </div>
  );
}

/** Which rows are in sight, and some around them. */
function useSight(count: number, order: Order, onEnd: (() => void) | undefined) {
  const body = useRef<HTMLDivElement>(null);
  const [view, setView] = useState({ first: 0, count: 20 });
  const look = useCallback(() => {
    const element = body.current;
    if (!element) return;
    const first = Math.floor(element.scrollTop / ROW_PX);
    const fitting = Math.ceil(element.clientHeight / ROW_PX) + 1;
    setView((was) =>
      was.first === first && was.count === fitting ? was : { first, count: fitting },
    );
    const left = element.scrollHeight - element.scrollTop - element.clientHeight;
    if (left < 10 * ROW_PX) onEnd?.();
  }, [onEnd]);
  useEffect(() => {
    if (body.current) body.current.scrollTop = 0; // another order is looked at from its beginning
  }, [order.key, order.down]);
  useEffect(() => {
    look(); // few rows: their end is in sight without any scrolling
    window.addEventListener("resize", look);
    return () => window.removeEventListener("resize", look);
  }, [look, count]);
  const first = Math.max(0, view.first - SPARE);
  return { body, look, first, last: Math.min(count, view.first + view.count + SPARE) };
}

function tracksOf<Row>(columns: readonly Column<Row>[]): React.CSSProperties {
  const tracks = (some: readonly Column<Row>[]) => some.map((column) => column.track).join(" ");
  const narrow = columns
    .filter((column) => !column.optional)
    .map((column) => ({ ...column, track: column.narrow ?? column.track }));
  return { "--tracks": tracks(columns), "--narrow-tracks": tracks(narrow) } as React.CSSProperties;
}

function Head<Row>({
  column,
  order,
  onOrder,
}: {
  column: Column<Row>;
  order: Order;
  onOrder: (order: Order) => void;
}) {
  const kind = `${column.numeric ? "numeric" : ""} ${column.optional ? "optional" : ""}`;
  if (!column.value) {
    return (
      <div role="columnheader" className={kind}>
        {column.head}
      </div>
    );
  }
  const mine = order.key === column.key;
  const sorted = mine ? (order.down ? "descending" : "ascending") : "none";
  const arrow = mine ? (order.down ? " ↓" : " ↑") : "";
  return (
    <div role="columnheader" className={kind} aria-sort={sorted}>
      <button
        type="button"
        className="quiet"
        onClick={() => onOrder({ key: column.key, down: mine ? !order.down : true })}
      >
        {column.head}
        {arrow}
      </button>
    </div>
  );
}

interface LineProps<Row> {
  row: Row;
  columns: readonly Column<Row>[];
  index: number;
  onOpen?: (row: Row) => void;
}

function Line<Row>({ row, columns, index, onOpen }: LineProps<Row>) {
  const open = onOpen && {
    tabIndex: 0,
    onClick: () => onOpen(row),
    onKeyDown: (event: KeyboardEvent) => {
      if (event.target !== event.currentTarget) return;
      if (event.key === "Enter") onOpen(row);
      else if (toNeighbour(event.currentTarget, event.key)) event.preventDefault();
    },
  };
  return (
    <div
      className={`table-row ${onOpen ? "opens" : ""}`}
      role="row"
      aria-rowindex={index + 2}
      style={{ transform: `translateY(${index * ROW_PX}px)`, height: ROW_PX }}
      {...open}
    >
      {columns.map((column) => (
        <div
          key={column.key}
          role="cell"
          className={`${column.numeric ? "numeric" : ""} ${column.optional ? "optional" : ""}`}
        >
          {column.cell(row)}
        </div>
      ))}
    </div>
  );
}

/** Rows that did not change are not drawn again; `columns` and `onOpen` are to be kept, then. */
const MemoLine = memo(Line) as typeof Line;

/** The rows next to one in sight are in the page, and getting the focus scrolls to them. */
function toNeighbour(row: Element, key: string): boolean {
  const next =
    key === "ArrowDown"
      ? row.nextElementSibling
      : key === "ArrowUp"
        ? row.previousElementSibling
        : null;
  if (!(next instanceof HTMLElement)) return false;
  next.focus();
  return true;
}

const IN_WORDS = new Intl.Collator(undefined, { numeric: true });

/** Nulls last, whichever way it goes. */
export function sorted<Row>(
  rows: readonly Row[],
  columns: readonly Column<Row>[],
  order: Order,
): Row[] {
  const value = columns.find((column) => column.key === order.key)?.value;
  if (!value) return [...rows];
  const sign = order.down ? -1 : 1;
  const keyed = rows.map((row) => ({ row, key: value(row) }));
  keyed.sort((a, b) => compared(a.key, b.key, sign));
  return keyed.map(({ row }) => row);
}

function compared(a: string | number | null, b: string | number | null, sign: number): number {
  if (a === null || b === null) return a === b ? 0 : a === null ? 1 : -1;
  if (typeof a === "string" || typeof b === "string") {
    return sign * IN_WORDS.compare(String(a), String(b));
  }
  return sign * (a - b);
}
