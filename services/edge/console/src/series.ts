// The candles of a market as the API has them: the newest page, older ones on asking, and what is new as it comes.
import { useCallback, useEffect, useRef, useState } from "preact/hooks";
import { problemOf, read, target, type Problem, type Query, type Schemas } from "./api";
import { readBlock } from "./route";
import { useWatch } from "./watch";
import type { Candle, Candles } from "./candles";

/** Candles of one page. */
export const PAGE = 300;

/** Candles at the end that are watched: as many as may come between two events, and one that is there already. */
const WATCHED = 5;

/** How often is looked for newer ones where they cannot be watched, and again for the first page after a failure. */
const EVERY_MS = 1000;

/** Candles that are kept at most; older ones are to be looked at with a longer interval. */
const KEPT_AT_MOST = 20_000;

type Reply = Schemas["ListCandleDataReply"];

/** Whether nothing is missing between a list and newer candles. */
function isConnected(list: Candle[], fresh: Candle[]): boolean {
  const last = list.at(-1);
  return !last || !fresh[0] || BigInt(fresh[0].start) <= BigInt(last.start);
}

/** A list with newer candles at its end, of which the first may be there already as they were. */
function joined(old: Candles, fresh: Candle[]): Candles {
  const [begin, end, last] = [fresh[0], fresh.at(-1), old.list.at(-1)];
  if (!begin || !end || (last && BigInt(end.start) < BigInt(last.start))) return old;
  const place = old.list.findLastIndex((candle) => BigInt(candle.start) < BigInt(begin.start)) + 1;
  const replaced = old.list.slice(place);
  const isSame = (candle: Candle, at: number) => {
    const before = replaced[at];
    return before?.start === candle.start && before.lastUpdate === candle.lastUpdate && before.volume === candle.volume;
  };
  if (replaced.length === fresh.length && fresh.every(isSame)) return old;
  const list = [...old.list.slice(0, place), ...fresh];
  const cut = Math.max(0, list.length - KEPT_AT_MOST);
  return { first: old.first + cut, list: list.slice(cut) };
}

/** The candles of one id: the newest page, older ones on asking, and what is new. */
export function useCandles(candleId: string) {
  const [candles, setCandles] = useState<Candles>();
  const [problem, setProblem] = useState<Problem>();
  const [older, setOlder] = useState<{ cursor: string; isLoading: boolean }>({ cursor: "", isLoading: false });
  const state = useRef({ candles, older });
  state.current = { candles, older };
  const gone = useRef(new AbortController());

  useEffect(() => {
    const controller = new AbortController();
    gone.current = controller;
    const { signal } = controller;
    let timer = 0;
    const look = async () => {
      const query: Query = [["candleId", candleId], ["pagination.first", String(PAGE)]];
      try {
        const { edges, pageInfo } = (await read<Reply>(target("api/v2/candle", query), signal)).candles;
        setCandles({ first: 0, list: edges.map((edge) => edge.node).reverse() });
        setOlder({ cursor: pageInfo.hasNextPage ? pageInfo.endCursor : "", isLoading: false });
        setProblem(undefined);
      } catch (error) {
        if (signal.aborted) return;
        setProblem(problemOf(error));
        timer = window.setTimeout(look, EVERY_MS);
      }
    };
    void look();
    return () => {
      controller.abort();
      clearTimeout(timer);
    };
  }, [candleId]);

  const newest = useWatch<Reply>(
    readBlock() ? undefined : target("api/v2/candle", [["candleId", candleId], ["pagination.first", String(WATCHED)]]),
    EVERY_MS,
  );
  const isThere = candles !== undefined;
  useEffect(() => {
    const list = state.current.candles?.list;
    if (!list || !newest.data) return;
    const fresh = newest.data.candles.edges.map((edge) => edge.node).reverse();
    if (isConnected(list, fresh)) setCandles((old) => old && joined(old, fresh));
    else void fill(list.at(-1)!);
  }, [newest.data, isThere]);

  /** Reads what lies between the last candle and those that are watched: more have come than these. */
  const fill = async (last: Candle) => {
    const { signal } = gone.current;
    const query: Query = [
      ["candleId", candleId],
      ["fromTimestamp", last.start],
      ["pagination.newestFirst", "false"],
    ];
    try {
      const { edges } = (await read<Reply>(target("api/v2/candle", query), signal)).candles;
      const fresh = edges.map((edge) => edge.node);
      setCandles((old) => old && joined(old, fresh));
    } catch {
      // The next event finds the same gap.
    }
  };

  const loadOlder = useCallback(async () => {
    const { older, candles } = state.current;
    if (!older.cursor || older.isLoading || !candles || candles.list.length >= KEPT_AT_MOST) return;
    const { signal } = gone.current;
    const loading = { ...older, isLoading: true };
    state.current.older = loading;
    setOlder(loading);
    try {
      const query: Query = [
        ["candleId", candleId],
        ["pagination.first", String(PAGE)],
        ["pagination.after", older.cursor],
      ];
      const { edges, pageInfo } = (await read<Reply>(target("api/v2/candle", query), signal)).candles;
      const list = edges.map((edge) => edge.node).reverse();
      setCandles((old) => old && { first: old.first - list.length, list: [...list, ...old.list] });
      setOlder({ cursor: pageInfo.hasNextPage ? pageInfo.endCursor : "", isLoading: false });
    } catch {
      // The next move of the window asks again.
      if (!signal.aborted) setOlder({ ...older, isLoading: false });
    }
  }, [candleId]);

  return { candles, problem: problem ?? newest.problem, hasOlder: older.cursor !== "", isLoadingOlder: older.isLoading, loadOlder };
}
