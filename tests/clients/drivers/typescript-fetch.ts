// Every operation by openapi-generator's typescript-fetch client.
import { readFile, writeFile } from "node:fs/promises";
import * as gateway from "./client";

const env = process.env as Record<string, string>;
function called(name: string, isRight: boolean): void {
  if (!isRight) throw new Error(`${name}: not what was expected`);
  console.log("called", name);
}
const save = (name: string, data: Uint8Array | string) => writeFile(`${env.OUT}/${name}`, data);

async function main(): Promise<void> {
  const configuration = new gateway.Configuration({ basePath: env.GATEWAY });
  const [marketsApi, accountsApi] = [new gateway.MarketsApi(configuration), new gateway.AccountsApi(configuration)];
  const [tradingApi, networkApi] = [new gateway.TradingApi(configuration), new gateway.NetworkApi(configuration)];
  const [historyApi, gatewayApi] = [new gateway.HistoryApi(configuration), new gateway.GatewayApi(configuration)];

  called("Health", (await gatewayApi.health()) !== "");
  called("Limits", (await gatewayApi.limits()).rows.pageDefault > 0);
  called("OpenApi", String((await gatewayApi.openApi()).openapi).startsWith("3.1"));
  called("Docs", (await gatewayApi.docs()).includes("<html"));
  const events = (await gatewayApi.watchRaw({ read: ["/api/v2/info", "/api/v2/network/limits"] })).raw.body!;
  const reader = events.pipeThrough(new TextDecoderStream()).getReader();
  called("Watch", (await reader.read()).value!.includes("event: answer-0\n"));
  await reader.cancel();

  called("LastBlockHeight", BigInt((await networkApi.lastBlockHeight()).height) > 0n);
  called("Info", (await networkApi.info()).version !== "");
  called("GetProtocolUpgradeStatus", typeof (await networkApi.getProtocolUpgradeStatus()).ready === "boolean");
  called("GetNetworkLimits", (await networkApi.getNetworkLimits()).limits.genesisLoaded);

  const { edges, pageInfo } = (await marketsApi.listMarkets({ paginationFirst: 1 })).markets;
  called("ListMarkets", edges[0]!.node.state === gateway.MarketState.MARKET_STATE_ACTIVE);
  await marketsApi.listMarkets({ paginationFirst: 1, paginationAfter: pageInfo.endCursor });
  const enabled = gateway.AssetStatus.ASSET_STATUS_ENABLED;
  called("ListAssets", (await marketsApi.listAssets({ status: enabled })).assets.edges[0]!.node.symbol !== "");
  const trades = (await marketsApi.listTrades({ marketId: env.MARKET, paginationFirst: 5 })).trades;
  called("ListTrades", BigInt(trades.edges[4]!.node.size) > 0n);
  await marketsApi.listTrades({ dateRangeStartTimestamp: "2020-01-01T00:00:00Z", paginationFirst: 1 });
  const positions = (await accountsApi.listPositions({ marketId: env.MARKET })).positions;
  called("ListPositions", BigInt(positions.edges[0]!.node.openVolume) !== 0n);
  called("ListAccounts", (await accountsApi.listAccounts({ party: env.PARTY })).accounts.length > 0);
  const intervals = await marketsApi.listCandleIntervals({ marketId: env.MARKET });
  called("ListCandleIntervals", intervals.intervalToCandleId.length > 1);
  const candles = (await marketsApi.listCandleData({ candleId: env.CANDLE, paginationFirst: 1 })).candles;
  called("ListCandleData", BigInt(candles.edges[0]!.node.high) > 0n);
  const rewards = await accountsApi.listEpochRewardSummaries({ filterAssetIds: [env.ASSET, "VOTE"] });
  called("ListEpochRewardSummaries", rewards.summaries.edges.length > 0);
  called("ListDelegations", (await accountsApi.listDelegations({ paginationFirst: 2 })).delegations.edges.length === 2);
  const proposals = await networkApi.listProtocolUpgradeProposals();
  called("ListProtocolUpgradeProposals", Array.isArray(proposals.protocolUpgradeProposals.edges));
  const spec = (await marketsApi.getOracleSpec({ oracleSpecId: env.ORACLE_SPEC })).oracleSpec.externalDataSourceSpec.spec;
  called("GetOracleSpec", spec.data.external !== undefined || spec.data.internal !== undefined);
  const depth = (await marketsApi.getMarketDepth({ marketId: env.MARKET })).depth;
  called("GetMarketDepth", depth.marketId === env.MARKET);
  const orders = (await accountsApi.listOrders({ marketId: env.MARKET, paginationFirst: 1 })).orders;
  called("ListOrders", orders.edges.length === 1);
  called("GetOrder", (await accountsApi.getOrder({ orderId: env.ORDER })).order.id === env.ORDER);
  called("GetPortfolio", (await accountsApi.getPortfolio({ partyId: env.PARTY })).portfolio.accounts.length > 0);
  called("ListDeposits", (await accountsApi.listDeposits({ paginationFirst: 1 })).deposits.edges.length === 1);
  called("ListWithdrawals", (await accountsApi.listWithdrawals({ paginationFirst: 1 })).withdrawals.edges.length === 1);
  const withdrawal = (await accountsApi.getWithdrawal({ id: env.WITHDRAWAL })).withdrawal;
  called("GetWithdrawal", withdrawal.id === env.WITHDRAWAL);
  const refusal = await accountsApi.getWithdrawal({ id: "0".repeat(64) }).catch((error: gateway.ResponseError) => error);
  const problem = gateway.ProblemFromJSON(await (refusal as gateway.ResponseError).response.json());
  called("GetWithdrawal", problem.details[0]!.code === 150001);

  called("ListAllNetworkHistorySegments", (await historyApi.listAllNetworkHistorySegments()).segments[0]!.toHeight !== "");
  called("ListDatasets", BigInt((await historyApi.listDatasets()).datasets[0]!.rows) > 0n);
  const table = gateway.Table.TABLE_TRADES;
  const history = { fromBlock: env.FROM_BLOCK, toBlock: env.TO_BLOCK, table };
  const ledger = { partyId: env.PARTY, assetId: env.ASSET, dateRangeEndTimestamp: env.UNTIL };
  const head = (await historyApi.headExportNetworkHistoryRaw(history)).raw;
  called("HeadExportNetworkHistory", head.headers.get("x-total-rows") !== "0");
  await save("history.zip", new Uint8Array(await (await historyApi.exportNetworkHistory(history)).arrayBuffer()));
  called("ExportNetworkHistory", true);
  await historyApi.headExportLedgerEntries(ledger);
  called("HeadExportLedgerEntries", true);
  await save("ledger.csv", await historyApi.exportLedgerEntries(ledger));
  called("ExportLedgerEntries", true);

  const { tx } = gateway.CheckTransactionRequestFromJSON(JSON.parse(await readFile(env.TX, "utf8")));
  called("CheckTransaction", (await tradingApi.checkTransaction({ checkTransactionRequest: { tx } })).success);
  const type = gateway.SubmissionType.SUBMISSION_TYPE_SYNC;
  const reply = await tradingApi.submitTransaction({ submitTransactionRequest: { tx, type } });
  called("SubmitTransaction", reply.success);
  called("GetTransaction", (await tradingApi.getTransaction({ hash: reply.txHash })).txHash === reply.txHash);
}
main().catch((error: unknown) => {
  console.error(error);
  process.exit(1);
});
