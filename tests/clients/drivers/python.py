"""Every operation by openapi-generator's python client; the client's own folder is on the module path."""
import os

import openapi_client as gateway
from report import called, save

env = os.environ
client = gateway.ApiClient(gateway.Configuration(host=env["GATEWAY"]))
markets_api, accounts_api = gateway.MarketsApi(client), gateway.AccountsApi(client)
trading_api, network_api = gateway.TradingApi(client), gateway.NetworkApi(client)
history_api, gateway_api = gateway.HistoryApi(client), gateway.GatewayApi(client)

called("Health", len(gateway_api.health()) > 0)
called("Limits", gateway_api.limits().rows.page_default > 0)
called("OpenApi", gateway_api.open_api()["openapi"].startswith("3.1"))
called("Docs", "<html" in gateway_api.docs())
events = gateway_api.watch_without_preload_content(read=["/api/v2/info", "/api/v2/network/limits"])
called("Watch", b"event: answer-0\n" in (events.readline() for _ in range(9)))
events.close()

called("LastBlockHeight", int(network_api.last_block_height().height) > 0)
called("Info", network_api.info().version != "")
called("GetProtocolUpgradeStatus", network_api.get_protocol_upgrade_status().ready is not None)
called("GetNetworkLimits", network_api.get_network_limits().limits.can_propose_market is not None)

first = markets_api.list_markets(pagination_first=1).markets
called("ListMarkets", first.edges[0].node.state == gateway.MarketState.MARKET_STATE_ACTIVE)
markets_api.list_markets(pagination_first=1, pagination_after=first.page_info.end_cursor)
called("ListAssets", markets_api.list_assets(status=gateway.AssetStatus.ASSET_STATUS_ENABLED).assets.edges[0].node.symbol != "")
called("ListTrades", int(markets_api.list_trades(market_id=env["MARKET"], pagination_first=5).trades.edges[4].node.size) > 0)
markets_api.list_trades(date_range_start_timestamp="2020-01-01T00:00:00Z", pagination_first=1)
called("ListPositions", int(accounts_api.list_positions(market_id=env["MARKET"]).positions.edges[0].node.open_volume) != 0)
called("ListAccounts", len(accounts_api.list_accounts(party=env["PARTY"]).accounts) > 0)
called("ListCandleIntervals", len(markets_api.list_candle_intervals(env["MARKET"]).interval_to_candle_id) > 1)
called("ListCandleData", int(markets_api.list_candle_data(env["CANDLE"], pagination_first=1).candles.edges[0].node.high) > 0)
called("ListEpochRewardSummaries", len(accounts_api.list_epoch_reward_summaries(filter_asset_ids=[env["ASSET"], "VOTE"]).summaries.edges) > 0)
called("ListDelegations", len(accounts_api.list_delegations(pagination_first=2).delegations.edges) == 2)
called("ListProtocolUpgradeProposals", network_api.list_protocol_upgrade_proposals().protocol_upgrade_proposals.edges is not None)
spec = markets_api.get_oracle_spec(env["ORACLE_SPEC"]).oracle_spec.external_data_source_spec.spec
called("GetOracleSpec", spec.data.external is not None or spec.data.internal is not None)
depth = markets_api.get_market_depth(env["MARKET"]).depth
called("GetMarketDepth", depth.market_id == env["MARKET"])
called("ListOrders", len(accounts_api.list_orders(market_id=env["MARKET"], pagination_first=1).orders.edges) == 1)
called("GetOrder", accounts_api.get_order(env["ORDER"]).order.id == env["ORDER"])
called("GetPortfolio", len(accounts_api.get_portfolio(env["PARTY"]).portfolio.accounts) > 0)
called("ListDeposits", len(accounts_api.list_deposits(pagination_first=1).deposits.edges) == 1)
called("ListWithdrawals", len(accounts_api.list_withdrawals(pagination_first=1).withdrawals.edges) == 1)
called("GetWithdrawal", accounts_api.get_withdrawal(env["WITHDRAWAL"]).withdrawal.id == env["WITHDRAWAL"])
try:
    accounts_api.get_withdrawal("0" * 64)
    called("a refusal", False)
except gateway.ApiException as refused:
    assert gateway.Problem.from_json(refused.body).details[0].code == 150001

called("ListAllNetworkHistorySegments", history_api.list_all_network_history_segments().segments[0].to_height != "")
called("ListDatasets", int(history_api.list_datasets().datasets[0].rows) > 0)
history = {"from_block": env["FROM_BLOCK"], "to_block": env["TO_BLOCK"], "table": gateway.Table.TABLE_TRADES}
ledger = {"party_id": env["PARTY"], "asset_id": env["ASSET"], "date_range_end_timestamp": env["UNTIL"]}
headers = history_api.head_export_network_history_with_http_info(**history).headers
called("HeadExportNetworkHistory", int(headers["x-total-rows"]) > 0)
save("history.zip", history_api.export_network_history(**history))
called("ExportNetworkHistory")
history_api.head_export_ledger_entries(**ledger)
called("HeadExportLedgerEntries")
save("ledger.csv", history_api.export_ledger_entries(**ledger).encode())
called("ExportLedgerEntries")

with open(env["TX"]) as file:
    signed = file.read()
called("CheckTransaction", trading_api.check_transaction(gateway.CheckTransactionRequest.from_json(signed)).success)
submission = gateway.SubmitTransactionRequest.from_json(signed)
submission.type = gateway.SubmissionType.SUBMISSION_TYPE_SYNC
reply = trading_api.submit_transaction(submission)
called("SubmitTransaction", reply.success)
called("GetTransaction", trading_api.get_transaction(reply.tx_hash).tx_hash == reply.tx_hash)
