// Every operation by openapi-generator's go client, whose package is named openapi.
package main

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"log"
	"os"
	"strings"

	gateway "github.com/GIT_USER_ID/GIT_REPO_ID"
)

func main() {
	configuration := gateway.NewConfiguration()
	configuration.Servers[0].URL = os.Getenv("GATEWAY")
	client, ctx := gateway.NewAPIClient(configuration), context.Background()
	marketsApi, accountsApi, tradingApi := client.MarketsAPI, client.AccountsAPI, client.TradingAPI
	networkApi, historyApi, gatewayApi := client.NetworkAPI, client.HistoryAPI, client.GatewayAPI

	health, _, err := gatewayApi.Health(ctx).Execute()
	called("Health", health != "", err)
	limits, _, err := gatewayApi.Limits(ctx).Execute()
	called("Limits", limits.Rows.PageDefault > 0, err)
	document, _, err := gatewayApi.OpenApi(ctx).Execute()
	called("OpenApi", strings.HasPrefix(document["openapi"].(string), "3.1"), err)
	page, _, err := gatewayApi.Docs(ctx).Execute()
	called("Docs", strings.Contains(page, "<html"), err)
	fmt.Println("skipped Watch: the client reads an answer to its end before it returns")

	height, _, err := networkApi.LastBlockHeight(ctx).Execute()
	called("LastBlockHeight", height.Height != "0", err)
	node, _, err := networkApi.Info(ctx).Execute()
	called("Info", node.Version != "", err)
	_, _, err = networkApi.GetProtocolUpgradeStatus(ctx).Execute()
	called("GetProtocolUpgradeStatus", true, err)
	network, _, err := networkApi.GetNetworkLimits(ctx).Execute()
	called("GetNetworkLimits", network.Limits.GenesisLoaded, err)

	markets, _, err := marketsApi.ListMarkets(ctx).PaginationFirst(1).Execute()
	called("ListMarkets", markets.Markets.Edges[0].Node.State == gateway.MARKET_STATE_ACTIVE, err)
	_, _, err = marketsApi.ListMarkets(ctx).PaginationFirst(1).PaginationAfter(markets.Markets.PageInfo.EndCursor).Execute()
	called("ListMarkets", true, err)
	assets, _, err := marketsApi.ListAssets(ctx).Status(gateway.ASSET_STATUS_ENABLED).Execute()
	called("ListAssets", assets.Assets.Edges[0].Node.Symbol != "", err)
	trades, _, err := marketsApi.ListTrades(ctx).MarketId(os.Getenv("MARKET")).PaginationFirst(5).Execute()
	called("ListTrades", trades.Trades.Edges[4].Node.Size != "0", err)
	_, _, err = marketsApi.ListTrades(ctx).DateRangeStartTimestamp("2020-01-01T00:00:00Z").PaginationFirst(1).Execute()
	called("ListTrades", true, err)
	positions, _, err := accountsApi.ListPositions(ctx).MarketId(os.Getenv("MARKET")).Execute()
	called("ListPositions", positions.Positions.Edges[0].Node.OpenVolume != "0", err)
	accounts, _, err := accountsApi.ListAccounts(ctx).Party(os.Getenv("PARTY")).Execute()
	called("ListAccounts", len(accounts.Accounts) > 0, err)
	intervals, _, err := marketsApi.ListCandleIntervals(ctx).MarketId(os.Getenv("MARKET")).Execute()
	called("ListCandleIntervals", len(intervals.IntervalToCandleId) > 1, err)
	candles, _, err := marketsApi.ListCandleData(ctx).CandleId(os.Getenv("CANDLE")).PaginationFirst(1).Execute()
	called("ListCandleData", candles.Candles.Edges[0].Node.High != "0", err)
	rewards, _, err := accountsApi.ListEpochRewardSummaries(ctx).FilterAssetIds([]string{os.Getenv("ASSET"), "VOTE"}).Execute()
	called("ListEpochRewardSummaries", len(rewards.Summaries.Edges) > 0, err)
	delegations, _, err := accountsApi.ListDelegations(ctx).PaginationFirst(2).Execute()
	called("ListDelegations", len(delegations.Delegations.Edges) == 2, err)
	_, _, err = networkApi.ListProtocolUpgradeProposals(ctx).Execute()
	called("ListProtocolUpgradeProposals", true, err)
	spec, _, err := marketsApi.GetOracleSpec(ctx, os.Getenv("ORACLE_SPEC")).Execute()
	called("GetOracleSpec", spec.OracleSpec.ExternalDataSourceSpec.Spec.Data.External != nil ||
		spec.OracleSpec.ExternalDataSourceSpec.Spec.Data.Internal != nil, err)
	depth, _, err := marketsApi.GetMarketDepth(ctx, os.Getenv("MARKET")).Execute()
	called("GetMarketDepth", depth.Depth.MarketId == os.Getenv("MARKET"), err)
	orders, _, err := accountsApi.ListOrders(ctx).MarketId(os.Getenv("MARKET")).PaginationFirst(1).Execute()
	called("ListOrders", len(orders.Orders.Edges) == 1, err)
	order, _, err := accountsApi.GetOrder(ctx, os.Getenv("ORDER")).Execute()
	called("GetOrder", order.Order.Id == os.Getenv("ORDER"), err)
	portfolio, _, err := accountsApi.GetPortfolio(ctx, os.Getenv("PARTY")).Execute()
	called("GetPortfolio", len(portfolio.Portfolio.Accounts) > 0, err)
	deposits, _, err := accountsApi.ListDeposits(ctx).PaginationFirst(1).Execute()
	called("ListDeposits", len(deposits.Deposits.Edges) == 1, err)
	withdrawals, _, err := accountsApi.ListWithdrawals(ctx).PaginationFirst(1).Execute()
	called("ListWithdrawals", len(withdrawals.Withdrawals.Edges) == 1, err)
	withdrawal, _, err := accountsApi.GetWithdrawal(ctx, os.Getenv("WITHDRAWAL")).Execute()
	called("GetWithdrawal", withdrawal.Withdrawal.Id == os.Getenv("WITHDRAWAL"), err)
	_, _, err = accountsApi.GetWithdrawal(ctx, strings.Repeat("0", 64)).Execute()
	refused := err.(*gateway.GenericOpenAPIError).Model().(gateway.Problem)
	called("GetWithdrawal", refused.Details[0].Code == 150001, nil)

	segments, _, err := historyApi.ListAllNetworkHistorySegments(ctx).Execute()
	called("ListAllNetworkHistorySegments", segments.Segments[0].ToHeight != "", err)
	datasets, _, err := historyApi.ListDatasets(ctx).Execute()
	called("ListDatasets", datasets.Datasets[0].Rows != "0", err)
	from, to := os.Getenv("FROM_BLOCK"), os.Getenv("TO_BLOCK")
	head, err := historyApi.HeadExportNetworkHistory(ctx).FromBlock(from).ToBlock(to).Table(gateway.TABLE_TRADES).Execute()
	called("HeadExportNetworkHistory", head.Header.Get("X-Total-Rows") != "0", err)
	file, _, err := historyApi.ExportNetworkHistory(ctx).FromBlock(from).ToBlock(to).Table(gateway.TABLE_TRADES).Execute()
	called("ExportNetworkHistory", file != nil, err)
	history, err := io.ReadAll(file)
	called("ExportNetworkHistory", len(history) > 0, err)
	save("history.zip", history)
	party, asset, until := os.Getenv("PARTY"), os.Getenv("ASSET"), os.Getenv("UNTIL")
	_, err = historyApi.HeadExportLedgerEntries(ctx).PartyId(party).AssetId(asset).Execute()
	called("HeadExportLedgerEntries", true, err)
	ledger, _, err := historyApi.ExportLedgerEntries(ctx).PartyId(party).AssetId(asset).DateRangeEndTimestamp(until).Execute()
	called("ExportLedgerEntries", ledger != "", err)
	save("ledger.csv", []byte(ledger))

	var question gateway.CheckTransactionRequest
	if signed, err := os.ReadFile(os.Getenv("TX")); err != nil || json.Unmarshal(signed, &question) != nil {
		log.Fatal("no transaction in ", os.Getenv("TX"))
	}
	verdict, _, err := tradingApi.CheckTransaction(ctx).CheckTransactionRequest(question).Execute()
	called("CheckTransaction", verdict.Success, err)
	submission := gateway.SubmitTransactionRequest{Tx: question.Tx, Type: gateway.SUBMISSION_TYPE_SYNC.Ptr()}
	reply, _, err := tradingApi.SubmitTransaction(ctx).SubmitTransactionRequest(submission).Execute()
	called("SubmitTransaction", reply.Success, err)
	fate, _, err := tradingApi.GetTransaction(ctx, reply.TxHash).Execute()
	called("GetTransaction", fate.TxHash == reply.TxHash, err)
}
