// The state of the mesh: read once a second while a page is visible, kept for two minutes for the charts.
import { useEffect, useState } from "preact/hooks";
import { milliseconds } from "./format";
import { credentials } from "./key";

/** What `/console/now` answers; counts are since the start of the replicas. */
export interface Now {
  isBusThere: boolean;
  store?: { isThere: boolean; height: string; timestamp: string };
  nodeHeight?: string;
  halt?: Halt;
  takenAt: string;
  services: Service[];
  isCut: boolean;
}

/** The block that cannot be stored, and why. */
export interface Halt {
  height: string;
  reason: "decode" | "refused" | "forked" | "other_chain" | "pruned" | "no_results" | "too_large";
}

export interface Counts {
  requests: string;
  errors: string;
  busyNs: string;
}

export interface Service {
  name: string;
  isTaking: boolean;
  replicas: ({ id: string; version: string; started: string } & Counts)[];
  operations: ({ name: string } & Counts)[];
}

/** What a service did between two looks. */
export interface Pace {
  perSecond: number | null;
  /** Of one request, milliseconds; nothing when there was none. */
  meanMs: number | null;
  failed: number;
}

export interface Live {
  now?: Now;
  /** The time of the block that the page is put at; nothing for now. */
  past?: bigint;
  /** Whether the gateway answered the last time. */
  isReached: boolean;
  /** Seconds since the Unix epoch at which was looked. */
  times: number[];
  storeHeights: (number | null)[];
  lags: (number | null)[];
  paces: Map<string, Pace[]>;
}

const EVERY_MS = 1000;
const WITHIN_MS = 4000;
const KEPT = 120;

const live: Live = { isReached: true, times: [], storeHeights: [], lags: [], paces: new Map() };
const listeners = new Set<() => void>();
let timer = 0;
let last: Now | undefined;
/** The time of the newest block that this page knows; "0" before the first one. */
let storedAt = "0";

/** How many blocks the store is behind the node; nothing when one of the two is not known. */
export function lag(now: Now | undefined): number | null {
  if (!now?.store?.isThere || now.nodeHeight === undefined) return null;
  const behind = BigInt(now.nodeHeight) - BigInt(now.store.height);
  return behind < 0n ? 0 : Number(behind);
}

/** The time of the block shown, of the newest one, or else of this machine, in nanoseconds since the Unix epoch. */
export function chainTime({ past }: Live): bigint {
  if (past !== undefined) return past;
  return storedAt === "0" ? BigInt(Date.now()) * 1_000_000n : BigInt(storedAt);
}

/** Looks less than this many seconds apart say little of the time of a block. */
const PACE_SECONDS = 10;

/** Seconds that a block takes, as far as this page has seen; nothing in its first seconds. */
export function secondsPerBlock(times = live.times, heights = live.storeHeights): number | undefined {
  const rows = times.map((time, row) => [time, heights[row]] as const).filter(([, height]) => height != null);
  const [first, last] = [rows[0], rows.at(-1)];
  const seconds = (last?.[0] ?? 0) - (first?.[0] ?? 0);
  const blocks = Number(last?.[1] ?? 0) - Number(first?.[1] ?? 0);
  return blocks > 0 && seconds >= PACE_SECONDS ? seconds / blocks : undefined;
}

/** The higher one of two heights, of which one may not be known. */
export function higher(one: string | undefined, other: string | undefined): string | undefined {
  if (one === undefined || other === undefined) return one ?? other;
  return BigInt(one) > BigInt(other) ? one : other;
}

/** Services of which nobody takes requests. */
export function missing(now: Now | undefined): string[] {
  return (now?.services ?? []).filter((service) => !service.isTaking).map((service) => service.name);
}

/** What was done between two looks, by those replicas that were there at both. */
function pace(before: Service | undefined, after: Service, seconds: number): Pace {
  let [requests, errors, busy] = [0n, 0n, 0n];
  let isKnown = false;
  for (const replica of after.replicas) {
    const old = before?.replicas.find((old) => old.id === replica.id);
    if (!old) continue;
    isKnown = true;
    requests += BigInt(replica.requests) - BigInt(old.requests);
    errors += BigInt(replica.errors) - BigInt(old.errors);
    busy += BigInt(replica.busyNs) - BigInt(old.busyNs);
  }
  return {
    perSecond: isKnown ? Number(requests) / seconds : null,
    meanMs: requests > 0n ? Number(busy / requests) / 1e6 : null,
    failed: Number(errors),
  };
}

function keep<T>(list: T[], value: T): void {
  list.push(value);
  if (list.length > KEPT) list.shift();
}

function take(now: Now): void {
  live.now = now;
  const stored = now.store?.timestamp ?? "0";
  if (stored !== "0") storedAt = stored;
  // Another replica of the gateway may have looked earlier.
  if (last && BigInt(now.takenAt) <= BigInt(last.takenAt)) return;
  const seconds = last ? (milliseconds(now.takenAt) - milliseconds(last.takenAt)) / 1000 : 1;
  keep(live.times, milliseconds(now.takenAt) / 1000);
  keep(live.storeHeights, now.store?.isThere ? Number(now.store.height) : null);
  keep(live.lags, lag(now));
  for (const service of now.services) {
    const before = last?.services.find((old) => old.name === service.name);
    const paces = live.paces.get(service.name) ?? [];
    keep(paces, pace(before, service, seconds));
    live.paces.set(service.name, paces);
  }
  last = now;
}

async function look(): Promise<void> {
  try {
    const response = await fetch("console/now", { headers: credentials, signal: AbortSignal.timeout(WITHIN_MS) });
    if (response.ok) take((await response.json()) as Now);
    // A gateway that limits its client is there.
    live.isReached = response.status < 502;
  } catch {
    live.isReached = false;
  }
  listeners.forEach((tell) => tell());
  schedule();
}

function schedule(): void {
  clearTimeout(timer);
  if (listeners.size > 0 && document.visibilityState === "visible") timer = window.setTimeout(look, EVERY_MS);
}

document.addEventListener("visibilitychange", () => {
  clearTimeout(timer);
  if (listeners.size > 0 && document.visibilityState === "visible") void look();
});

/** The mesh as it is now; drawn anew with every look. */
export function useLive(): Live {
  const [, setTurn] = useState(0);
  useEffect(() => {
    const tell = () => setTurn((turn) => turn + 1);
    const isFirst = listeners.size === 0;
    listeners.add(tell);
    if (isFirst) void look();
    return () => void listeners.delete(tell);
  }, []);
  return live;
}
