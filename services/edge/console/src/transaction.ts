// Recognises a pasted text as a transaction. The node decides; this only names what is invalid in its form before it is
// sent.
import type { Schemas } from "./api";

type Tx = Partial<Schemas["Transaction"]>;

export type Recognised =
  | { kind: "nothing"; wrong: string[]; tx?: undefined }
  | { kind: "encoded"; wrong: string[]; tx: string; length: number }
  | { kind: "transaction"; wrong: string[]; tx: Tx; from: string; command: string };

/** The relay takes a transaction up to this. */
const BYTES_AT_MOST = 1024 * 1024;

/** Of a command, so much is shown. */
const SHOWN = 400;

export function recognise(text: string): Recognised {
  const pasted = text.trim();
  if (pasted === "") return { kind: "nothing", wrong: [] };
  if (pasted.startsWith("{")) return ofJson(pasted);
  const digits = pasted.replace(/\s/g, "").replace(/^0x/i, "");
  if (/^[0-9a-fA-F]*$/.test(digits)) {
    const pairs = digits.match(/../g);
    if (!pairs || digits.length % 2 !== 0) return nothing("These are hex digits, but their number is not even.");
    const bytes = Uint8Array.from(pairs, (pair) => Number.parseInt(pair, 16));
    return encoded(base64(bytes), bytes.length);
  }
  const bytes = decoded(pasted);
  if (!bytes) return nothing("This is neither JSON nor base64 nor hex.");
  return encoded(base64(bytes), bytes.length);
}

function nothing(why: string): Recognised {
  return { kind: "nothing", wrong: [why] };
}

function encoded(tx: string, length: number): Recognised {
  const wrong = length > BYTES_AT_MOST ? ["It is longer than 1 MiB, the limit of nodes."] : [];
  return { kind: "encoded", wrong, tx, length };
}

function ofJson(pasted: string): Recognised {
  let body: { tx?: unknown };
  let isRounded = false;
  try {
    body = JSON.parse(pasted, (_, value: unknown) => {
      isRounded ||= typeof value === "number" && Math.abs(value) > Number.MAX_SAFE_INTEGER;
      return value;
    }) as { tx?: unknown };
  } catch {
    return nothing("This is not valid JSON.");
  }
  if (isRounded) return nothing("A number is too large for JSON in a browser: write it as a text, in quotes.");
  const twice = givenTwice(pasted);
  if (twice !== undefined) return nothing(`${twice} is given twice.`);
  if (typeof body.tx === "string") {
    const bytes = decoded(body.tx);
    return bytes ? encoded(body.tx, bytes.length) : nothing("tx is a text that is not base64.");
  }
  const tx = (body.tx ?? body) as Tx & Record<string, unknown>;
  if (typeof tx !== "object" || tx === null || Array.isArray(tx)) return nothing("tx is not an object.");
  const spelled = {
    inputData: tx.inputData ?? tx["input_data"],
    pubKey: tx.pubKey ?? tx["pub_key"],
  };
  const wrong: string[] = [];
  const input = typeof spelled.inputData === "string" ? decoded(spelled.inputData) : undefined;
  if (!input || input.length === 0) wrong.push("tx.inputData: base64 expected, not empty.");
  if (!/^[0-9a-fA-F]{64}$/.test(String(spelled.pubKey ?? ""))) wrong.push("tx.pubKey: 64 hex digits expected.");
  if (!/^[0-9a-fA-F]{128}$/.test(String(tx.signature?.value ?? ""))) wrong.push("tx.signature.value: 128 hex digits expected.");
  if (!tx.signature?.algo) wrong.push("tx.signature.algo: the network's name of the algorithm expected.");
  if (tx.version === undefined) wrong.push("tx.version: TX_VERSION_V2 or TX_VERSION_V3 expected.");
  return { kind: "transaction", wrong, tx, from: String(spelled.pubKey ?? ""), command: input ? shown(input) : "" };
}

/** A key that an object of a valid JSON text has twice: a browser takes the last one, and the API refuses both. */
function givenTwice(json: string): string | undefined {
  const open: Set<string>[] = [];
  for (const [token, colon] of json.matchAll(/"[^"\\]*(?:\\.[^"\\]*)*"(\s*:)?|[{}]/g)) {
    if (token === "{") open.push(new Set());
    else if (token === "}") open.pop();
    else if (colon) {
      const key = JSON.parse(token.slice(0, -colon.length)) as string;
      const name = key.replace(/_([a-z])/g, (_, letter: string) => letter.toUpperCase());
      if (open.at(-1)!.has(name)) return key;
      open.at(-1)!.add(name);
    }
  }
  return undefined;
}

/** A command as text where it is text, else as hex. */
function shown(bytes: Uint8Array): string {
  const part = bytes.slice(0, SHOWN);
  const more = bytes.length > SHOWN ? "…" : "";
  try {
    const text = new TextDecoder("utf-8", { fatal: true }).decode(part);
    // Bytes with control characters are shown as hex.
    if (!/[\u0000-\u0008\u000e-\u001f]/.test(text)) return text + more;
  } catch {
    // It is none.
  }
  return Array.from(part, (byte) => byte.toString(16).padStart(2, "0")).join("") + more;
}

function decoded(text: string): Uint8Array | undefined {
  try {
    const plain = text.replace(/\s/g, "").replaceAll("-", "+").replaceAll("_", "/");
    return Uint8Array.from(atob(plain), (letter) => letter.charCodeAt(0));
  } catch {
    return undefined;
  }
}

function base64(bytes: Uint8Array): string {
  let text = "";
  for (let at = 0; at < bytes.length; at += 0x8000) text += String.fromCharCode(...bytes.subarray(at, at + 0x8000));
  return btoa(text);
}
