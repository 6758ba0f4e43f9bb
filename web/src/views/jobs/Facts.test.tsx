import { cleanup, render, screen } from "@testing-library/react";
import { afterEach, expect, test } from "vitest";

import { Facts, type SeenDetails } from "./Facts";
import { job } from "./sample";

afterEach(cleanup);

test("metrics that count samples say so, others are figures", () => {
  const metrics = { batch_size: 64, noise_scale: 885, gain: 1 };
  const rest = { step: 12, loss: 0.5, metrics, placement: null, nodes: [], rescale_s: {} };
  render(
    <Facts
      job={{ ...job(7, { ended_at: 2000, state: "succeeded" }), ...rest } as unknown as SeenDetails}
    />,
  );
  const said = (name: string) => screen.getByText(name).nextElementSibling?.textContent;
  expect(said("Batch size")).toBe("64 samples");
  expect(said("Noise scale")).toBe("885 samples");
  expect(said("Gain")).toBe("1");
});
