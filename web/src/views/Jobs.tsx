import { JobList } from "./jobs/List";
import { JobPage } from "./jobs/Page";
import "./jobs/jobs.css";

/** `#/jobs`: the table; `#/jobs/41`: the page of one. */
export function Jobs({ rest }: { rest: string[] }) {
  const [id] = rest;
  return id === undefined ? <JobList /> : <JobPage key={id} id={id} />;
}
