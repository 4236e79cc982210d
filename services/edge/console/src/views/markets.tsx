// Markets: candles of one market, back in time page by page as one scrolls, with the running one live.
import { useEffect, useRef, useState } from "preact/hooks";
import { address, target, useRead, type Schemas } from "../api";
import { CandlePlot, LEAST, MOST, type Candle, type Window } from "../candles";
import { PAGE, useCandles, useLiveliest } from "../series";
import { counted, quoted, time } from "../format";
import { Amount, Card, Choice, Copy, Empty, Field, Id, Lines, Notice, Time } from "../parts";
import { go, link, useTyped, type Route } from "../route";
import { useTheme } from "../theme";

const INTERVALS = [
  ["block", "Block"],
  ["1_minute", "1 min"],
  ["5_minutes", "5 min"],
  ["15_minutes", "15 min"],
  ["1_hour", "1 h"],
  ["6_hours", "6 h"],
  ["1_day", "1 d"],
] as const;

const USUAL = "5_minutes";
const HEX = /^[0-9a-fA-F]{64}$/;

/** Candles that are shown at first: fewer where there is less room. */
const SHOWN = innerWidth < 640 ? 45 : 90;

/** When fewer than this are left of the screen, the next page is asked for. */
const AHEAD = 60;

/** Of the markets that are known, so many have a button, and are asked when they last traded. */
const SHOWN_MARKETS = 32;

export function Markets(props: { route: Route }) {
  const { query } = props.route;
  const given = query.get("market") ?? "";
  // No operation lists the markets; each has accounts of the network.
  const known = useRead<Schemas["ListAccountsReply"]>("accounts?party=network");
  const markets = [...new Set((known.data?.accounts ?? []).map((account) => account.market))].filter(Boolean);
  const liveliest = useLiveliest(given ? [] : markets.slice(0, SHOWN_MARKETS));
  const market = given || liveliest || "";
  const asked = query.get("interval") ?? USUAL;
  const interval = INTERVALS.find(([name]) => name === asked)?.[0] ?? USUAL;
  const [typed, setTyped] = useTyped(market, market);
  const wrong = typed !== "" && !HEX.test(typed) ? "expected: 64 hex digits" : undefined;
  const submit = (event: Event) => {
    event.preventDefault();
    if (typed && !wrong) go("markets", { market: typed, interval });
  };
  const candleId = `trades_candle_${interval}_${market.toLowerCase()}`;
  return (
    <>
      <section class="card" aria-label="Market">
        <form class="filters" onSubmit={submit} role="search" aria-label="Market">
          <Field
            label="Market"
            value={typed}
            list="markets"
            wide
            hint={markets.length > 0 ? `${markets.length} are known` : "64 hex digits"}
            wrong={wrong}
            onInput={(value) => setTyped(value.trim())}
          />
          <datalist id="markets">
            {markets.map((market) => (
              <option key={market} value={market} />
            ))}
          </datalist>
          <button type="submit" class="primary">
            Show
          </button>
        </form>
        <div class="chips" role="group" aria-label="Known markets">
          {markets.slice(0, SHOWN_MARKETS).map((id) => (
            <a key={id} class="chip" href={link("markets", { market: id, interval })} aria-current={id === market ? "true" : undefined}>
              <Id id={id} />
            </a>
          ))}
        </div>
        {known.problem && markets.length === 0 && !given && <Notice problem={known.problem} />}
      </section>
      {market === "" && <Empty>{known.isLoading || markets.length > 0 ? "Loading…" : "Give a market."}</Empty>}
      {market !== "" && (
        <Card
          title="Candles"
          aside={
            <Choice
              label="Interval"
              of={INTERVALS}
              value={interval}
              onChoose={(interval) => go("markets", { market, interval })}
            />
          }
        >
          <Chart key={candleId} candleId={candleId} />
          <Lines
            of={[
              {
                name: "curl",
                text: `curl ${quoted(address(target("api/v2/candle", [["candleId", candleId], ["pagination.first", String(PAGE)]])))}`,
              },
              {
                name: "gRPC",
                text: `grpcurl -plaintext -d ${quoted(JSON.stringify({ candleId, pagination: { first: PAGE } }))} ${new URL(document.baseURI).host} api.v2.Query/ListCandleData`,
              },
            ]}
          />
          <p class="dim">
            <a href={link("markets", { market, interval })}>Link to this view</a>{" "}
            <Copy text={address(link("markets", { market, interval }))} label="the link to this view" />
          </p>
        </Card>
      )}
    </>
  );
}

function Chart(props: { candleId: string }) {
  const { candles, problem, hasOlder, isLoadingOlder, loadOlder } = useCandles(props.candleId);
  const [view, setView] = useState<Window & { follows: boolean }>();
  const [pointed, setPointed] = useState<Candle>();
  const place = useRef<HTMLDivElement>(null);
  const plot = useRef<CandlePlot | undefined>(undefined);
  const [, theme] = useTheme();
  const isThere = candles !== undefined && candles.list.length > 0;
  const end = isThere ? candles.first + candles.list.length - 1 : 0;

  // A few stand closer together than they would among many.
  const usual = Math.min(SHOWN, Math.max(2 * LEAST, (candles?.list.length ?? 0) + 6));

  // While the newest candle is on the screen, the window goes on with it.
  const shown: Window = view && !view.follows ? view : ending(end, view ? view.to - view.from : usual);

  useEffect(() => {
    if (!place.current || !candles || !isThere) return undefined;
    const made = new CandlePlot(place.current, candles, shown, setPointed);
    plot.current = made;
    const resized = new ResizeObserver(() => made.resize());
    resized.observe(place.current);
    return () => {
      resized.disconnect();
      made.destroy();
      plot.current = undefined;
    };
  }, [isThere, theme]);

  useEffect(() => {
    if (candles) plot.current?.show(candles, shown);
    if (candles && shown.from < candles.first + AHEAD) void loadOlder();
  }, [candles, shown.from, shown.to, loadOlder]);

  const move = (from: number, to: number) => {
    if (!candles) return;
    const width = Math.min(MOST, Math.max(LEAST, to - from));
    const middle = (from + to) / 2;
    const least = candles.first - 1;
    const left = Math.max(least, Math.min(middle - width / 2, end + 2 - width));
    setView({ from: left, to: left + width, follows: left + width >= end });
  };
  const pan = (by: number) => move(shown.from + by, shown.to + by);
  const zoom = (factor: number) => {
    const half = ((shown.to - shown.from) * factor) / 2;
    // The newest one stays where it is while it is on the screen.
    const middle = shown.to >= end ? shown.to - half : (shown.from + shown.to) / 2;
    move(middle - half, middle + half);
  };
  const act = useRef({ pan, zoom, move, shown });
  act.current = { pan, zoom, move, shown };

  useEffect(() => {
    const element = place.current;
    if (!element) return undefined;
    const wheel = (event: WheelEvent) => {
      const { pan, zoom } = act.current;
      event.preventDefault();
      if (event.ctrlKey || event.metaKey) zoom(event.deltaY > 0 ? 1.15 : 0.87);
      else pan((event.deltaX || -event.deltaY) * (plot.current?.perPixel() ?? 0));
    };
    let from: { x: number; shown: Window } | undefined;
    const down = (event: PointerEvent) => {
      from = { x: event.clientX, shown: act.current.shown };
      element.setPointerCapture(event.pointerId);
    };
    const moved = (event: PointerEvent) => {
      if (!from) return;
      const by = (from.x - event.clientX) * (plot.current?.perPixel() ?? 0);
      act.current.move(from.shown.from + by, from.shown.to + by);
    };
    const up = () => (from = undefined);
    element.addEventListener("wheel", wheel, { passive: false });
    element.addEventListener("pointerdown", down);
    element.addEventListener("pointermove", moved);
    element.addEventListener("pointerup", up);
    element.addEventListener("pointercancel", up);
    return () => {
      element.removeEventListener("wheel", wheel);
      element.removeEventListener("pointerdown", down);
      element.removeEventListener("pointermove", moved);
      element.removeEventListener("pointerup", up);
      element.removeEventListener("pointercancel", up);
    };
  }, [isThere]);

  const key = (event: KeyboardEvent) => {
    const width = shown.to - shown.from;
    const moves: Record<string, () => void> = {
      ArrowLeft: () => pan(-width / 10),
      ArrowRight: () => pan(width / 10),
      PageUp: () => pan(-width),
      PageDown: () => pan(width),
      "+": () => zoom(0.8),
      "=": () => zoom(0.8),
      "-": () => zoom(1.25),
      Home: () => candles && move(candles.first, candles.first + width),
      End: () => setView({ ...ending(end, width), follows: true }),
    };
    const done = moves[event.key];
    if (!done) return;
    event.preventDefault();
    done();
  };

  if (problem && !isThere) return <Notice problem={problem} />;
  if (!candles) return <Empty>Loading…</Empty>;
  if (!isThere) return <Empty>This market has no trades.</Empty>;
  const told = pointed ?? candles.list.at(-1)!;
  const width = shown.to - shown.from;
  const visible = candles.list.slice(
    Math.max(0, Math.ceil(shown.from) - candles.first),
    Math.max(0, Math.floor(shown.to) - candles.first + 1),
  );
  return (
    <>
      <Told candle={told} isLast={told === candles.list.at(-1)} />
      <div
        class="candles"
        ref={place}
        tabIndex={0}
        role="application"
        aria-roledescription="candle chart"
        aria-label={`Candles from ${when(visible[0])} to ${when(visible.at(-1))}. Arrow keys move, plus and minus zoom, End follows the newest.`}
        onKeyDown={key}
        data-count={candles.list.length}
        data-from={visible[0]?.start}
        data-last={candles.list.at(-1)?.start}
      />
      <div class="pager">
        <span class="dim" role="status">
          {counted(candles.list.length, "candle")}
          {isLoadingOlder ? ", loading older ones…" : hasOlder ? "" : ", all there are"}
          {problem ? "; newer ones cannot be asked for right now" : ""}
        </span>
        <span class="steps">
          <button type="button" onClick={() => pan(-width / 2)} aria-label="Older">
            ←
          </button>
          <button type="button" onClick={() => pan(width / 2)} aria-label="Newer">
            →
          </button>
          <button type="button" onClick={() => zoom(0.7)} aria-label="Zoom in">
            +
          </button>
          <button type="button" onClick={() => zoom(1.4)} aria-label="Zoom out">
            −
          </button>
          <button type="button" onClick={() => setView({ ...ending(end, width), follows: true })}>
            Newest
          </button>
        </span>
      </div>
      <details>
        <summary>The candles on the screen as a table</summary>
        <Rows of={visible} />
      </details>
    </>
  );
}

function ending(end: number, width: number): Window {
  return { from: end + 2 - width, to: end + 2 };
}

function when(candle: Candle | undefined): string {
  return candle ? time(candle.start).slice(0, 19) : "nothing";
}

/** One candle in figures: the one under the pointer, else the last. */
function Told(props: { candle: Candle; isLast: boolean }) {
  const { candle } = props;
  const isUp = BigInt(candle.close) >= BigInt(candle.open);
  return (
    <p class={`told ${isUp ? "up" : "down"}`} data-told={candle.start}>
      <span>
        <Time ns={candle.start} /> {props.isLast && <em>last</em>}
      </span>
      {(["open", "high", "low", "close", "volume"] as const).map((name) => (
        <span key={name} data-name={name}>
          <i>{name}</i> <Amount value={candle[name]} />
        </span>
      ))}
    </p>
  );
}

/** As many rows as somebody reads. */
const ROWS = 100;

function Rows(props: { of: Candle[] }) {
  const rows = props.of.slice(-ROWS).reverse();
  return (
    <div class="scroll" role="region" aria-label="Candles, table" tabIndex={0}>
      <table>
        <thead>
          <tr>
            {["Start", "Open", "High", "Low", "Close", "Volume"].map((name) => (
              <th key={name} scope="col" class={name === "Start" ? "" : "right"}>
                {name}
              </th>
            ))}
          </tr>
        </thead>
        <tbody>
          {rows.map((candle) => (
            <tr key={candle.start}>
              <td>
                <Time ns={candle.start} />
              </td>
              {(["open", "high", "low", "close", "volume"] as const).map((name) => (
                <td key={name} class="right">
                  <Amount value={candle[name]} />
                </td>
              ))}
            </tr>
          ))}
        </tbody>
      </table>
    </div>
  );
}
