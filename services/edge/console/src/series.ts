// The candles of a market as the API has them: the newest page, older ones on asking, and what is new every second.
import { useCallback, useEffect, useRef, useState } from "preact/hooks";
import { problemOf, read, target, type Problem, type Query, type Schemas } from "./api";
import type { Candles } from "./candles";

/** Candles of one page. */
export const PAGE = 300;

/** How often is looked for newer ones. */
const EVERY_MS = 1000;

/** Candles that are kept at most; older ones are to be looked at with a longer interval. */
const KEPT_AT_MOST = 20_000;

type Reply = Schemas["ListCandleDataReply"];

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
      const last = state.current.candles?.list.at(-1);
      try {
        if (!last) {
          const query: Query = [["candleId", candleId], ["pagination.first", String(PAGE)]];
          const { edges, pageInfo } = (await read<Reply>(target("api/v2/candle", query), signal)).candles;
          setCandles({ first: 0, list: edges.map((edge) => edge.node).reverse() });
          setOlder({ cursor: pageInfo.hasNextPage ? pageInfo.endCursor : "", isLoading: false });
        } else if (document.visibilityState === "visible") {
          const query: Query = [
            ["candleId", candleId],
            ["fromTimestamp", last.start],
            ["pagination.newestFirst", "false"],
          ];
          const { edges } = (await read<Reply>(target("api/v2/candle", query), signal)).candles;
          const fresh = edges.map((edge) => edge.node);
          const isNew = fresh.length > 1 || fresh[0]?.lastUpdate !== last.lastUpdate || fresh[0]?.volume !== last.volume;
          // The last one is there again, as it is now.
          if (fresh.length > 0 && isNew) {
            setCandles((old) => old && { first: old.first, list: [...old.list.slice(0, -1), ...fresh] });
          }
        }
        setProblem(undefined);
      } catch (error) {
        if (signal.aborted) return;
        setProblem(problemOf(error));
      }
      timer = window.setTimeout(look, EVERY_MS);
    };
    void look();
    return () => {
      controller.abort();
      clearTimeout(timer);
    };
  }, [candleId]);

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

  return { candles, problem, hasOlder: older.cursor !== "", isLoadingOlder: older.isLoading, loadOlder };
}
