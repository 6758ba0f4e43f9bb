import { expect, test } from "vitest";

import { listAddress, rememberList } from "./lastList";

test("a job's page leads back to the list with its filters", () => {
  rememberList("#/jobs?state=failed");
  rememberList("#/jobs/41");
  rememberList("#/jobsish");
  expect(listAddress()).toBe("#/jobs?state=failed");
  rememberList("#/jobs");
  expect(listAddress()).toBe("#/jobs");
});
