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
        edge(new EdgeApi(client));
        info(new NodeInfoApi(client));
        query(new QueryApi(client));
        export(new ExportApi(client));
        relay(new TxRelayApi(client));
    }

    private static void edge(EdgeApi edge) throws Exception {
        called("Health", !edge.health().isEmpty());
        called("Limits", edge.limits(null, null).getRows().getPageDefault() > 0);
        called("OpenApi", edge.openApi(null, null).get("openapi").toString().startsWith("3.1"));
        called("Docs", edge.docs(null).contains("<html"));
        try (var events = edge.watchCall(List.of("/api/v2/info", "/api/v2/network/limits"), null, null).execute()) {
            String line = events.body().source().readUtf8Line();
            while (!line.startsWith("event: ")) {
                line = events.body().source().readUtf8Line();
            }
            called("Watch", line.equals("event: answer-0"));
        }
    }

    private static void info(NodeInfoApi info) throws ApiException {
        called("LastBlockHeight", Long.parseUnsignedLong(info.lastBlockHeight(null, null).getHeight()) > 0);
        called("Info", !info.info(null, null).getVersion().isEmpty());
        called("GetProtocolUpgradeStatus", info.getProtocolUpgradeStatus(null, null).getReady() != null);
        called("GetNetworkLimits", info.getNetworkLimits(null, null, null).getLimits().getGenesisLoaded());
    }

    private static void query(QueryApi query) throws Exception {
        String market = ENV.get("MARKET");
        MarketPage markets = query.listMarkets(null, null, 1, null, null, null, null, null, null, null).getMarkets();
        called("ListMarkets", markets.getEdges().get(0).getNode().getState() == MarketState.MARKET_STATE_ACTIVE);
        String after = markets.getPageInfo().getEndCursor();
        query.listMarkets(null, null, 1, after, null, null, null, null, null, null);
        AssetPage assets = query.listAssets(AssetStatus.ASSET_STATUS_ENABLED, null, null, null, null, null, null, null, null)
            .getAssets();
        called("ListAssets", !assets.getEdges().get(0).getNode().getSymbol().isEmpty());
        TradePage trades = query.listTrades(market, null, null, null, 5, null, null, null, null, null, null, null)
            .getTrades();
        called("ListTrades", Long.parseUnsignedLong(trades.getEdges().get(4).getNode().getSize()) > 0);
        query.listTrades(null, null, "2020-01-01T00:00:00Z", null, 1, null, null, null, null, null, null, null);
        PositionPage positions = query.listPositions(null, market, null, null, null, null, null, null, null, null)
            .getPositions();
        called("ListPositions", Long.parseLong(positions.getEdges().get(0).getNode().getOpenVolume()) != 0);
        called("ListAccounts", !query.listAccounts(ENV.get("PARTY"), null, null, null, null).getAccounts().isEmpty());
        called("ListCandleIntervals", query.listCandleIntervals(market, null, null).getIntervalToCandleId().size() > 1);
        CandlePage candles = query
            .listCandleData(ENV.get("CANDLE"), null, null, 1, null, null, null, null, null, null, null).getCandles();
        called("ListCandleData", Long.parseLong(candles.getEdges().get(0).getNode().getHigh()) > 0);
        List<String> ids = List.of(ENV.get("ASSET"), "VOTE");
        EpochRewardSummaryPage rewards = query
            .listEpochRewardSummaries(ids, null, null, null, null, null, null, null, null, null, null, null).getSummaries();
        called("ListEpochRewardSummaries", !rewards.getEdges().isEmpty());
        DelegationPage delegations = query.listDelegations(null, null, null, 2, null, null, null, null, null, null, null)
            .getDelegations();
        called("ListDelegations", delegations.getEdges().size() == 2);
        ListProtocolUpgradeProposalsReply proposals = query
            .listProtocolUpgradeProposals(null, null, null, null, null, null, null, null, null, null);
        called("ListProtocolUpgradeProposals", proposals.getProtocolUpgradeProposals().getEdges() != null);
        DataSourceDefinition source = query.getOracleSpec(ENV.get("ORACLE_SPEC"), null, null, null).getOracleSpec()
            .getExternalDataSourceSpec().getSpec().getData();
        called("GetOracleSpec", source.getExternal() != null || source.getInternal() != null);
        String withdrawal = ENV.get("WITHDRAWAL");
        called("GetWithdrawal",
            query.getWithdrawal(withdrawal, null, null, null).getWithdrawal().getId().equals(withdrawal));
        try {
            query.getWithdrawal("0".repeat(64), null, null, null);
            called("GetWithdrawal", false);
        } catch (ApiException refused) {
            Problem problem = Problem.fromJson(refused.getResponseBody());
            called("GetWithdrawal", problem.getDetails().get(0).getCode() == 150001);
        }
    }

    private static void export(ExportApi export) throws Exception {
        String from = ENV.get("FROM_BLOCK");
        String to = ENV.get("TO_BLOCK");
        String party = ENV.get("PARTY");
        String asset = ENV.get("ASSET");
        String until = ENV.get("UNTIL");
        List<HistorySegment> segments = export.listAllNetworkHistorySegments(null, null).getSegments();
        called("ListAllNetworkHistorySegments", !segments.get(0).getToHeight().isEmpty());
        Map<String, List<String>> head = export
            .headExportNetworkHistoryWithHttpInfo(from, to, Table.TABLE_TRADES, null, null, null).getHeaders();
        called("HeadExportNetworkHistory", !head.get("x-total-rows").get(0).equals("0"));
        Path history = export.exportNetworkHistory(from, to, Table.TABLE_TRADES, null, null, null, null, null).toPath();
        Files.copy(history, file("history.zip"));
        called("ExportNetworkHistory", true);
        export.headExportLedgerEntries(party, asset, null, until, null);
        called("HeadExportLedgerEntries", true);
        String ledger = export.exportLedgerEntries(party, asset, null, until, null);
        Files.write(file("ledger.csv"), ledger.getBytes(StandardCharsets.UTF_8));
        called("ExportLedgerEntries", true);
    }

    private static void relay(TxRelayApi relay) throws Exception {
        CheckTransactionRequest question = CheckTransactionRequest.fromJson(Files.readString(Path.of(ENV.get("TX"))));
        called("CheckTransaction", relay.checkTransaction(question, null, null).getSuccess());
        SubmitTransactionRequest submission = new SubmitTransactionRequest().tx(question.getTx())
            .type(SubmissionType.SUBMISSION_TYPE_SYNC);
        SubmitTransactionReply reply = relay.submitTransaction(submission, null, null);
        called("SubmitTransaction", reply.getSuccess());
        called("GetTransaction", relay.getTransaction(reply.getTxHash(), null, null).getTxHash().equals(reply.getTxHash()));
    }
}
