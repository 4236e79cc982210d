// Blocks by height and by time. The headers of an answer name its block, so a search over the heights finds a time.
import { Problem, readBlockOf, type Block } from "./api";
import { grouped, time } from "./format";

/** A read that costs little: one row of a short list. */
const READ = "api/v2/upgrade/proposals?pagination.first=1";

/** The number of the refusal of a height below the first stored block. */
const BELOW_FIRST = 10046;

/** The request whose answer names the block of a height. */
export const blockPath = (height: string) => `${READ}&atBlock=${encodeURIComponent(height)}`;

const blockAt = (height: bigint | string) => readBlockOf(blockPath(String(height)));

/**
 * A date with or without a time, as in RFC 3339, in nanoseconds since the Unix epoch. It is in UTC unless it names an offset.
 */
export function instant(text: string): bigint | undefined {
  const form = /^(\d{4}-\d\d-\d\d)(?:[Tt ](\d\d:\d\d(?::\d\d)?)(?:\.(\d{1,9}))?(?: ?([Zz]|UTC|[+-]\d\d:\d\d))?)?$/;
  const [, day, clock = "00:00", fraction = "", offset = "Z"] = form.exec(text.trim()) ?? [];
  const midnight = new Date(`${day}T00:00Z`);
  // The last days of a short month are those of the next month otherwise.
  if (Number.isNaN(midnight.getTime()) || !midnight.toISOString().startsWith(day!)) return undefined;
  const ms = Date.parse(`${day}T${clock}${offset.length > 3 ? offset : "Z"}`);
  return Number.isNaN(ms) ? undefined : BigInt(ms) * 1_000_000n + BigInt(fraction.padEnd(9, "0"));
}

/** So many steps of a search may guess from times; others halve, because block times may be far from regular. */
const GUESSES = 4;

/** The newest block at or before a time that is between these two blocks. */
export async function search(at: bigint, low: Block, high: Block, read: (height: bigint) => Promise<Block>): Promise<Block> {
  for (let turn = 0; high.height - low.height > 1n; turn += 1) {
    const span = high.height - low.height;
    const isGuess = turn % 2 === 0 && turn < 2 * GUESSES;
    const step = isGuess ? ((at - low.time) * span) / (high.time - low.time) : span / 2n;
    const probe = await read(low.height + (step < 1n ? 1n : step));
    if (probe.time <= at) low = probe;
    else high = probe;
  }
  return low;
}

async function firstBlock(): Promise<Block> {
  try {
    return await blockAt("1");
  } catch (error) {
    const first = error instanceof Problem && error.number === BELOW_FIRST && /^\d+/.exec(error.inner)?.[0];
    if (!first) throw error;
    return blockAt(first);
  }
}

/** The block that a text means: a height, or the newest block at or before a time. Throws why there is none, in words. */
export async function findBlock(text: string): Promise<Block> {
  if (/^[1-9]\d{0,17}$/.test(text)) return blockAt(text);
  const at = instant(text);
  if (at === undefined) throw new Error("expected: a height, or a time as 2026-05-01 12:00");
  const [low, high] = await Promise.all([firstBlock(), readBlockOf(READ)]);
  const named = ({ height, time: ns }: Block) => `block (${grouped(String(height))}, ${time(String(ns))} UTC)`;
  if (at < low.time) throw new Error(`before the first stored ${named(low)}`);
  if (at > high.time) throw new Error(`after the newest ${named(high)}`);
  return at === high.time ? high : search(at, low, high, blockAt);
}
