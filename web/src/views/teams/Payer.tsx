import { linkTo, usePicture } from "../../state/hooks";
import { payerOf } from "./model";

/** Who pays for jobs of a class, where the budget is shared; null: it is not, or nobody is named. */
export function usePayer(jobClass: string): string | null {
  return payerOf(usePicture().budget?.parts, jobClass);
}

/** Whether anybody shares the budget. */
export function useIsShared(): boolean {
  return (usePicture().budget?.parts?.length ?? 0) > 0;
}

/** "team vision", or that no team does. */
export function Payer({ of }: { of: string | null }) {
  if (of === null) return "the whole budget: no team names its class";
  return (
    <>
      team <a href={linkTo("teams", of)}>{of}</a>
    </>
  );
}
