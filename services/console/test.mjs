// Runs the tests that need no browser: every tests/**/*.test.ts, or those whose path holds a word of the arguments.

import { spawnSync } from "node:child_process";
import { readdir, rm } from "node:fs/promises";
import { join } from "node:path";
import { build } from "esbuild";

const words = process.argv.slice(2);
const sources = (await readdir("tests", { recursive: true }))
  .filter((path) => path.endsWith(".test.ts") && (!words.length || words.some((word) => path.includes(word))))
  .map((path) => join("tests", path));

await rm("build/tests", { recursive: true, force: true });
const { metafile } = await build({
  entryPoints: sources,
  outdir: "build/tests",
  outExtension: { ".js": ".mjs" },
  bundle: true,
  packages: "external",
  platform: "node",
  format: "esm",
  target: "node20",
  sourcemap: "inline",
  jsx: "automatic",
  jsxImportSource: "preact",
  metafile: true,
});
// Node.js 20 warns of each WebCrypto algorithm that it calls experimental.
const run = spawnSync(
  process.execPath,
  [
    "--no-warnings",
    "--enable-source-maps",
    "--test",
    "--test-timeout=60000", // a test that waits for what does not come fails
    "--test-reporter=dot",
    ...Object.keys(metafile.outputs),
  ],
  { stdio: "inherit" },
);
process.exit(run.status ?? 1);
