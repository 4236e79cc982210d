"""Every operation by openapi-generator's python client; the client's own folder is on the module path."""
import os

import openapi_client as gateway
from report import called, save

env = os.environ
client = gateway.ApiClient(gateway.Configuration(host=env["GATEWAY"]))
edge, export, info = gateway.EdgeApi(client), gateway.ExportApi(client), gateway.NodeInfoApi(client)
query, relay = gateway.QueryApi(client), gateway.TxRelayApi(client)

called("Health", len(edge.health()) > 0)
called("Limits", edge.limits().rows.page_default > 0)
called("OpenApi", edge.open_api()["openapi"].startswith("3.1"))
called("Docs", "<html" in edge.docs())
events = edge.watch_without_preload_content(read=["/api/v2/info", "/api/v2/network/limits"])
called("Watch", b"event: answer-0\n" in (events.readline() for _ in range(9)))
events.close()

called("LastBlockHeight", int(info.last_block_height().height) > 0)
called("Info", info.info().version != "")
called("GetProtocolUpgradeStatus", info.get_protocol_upgrade_status().ready is not None)
called("GetNetworkLimits", info.get_network_limits().limits.can_propose_market is not None)

first = query.list_markets(pagination_first=1).markets
called("ListMarkets", first.edges[0].node.state == gateway.MarketState.MARKET_STATE_ACTIVE)
query.list_markets(pagination_first=1, pagination_after=first.page_info.end_cursor)
called("ListAssets", query.list_assets(status=gateway.AssetStatus.ASSET_STATUS_ENABLED).assets.edges[0].node.symbol != "")
called("ListTrades", int(query.list_trades(market_id=env["MARKET"], pagination_first=5).trades.edges[4].node.size) > 0)
query.list_trades(date_range_start_timestamp="2020-01-01T00:00:00Z", pagination_first=1)
called("ListPositions", int(query.list_positions(market_id=env["MARKET"]).positions.edges[0].node.open_volume) != 0)
called("ListAccounts", len(query.list_accounts(party=env["PARTY"]).accounts) > 0)
called("ListCandleIntervals", len(query.list_candle_intervals(env["MARKET"]).interval_to_candle_id) > 1)
called("ListCandleData", int(query.list_candle_data(env["CANDLE"], pagination_first=1).candles.edges[0].node.high) > 0)
called("ListEpochRewardSummaries", len(query.list_epoch_reward_summaries(filter_asset_ids=[env["ASSET"], "VOTE"]).summaries.edges) > 0)
called("ListDelegations", len(query.list_delegations(pagination_first=2).delegations.edges) == 2)
called("ListProtocolUpgradeProposals", query.list_protocol_upgrade_proposals().protocol_upgrade_proposals.edges is not None)
spec = query.get_oracle_spec(env["ORACLE_SPEC"]).oracle_spec.external_data_source_spec.spec
called("GetOracleSpec", spec.data.external is not None or spec.data.internal is not None)
called("GetWithdrawal", query.get_withdrawal(env["WITHDRAWAL"]).withdrawal.id == env["WITHDRAWAL"])
try:
    query.get_withdrawal("0" * 64)
    called("a refusal", False)
except gateway.ApiException as refused:
    assert gateway.Problem.from_json(refused.body).details[0].code == 150001

called("ListAllNetworkHistorySegments", export.list_all_network_history_segments().segments[0].to_height != "")
history = {"from_block": env["FROM_BLOCK"], "to_block": env["TO_BLOCK"], "table": gateway.Table.TABLE_TRADES}
ledger = {"party_id": env["PARTY"], "asset_id": env["ASSET"], "date_range_end_timestamp": env["UNTIL"]}
headers = export.head_export_network_history_with_http_info(**history).headers
called("HeadExportNetworkHistory", int(headers["x-total-rows"]) > 0)
save("history.zip", export.export_network_history(**history))
called("ExportNetworkHistory")
export.head_export_ledger_entries(**ledger)
called("HeadExportLedgerEntries")
save("ledger.csv", export.export_ledger_entries(**ledger).encode())
called("ExportLedgerEntries")

with open(env["TX"]) as file:
    signed = file.read()
called("CheckTransaction", relay.check_transaction(gateway.CheckTransactionRequest.from_json(signed)).success)
submission = gateway.SubmitTransactionRequest.from_json(signed)
submission.type = gateway.SubmissionType.SUBMISSION_TYPE_SYNC
reply = relay.submit_transaction(submission)
called("SubmitTransaction", reply.success)
called("GetTransaction", relay.get_transaction(reply.tx_hash).tx_hash == reply.tx_hash)
