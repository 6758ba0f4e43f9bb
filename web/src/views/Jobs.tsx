import { JobList } from "./jobs/List";
import { JobPage } from "./jobs/Page";
import { isSweep, SweepPage } from "./jobs/Sweep";
import "./jobs/jobs.css";

/** `#/jobs`: the table; `#/jobs/41`: the page of one; `#/jobs/s3`: of a sweep. */
export function Jobs({ rest }: { rest: string[] }) {
  const [id] = rest;
  if (id === undefined) return <JobList />;
  return isSweep(id) ? <SweepPage key={id} id={id} /> : <JobPage key={id} id={id} />;
}
