// Builds what of the console has to be built (the edge takes index.html and the icon as they are): `npm run build` writes
// ../assets/console, `npm run build -- FOLDER` another folder (a test
// compares the two). The same sources and lock file give the same bytes.
import { mkdir, readFile, writeFile } from "node:fs/promises";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import { build } from "esbuild";

const here = fileURLToPath(new URL(".", import.meta.url));
const out = process.argv[2] ?? join(here, "../assets/console");

await mkdir(out, { recursive: true });
await build({
  absWorkingDir: here,
  entryPoints: { app: "src/main.tsx" },
  bundle: true,
  minify: true,
  format: "esm",
  target: ["es2022"],
  jsx: "automatic",
  jsxImportSource: "preact",
  legalComments: "none",
  banner: { js: "/*! Licences of what is bundled: console/licences.txt */" },
  outdir: out,
});

const bundled = [];
for (const name of ["@noble/hashes", "eventsource", "eventsource-parser", "preact", "uplot"]) {
  const folder = join(here, "node_modules", name);
  const { version } = JSON.parse(await readFile(join(folder, "package.json"), "utf8"));
  const licence = await readFile(join(folder, "LICENSE"), "utf8");
  bundled.push(`${name} ${version}\n\n${licence.trim()}\n`);
}
await writeFile(join(out, "licences.txt"), bundled.join("\n\n"));
