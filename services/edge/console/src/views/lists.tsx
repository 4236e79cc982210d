// What can be looked at in Explore: one row per list, with its path, its filters and its columns.
import type { ComponentChildren } from "preact";
import type { Schemas } from "../api";
import { counted, short, word } from "../format";
import { Amount, AssetName, MarketName, Party, Price, Size } from "../named";
import { assets, markets, type AnyRegister, type Asset, type Market } from "../names";
import { Figure, Foreign, Id, Time } from "../parts";
import { link } from "../route";

export interface Filter {
  /** As the API calls it. */
  name: string;
  label: string;
  /** What it looks like; other text is not sent. */
  form: RegExp;
  hint?: string;
  /** The names to choose from, instead of a text. */
  choices?: [value: string, name: string][];
  /** What it is one of: its name is taken, too. */
  of?: AnyRegister;
  /** Whether it is a time: it is sent in nanoseconds, and typed as a date. */
  isTime?: boolean;
  /** Whether the API takes several values of it. */
  isRepeated?: boolean;
}

export interface Column<Row> {
  name: string;
  /** Numbers stand on the right. */
  isNumber?: boolean;
  cell: (row: Row) => ComponentChildren;
}

export interface Page<Row> {
  edges: { node: Row; cursor: string }[];
  pageInfo: Schemas["PageInfo"];
}

// A table takes rows of its own kind only; the list of all lists cannot say which.
export interface List<Row = any> {
  name: string;
  title: string;
  about: string;
  path: string;
  /** As gRPC calls it. */
  method: string;
  filters: Filter[];
  /** One of the filters at least must be given. */
  needsFilter?: string;
  columns: Column<Row>[];
  /** The page in an answer; a list without pages gives its rows. */
  page?: (answer: never) => Page<Row>;
  rows?: (answer: never) => Row[];
  /** The names of its orders, instead of newest and oldest first. */
  orders?: [usual: string, other: string];
  /** Whether a row is drawn in two lines on a phone. */
  isDense?: boolean;
}

const HEX = /^[0-9a-fA-F]{64}$/;
const PARTY = /^([0-9a-fA-F]{64}|network)$/;
const ASSET = /^[A-Za-z0-9_-]{1,64}$/;
const NUMBER = /^\d{1,18}$/;
const ENUM = /^[A-Z_]+$/;

const ID_HINT = "64 hex digits";
const PARTY_HINT = `${ID_HINT}, or network`;

const ofParty = (party: string) => <Party id={party} />;

/** The choices of an enum; the API calls them with this beginning. */
function choices(beginning: string, names: string[]): Filter["choices"] {
  return [["", "Any"], ...names.map((name): [string, string] => [`${beginning}${name}`, word(`${beginning}${name}`, beginning)])];
}

/** A filter by a market, by an asset, by a party, by a time. */
const byMarket = (name: string): Filter => ({ name, label: "Market", form: HEX, of: markets });
const byAsset = (name: string, label = "Asset"): Filter => ({ name, label, form: ASSET, of: assets });
const byParty: Filter = { name: "partyId", label: "Party", form: PARTY, hint: PARTY_HINT };
const byTime = (name: string, label: string): Filter => ({ name, label, form: /^\d{1,19}$/, isTime: true });

const STATES = [
  "PROPOSED",
  "PENDING",
  "ACTIVE",
  "SUSPENDED",
  "CLOSED",
  "TRADING_TERMINATED",
  "SETTLED",
  "REJECTED",
  "CANCELLED",
];

const marketList: List<Market> = {
  name: "markets",
  title: "Markets",
  about: "All markets with their state, settlement asset and newest prices.",
  path: "api/v2/markets",
  method: "api.v2.Query/ListMarkets",
  filters: [
    { name: "state", label: "State", form: ENUM, choices: choices("STATE_", STATES) },
    byAsset("settlementAsset", "Settles in"),
  ],
  columns: [
    { name: "Market", cell: (row) => <MarketName id={row.id} /> },
    { name: "Name", cell: (row) => <Foreign text={row.name} /> },
    { name: "State", cell: (row) => word(row.state, "STATE_") },
    { name: "Trading", cell: (row) => word(row.tradingMode, "TRADING_MODE_") },
    { name: "Settles in", cell: (row) => <AssetName id={row.settlementAsset} /> },
    { name: "Mark price", isNumber: true, cell: (row) => <Price value={row.markPrice} market={row} isNoneAtZero /> },
    { name: "Bid", isNumber: true, cell: (row) => <Price value={row.bestBidPrice} market={row} isNoneAtZero /> },
    { name: "Offer", isNumber: true, cell: (row) => <Price value={row.bestOfferPrice} market={row} isNoneAtZero /> },
    { name: "Open interest", isNumber: true, cell: (row) => <Size value={row.openInterest} market={row} /> },
  ],
  page: (answer: Schemas["ListMarketsReply"]) => answer.markets,
  orders: ["By id, descending", "By id, ascending"],
};

const assetList: List<Asset> = {
  name: "assets",
  title: "Assets",
  about: "The assets in which balances and profits are counted.",
  path: "api/v2/assets",
  method: "api.v2.Query/ListAssets",
  filters: [
    { name: "status", label: "Status", form: ENUM, choices: choices("STATUS_", ["PROPOSED", "PENDING_LISTING", "ENABLED", "REJECTED"]) },
  ],
  columns: [
    { name: "Asset", cell: (row) => <AssetName id={row.id} /> },
    { name: "Name", cell: (row) => <Foreign text={row.name} /> },
    { name: "Status", cell: (row) => word(row.status, "STATUS_") },
    { name: "Decimals", isNumber: true, cell: (row) => row.decimals },
    { name: "Quantum", isNumber: true, cell: (row) => <Amount value={row.quantum} asset={row.id} isBeside /> },
    { name: "Contract", cell: (row) => <Id id={row.erc20Contract} /> },
  ],
  page: (answer: Schemas["ListAssetsReply"]) => answer.assets,
  orders: ["By id, descending", "By id, ascending"],
};

/** A cell that its market scales. */
export function InMarket(props: { id: string; show: (market: Market | undefined) => ComponentChildren }) {
  return <>{props.show(markets.use(props.id)?.row)}</>;
}

/** A column of figures that the market of their row scales. */
function inMarket<Row extends { marketId: string }>(
  name: string,
  show: (row: Row, market: Market | undefined) => ComponentChildren,
): Column<Row> {
  const cell = (row: Row) => <InMarket id={row.marketId} show={(market) => show(row, market)} />;
  return { name, isNumber: true, cell };
}

export const trades: List<Schemas["Trade"]> = {
  name: "trades",
  title: "Trades",
  about: "All trades, the newest first.",
  path: "api/v2/trades",
  method: "api.v2.Query/ListTrades",
  filters: [
    byMarket("marketId"),
    byParty,
    byTime("dateRange.startTimestamp", "From, UTC"),
    byTime("dateRange.endTimestamp", "Until before, UTC"),
  ],
  columns: [
    { name: "Time", cell: (row) => <Time ns={row.timestamp} /> },
    { name: "Market", cell: (row) => <MarketName id={row.marketId} /> },
    inMarket("Price", (row, market) => <Price value={row.price} market={market} />),
    inMarket("Size", (row, market) => <Size value={row.size} market={market} />),
    { name: "Buyer", cell: (row) => ofParty(row.buyer) },
    { name: "Seller", cell: (row) => ofParty(row.seller) },
    { name: "Aggressor", cell: (row) => (row.aggressor === "SIDE_UNSPECIFIED" ? "Neither" : word(row.aggressor, "SIDE_")) },
    { name: "Type", cell: (row) => word(row.type, "TYPE_") },
    { name: "Id", cell: (row) => <Id id={row.id} /> },
  ],
  page: (answer: Schemas["ListTradesReply"]) => answer.trades,
  isDense: true,
};

type Order = Schemas["Order"];

/** The kind of an order, with how long it is in force. */
export function kindOf(order: Order): string {
  const pegged = order.peggedOrder ? ", pegged" : "";
  return `${word(order.type, "TYPE_")}, ${order.timeInForce.replace("TIME_IN_FORCE_", "")}${pegged}`;
}

const ORDER_STATUSES = ["ACTIVE", "PARTIALLY_FILLED", "PARKED", "FILLED", "CANCELLED", "EXPIRED", "STOPPED", "REJECTED"];

export const orders: List<Order> = {
  name: "orders",
  title: "Orders",
  about: "The newest version of each order, the latest order first. Live orders rest in the book or are parked.",
  path: "api/v2/orders",
  method: "api.v2.Query/ListOrders",
  filters: [
    byMarket("marketId"),
    byParty,
    { name: "status", label: "Status", form: ENUM, choices: choices("STATUS_", ORDER_STATUSES), isRepeated: true },
    { name: "liveOnly", label: "Live", form: /^true$/, choices: [["", "All orders"], ["true", "Live orders only"]] },
  ],
  columns: [
    { name: "Time", cell: (row) => <Time ns={row.createdAt} /> },
    { name: "Market", cell: (row) => <MarketName id={row.marketId} /> },
    { name: "Side", cell: (row) => <SideName side={row.side} /> },
    inMarket("Price", (row, market) => <Price value={row.price} market={market} isNoneAtZero />),
    inMarket("Size", (row, market) => <Size value={row.size} market={market} />),
    inMarket("Remaining", (row, market) => <Size value={row.remaining} market={market} />),
    { name: "Status", cell: (row) => word(row.status, "STATUS_") },
    { name: "Type", cell: kindOf },
    { name: "Party", cell: (row) => ofParty(row.partyId) },
    { name: "Id", cell: (row) => <Id id={row.id} href={link(`explore/order/${row.id}`)} /> },
  ],
  page: (answer: Schemas["ListOrdersReply"]) => answer.orders,
  isDense: true,
};

/** Buy or sell, coloured. */
export function SideName(props: { side: string }) {
  return <span class={{ SIDE_BUY: "rise", SIDE_SELL: "fall" }[props.side]}>{word(props.side, "SIDE_")}</span>;
}

/** The filters of deposits and withdrawals, which differ by the names of their statuses. */
const ofTransfers = (statuses: string[]): Filter[] => [
  byParty,
  byAsset("assetId"),
  { name: "status", label: "Status", form: ENUM, choices: choices("STATUS_", statuses) },
];

export const deposits: List<Schemas["Deposit"]> = {
  name: "deposits",
  title: "Deposits",
  about: "Assets that enter the network from a foreign chain, the latest first.",
  path: "api/v2/deposits",
  method: "api.v2.Query/ListDeposits",
  filters: ofTransfers(["OPEN", "FINALIZED", "CANCELLED"]),
  columns: [
    { name: "Created", cell: (row) => <Time ns={row.createdTimestamp} /> },
    { name: "Party", cell: (row) => ofParty(row.partyId) },
    { name: "Asset", cell: (row) => <AssetName id={row.asset} /> },
    { name: "Amount", isNumber: true, cell: (row) => <Amount value={row.amount} asset={row.asset} isBeside /> },
    { name: "Status", cell: (row) => word(row.status, "STATUS_") },
    { name: "Credited", cell: (row) => <Time ns={row.creditedTimestamp} /> },
    { name: "Foreign transaction", cell: (row) => <Hash text={row.foreignTxHash} /> },
    { name: "Id", cell: (row) => <Id id={row.id} /> },
  ],
  page: (answer: Schemas["ListDepositsReply"]) => answer.deposits,
};

export const withdrawals: List<Schemas["Withdrawal"]> = {
  name: "withdrawals",
  title: "Withdrawals",
  about: "Assets that leave the network for a foreign chain, the latest first.",
  path: "api/v2/withdrawals",
  method: "api.v2.Query/ListWithdrawals",
  filters: ofTransfers(["OPEN", "FINALIZED", "REJECTED"]),
  columns: [
    { name: "Created", cell: (row) => <Time ns={row.createdTimestamp} /> },
    { name: "Party", cell: (row) => ofParty(row.partyId) },
    { name: "Asset", cell: (row) => <AssetName id={row.asset} /> },
    { name: "Amount", isNumber: true, cell: (row) => <Amount value={row.amount} asset={row.asset} isBeside /> },
    { name: "Status", cell: (row) => word(row.status, "STATUS_") },
    { name: "Finalised", cell: (row) => <Time ns={row.withdrawnTimestamp} /> },
    { name: "Foreign transaction", cell: (row) => <Hash text={row.txHash} /> },
    { name: "Id", cell: (row) => <Id id={row.id} href={link(`explore/withdrawal/${row.id}`)} /> },
  ],
  page: (answer: Schemas["ListWithdrawalsReply"]) => answer.withdrawals,
};

/** A hash of a foreign chain, which may be any text. */
function Hash(props: { text: string }) {
  return short(props.text) === props.text ? <Foreign text={props.text} /> : <Id id={props.text} />;
}

const POSITION_STATUS = "POSITION_STATUS_";

export const positions: List<Schemas["Position"]> = {
  name: "positions",
  title: "Positions",
  about:
    "The current position of each party in each market, including trades since the last settlement. A negative volume is a short position.",
  path: "api/v2/positions",
  method: "api.v2.Query/ListPositions",
  filters: [byParty, byMarket("marketId")],
  columns: [
    { name: "Party", cell: (row) => ofParty(row.partyId) },
    { name: "Market", cell: (row) => <MarketName id={row.marketId} /> },
    inMarket("Volume", (row, market) => <Size value={row.openVolume} market={market} />),
    inMarket("Average entry price", (row, market) => <Price value={row.averageEntryPrice} market={market} isNoneAtZero />),
    inMarket("Realised", (row, market) => <Amount value={row.realisedPnl} asset={market?.settlementAsset ?? ""} />),
    inMarket("Unrealised", (row, market) => <Amount value={row.unrealisedPnl} asset={market?.settlementAsset ?? ""} />),
    inMarket("Loss socialisation", (row, market) => (
      <Amount value={row.lossSocialisationAmount} asset={market?.settlementAsset ?? ""} />
    )),
    inMarket("Settled volume", (row, market) => <Size value={row.settled.openVolume} market={market} />),
    { name: "Status", cell: (row) => (row.status === POSITION_STATUS + "UNSPECIFIED" ? "–" : word(row.status, POSITION_STATUS)) },
    { name: "Updated", cell: (row) => <Time ns={row.updatedAt} /> },
  ],
  page: (answer: Schemas["ListPositionsReply"]) => answer.positions,
  orders: ["By party, descending", "By party, ascending"],
};

export const accounts: List<Schemas["AccountBalance"]> = {
  name: "accounts",
  title: "Accounts",
  about: "The current balances of a party or of a market.",
  path: "accounts",
  method: "api.v2.Query/ListAccounts",
  filters: [
    { name: "party", label: "Party", form: PARTY, hint: PARTY_HINT },
    byMarket("market"),
  ],
  needsFilter: "Give a party or a market. The lists of trades and positions link to parties.",
  columns: [
    { name: "Party", cell: (row) => ofParty(row.party) },
    { name: "Market", cell: (row) => <MarketName id={row.market} /> },
    { name: "Type", cell: (row) => word(row.type, "ACCOUNT_TYPE_") },
    { name: "Asset", cell: (row) => <AssetName id={row.asset} /> },
    { name: "Balance", isNumber: true, cell: (row) => <Amount value={row.balance} asset={row.asset} isBeside /> },
  ],
  rows: (answer: Schemas["ListAccountsReply"]) => answer.accounts,
};

export const delegations: List<Schemas["Delegation"]> = {
  name: "delegations",
  title: "Delegations",
  about:
    "The stake that parties delegate to validators, by epoch. Amounts are in the smallest unit of the staking asset.",
  path: "api/v2/delegations",
  method: "api.v2.Query/ListDelegations",
  filters: [
    { name: "partyId", label: "Party", form: HEX, hint: ID_HINT },
    { name: "nodeId", label: "Validator", form: HEX, hint: ID_HINT },
    { name: "epochId", label: "Epoch", form: NUMBER },
  ],
  columns: [
    { name: "Epoch", cell: (row) => row.epochSeq },
    { name: "Party", cell: (row) => ofParty(row.party) },
    { name: "Validator", cell: (row) => <Id id={row.nodeId} href={link("explore/delegations", { nodeId: row.nodeId })} /> },
    { name: "Amount", isNumber: true, cell: (row) => <Figure value={row.amount} /> },
  ],
  page: (answer: Schemas["ListDelegationsReply"]) => answer.delegations,
};

const rewards: List<Schemas["EpochRewardSummary"]> = {
  name: "rewards",
  title: "Rewards",
  about: "Rewards paid in each epoch, as a sum over all parties.",
  path: "api/v2/rewards/epoch/summaries",
  method: "api.v2.Query/ListEpochRewardSummaries",
  filters: [
    { name: "filter.fromEpoch", label: "From epoch", form: NUMBER },
    { name: "filter.toEpoch", label: "To epoch", form: NUMBER },
    { ...byAsset("filter.assetIds"), isRepeated: true },
    { ...byMarket("filter.marketIds"), isRepeated: true },
  ],
  columns: [
    { name: "Epoch", cell: (row) => row.epoch },
    { name: "Type", cell: (row) => <Foreign text={word(row.rewardType, "ACCOUNT_TYPE_")} /> },
    { name: "Market", cell: (row) => <MarketName id={row.marketId} /> },
    { name: "Asset", cell: (row) => <AssetName id={row.assetId} /> },
    { name: "Amount", isNumber: true, cell: (row) => <Amount value={row.amount} asset={row.assetId} isBeside /> },
  ],
  page: (answer: Schemas["ListEpochRewardSummariesReply"]) => answer.summaries,
};

const STATUS = "PROTOCOL_UPGRADE_PROPOSAL_STATUS_";

const proposals: List<Schemas["ProtocolUpgradeProposal"]> = {
  name: "proposals",
  title: "Proposals",
  about: "Protocol upgrades that validators have proposed.",
  path: "api/v2/upgrade/proposals",
  method: "api.v2.Query/ListProtocolUpgradeProposals",
  filters: [
    {
      name: "status",
      label: "Status",
      form: ENUM,
      choices: choices(STATUS, ["PENDING", "APPROVED", "REJECTED"]),
    },
    { name: "approvedBy", label: "Approved by", form: /^.{1,256}$/s },
  ],
  columns: [
    { name: "Height", cell: (row) => <Figure value={row.upgradeBlockHeight} /> },
    { name: "Release", cell: (row) => <Foreign text={row.networkReleaseTag} /> },
    { name: "Status", cell: (row) => word(row.status, STATUS) },
    {
      name: "Approved by",
      cell: (row) =>
        row.approvers.length === 0 ? (
          <span class="dim">none</span>
        ) : (
          <details>
            <summary>{counted(row.approvers.length, "validator")}</summary>
            <ul class="plain">
              {row.approvers.map((key) => (
                <li key={key}>
                  <Foreign text={key} />
                </li>
              ))}
            </ul>
          </details>
        ),
    },
  ],
  page: (answer: Schemas["ListProtocolUpgradeProposalsReply"]) => answer.protocolUpgradeProposals,
};

export const LISTS: readonly List[] = [
  marketList, assetList, orders, trades, positions, accounts, deposits, withdrawals, delegations, rewards, proposals,
];
