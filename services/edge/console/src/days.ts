// The last 24 hours of markets, from their candles of 15 minutes: each read once, the first of them watched.
import { useEffect, useState } from "preact/hooks";
import { Problem, read, target, type Schemas } from "./api";
import type { Candle } from "./candles";
import { canScale } from "./format";
import type { Market } from "./names";
import { readBlock } from "./route";
import { watch } from "./watch";

type Reply = Schemas["ListCandleDataReply"];

const QUARTERS = 4 * 24;
const DAY_NS = 24n * 3600n * 1_000_000_000n;

/** Markets of a view that are watched; the others are read again every `AGAIN_MS`. */
const WATCHED = 8;
const AGAIN_MS = 60_000;
const RETRY_MS = 2000;

/** Reads at a time. */
const AT_ONCE = 4;

/** The last 24 hours of a market; figures are texts in the market's units, as in the API. */
export interface Day {
  /** Price of the newest trade, however old; none without a trade. */
  last?: string;
  /** First price of the 24 hours; none without a trade in them. */
  first?: string;
  /** Empty without a trade in the 24 hours. */
  high: string;
  low: string;
  volume: string;
  /** About the traded value, in units of the quote currency. */
  turnover: number;
  /** The first price of the 24 hours and the closing prices, for drawing. */
  closes: number[];
}

/** The candles of a day by their request, which names the market and the block. */
const kept = new Map<string, Candle[]>();
const listeners = new Set<() => void>();

function path(market: string, count: number): string {
  return target("api/v2/candle", [["candleId", `trades_candle_15_minutes_${market}`], ["pagination.first", String(count)]]);
}

/** The candles of a reply, the oldest first. */
function candlesOf(reply: Reply): Candle[] {
  return reply.candles.edges.map((edge) => edge.node).reverse();
}

/** The request of a market's candles of a day. */
const day = (market: string) => path(market, QUARTERS + 1);

function put(relative: string, candles: Candle[]): void {
  kept.set(relative, candles);
  listeners.forEach((listener) => listener());
}

/** Follows the candles of these markets until the function that it returns is called. */
export function follow(markets: string[]): () => void {
  const closed = new AbortController();
  const pending = new Set<string>();
  const leaves: (() => void)[] = [];
  const isPast = readBlock() !== "";
  let [timer, running, isWatching] = [0, 0, false];
  /** Whether a market needs no other read. */
  const load = async (market: string): Promise<boolean> => {
    const relative = day(market);
    try {
      put(relative, candlesOf(await read<Reply>(relative, closed.signal)));
      return true;
    } catch (error) {
      return closed.signal.aborted || !(error instanceof Problem && error.isPassing);
    }
  };
  /** Loads what is pending; after a failure later, and not while the page is hidden. */
  const work = async () => {
    running += 1;
    for (const market of pending) {
      pending.delete(market);
      if (await load(market)) continue;
      watchFirst();
      pending.add(market);
      if (document.visibilityState !== "visible") break;
      await new Promise((done) => setTimeout(done, RETRY_MS));
    }
    running -= 1;
    if (running === 0) watchFirst();
  };
  const want = (wanted: string[]) => {
    wanted.forEach((market) => pending.add(market));
    for (let free = Math.min(AT_ONCE - running, pending.size); free > 0; free -= 1) void work();
  };
  const newest = (market: string) =>
    watch<Reply>(path(market, 2), AGAIN_MS, (reply) => {
      const [old, fresh] = [kept.get(day(market)), reply && candlesOf(reply)];
      const [begin, end] = [fresh?.[0], old?.at(-1)];
      if (!old || !fresh || !begin) return;
      // More candles have come than are watched.
      if (end && BigInt(begin.start) > BigInt(end.start)) want([market]);
      else put(day(market), [...old.filter((candle) => BigInt(candle.start) < BigInt(begin.start)), ...fresh]);
    });
  const watchFirst = () => {
    if (isWatching || isPast || closed.signal.aborted) return;
    isWatching = true;
    leaves.push(...markets.slice(0, WATCHED).map(newest));
  };
  const again = () => {
    timer = window.setTimeout(again, AGAIN_MS);
    // What is of the past stays: only what is missing is read.
    if (document.visibilityState === "visible") want(isPast ? [] : markets.slice(WATCHED));
  };
  timer = window.setTimeout(again, AGAIN_MS);
  want(markets);
  return () => {
    closed.abort();
    clearTimeout(timer);
    if (isPast) kept.clear();
    leaves.forEach((leave) => leave());
  };
}

/** The candles of the last day of these markets, as far as they are read. */
export function useDays(markets: string[]): (market: string) => Candle[] | undefined {
  const [, setTurn] = useState(0);
  const ids = markets.join(" ");
  useEffect(() => {
    const listener = () => setTurn((turn) => turn + 1);
    listeners.add(listener);
    const leave = ids ? follow(ids.split(" ")) : undefined;
    return () => {
      listeners.delete(listener);
      leave?.();
    };
  }, [ids]);
  return (market) => kept.get(day(market));
}

/** The 24 hours before `now`, in nanoseconds since the Unix epoch. */
export function dayOf(candles: Candle[], market: Market, now: bigint): Day {
  const within = candles.filter((candle) => BigInt(candle.start) > now - DAY_NS);
  const scale = (places: number) => (canScale(places) ? 10 ** -places : 1);
  const unit = scale(market.decimalPlaces) * scale(market.positionDecimalPlaces);
  let [high, low] = [within[0]?.high ?? "", within[0]?.low ?? ""];
  let [volume, turnover] = [0n, 0];
  for (const candle of within) {
    if (BigInt(candle.high) > BigInt(high)) high = candle.high;
    if (BigInt(candle.low) < BigInt(low)) low = candle.low;
    volume += BigInt(candle.volume);
    turnover += Number(candle.close) * Number(candle.volume) * unit;
  }
  return {
    last: candles.at(-1)?.close,
    first: within[0]?.open,
    high,
    low,
    volume: volume.toString(),
    turnover,
    closes: within.flatMap(({ open, close }, row) => (row === 0 ? [open, close] : [close])).map(Number),
  };
}
