/** The shapes that the service answers with, made from its OpenAPI document: see `shapes.py`. */
import type { JobRow } from "./schema";

export type * from "./schema";
export type JobState = JobRow["state"];
