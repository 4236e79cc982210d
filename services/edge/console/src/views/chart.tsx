// The candles of a market as a chart that moves by wheel, pointer and keys, with the figures of one candle and a table.
import { useEffect, useRef, useState } from "preact/hooks";
import { CandlePlot, LEAST, MOST, type Candle, type Window } from "../candles";
import { counted, time } from "../format";
import { Price, priceScale, Size } from "../named";
import type { Market } from "../names";
import { Empty, Notice, Time } from "../parts";
import { useRaw } from "../raw";
import { useCandles } from "../series";
import { useTheme } from "../theme";

/** Candles that are shown at first: fewer where there is less room. */
const SHOWN = innerWidth < 640 ? 45 : 90;

/** With fewer than this left of the screen, the next page is read. */
const AHEAD = 60;

export function Chart(props: { candleId: string; market: Market | undefined; name: string }) {
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

  // While the newest candle is on the screen, the window follows it.
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
      const isZoom = event.ctrlKey || event.metaKey;
      // Otherwise the wheel scrolls the page.
      const isMeant = isZoom || event.shiftKey || Math.abs(event.deltaX) > Math.abs(event.deltaY) || document.activeElement === element;
      if (!isMeant) return;
      event.preventDefault();
      if (isZoom) zoom(event.deltaY > 0 ? 1.15 : 0.87);
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
  const shownCandle = pointed ?? candles.list.at(-1)!;
  const width = shown.to - shown.from;
  const visible = candles.list.slice(
    Math.max(0, Math.ceil(shown.from) - candles.first),
    Math.max(0, Math.floor(shown.to) - candles.first + 1),
  );
  return (
    <>
      <Figures candle={shownCandle} market={market} isLast={shownCandle === candles.list.at(-1)} />
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
          {isLoadingOlder ? ", loading older candles…" : hasOlder ? "" : ", the whole history"}
          {problem ? "; newer ones cannot be read at present" : ""}
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
function Figures(props: { candle: Candle; market: Market | undefined; isLast: boolean }) {
  const { candle, market } = props;
  const isUp = BigInt(candle.close) >= BigInt(candle.open);
  return (
    <p class={`figures ${isUp ? "up" : "down"}`} data-candle={candle.start}>
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

/** Rows of the table at most, the newest. */
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
