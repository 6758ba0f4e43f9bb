import { describe, expect, it } from "vitest";

import { ApiError, Unreachable } from "../../api/client";
import type { TraceChoice } from "../../api/types";
import {
  bodyOf,
  budgetsOf,
  firstBudgets,
  firstTypes,
  fits,
  ownFirst,
  problemsOf,
  refusal,
  type Question,
  taken,
} from "./question";

const LONG_MS = 30_000;
/** jsdom measures a file of 8 MB, the least that is too large, in seconds where browsers take none. */

const QUESTION: Question = {
  trace: "day",
  upload: null,
  policies: ["boa"],
  budgets: "60, 87",
  gpuTypes: ["T4"],
  byCalendar: false,
};

function trace(name: string): TraceChoice {
  return { name, about: "", jobs: 1, hours: 1, gpu_types: ["T4", "A100"], budgets: [60] };
}

describe("a list of budgets", () => {
  it("is amounts with commas or blanks between them, told by size", () => {
    expect(budgetsOf(" 87, 60 ,120.5").values).toEqual([60, 87, 120.5]);
    expect(budgetsOf("$60 $87").values).toEqual([60, 87]);
  });

  it("names the entry that is wrong", () => {
    expect(budgetsOf("60, ten").problem).toBe("“ten” is no amount above 0.");
    expect(budgetsOf("60, -3").problem).toContain("“-3”");
    expect(budgetsOf("60, 0").problem).toContain("“0”");
  });

  it("has every entry once", () => {
    expect(budgetsOf("60, 87, 60.0").problem).toBe("60.0 is there twice.");
  });

  it("is not empty", () => {
    expect(budgetsOf(" , ").problem).toContain("At least one budget");
  });
});

describe("a question", () => {
  it("that is whole has no problems", () => {
    expect(problemsOf(QUESTION)).toEqual({});
  });

  it("has a problem beside every field that is missing", () => {
    const empty = { ...QUESTION, trace: null, policies: [], budgets: "", gpuTypes: [] };
    expect(Object.keys(problemsOf(empty)).sort()).toEqual([
      "budgets",
      "gpu_types",
      "policies",
      "trace",
    ]);
  });

  it("names a trace, or sends one along, never both", () => {
    expect(bodyOf(QUESTION)).toEqual({
      trace: "day",
      policies: ["boa"],
      budgets: [60, 87],
      gpu_types: ["T4"],
    });
    const upload = { name: "mine.csv", text: "name,arrival_s\n" };
    expect(bodyOf({ ...QUESTION, trace: null, upload })).toMatchObject({ trace_file: upload });
    expect(bodyOf({ ...QUESTION, trace: null, upload })).not.toHaveProperty("trace");
  });

  it("says one thing of a file that cannot be it, and goes on saying it", () => {
    const empty = taken("mine.csv", " \n");
    expect(empty).toMatchObject({ upload: null });
    expect(empty.uploadProblem).toMatch(/^mine.csv is empty/);
    const found = problemsOf({ ...QUESTION, trace: null, ...empty });
    expect(found).toEqual({ trace: empty.uploadProblem });
    expect(taken("mine.csv", "name\n").uploadProblem).toBeUndefined();
  });

  it(
    "says of a file that it is too large",
    () => {
      const large = "name" + "\n".repeat(4 * 1024 ** 2); // 8 MB as it travels
      const found = taken("mine.csv", large);
      expect(found).toMatchObject({ upload: null });
      expect(found.uploadProblem).toMatch(/^mine.csv is too large/);
    },
    LONG_MS,
  );

  it("sends no file that is too large as it travels", () => {
    expect(fits("\n".repeat(1000), 2100)).toBe(true);
    expect(fits("\n".repeat(1000), 1900)).toBe(false); // a line end takes two bytes
  });
});

describe("a refusal", () => {
  it("stands beside the field that the service names", () => {
    const said = (field?: string) => refusal(new ApiError(422, "no", field), null);
    expect(said("budgets[2]")).toEqual({ budgets: "no" });
    expect(said("trace_file.text")).toEqual({ trace: "no" });
    expect(said("gpu_types")).toEqual({ gpu_types: "no" });
  });

  it("stands beside the trace where the service names the file", () => {
    const error = new ApiError(422, "mine.csv, line 3: no", "mine.csv, line 3");
    expect(refusal(error, { name: "mine.csv", text: "" })).toEqual({
      trace: "mine.csv, line 3: no",
    });
  });

  it("stands below the form where it is of no field", () => {
    expect(refusal(new ApiError(503, "later"), null)).toEqual({ form: "later" });
    expect(refusal(new Unreachable(), null)).toEqual({ form: "The service does not answer." });
  });
});

describe("what is chosen at first", () => {
  it("is one's own jobs where there are enough, on all their types", () => {
    const found = ownFirst([trace("day"), trace("own")]);
    expect(found.map((one) => one.name)).toEqual(["own", "day"]);
    expect(firstTypes(found[0])).toEqual(["T4", "A100"]);
  });

  it("is one type for other traces, which every policy can run on", () => {
    expect(firstTypes(trace("day"))).toEqual(["T4"]);
  });
});

describe("budgets to begin with", () => {
  const of = (cheapest: number, fastest: number, today: number) =>
    budgetsOf(
      firstBudgets(trace("own"), { cheapest_per_hour: cheapest, fastest_per_hour: fastest }, today),
    );

  it("are around today's, which is one of them", () => {
    expect(of(1, 1000, 75).values).toEqual([30, 47, 75, 119, 188]);
  });

  it.each([
    [20, 60, 30],
    [20, 60, 200],
    [20, 60, 3],
    [0.02, 0.5, 0.1],
    [50, 50, 50],
    [900, 2500, 1400],
  ])(
    "lie between what $%d and $%d an hour buy, but for today's $%d",
    (cheapest, fastest, today) => {
      const { values, problem } = of(cheapest, fastest, today);
      expect(problem).toBe("");
      expect(values).toContain(today);
      expect(values.length).toBeGreaterThanOrEqual(3);
      const others = values.filter((each) => each !== today);
      expect(Math.min(...others)).toBeGreaterThanOrEqual(cheapest);
      expect(Math.max(...others)).toBeLessThanOrEqual(Math.max(fastest, cheapest * 1.3) * 1.05);
    },
  );

  it("are the service's where nothing is known of the workload, or of other traces", () => {
    expect(firstBudgets(trace("own"), null, 30)).toBe("60");
    const sensible = { cheapest_per_hour: 20, fastest_per_hour: 60 };
    expect(firstBudgets(trace("day"), sensible, 30)).toBe("60");
    expect(firstBudgets(undefined, sensible, 30)).toBe("");
  });
});
