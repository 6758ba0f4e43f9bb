/** Those who share a budget, for tests. */
import type { BudgetPart } from "../../api/types";

export function part(name: string, with_: Partial<BudgetPart> = {}): BudgetPart {
  return {
    name,
    above: null,
    budget_per_hour: 15,
    right_now_per_hour: 15,
    max_per_hour: null,
    lent_usd: 0,
    spend_now_per_hour: 10,
    lends: true,
    max_spend_per_hour: null,
    borrows: true,
    classes: [],
    users: [],
    teams: [],
    ...with_,
  };
}
