// The last 24 hours of a market on the screen.
import type { Day } from "./days";
import { change, compact } from "./format";
import { Size } from "./named";
import { labelOf, type Market } from "./names";

const [WIDTH, HEIGHT] = [120, 32];

/** Prices as a line. The figures beside it say the same, so it is hidden from screen readers. */
export function Trend(props: { values: number[] }) {
  const { values } = props;
  if (values.length < 2) return null;
  const [low, high] = [Math.min(...values), Math.max(...values)];
  const x = (row: number) => (row / (values.length - 1)) * WIDTH;
  const y = (value: number) => HEIGHT - 2 - ((value - low) / (high - low || 1)) * (HEIGHT - 4);
  const points = values.map((value, row) => `${x(row).toFixed(1)},${y(value).toFixed(1)}`).join(" ");
  return (
    <svg class={`trend ${values.at(-1)! >= values[0]! ? "rise" : "fall"}`} viewBox={`0 0 ${WIDTH} ${HEIGHT}`} aria-hidden="true">
      <polyline points={points} />
    </svg>
  );
}

/** The change of the price, coloured. */
export function Change(props: { day: Day | undefined }) {
  const { first, last } = props.day ?? {};
  const shown = change(first, last);
  const direction = shown.startsWith("+") ? "rise" : shown.startsWith("−") ? "fall" : "";
  return <span class={`number ${direction}`}>{shown}</span>;
}

/** The volume, and about its value in the quote currency. */
export function Volume(props: { day: Day | undefined; market: Market | undefined }) {
  const { day, market } = props;
  if (!day || !market || day.volume === "0") return <span class="dim">–</span>;
  return (
    <>
      <Size value={day.volume} market={market} />{" "}
      <small class="dim" title="The volume of each quarter of an hour times its closing price, rounded">
        ≈ {compact(day.turnover)} <bdi>{labelOf(market.quoteName, 12)}</bdi>
      </small>
    </>
  );
}
