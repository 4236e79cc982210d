// Every operation by oapi-codegen's client, generated as the package gateway of this module.
package main

import (
	"bufio"
	"context"
	"encoding/json"
	"log"
	"os"
	"strings"

	"walk/gateway"
)

func to[T any](value T) *T { return &value }

func main() {
	client, err := gateway.NewClientWithResponses(os.Getenv("GATEWAY"))
	if err != nil {
		log.Fatal(err)
	}
	ctx := context.Background()
	market, party, asset := os.Getenv("MARKET"), os.Getenv("PARTY"), os.Getenv("ASSET")

	health, err := client.HealthWithResponse(ctx)
	called("Health", len(health.Body) > 0, err)
	limits, err := client.LimitsWithResponse(ctx, nil)
	called("Limits", limits.JSON200.Rows.PageDefault > 0, err)
	document, err := client.OpenApiWithResponse(ctx, nil)
	called("OpenApi", strings.HasPrefix((*document.JSON200)["openapi"].(string), "3.1"), err)
	page, err := client.DocsWithResponse(ctx, nil)
	called("Docs", strings.Contains(string(page.Body), "<html"), err)
	events, err := client.Watch(ctx, &gateway.WatchParams{Read: []string{"/api/v2/info", "/api/v2/network/limits"}})
	if err != nil {
		log.Fatal(err)
	}
	lines := bufio.NewScanner(events.Body)
	for lines.Scan() && !strings.HasPrefix(lines.Text(), "event: ") {
	}
	called("Watch", lines.Text() == "event: answer-0", events.Body.Close())

	height, err := client.LastBlockHeightWithResponse(ctx, nil)
	called("LastBlockHeight", height.JSON200.Height != "0", err)
	node, err := client.InfoWithResponse(ctx, nil)
	called("Info", node.JSON200.Version != "", err)
	upgrade, err := client.GetProtocolUpgradeStatusWithResponse(ctx, nil)
	called("GetProtocolUpgradeStatus", upgrade.JSON200 != nil, err)
	network, err := client.GetNetworkLimitsWithResponse(ctx, nil)
	called("GetNetworkLimits", network.JSON200.Limits.GenesisLoaded, err)

	markets, err := client.ListMarketsWithResponse(ctx, &gateway.ListMarketsParams{PaginationFirst: to(int32(1))})
	first := markets.JSON200.Markets
	called("ListMarkets", first.Edges[0].Node.State == gateway.MARKETSTATEACTIVE, err)
	_, err = client.ListMarketsWithResponse(ctx,
		&gateway.ListMarketsParams{PaginationFirst: to(int32(1)), PaginationAfter: &first.PageInfo.EndCursor})
	called("ListMarkets", true, err)
	assets, err := client.ListAssetsWithResponse(ctx, &gateway.ListAssetsParams{Status: to(gateway.ASSETSTATUSENABLED)})
	called("ListAssets", assets.JSON200.Assets.Edges[0].Node.Symbol != "", err)
	trades, err := client.ListTradesWithResponse(ctx,
		&gateway.ListTradesParams{MarketId: &market, PaginationFirst: to(int32(5))})
	called("ListTrades", trades.JSON200.Trades.Edges[4].Node.Size != "0", err)
	since, err := client.ListTradesWithResponse(ctx,
		&gateway.ListTradesParams{DateRangeStartTimestamp: to("2020-01-01T00:00:00Z"), PaginationFirst: to(int32(1))})
	called("ListTrades", len(since.JSON200.Trades.Edges) == 1, err)
	positions, err := client.ListPositionsWithResponse(ctx, &gateway.ListPositionsParams{MarketId: &market})
	called("ListPositions", positions.JSON200.Positions.Edges[0].Node.OpenVolume != "0", err)
	accounts, err := client.ListAccountsWithResponse(ctx, &gateway.ListAccountsParams{Party: &party})
	called("ListAccounts", len(accounts.JSON200.Accounts) > 0, err)
	intervals, err := client.ListCandleIntervalsWithResponse(ctx, &gateway.ListCandleIntervalsParams{MarketId: market})
	called("ListCandleIntervals", len(intervals.JSON200.IntervalToCandleId) > 1, err)
	candles, err := client.ListCandleDataWithResponse(ctx,
		&gateway.ListCandleDataParams{CandleId: os.Getenv("CANDLE"), PaginationFirst: to(int32(1))})
	called("ListCandleData", candles.JSON200.Candles.Edges[0].Node.High != "0", err)
	rewards, err := client.ListEpochRewardSummariesWithResponse(ctx,
		&gateway.ListEpochRewardSummariesParams{FilterAssetIds: &[]string{asset, "VOTE"}})
	called("ListEpochRewardSummaries", len(rewards.JSON200.Summaries.Edges) > 0, err)
	delegations, err := client.ListDelegationsWithResponse(ctx,
		&gateway.ListDelegationsParams{PaginationFirst: to(int32(2))})
	called("ListDelegations", len(delegations.JSON200.Delegations.Edges) == 2, err)
	proposals, err := client.ListProtocolUpgradeProposalsWithResponse(ctx, nil)
	called("ListProtocolUpgradeProposals", proposals.JSON200 != nil, err)
	spec, err := client.GetOracleSpecWithResponse(ctx, os.Getenv("ORACLE_SPEC"), nil)
	source := spec.JSON200.OracleSpec.ExternalDataSourceSpec.Spec.Data
	called("GetOracleSpec", source.External != nil || source.Internal != nil, err)
	depth, err := client.GetMarketDepthWithResponse(ctx, market, nil)
	called("GetMarketDepth", depth.JSON200.Depth.MarketId == market, err)
	orders, err := client.ListOrdersWithResponse(ctx,
		&gateway.ListOrdersParams{MarketId: &market, PaginationFirst: to(int32(1))})
	called("ListOrders", len(orders.JSON200.Orders.Edges) == 1, err)
	order, err := client.GetOrderWithResponse(ctx, os.Getenv("ORDER"), nil)
	called("GetOrder", order.JSON200.Order.Id == os.Getenv("ORDER"), err)
	portfolio, err := client.GetPortfolioWithResponse(ctx, party, nil)
	called("GetPortfolio", len(portfolio.JSON200.Portfolio.Accounts) > 0, err)
	deposits, err := client.ListDepositsWithResponse(ctx, &gateway.ListDepositsParams{PaginationFirst: to(int32(1))})
	called("ListDeposits", len(deposits.JSON200.Deposits.Edges) == 1, err)
	withdrawals, err := client.ListWithdrawalsWithResponse(ctx,
		&gateway.ListWithdrawalsParams{PaginationFirst: to(int32(1))})
	called("ListWithdrawals", len(withdrawals.JSON200.Withdrawals.Edges) == 1, err)
	withdrawal, err := client.GetWithdrawalWithResponse(ctx, os.Getenv("WITHDRAWAL"), nil)
	called("GetWithdrawal", withdrawal.JSON200.Withdrawal.Id == os.Getenv("WITHDRAWAL"), err)
	refused, err := client.GetWithdrawalWithResponse(ctx, strings.Repeat("0", 64), nil)
	called("GetWithdrawal", refused.JSON404.Details[0].Code == 150001, err)

	segments, err := client.ListAllNetworkHistorySegmentsWithResponse(ctx, nil)
	called("ListAllNetworkHistorySegments", segments.JSON200.Segments[0].ToHeight != "", err)
	datasets, err := client.ListDatasetsWithResponse(ctx, nil)
	called("ListDatasets", datasets.JSON200.Datasets[0].Rows != "0", err)
	from, last := os.Getenv("FROM_BLOCK"), os.Getenv("TO_BLOCK")
	head, err := client.HeadExportNetworkHistoryWithResponse(ctx,
		&gateway.HeadExportNetworkHistoryParams{FromBlock: from, ToBlock: last, Table: gateway.TABLETRADES})
	called("HeadExportNetworkHistory", head.HTTPResponse.Header.Get("X-Total-Rows") != "0", err)
	history, err := client.ExportNetworkHistoryWithResponse(ctx,
		&gateway.ExportNetworkHistoryParams{FromBlock: from, ToBlock: last, Table: gateway.TABLETRADES})
	called("ExportNetworkHistory", history.StatusCode() == 200, err)
	save("history.zip", history.Body)
	headOfLedger, err := client.HeadExportLedgerEntriesWithResponse(ctx,
		&gateway.HeadExportLedgerEntriesParams{PartyId: party, AssetId: asset})
	called("HeadExportLedgerEntries", headOfLedger.StatusCode() == 200, err)
	ledger, err := client.ExportLedgerEntriesWithResponse(ctx, &gateway.ExportLedgerEntriesParams{
		PartyId: party, AssetId: asset, DateRangeEndTimestamp: to(os.Getenv("UNTIL"))})
	called("ExportLedgerEntries", ledger.StatusCode() == 200, err)
	save("ledger.csv", ledger.Body)

	var question gateway.CheckTransactionRequest
	if signed, err := os.ReadFile(os.Getenv("TX")); err != nil || json.Unmarshal(signed, &question) != nil {
		log.Fatal("no transaction in ", os.Getenv("TX"))
	}
	verdict, err := client.CheckTransactionWithResponse(ctx, nil, question)
	called("CheckTransaction", verdict.JSON200.Success, err)
	submission := gateway.SubmitTransactionRequest{Tx: question.Tx, Type: to(gateway.SUBMISSIONTYPESYNC)}
	reply, err := client.SubmitTransactionWithResponse(ctx, nil, submission)
	called("SubmitTransaction", reply.JSON200.Success, err)
	fate, err := client.GetTransactionWithResponse(ctx, reply.JSON200.TxHash, nil)
	called("GetTransaction", fate.JSON200.TxHash == reply.JSON200.TxHash, err)
}
