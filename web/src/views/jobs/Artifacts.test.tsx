import { cleanup, fireEvent, render, screen } from "@testing-library/react";
import { afterEach, expect, test, vi } from "vitest";

import { ApiError } from "../../api/client";
import * as exporting from "../../charts/export";
import { client } from "../../state/session";
import { Artifacts } from "./Artifacts";
import { bytesText } from "./artifactFiles";

afterEach(cleanup);

const LISTED = {
  job: "7",
  files: [{ path: "deep/model.pt", size: 36_700_160, modified_at: 0 }],
  size: 36_700_160,
  more: 0,
  odd: 0,
  kept_until: 172_800,
  now: 0,
};

async function* pieces(text: string): AsyncGenerator<Uint8Array> {
  yield await Promise.resolve(new TextEncoder().encode(text));
}

test("files are listed with how long they are kept, and fetched by their path", async () => {
  vi.spyOn(client, "get").mockResolvedValue(LISTED);
  const fetched = vi
    .spyOn(client, "bytes")
    .mockResolvedValue([new Headers(), pieces("weights")] as never);
  const saved = vi.spyOn(exporting, "download").mockImplementation(() => undefined);
  render(<Artifacts job="7" version={0} />);
  expect(await screen.findByText("1 file, 35 MB; kept for another 2 d.")).toBeTruthy();
  fireEvent.click(screen.getByRole("button", { name: "Download deep/model.pt" }));
  await vi.waitFor(() => expect(saved).toHaveBeenCalled());
  expect(fetched.mock.calls[0]?.[0]).toBe("/jobs/7/artifacts/file?path=deep%2Fmodel.pt");
  expect(saved.mock.calls[0]?.[0]).toBe("model.pt");
});

test("a file that cannot be had says why", async () => {
  vi.spyOn(client, "get").mockResolvedValue({ ...LISTED, job: "8" });
  vi.spyOn(client, "bytes").mockRejectedValue(new ApiError(404, "it has no such file"));
  render(<Artifacts job="8" version={0} />);
  fireEvent.click(await screen.findByRole("button", { name: /Download/ }));
  expect((await screen.findByRole("alert")).textContent).toBe("it has no such file");
});

test("who may not see them sees nothing of them", async () => {
  const asked = vi.spyOn(client, "get").mockRejectedValue(new ApiError(403, "not yours"));
  const { container } = render(<Artifacts job="9" version={0} />);
  await vi.waitFor(() => expect(asked).toHaveBeenCalled());
  expect(container.textContent).toBe("");
});

test.each([
  [0, "0 B"],
  [812, "812 B"],
  [4200, "4.1 KB"],
  [36_700_160, "35 MB"],
  [1024 ** 5, "1024 TB"],
])("%i bytes are %s", (count, words) => {
  expect(bytesText(count)).toBe(words);
});
