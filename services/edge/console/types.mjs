// Writes src/gateway.d.ts, the types of the gateway's answers, out of its own document: `npm run types -- DOCUMENT`, a file
// or an address; a second argument names another file (a test compares the two). The console asks by address and
// parameters of its own, so the document's paths are left out.
import { readFile, writeFile } from "node:fs/promises";
import { fileURLToPath } from "node:url";
import openapiTS, { astToString } from "openapi-typescript";

const [place, out = fileURLToPath(new URL("src/gateway.d.ts", import.meta.url))] = process.argv.slice(2);
const text = /^https?:/.test(place) ? await (await fetch(place)).text() : await readFile(place, "utf8");
const { openapi, info, components } = JSON.parse(text);
const types = await openapiTS({ openapi, info, paths: {}, components: { schemas: components.schemas } });
await writeFile(out, `// Made by \`npm run types\`.\n${astToString(types)}`);
