import java.nio.charset.StandardCharsets;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.List;
import java.util.Map;
import org.openapitools.client.ApiClient;
import org.openapitools.client.ApiException;
import org.openapitools.client.api.*;
import org.openapitools.client.model.*;

/** Every operation by openapi-generator's java client. */
public class Walk {
    private static final Map<String, String> ENV = System.getenv();
    private static MarketsApi marketsApi;
    private static AccountsApi accountsApi;
    private static TradingApi tradingApi;
    private static NetworkApi networkApi;
    private static HistoryApi historyApi;
    private static GatewayApi gatewayApi;

    private static void called(String name, boolean isRight) {
        if (!isRight) {
            throw new IllegalStateException(name + ": not what was expected");
        }
        System.out.println("called " + name);
    }

    private static Path file(String name) {
        return Path.of(ENV.get("OUT"), name);
    }

    public static void main(String[] arguments) throws Exception {
        ApiClient client = new ApiClient().setBasePath(ENV.get("GATEWAY"));
        marketsApi = new MarketsApi(client);
        accountsApi = new AccountsApi(client);
        tradingApi = new TradingApi(client);
        networkApi = new NetworkApi(client);
        historyApi = new HistoryApi(client);
        gatewayApi = new GatewayApi(client);
        edge();
        info();
        query();
        export();
        relay();
    }

    private static void edge() throws Exception {
        called("Health", !gatewayApi.health().isEmpty());
        called("Limits", gatewayApi.limits(null, null).getRows().getPageDefault() > 0);
        called("OpenApi", gatewayApi.openApi(null, null).get("openapi").toString().startsWith("3.1"));
        called("Docs", gatewayApi.docs(null).contains("<html"));
        try (var events = gatewayApi.watchCall(List.of("/api/v2/info", "/api/v2/network/limits"), null, null).execute()) {
            String line = events.body().source().readUtf8Line();
            while (!line.startsWith("event: ")) {
                line = events.body().source().readUtf8Line();
            }
            called("Watch", line.equals("event: answer-0"));
        }
    }

    private static void info() throws ApiException {
        called("LastBlockHeight", Long.parseUnsignedLong(networkApi.lastBlockHeight(null, null).getHeight()) > 0);
        called("Info", !networkApi.info(null, null).getVersion().isEmpty());
        called("GetProtocolUpgradeStatus", networkApi.getProtocolUpgradeStatus(null, null).getReady() != null);
        called("GetNetworkLimits",
            networkApi.getNetworkLimits(null, null, null, null, null).getLimits().getGenesisLoaded());
    }

    private static void query() throws Exception {
        String market = ENV.get("MARKET");
        MarketPage markets = marketsApi.listMarkets(null, null, 1, null, null, null, null, null, null, null, null, null)
            .getMarkets();
        called("ListMarkets", markets.getEdges().get(0).getNode().getState() == MarketState.MARKET_STATE_ACTIVE);
        String after = markets.getPageInfo().getEndCursor();
        marketsApi.listMarkets(null, null, 1, after, null, null, null, null, null, null, null, null);
        AssetPage assets = marketsApi.listAssets(AssetStatus.ASSET_STATUS_ENABLED, null, null, null, null, null, null, null, null)
            .getAssets();
        called("ListAssets", !assets.getEdges().get(0).getNode().getSymbol().isEmpty());
        TradePage trades = marketsApi
            .listTrades(market, null, null, null, 5, null, null, null, null, null, null, null, null, null).getTrades();
        called("ListTrades", Long.parseUnsignedLong(trades.getEdges().get(4).getNode().getSize()) > 0);
        marketsApi
            .listTrades(null, null, "2020-01-01T00:00:00Z", null, 1, null, null, null, null, null, null, null, null, null);
        PositionPage positions = accountsApi
            .listPositions(null, market, null, null, null, null, null, null, null, null, null, null).getPositions();
        called("ListPositions", Long.parseLong(positions.getEdges().get(0).getNode().getOpenVolume()) != 0);
        ListAccountsReply accounts = accountsApi
            .listAccounts(ENV.get("PARTY"), null, null, null, null, null, null, null, null, null, null, null);
        called("ListAccounts", !accounts.getAccounts().isEmpty());
        called("ListCandleIntervals", marketsApi.listCandleIntervals(market, null, null).getIntervalToCandleId().size() > 1);
        CandlePage candles = marketsApi
            .listCandleData(ENV.get("CANDLE"), null, null, 1, null, null, null, null, null, null, null, null, null).getCandles();
        called("ListCandleData", Long.parseLong(candles.getEdges().get(0).getNode().getHigh()) > 0);
        List<String> ids = List.of(ENV.get("ASSET"), "VOTE");
        EpochRewardSummaryPage rewards = accountsApi
            .listEpochRewardSummaries(ids, null, null, null, null, null, null, null, null, null, null, null, null, null)
            .getSummaries();
        called("ListEpochRewardSummaries", !rewards.getEdges().isEmpty());
        DelegationPage delegations = accountsApi
            .listDelegations(null, null, null, 2, null, null, null, null, null, null, null, null, null).getDelegations();
        called("ListDelegations", delegations.getEdges().size() == 2);
        ListProtocolUpgradeProposalsReply proposals = networkApi
            .listProtocolUpgradeProposals(null, null, null, null, null, null, null, null, null, null, null, null);
        called("ListProtocolUpgradeProposals", proposals.getProtocolUpgradeProposals().getEdges() != null);
        DataSourceDefinition source = marketsApi.getOracleSpec(ENV.get("ORACLE_SPEC"), null, null, null, null, null)
            .getOracleSpec().getExternalDataSourceSpec().getSpec().getData();
        called("GetOracleSpec", source.getExternal() != null || source.getInternal() != null);
        called("GetMarketDepth",
            marketsApi.getMarketDepth(market, null, null, null, null, null, null).getDepth().getMarketId().equals(market));
        OrderPage orders = accountsApi
            .listOrders(market, null, null, null, null, null, 1, null, null, null, null, null, null, null, null, null)
            .getOrders();
        called("ListOrders", orders.getEdges().size() == 1);
        String order = ENV.get("ORDER");
        called("GetOrder",
            accountsApi.getOrder(order, null, null, null, null, null, null).getOrder().getId().equals(order));
        Portfolio portfolio = accountsApi.getPortfolio(ENV.get("PARTY"), null, null, null, null, null).getPortfolio();
        called("GetPortfolio", !portfolio.getAccounts().isEmpty());
        DepositPage deposits = accountsApi
            .listDeposits(null, null, null, 1, null, null, null, null, null, null, null, null, null).getDeposits();
        called("ListDeposits", deposits.getEdges().size() == 1);
        WithdrawalPage withdrawals = accountsApi
            .listWithdrawals(null, null, null, 1, null, null, null, null, null, null, null, null, null).getWithdrawals();
        called("ListWithdrawals", withdrawals.getEdges().size() == 1);
        String withdrawal = ENV.get("WITHDRAWAL");
        called("GetWithdrawal",
            accountsApi.getWithdrawal(withdrawal, null, null, null, null, null).getWithdrawal().getId().equals(withdrawal));
        try {
            accountsApi.getWithdrawal("0".repeat(64), null, null, null, null, null);
            called("GetWithdrawal", false);
        } catch (ApiException refused) {
            Problem problem = Problem.fromJson(refused.getResponseBody());
            called("GetWithdrawal", problem.getDetails().get(0).getCode() == 150001);
        }
    }

    private static void export() throws Exception {
        String from = ENV.get("FROM_BLOCK");
        String to = ENV.get("TO_BLOCK");
        String party = ENV.get("PARTY");
        String asset = ENV.get("ASSET");
        String until = ENV.get("UNTIL");
        List<HistorySegment> segments = historyApi.listAllNetworkHistorySegments(null, null).getSegments();
        called("ListAllNetworkHistorySegments", !segments.get(0).getToHeight().isEmpty());
        called("ListDatasets", !historyApi.listDatasets(null, null).getDatasets().get(0).getRows().equals("0"));
        Map<String, List<String>> head = historyApi
            .headExportNetworkHistoryWithHttpInfo(from, to, Table.TABLE_TRADES, null, null, null, null).getHeaders();
        called("HeadExportNetworkHistory", !head.get("x-total-rows").get(0).equals("0"));
        Path history = historyApi.exportNetworkHistory(from, to, Table.TABLE_TRADES, null, null, null, null, null, null).toPath();
        Files.copy(history, file("history.zip"));
        called("ExportNetworkHistory", true);
        historyApi.headExportLedgerEntries(party, asset, null, until, null);
        called("HeadExportLedgerEntries", true);
        String ledger = historyApi.exportLedgerEntries(party, asset, null, until, null);
        Files.write(file("ledger.csv"), ledger.getBytes(StandardCharsets.UTF_8));
        called("ExportLedgerEntries", true);
    }

    private static void relay() throws Exception {
        CheckTransactionRequest question = CheckTransactionRequest.fromJson(Files.readString(Path.of(ENV.get("TX"))));
        called("CheckTransaction", tradingApi.checkTransaction(question, null, null).getSuccess());
        SubmitTransactionRequest submission = new SubmitTransactionRequest().tx(question.getTx())
            .type(SubmissionType.SUBMISSION_TYPE_SYNC);
        SubmitTransactionReply reply = tradingApi.submitTransaction(submission, null, null);
        called("SubmitTransaction", reply.getSuccess());
        called("GetTransaction", tradingApi.getTransaction(reply.getTxHash(), null, null).getTxHash().equals(reply.getTxHash()));
    }
}
