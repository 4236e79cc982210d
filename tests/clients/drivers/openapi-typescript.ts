// Every operation by the types of openapi-typescript and the small client that goes with them, openapi-fetch.
import { readFile, writeFile } from "node:fs/promises";
import createClient from "openapi-fetch";
import type { components, paths } from "./client/gateway.js";

const env = process.env as Record<string, string>;
const client = createClient<paths>({ baseUrl: env.GATEWAY });
function called(name: string, isRight: boolean): void {
  if (!isRight) throw new Error(`${name}: not what was expected`);
  console.log("called", name);
}
const save = (name: string, data: Uint8Array | string) => writeFile(`${env.OUT}/${name}`, data);
/** What an answer holds; a refusal ends the walk. */
async function data<D>(answer: Promise<{ data?: D; error?: unknown }>): Promise<D> {
  const { data, error } = await answer;
  if (data === undefined) throw new Error(JSON.stringify(error));
  return data;
}

called("Health", (await data(client.GET("/health", { parseAs: "text" }))) !== "");
called("Limits", (await data(client.GET("/limits"))).rows.pageDefault > 0);
called("OpenApi", String((await data(client.GET("/openapi.json"))).openapi).startsWith("3.1"));
called("Docs", (await data(client.GET("/docs", { parseAs: "text" }))).includes("<html"));
const read = ["/api/v2/info", "/api/v2/network/limits"];
const events = await data(client.GET("/watch", { params: { query: { read } }, parseAs: "stream" }));
const reader = events!.pipeThrough(new TextDecoderStream()).getReader();
called("Watch", (await reader.read()).value!.includes("event: answer-0\n"));
await reader.cancel();

called("LastBlockHeight", BigInt((await data(client.GET("/blockchain/height"))).height) > 0n);
called("Info", (await data(client.GET("/api/v2/info"))).version !== "");
called("GetProtocolUpgradeStatus", typeof (await data(client.GET("/api/v2/upgrade/status"))).ready === "boolean");
called("GetNetworkLimits", (await data(client.GET("/api/v2/network/limits"))).limits.genesisLoaded);

const first = { "pagination.first": 1 };
const { edges, pageInfo } = (await data(client.GET("/api/v2/markets", { params: { query: first } }))).markets;
called("ListMarkets", edges[0]!.node.state === "STATE_ACTIVE");
const next = { ...first, "pagination.after": pageInfo.endCursor };
await data(client.GET("/api/v2/markets", { params: { query: next } }));
const assets = await data(client.GET("/api/v2/assets", { params: { query: { status: "STATUS_ENABLED" } } }));
called("ListAssets", assets.assets.edges[0]!.node.symbol !== "");
const [marketId, partyId, assetId] = [env.MARKET, env.PARTY, env.ASSET];
const five = { marketId, "pagination.first": 5 };
const trades = await data(client.GET("/api/v2/trades", { params: { query: five } }));
called("ListTrades", BigInt(trades.trades.edges[4]!.node.size) > 0n);
const since = { ...first, "dateRange.startTimestamp": "2020-01-01T00:00:00Z" };
await data(client.GET("/api/v2/trades", { params: { query: since } }));
const positions = await data(client.GET("/api/v2/positions", { params: { query: { marketId } } }));
called("ListPositions", BigInt(positions.positions.edges[0]!.node.openVolume) !== 0n);
const accounts = await data(client.GET("/accounts", { params: { query: { party: partyId } } }));
called("ListAccounts", accounts.accounts.length > 0);
const intervals = await data(client.GET("/api/v2/candle/intervals", { params: { query: { marketId } } }));
called("ListCandleIntervals", intervals.intervalToCandleId.length > 1);
const candle = { candleId: env.CANDLE, ...first };
const candles = await data(client.GET("/api/v2/candle", { params: { query: candle } }));
called("ListCandleData", BigInt(candles.candles.edges[0]!.node.high) > 0n);
const ofAssets = { "filter.assetIds": [assetId, "VOTE"] };
const rewards = await data(client.GET("/api/v2/rewards/epoch/summaries", { params: { query: ofAssets } }));
called("ListEpochRewardSummaries", rewards.summaries.edges.length > 0);
const delegations = await data(client.GET("/api/v2/delegations", { params: { query: { "pagination.first": 2 } } }));
called("ListDelegations", delegations.delegations.edges.length === 2);
const proposals = await data(client.GET("/api/v2/upgrade/proposals"));
called("ListProtocolUpgradeProposals", Array.isArray(proposals.protocolUpgradeProposals.edges));
const specPath = { oracleSpecId: env.ORACLE_SPEC };
const { oracleSpec } = await data(client.GET("/api/v2/oracle/spec/{oracleSpecId}", { params: { path: specPath } }));
const source = oracleSpec.externalDataSourceSpec.spec.data;
called("GetOracleSpec", source.external !== undefined || source.internal !== undefined);
const { depth } = await data(client.GET("/api/v2/market/{marketId}/depth", { params: { path: { marketId } } }));
called("GetMarketDepth", depth.marketId === marketId);
const orders = await data(client.GET("/api/v2/orders", { params: { query: { marketId, ...first } } }));
called("ListOrders", orders.orders.edges.length === 1);
const orderPath = { orderId: env.ORDER };
called("GetOrder", (await data(client.GET("/api/v2/order/{orderId}", { params: { path: orderPath } }))).order.id === env.ORDER);
const { portfolio } = await data(client.GET("/api/v2/party/{partyId}/portfolio", { params: { path: { partyId } } }));
called("GetPortfolio", portfolio.accounts.length > 0);
const deposits = await data(client.GET("/api/v2/deposits", { params: { query: first } }));
called("ListDeposits", deposits.deposits.edges.length === 1);
const withdrawals = await data(client.GET("/api/v2/withdrawals", { params: { query: first } }));
called("ListWithdrawals", withdrawals.withdrawals.edges.length === 1);
const withdrawal = await data(client.GET("/api/v2/withdrawal/{id}", { params: { path: { id: env.WITHDRAWAL } } }));
called("GetWithdrawal", withdrawal.withdrawal.id === env.WITHDRAWAL);
const { error } = await client.GET("/api/v2/withdrawal/{id}", { params: { path: { id: "0".repeat(64) } } });
called("GetWithdrawal", error?.details[0]!.code === 150001);

const segments = await data(client.GET("/api/v2/networkhistory/segments"));
called("ListAllNetworkHistorySegments", segments.segments[0]!.toHeight !== "");
called("ListDatasets", BigInt((await data(client.GET("/api/v2/datasets"))).datasets[0]!.rows) > 0n);
const history = { fromBlock: env.FROM_BLOCK, toBlock: env.TO_BLOCK, table: "TABLE_TRADES" } as const;
const ledger = { partyId, assetId, "dateRange.endTimestamp": env.UNTIL };
const head = await client.HEAD("/api/v2/networkhistory/export", { params: { query: history } });
called("HeadExportNetworkHistory", head.response.headers.get("x-total-rows") !== "0");
const query = { params: { query: history }, parseAs: "arrayBuffer" } as const;
await save("history.zip", new Uint8Array(await data(client.GET("/api/v2/networkhistory/export", query))));
called("ExportNetworkHistory", true);
called("HeadExportLedgerEntries", (await client.HEAD("/api/v2/ledgerentry/export", { params: { query: ledger } })).response.ok);
const rows = { params: { query: ledger }, parseAs: "text" } as const;
await save("ledger.csv", await data(client.GET("/api/v2/ledgerentry/export", rows)));
called("ExportLedgerEntries", true);

const signed: components["schemas"]["CheckTransactionRequest"] = JSON.parse(await readFile(env.TX, "utf8"));
called("CheckTransaction", (await data(client.POST("/transaction/check", { body: signed }))).success);
const submission = { ...signed, type: "TYPE_SYNC" } as const;
const reply = await data(client.POST("/transaction", { body: submission }));
called("SubmitTransaction", reply.success);
const fate = await data(client.GET("/transaction/{hash}", { params: { path: { hash: reply.txHash } } }));
called("GetTransaction", fate.txHash === reply.txHash);
