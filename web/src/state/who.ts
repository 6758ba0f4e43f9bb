/** Who looks at the page, for what is only theirs to do. */
import { createContext, useContext } from "react";

import type { WhoAmI } from "../api/types";
import type { SeenJob } from "./live";

/** Null while it is not known. */
export const Who = createContext<WhoAmI | null>(null);

/** Whether money is theirs to be changed; while they are not known, yes. */
export function useMaySpend(): boolean {
  const who = useContext(Who);
  return who === null || who.role === "admin";
}

/** Whether a job is theirs to be stopped, as the service has it; while they are not known, yes. */
export function useMayStop(): (job: Pick<SeenJob, "owner">) => boolean {
  const who = useContext(Who);
  return ({ owner }) =>
    who === null || who.role === "admin" || (who.role === "member" && who.name === owner);
}
