// Candles on a uPlot: one step of x per candle, so that periods without trades leave no holes. Prices are drawn as their
// distance from one of them, which a float holds exactly; what is read off is the API's own text.
import uPlot from "uplot";
import type { Schemas } from "./api";
import { grouped, isOfThisYear, scaled, time } from "./format";
import type { Scale } from "./parts";
import { ink } from "./theme";

export type Candle = Schemas["Candle"];

/** Candles in rising order of time; `first` is the x of the first, and falls as older ones are put before it. */
export interface Candles {
  first: number;
  list: Candle[];
}

export interface Window {
  from: number;
  to: number;
}

/** Fewest and most candles at a time. */
export const LEAST = 12;
export const MOST = 1500;

/** How wide the prices beside the chart are at least and at most, pixels, and how wide a digit of them is. */
const PRICES_AT_LEAST = 56;
const PRICES_AT_MOST = 160;
const DIGIT = 6.3;

/** The part of the height that belongs to the volume. */
const VOLUME_SHARE = 0.22;

export class CandlePlot {
  private readonly plot: uPlot;
  private readonly base: bigint;
  private candles: Candles = { first: 0, list: [] };
  private window: Window;
  private readonly colours = {
    up: ink("up"),
    down: ink("down"),
    upSoft: ink("up-soft"),
    downSoft: ink("down-soft"),
    line: ink("line"),
    text: ink("dim"),
  };

  constructor(
    private readonly parent: HTMLElement,
    candles: Candles,
    window: Window,
    private readonly scale: Scale | undefined,
    private readonly onPoint: (candle: Candle | undefined) => void,
  ) {
    // A round one, so that the prices at the lines are round, too.
    const close = candles.list.at(-1)?.close ?? "0";
    const unit = 10n ** BigInt(Math.max(0, close.length - 2));
    this.base = (BigInt(close) / unit) * unit;
    this.window = window;
    const axis = { stroke: this.colours.text, ticks: { show: false }, font: "11px system-ui, sans-serif" };
    const grid = { stroke: this.colours.line, width: 1 };
    this.plot = new uPlot(
      {
        width: parent.clientWidth || 320,
        height: parent.clientHeight || 360,
        padding: [18, 0, 0, 8],
        legend: { show: false },
        cursor: { drag: { x: false, y: false, setScale: false }, points: { show: false } },
        scales: {
          x: { time: false, auto: false, range: () => [this.window.from, this.window.to] },
          price: { range: () => this.reach() },
        },
        axes: [
          { ...axis, grid: { show: false }, space: () => (this.hasYears() ? 120 : 90), size: 28, values: (_, splits) => splits.map((x) => this.when(x)) },
          {
            ...axis,
            grid,
            scale: "price",
            side: 1,
            size: (_, values) => prices(values),
            values: (_, splits) => splits.map((y) => this.price(y)),
          },
        ],
        series: [{}, { scale: "price", paths: () => null, points: { show: false } }],
        hooks: { draw: [() => this.draw()], setCursor: [(plot) => this.point(plot.cursor.idx)] },
      },
      [[], []],
      parent,
    );
    this.show(candles, window);
  }

  /** Shows these candles, and this part of them. */
  show(candles: Candles, window: Window): void {
    this.candles = candles;
    this.window = window;
    const xs = candles.list.map((_, row) => candles.first + row);
    const closes = candles.list.map((candle) => this.y(candle.close));
    this.plot.setData([xs, closes], false);
    this.plot.setScale("x", { min: window.from, max: window.to });
  }

  resize(): void {
    this.plot.setSize({ width: this.parent.clientWidth || 320, height: this.parent.clientHeight || 360 });
  }

  /** How many candles one pixel is wide. */
  perPixel(): number {
    return (this.window.to - this.window.from) / (this.plot.over.clientWidth || 1);
  }

  destroy(): void {
    this.plot.destroy();
  }

  private point(index: number | null | undefined): void {
    this.onPoint(index == null ? undefined : this.candles.list[index]);
  }

  private y(price: string): number {
    return Number(BigInt(price) - this.base);
  }

  private price(y: number): string {
    if (!Number.isInteger(y)) return "";
    const price = (this.base + BigInt(y)).toString();
    return this.scale ? scaled(price, this.scale.places, this.scale.least) : grouped(price);
  }

  private when(x: number): string {
    const candle = Number.isInteger(x) ? this.candles.list[x - this.candles.first] : undefined;
    return candle ? time(candle.start).slice(this.hasYears() ? 0 : 5, 16) : "";
  }

  /** Whether a candle on the screen is not of the current year. */
  private hasYears(): boolean {
    const visible = this.visible();
    return [visible[0], visible.at(-1)].some((end) => end !== undefined && !isOfThisYear(end[0].start));
  }

  private visible(): [candle: Candle, x: number][] {
    const { first, list } = this.candles;
    const from = Math.max(0, Math.floor(this.window.from) - first);
    const to = Math.min(list.length, Math.ceil(this.window.to) - first + 1);
    return list.slice(from, to).map((candle, row) => [candle, first + from + row]);
  }

  /** Lowest to highest price on the screen, with room for the volume below. */
  private reach(): [number, number] {
    let [low, high] = [Infinity, -Infinity];
    for (const [candle] of this.visible()) {
      low = Math.min(low, this.y(candle.low));
      high = Math.max(high, this.y(candle.high));
    }
    if (low > high) return [0, 1];
    const height = Math.max(high - low, 1);
    return [low - height * (VOLUME_SHARE + 0.1), high + height * 0.06];
  }

  private draw(): void {
    const { ctx, bbox } = this.plot;
    const visible = this.visible();
    const step = Math.abs(this.plot.valToPos(1, "x", true) - this.plot.valToPos(0, "x", true));
    const width = Math.max(1, Math.floor(step * 0.7));
    const volumes = visible.map(([candle]) => BigInt(candle.volume));
    const most = volumes.reduce((most, volume) => (volume > most ? volume : most), 1n);
    ctx.save();
    ctx.beginPath();
    ctx.rect(bbox.left, bbox.top, bbox.width, bbox.height);
    ctx.clip();
    visible.forEach(([candle, at], row) => {
      const x = this.plot.valToPos(at, "x", true);
      const [open, close] = [BigInt(candle.open), BigInt(candle.close)];
      const isUp = close >= open;
      const left = Math.round(x - width / 2);
      const share = Number((volumes[row]! * 10_000n) / most) / 10_000;
      const volume = share * bbox.height * VOLUME_SHARE;
      ctx.fillStyle = isUp ? this.colours.upSoft : this.colours.downSoft;
      ctx.fillRect(left, bbox.top + bbox.height - volume, width, volume);
      ctx.fillStyle = isUp ? this.colours.up : this.colours.down;
      const y = (price: string) => this.plot.valToPos(this.y(price), "price", true);
      const [high, low] = [y(candle.high), y(candle.low)];
      const line = Math.max(1, Math.round(devicePixelRatio));
      ctx.fillRect(Math.round(x - line / 2), high, line, Math.max(1, low - high));
      const top = y(isUp ? candle.close : candle.open);
      const bottom = y(isUp ? candle.open : candle.close);
      ctx.fillRect(left, top, width, Math.max(line, bottom - top));
    });
    ctx.restore();
  }
}

/** How wide these prices are. */
function prices(values: string[] | null): number {
  const longest = Math.max(0, ...(values ?? []).map((value) => value.length));
  return Math.min(PRICES_AT_MOST, Math.max(PRICES_AT_LEAST, Math.ceil(longest * DIGIT) + 14));
}
