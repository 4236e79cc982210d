// Markets: candles of one market, back in time page by page as one scrolls, with the running one live.
import { useEffect, useRef, useState } from "preact/hooks";
import { address, target, useRead, type Schemas } from "../api";
import { CandlePlot, LEAST, MOST, type Candle, type Window } from "../candles";
import { PAGE, useCandles } from "../series";
import { counted, quoted, short, time, word } from "../format";
import { AssetName, MarketName, NameField, Price, priceScale, Size } from "../named";
import { markets, type Market, type Named } from "../names";
import { Card, Choice, Copy, Empty, Lines, Notice, Time } from "../parts";
import { useRaw } from "../raw";
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

/** Candles that are shown at first: fewer where there is less room. */
const SHOWN = innerWidth < 640 ? 45 : 90;

/** When fewer than this are left of the screen, the next page is asked for. */
const AHEAD = 60;

/** So many markets have a button: of all, or of those in which what is typed occurs. */
const SHOWN_MARKETS = 32;

/** The states of a market, those in which it is looked at most first. */
const STATES = ["ACTIVE", "SUSPENDED", "PENDING", "PROPOSED", "TRADING_TERMINATED", "CLOSED", "SETTLED", "CANCELLED", "REJECTED"];

function byState(one: Named<Market>, other: Named<Market>): number {
  const rank = (market: Named<Market>) => {
    const place = STATES.indexOf(market.row.state.replace("STATE_", ""));
    return place < 0 ? STATES.length : place;
  };
  return rank(one) - rank(other) || (one.text < other.text ? -1 : 1);
}

export function Markets(props: { route: Route }) {
  const { query } = props.route;
  const given = query.get("market") ?? "";
  const { known, isRead, problem, isCut } = markets.useAll();
  // Whoever writes a link knows the market's name.
  const meant = markets.find(given);
  const newest = useRead<Schemas["ListTradesReply"]>(given ? undefined : "api/v2/trades?pagination.first=1");
  // The market that traded last, or else the first one.
  const isAnswered = isRead && (newest.data !== undefined || newest.problem !== undefined);
  const otherwise = isAnswered ? [...known.values()].sort(byState)[0]?.id : undefined;
  const market = given ? (meant.id ?? "").toLowerCase() : (newest.data?.trades.edges[0]?.node.marketId ?? otherwise ?? "");
  const asked = query.get("interval") ?? USUAL;
  const interval = INTERVALS.find(([name]) => name === asked)?.[0] ?? USUAL;
  const [typed, setTyped] = useTyped(market || given, given);
  const submit = (event: Event) => {
    event.preventDefault();
    const { id } = markets.find(typed);
    if (!id) return;
    setTyped(id);
    go("markets", { market: id, interval });
  };
  const found = markets.matching(known.has(typed) || typed === market ? "" : typed).sort(byState);
  const shown = found.slice(0, SHOWN_MARKETS);
  return (
    <>
      <section class="card" aria-label="Market">
        <form class="filters" onSubmit={submit} role="search" aria-label="Market">
          <NameField label="Market" of={markets} value={typed} onInput={setTyped} />
          <button type="submit" class="primary">
            Show
          </button>
        </form>
        <div class="chips" role="group" aria-label="Known markets">
          {shown.map(({ id, state }) => (
            <a key={id} class="chip" href={link("markets", { market: id, interval })} aria-current={id === market ? "true" : undefined}>
              <MarketName id={id} href={null} /> <small class="dim">{state}</small>
            </a>
          ))}
        </div>
        {(found.length > shown.length || isCut) && (
          <p class="dim">
            {shown.length} of {counted(found.length, "market")}
            {isCut && ", which are not all there are: others are found by their id"}.
          </p>
        )}
        {problem && !isRead && !given && <Notice problem={problem} />}
      </section>
      {market === "" && <Empty>{(given ? isRead && meant.told : isAnswered && "There is no market.") || "Loading…"}</Empty>}
      {market !== "" && <OfMarket key={market} id={market} interval={interval} />}
    </>
  );
}

/** One market: what it is, and its candles. */
function OfMarket(props: { id: string; interval: (typeof INTERVALS)[number][0] }) {
  const { id, interval } = props;
  const found = markets.use(id);
  const market = found?.row;
  const candleId = `trades_candle_${interval}_${id}`;
  return (
    <Card
      title={`Candles of ${found?.text ?? short(id)}`}
      heading={<MarketName id={id} href={null} />}
      aside={<Choice label="Interval" of={INTERVALS} value={interval} onChoose={(interval) => go("markets", { market: id, interval })} />}
    >
      {market && (
        <p class="dim about">
          {found.name && <bdi>{found.name}</bdi>}
          <span>{found.state}</span>
          <span>{word(market.tradingMode, "TRADING_MODE_")}</span>
          <span>
            settles in <AssetName id={market.settlementAsset} />
          </span>
          <a href={link("explore/trades", { marketId: id })}>Trades</a>
          <a href={link("explore/positions", { marketId: id })}>Positions</a>
        </p>
      )}
      <Chart key={candleId} candleId={candleId} market={market} name={found?.text ?? short(id)} />
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
        <a href={link("markets", { market: id, interval })}>Link to this view</a>{" "}
        <Copy text={address(link("markets", { market: id, interval }))} label="the link to this view" />
      </p>
    </Card>
  );
}

function Chart(props: { candleId: string; market: Market | undefined; name: string }) {
  const { market } = props;
  const { candles, problem, hasOlder, isLoadingOlder, loadOlder } = useCandles(props.candleId);
  const [view, setView] = useState<Window & { follows: boolean }>();
  const [pointed, setPointed] = useState<Candle>();
  const place = useRef<HTMLDivElement>(null);
  const plot = useRef<CandlePlot | undefined>(undefined);
  const [, theme] = useTheme();
  const scale = useRaw() ? undefined : priceScale(market);
  const isThere = candles !== undefined && candles.list.length > 0;
  const end = isThere ? candles.first + candles.list.length - 1 : 0;

  // A few stand closer together than they would among many.
  const usual = Math.min(SHOWN, Math.max(2 * LEAST, (candles?.list.length ?? 0) + 6));

  // While the newest candle is on the screen, the window goes on with it.
  const shown: Window = view && !view.follows ? view : ending(end, view ? view.to - view.from : usual);

  useEffect(() => {
    if (!place.current || !candles || !isThere) return undefined;
    const made = new CandlePlot(place.current, candles, shown, scale, setPointed);
    plot.current = made;
    const resized = new ResizeObserver(() => made.resize());
    resized.observe(place.current);
    return () => {
      resized.disconnect();
      made.destroy();
      plot.current = undefined;
    };
  }, [isThere, theme, scale?.places]);

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
      <Told candle={told} market={market} isLast={told === candles.list.at(-1)} />
      <div class="quoted">
        {scale?.unit && (
          <bdi class="unit" aria-hidden="true">
            {scale.unit}
          </bdi>
        )}
        <div
          class="candles"
          ref={place}
          tabIndex={0}
          role="application"
          aria-roledescription="candle chart"
          aria-label={`Candles of ${props.name} from ${when(visible[0])} to ${when(visible.at(-1))}. Arrow keys move, plus and minus zoom, End follows the newest.`}
          onKeyDown={key}
          data-count={candles.list.length}
          data-from={visible[0]?.start}
          data-last={candles.list.at(-1)?.start}
        />
      </div>
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
        <Rows of={visible} market={market} />
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

const PRICES = ["open", "high", "low", "close"] as const;

/** One candle in figures: the one under the pointer, else the last. */
function Told(props: { candle: Candle; market: Market | undefined; isLast: boolean }) {
  const { candle, market } = props;
  const isUp = BigInt(candle.close) >= BigInt(candle.open);
  return (
    <p class={`told ${isUp ? "up" : "down"}`} data-told={candle.start}>
      <span>
        <Time ns={candle.start} /> {props.isLast && <em>last</em>}
      </span>
      {PRICES.map((name) => (
        <span key={name} data-name={name}>
          <i>{name}</i> <Price value={candle[name]} market={market} />
        </span>
      ))}
      <span data-name="volume">
        <i>volume</i> <Size value={candle.volume} market={market} />
      </span>
    </p>
  );
}

/** As many rows as somebody reads. */
const ROWS = 100;

function Rows(props: { of: Candle[]; market: Market | undefined }) {
  const { market } = props;
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
              {PRICES.map((name) => (
                <td key={name} class="right">
                  <Price value={candle[name]} market={market} />
                </td>
              ))}
              <td class="right">
                <Size value={candle.volume} market={market} />
              </td>
            </tr>
          ))}
        </tbody>
      </table>
    </div>
  );
}
