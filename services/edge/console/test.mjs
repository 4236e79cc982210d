// Runs the tests of pure functions in test/ under `node --test`: `npm test`. esbuild resolves the TypeScript.
import { spawnSync } from "node:child_process";
import { mkdtemp, readdir, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import { build } from "esbuild";

const here = fileURLToPath(new URL(".", import.meta.url));
const out = await mkdtemp(join(tmpdir(), "console-test-"));
try {
  const tests = (await readdir(join(here, "test"))).filter((name) => name.endsWith(".test.js"));
  await build({
    absWorkingDir: here,
    entryPoints: tests.map((name) => `test/${name}`),
    bundle: true,
    platform: "node",
    format: "esm",
    outExtension: { ".js": ".mjs" },
    outdir: out,
  });
  const files = tests.map((name) => join(out, name.replace(/\.js$/, ".mjs")));
  process.exitCode = spawnSync(process.execPath, ["--test", "--test-force-exit", ...files], { stdio: "inherit" }).status ?? 1;
} finally {
  await rm(out, { recursive: true });
}
