"""Every operation by openapi-python-client's client; the client's own folder is on the module path."""
import json
import os

from report import called, save
from tradewind_client import Client, models
from tradewind_client.api.accounts import (
    get_order, get_portfolio, get_withdrawal, list_accounts, list_delegations, list_deposits, list_epoch_reward_summaries,
    list_orders, list_positions, list_withdrawals,
)
from tradewind_client.api.gateway import docs, health, limits, open_api
from tradewind_client.api.history import (
    export_ledger_entries, export_network_history, head_export_ledger_entries, head_export_network_history,
    list_all_network_history_segments, list_datasets,
)
from tradewind_client.api.markets import (
    get_market_depth, get_oracle_spec, list_assets, list_candle_data, list_candle_intervals, list_markets, list_trades,
)
from tradewind_client.api.network import (
    get_network_limits, get_protocol_upgrade_status, info, last_block_height, list_protocol_upgrade_proposals,
)
from tradewind_client.api.trading import check_transaction, get_transaction, submit_transaction

env = os.environ
client = Client(base_url=env["GATEWAY"], timeout=60)

called("Health", len(health.sync(client=client)) > 0)
called("Limits", limits.sync(client=client).rows.page_default > 0)
called("OpenApi", open_api.sync(client=client)["openapi"].startswith("3.1"))
called("Docs", "<html" in docs.sync(client=client))
print("skipped Watch: the client reads an answer to its end before it returns")

called("LastBlockHeight", int(last_block_height.sync(client=client).height) > 0)
called("Info", info.sync(client=client).version != "")
called("GetProtocolUpgradeStatus", get_protocol_upgrade_status.sync(client=client).ready is not None)
called("GetNetworkLimits", get_network_limits.sync(client=client).limits.genesis_loaded)

first = list_markets.sync(client=client, pagination_first=1).markets
called("ListMarkets", first.edges[0].node.state == models.MarketState.MARKET_STATE_ACTIVE)
list_markets.sync(client=client, pagination_first=1, pagination_after=first.page_info.end_cursor)
assets = list_assets.sync(client=client, status=models.AssetStatus.ASSET_STATUS_ENABLED).assets
called("ListAssets", assets.edges[0].node.symbol != "")
called("ListTrades", int(list_trades.sync(client=client, market_id=env["MARKET"], pagination_first=5).trades.edges[4].node.size) > 0)
since = list_trades.sync(client=client, date_range_start_timestamp="2020-01-01T00:00:00Z", pagination_first=1)
called("ListTrades", len(since.trades.edges) == 1)
positions = list_positions.sync(client=client, market_id=env["MARKET"]).positions
called("ListPositions", int(positions.edges[0].node.open_volume) != 0)
called("ListAccounts", len(list_accounts.sync(client=client, party=env["PARTY"]).accounts) > 0)
intervals = list_candle_intervals.sync(client=client, market_id=env["MARKET"])
called("ListCandleIntervals", len(intervals.interval_to_candle_id) > 1)
candles = list_candle_data.sync(client=client, candle_id=env["CANDLE"], pagination_first=1).candles
called("ListCandleData", int(candles.edges[0].node.high) > 0)
rewards = list_epoch_reward_summaries.sync(client=client, filter_asset_ids=[env["ASSET"], "VOTE"])
called("ListEpochRewardSummaries", len(rewards.summaries.edges) > 0)
called("ListDelegations", len(list_delegations.sync(client=client, pagination_first=2).delegations.edges) == 2)
proposals = list_protocol_upgrade_proposals.sync(client=client)
called("ListProtocolUpgradeProposals", proposals.protocol_upgrade_proposals.edges is not None)
spec = get_oracle_spec.sync(env["ORACLE_SPEC"], client=client).oracle_spec.external_data_source_spec.spec
called("GetOracleSpec", bool(spec.data.external) or bool(spec.data.internal))
called("GetMarketDepth", get_market_depth.sync(env["MARKET"], client=client).depth.market_id == env["MARKET"])
orders = list_orders.sync(client=client, market_id=env["MARKET"], pagination_first=1).orders
called("ListOrders", len(orders.edges) == 1)
called("GetOrder", get_order.sync(env["ORDER"], client=client).order.id == env["ORDER"])
called("GetPortfolio", len(get_portfolio.sync(env["PARTY"], client=client).portfolio.accounts) > 0)
called("ListDeposits", len(list_deposits.sync(client=client, pagination_first=1).deposits.edges) == 1)
called("ListWithdrawals", len(list_withdrawals.sync(client=client, pagination_first=1).withdrawals.edges) == 1)
called("GetWithdrawal", get_withdrawal.sync(env["WITHDRAWAL"], client=client).withdrawal.id == env["WITHDRAWAL"])
called("GetWithdrawal", get_withdrawal.sync("0" * 64, client=client).details[0].code == 150001)

segments = list_all_network_history_segments.sync(client=client).segments
called("ListAllNetworkHistorySegments", segments[0].to_height != "")
called("ListDatasets", int(list_datasets.sync(client=client).datasets[0].rows) > 0)
history = {"from_block": env["FROM_BLOCK"], "to_block": env["TO_BLOCK"], "table": models.Table.TABLE_TRADES}
ledger = {"party_id": env["PARTY"], "asset_id": env["ASSET"], "date_range_end_timestamp": env["UNTIL"]}
head = head_export_network_history.sync_detailed(client=client, **history)
called("HeadExportNetworkHistory", int(head.headers["X-Total-Rows"]) > 0)
# It decodes no media type that it does not know; the bytes are there all the same.
save("history.zip", export_network_history.sync_detailed(client=client, **history).content)
called("ExportNetworkHistory")
called("HeadExportLedgerEntries", head_export_ledger_entries.sync_detailed(client=client, **ledger).status_code == 200)
save("ledger.csv", export_ledger_entries.sync(client=client, **ledger).encode())
called("ExportLedgerEntries")

with open(env["TX"]) as file:
    signed = json.load(file)
question = models.CheckTransactionRequest.from_dict(signed)
called("CheckTransaction", check_transaction.sync(client=client, body=question).success)
submission = models.SubmitTransactionRequest(tx=question.tx, type_=models.SubmissionType.SUBMISSION_TYPE_SYNC)
reply = submit_transaction.sync(client=client, body=submission)
called("SubmitTransaction", reply.success)
called("GetTransaction", get_transaction.sync(reply.tx_hash, client=client).tx_hash == reply.tx_hash)
