import { linkTo, usePicture } from "../../state/hooks";
import { payerOf } from "./model";

/** Who pays for jobs of a class, where the budget is shared; null: it is not, or nobody is named.
 * `named`: who pays because of who submitted them. */
export function usePayer(jobClass: string, named: string | null = null): string | null {
  const { budget } = usePicture();
  return named ?? payerOf(budget?.parts, jobClass);
}

/** Whether anybody shares the budget. */
export function useIsShared(): boolean {
  return (usePicture().budget?.parts?.length ?? 0) > 0;
}

/** "team vision", or that no team does. */
export function Payer({ of }: { of: string | null }) {
  if (of === null) return "the whole budget: no team names it";
  return (
    <>
      team <a href={linkTo("teams", of)}>{of}</a>
    </>
  );
}
