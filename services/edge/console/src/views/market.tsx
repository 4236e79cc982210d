// One market: its figures of now and of the last 24 hours, its candles with its newest trades beside them, its order book,
// and the live orders of the remembered party.
import { useRef } from "preact/hooks";
import { address, target, type Schemas } from "../api";
import { dayOf, useDays } from "../days";
import { quoted, short, word } from "../format";
import { chainTime, type Live } from "../live";
import { useMine } from "../mine";
import { AssetName, MarketName, Price, priceScale, Size } from "../named";
import { markets, type Market, type Named } from "../names";
import { Card, Choice, Copy, Empty, Facts, grpcLine, Lines, Notice, Paused, Time, ViewLink } from "../parts";
import { useRaw } from "../raw";
import { link, marketLink, open, readBlock } from "../route";
import { PAGE } from "../series";
import { useStill } from "../still";
import { Newest } from "../table";
import { useSubject } from "../title";
import { Change, Volume } from "../trend";
import { useWatch } from "../watch";
import { Book, useDepth, type Depth } from "./book";
import { Chart } from "./chart";
import { orders } from "./lists";

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

/** Trades beside the chart. */
const TRADES = 20;

export function OfMarket(props: { id: string; interval: string; live: Live }) {
  const { id } = props;
  const interval = INTERVALS.find(([name]) => name === props.interval)?.[0] ?? USUAL;
  const found = markets.use(id);
  const market = found?.row;
  const name = found?.text ?? short(id);
  useSubject(name);
  const candleId = `trades_candle_${interval}_${id}`;
  const candles = target("api/v2/candle", [["candleId", candleId], ["pagination.first", String(PAGE)]]);
  const isAbsent = markets.isRead && !markets.isCut && !found;
  const depth = useDepth(isAbsent ? undefined : id);
  const mine = useMine();
  if (isAbsent) {
    return (
      <Card title={name} aside={<a href={link("markets")}>All markets</a>}>
        <Empty>This network has no such market{readBlock() && " at this block"}.</Empty>
      </Card>
    );
  }
  const choose = (interval: string) => open(marketLink(id, interval));
  return (
    <>
      <Head id={id} of={found} depth={depth.data} live={props.live} />
      <div class="market">
        <Card title="Price" aside={<Choice label="Interval" of={INTERVALS} value={interval} onChoose={choose} />}>
          <Chart key={candleId} candleId={candleId} market={market} name={name} />
        </Card>
        <LastTrades id={id} market={market} />
      </div>
      <Book key={id} id={id} market={market} depth={depth} />
      {mine && (
        <Newest
          key={`${id} ${mine}`}
          list={orders}
          title="Live orders of my party"
          filters={[["marketId", id], ["partyId", mine], ["liveOnly", "true"]]}
          without={["Market", "Party"]}
          empty="My party has no live orders in this market."
        />
      )}
      <Lines
        of={[
          { name: "curl", text: `curl ${quoted(address(candles))}` },
          grpcLine({ candleId, pagination: { first: PAGE } }, "api.v2.Query/ListCandleData"),
        ]}
      />
      <ViewLink to={marketLink(id, interval)} />
    </>
  );
}

/** The head line. */
function Head(props: { id: string; of: Named<Market> | undefined; depth: Depth | undefined; live: Live }) {
  const { id, of } = props;
  const market = of?.row;
  const candles = useDays([id])(id);
  const day = market && candles && dayOf(candles, market, chainTime(props.live));
  const { buy = [], sell = [] } = props.depth?.depth ?? {};
  const ofRegister = readBlock() === "" && !markets.isSmall && <small class="dim">up to a minute old</small>;
  const price = (value: string | undefined) => <Price value={value ?? ""} market={market} isNoneAtZero />;
  return (
    <section class="card head" aria-label={`Market ${of?.text ?? short(id)}`}>
      <header class="card-head">
        <h2>
          <MarketName id={id} href={null} /> <Copy text={id} label="the id of the market" />
        </h2>
        <a href={link("markets")}>All markets</a>
      </header>
      {of && market && (
        <p class="dim about">
          {of.name && <bdi>{of.name}</bdi>}
          <span>{of.state}</span>
          {word(market.tradingMode, "TRADING_MODE_") !== of.state && <span>{word(market.tradingMode, "TRADING_MODE_")}</span>}
          <span>
            settles in <AssetName id={market.settlementAsset} />
          </span>
          <a href={link("explore/orders", { marketId: id })}>Orders</a>
          <a href={link("explore/positions", { marketId: id })}>Positions</a>
          <a href={link("explore/accounts", { market: id })}>Accounts</a>
        </p>
      )}
      <Facts
        of={[
          ["Last price", <strong class="last">{price(day?.last)}</strong>],
          ["24 h change", <Change day={day} />],
          ["24 h high", price(day?.high)],
          ["24 h low", price(day?.low)],
          ["24 h volume", <Volume day={day} market={market} />],
          ["Bid", price(buy[0]?.price)],
          ["Offer", price(sell[0]?.price)],
          ["Mark price", <>{price(market?.markPrice)} {ofRegister}</>],
          ["Open interest", <><Size value={market?.openInterest ?? ""} market={market} /> {ofRegister}</>],
        ]}
      />
    </section>
  );
}

/** The newest trades, live. */
function LastTrades(props: { id: string; market: Market | undefined }) {
  const { id, market } = props;
  const relative = target("api/v2/trades", [["marketId", id], ["pagination.first", String(TRADES)]]);
  const { data, problem } = useWatch<Schemas["ListTradesReply"]>(relative);
  const place = useRef<HTMLDivElement>(null);
  const [shown, isWaiting] = useStill(data, relative, place);
  const trades = shown?.trades.edges;
  const unit = useRaw() ? undefined : priceScale(market)?.unit;
  const aside = (
    <>
      <Paused isWaiting={isWaiting} isShort />
      <a href={link("explore/trades", { marketId: id })}>All trades</a>
    </>
  );
  return (
    <Card title="Last trades" aside={aside}>
      {problem && !trades && <Notice problem={problem} />}
      {!trades && !problem && <Empty>Loading…</Empty>}
      {trades?.length === 0 && <Empty>No trades.</Empty>}
      {trades && trades.length > 0 && (
        <div class="scroll" ref={place} role="region" aria-label="Last trades, table" tabIndex={0}>
          <table class="last-trades" data-list="last-trades">
            <thead>
              <tr>
                <th scope="col">Time</th>
                <th scope="col" class="right">
                  Price{unit && " "}
                  {unit && <bdi>{unit}</bdi>}
                </th>
                <th scope="col" class="right">
                  Size
                </th>
              </tr>
            </thead>
            <tbody>
              {trades.map(({ node, cursor }) => (
                <tr key={cursor} class={{ SIDE_BUY: "rise", SIDE_SELL: "fall" }[node.aggressor as string] ?? ""} data-trade={node.id}>
                  <td>
                    <Time ns={node.timestamp} isShort />
                  </td>
                  <td class="right number">
                    <Price value={node.price} market={market} />
                  </td>
                  <td class="right number">
                    <Size value={node.size} market={market} />
                  </td>
                </tr>
              ))}
            </tbody>
          </table>
        </div>
      )}
    </Card>
  );
}
