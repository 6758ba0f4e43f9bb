import { defineConfig } from "vitest/config";

import { licenses } from "./licenses.js";

/** Where `npm run dev` finds a service. */
const SERVICE = "http://127.0.0.1:8420";

// JSX is esbuild's: without a plugin there is one dependency fewer, and the page reloads as a whole.
export default defineConfig({
  esbuild: { jsx: "automatic" },
  plugins: [licenses()],
  build: {
    outDir: "../src/boa/server/static",
    emptyOutDir: true,
    target: "es2022",
    sourcemap: false,
    assetsInlineLimit: 0, // the page's security policy allows no inlined scripts
  },
  server: {
    proxy: {
      "/api": { target: SERVICE, headers: { origin: SERVICE } },
      "/metrics": SERVICE,
    },
  },
  test: {
    environment: "jsdom",
    include: ["src/**/*.test.{ts,tsx}"],
    setupFiles: ["./test-setup.ts"],
    testTimeout: 120_000, // for a test that hangs: a slow machine is no failure
    hookTimeout: 120_000,
    restoreMocks: true,
    globals: false,
  },
});
