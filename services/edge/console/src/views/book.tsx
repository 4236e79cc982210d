// The order book of a market, live: bids and offers side by side, with the best prices in the middle.
import { useRef } from "preact/hooks";
import { target, type Reading, type Schemas } from "../api";
import { Price, priceScale, Size } from "../named";
import type { Market } from "../names";
import { Card, Empty, Notice, Paused } from "../parts";
import { useRaw } from "../raw";
import { link } from "../route";
import { useStill } from "../still";
import { useWatch } from "../watch";

type Level = Schemas["PriceLevel"];

/** Levels of a side. */
const LEVELS = 12;

export type Depth = Schemas["GetMarketDepthReply"];

/** Watches the best levels of a market; nothing while there is none. */
export function useDepth(id: string | undefined): Reading<Depth> {
  const path = id && `api/v2/market/${encodeURIComponent(id)}/depth`;
  return useWatch<Depth>(path && target(path, [["maxDepth", String(LEVELS)]]));
}

export function Book(props: { id: string; market: Market | undefined; depth: Reading<Depth> }) {
  const { id, market } = props;
  const { data, problem } = props.depth;
  const place = useRef<HTMLDivElement>(null);
  const [shown, isWaiting] = useStill(data, id, place);
  const { buy = [], sell = [] } = shown?.depth ?? {};
  const [bid, offer] = [buy[0]?.price, sell[0]?.price];
  const most = Math.max(...[...buy, ...sell].map(({ volume }) => Number(volume)));
  const all = link("explore/orders", { marketId: id, liveOnly: "true" });
  const aside = (
    <>
      <Paused isWaiting={isWaiting} isShort />
      <a href={all}>All live orders</a>
    </>
  );
  return (
    <Card title="Order book" aside={aside}>
      {problem && !shown && <Notice problem={problem} />}
      {!shown && !problem && <Empty>Loading…</Empty>}
      {shown && !bid && !offer && <Empty>The order book is empty: the market has no live orders with a price.</Empty>}
      {shown && (bid || offer) && (
        <div ref={place}>
          <p class="best">
            <span class="rise" data-best="bid">
              <Price value={bid ?? ""} market={market} />
            </span>
            <span class="dim" data-best="spread">
              Spread{" "}
              <Price value={bid && offer ? (BigInt(offer) - BigInt(bid)).toString() : ""} market={market} />
            </span>
            <span class="fall" data-best="offer">
              <Price value={offer ?? ""} market={market} />
            </span>
          </p>
          <div class="book">
            <Side name="Bids" levels={buy} most={most} market={market} />
            <Side name="Offers" levels={sell} most={most} market={market} />
          </div>
        </div>
      )}
    </Card>
  );
}

/** The levels of one side, the best price first. `most` is the volume that fills the width of a bar. */
function Side(props: { name: "Bids" | "Offers"; levels: Level[]; most: number; market: Market | undefined }) {
  const { name, levels, most, market } = props;
  const unit = useRaw() ? undefined : priceScale(market)?.unit;
  if (levels.length === 0) return <Empty>No {name.toLowerCase()}.</Empty>;
  const price = (
    <th scope="col" class="right price">
      {name === "Bids" ? "Bid" : "Offer"}
      {unit && " "}
      {unit && <bdi>{unit}</bdi>}
    </th>
  );
  const cells = [
    (level: Level) => <td class="right number orders">{level.orders}</td>,
    (level: Level) => (
      <td class="right number volume" style={{ backgroundSize: `${(100 * Number(level.volume)) / most}% 100%` }}>
        <Size value={level.volume} market={market} />
      </td>
    ),
    (level: Level) => (
      <td class="right number price">
        <Price value={level.price} market={market} />
      </td>
    ),
  ];
  const heads = [
    <th scope="col" class="right orders">
      Orders
    </th>,
    <th scope="col" class="right">
      Volume
    </th>,
    price,
  ];
  // Prices are in the middle: bids end with them, and offers begin with them.
  const inOrder = <T,>(list: T[]) => (name === "Bids" ? list : list.toReversed());
  return (
    <div class="scroll" role="region" aria-label={`${name}, table`} tabIndex={0}>
      <table class={`levels ${name.toLowerCase()}`} data-list={name.toLowerCase()}>
        <thead>
          <tr>{inOrder(heads)}</tr>
        </thead>
        <tbody>
          {levels.map((level) => (
            <tr key={level.price}>{inOrder(cells).map((cell) => cell(level))}</tr>
          ))}
        </tbody>
      </table>
    </div>
  );
}
