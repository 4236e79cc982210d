-- What the columns of the exportable tables hold, with units and the meaning of numbers: psql shows it (`\d+ trades`), and
-- docs/tables.md is made of it. A comment changes no export.
--
-- Prices are integers to be divided by 10 to the power of the market's decimal_places, sizes by that of its
-- position_decimal_places, amounts by that of the asset's decimals.

COMMENT ON TABLE balances IS 'Balance of an account after each block that changed it.';
COMMENT ON COLUMN balances.account_id IS
    'Account; its party, asset, market and type are in no export: join the ledger download, or `currentstate/accounts.csv` of a segment';
COMMENT ON COLUMN balances.balance IS 'Amount in the smallest unit of the account''s asset';

COMMENT ON TABLE blocks IS 'Every block.';
COMMENT ON COLUMN blocks.height IS 'Height, from 1 on, without gaps';
COMMENT ON COLUMN blocks.hash IS 'Hash of the block, 64 hex digits';

COMMENT ON TABLE checkpoints IS 'Checkpoints of the network''s state that the nodes agreed on.';
COMMENT ON COLUMN checkpoints.hash IS 'Hash of the checkpoint';
COMMENT ON COLUMN checkpoints.block_hash IS
    'Hash of the block it was made at, as the network writes it (upper or lower case)';
COMMENT ON COLUMN checkpoints.block_height IS 'Height of the block it was made at';

COMMENT ON TABLE delegations IS 'What a party delegates to a node in an epoch, from the change on.';
COMMENT ON COLUMN delegations.party_id IS 'Party that delegates';
COMMENT ON COLUMN delegations.node_id IS 'Node (validator) that it delegates to';
COMMENT ON COLUMN delegations.epoch_id IS 'Epoch';
COMMENT ON COLUMN delegations.amount IS 'Amount in the staking asset''s smallest unit; 0 = no longer';

COMMENT ON TABLE deposits IS 'Deposits from other chains, one row per change of a deposit.';
COMMENT ON COLUMN deposits.id IS 'Deposit';
COMMENT ON COLUMN deposits.status IS 'Where it stands';
COMMENT ON COLUMN deposits.party_id IS 'Party that receives';
COMMENT ON COLUMN deposits.asset IS 'Asset';
COMMENT ON COLUMN deposits.amount IS 'Amount in the asset''s smallest unit';
COMMENT ON COLUMN deposits.foreign_tx_hash IS 'Hash of the transaction on the other chain; empty until known';
COMMENT ON COLUMN deposits.credited_timestamp IS 'When it was credited; 1970-01-01 until then';
COMMENT ON COLUMN deposits.created_timestamp IS 'When it was announced';

COMMENT ON TABLE ledger IS 'Every movement between two accounts.';
COMMENT ON COLUMN ledger.ledger_entry_time IS
    'Block time plus the place in the block in microseconds: unique, in the order of the movements';
COMMENT ON COLUMN ledger.account_from_id IS 'Account that gave';
COMMENT ON COLUMN ledger.account_to_id IS 'Account that received';
COMMENT ON COLUMN ledger.quantity IS 'Amount in the asset''s smallest unit';
COMMENT ON COLUMN ledger.transfer_time IS 'When the transfer was ordered';
COMMENT ON COLUMN ledger.account_from_balance IS
    'Balance of the account that gave, afterwards, in the asset''s smallest unit';
COMMENT ON COLUMN ledger.account_to_balance IS
    'Balance of the account that received, afterwards, in the asset''s smallest unit';
COMMENT ON COLUMN ledger.type IS 'Why: TRANSFER_TYPE_DEPOSIT, TRANSFER_TYPE_MAKER_FEE_PAY …';

COMMENT ON TABLE liquidity_provisions IS 'Commitments to provide liquidity, one row per change of a commitment.';
COMMENT ON COLUMN liquidity_provisions.id IS 'Commitment';
COMMENT ON COLUMN liquidity_provisions.party_id IS 'Party that commits itself';
COMMENT ON COLUMN liquidity_provisions.created_at IS 'When it was made';
COMMENT ON COLUMN liquidity_provisions.updated_at IS 'When it was changed; 1970-01-01 = never';
COMMENT ON COLUMN liquidity_provisions.market_id IS 'Market';
COMMENT ON COLUMN liquidity_provisions.commitment_amount IS 'Amount in the smallest unit of the market''s settlement asset';
COMMENT ON COLUMN liquidity_provisions.fee IS 'Fee that the party asks for, as a share: 0.001 = 0.1 %';
COMMENT ON COLUMN liquidity_provisions.sells IS 'Shape of the selling orders (JSON)';
COMMENT ON COLUMN liquidity_provisions.buys IS 'Shape of the buying orders (JSON)';
COMMENT ON COLUMN liquidity_provisions.version IS 'Number of the change, from 1 on';
COMMENT ON COLUMN liquidity_provisions.status IS 'Where it stands';
COMMENT ON COLUMN liquidity_provisions.reference IS 'Text of the party''s own';

COMMENT ON TABLE margin_levels IS 'Margins that a position needs, after each block that changed them.';
COMMENT ON COLUMN margin_levels.account_id IS 'Margin account of the party in the market';
COMMENT ON COLUMN margin_levels."timestamp" IS 'When they were computed';
COMMENT ON COLUMN margin_levels.maintenance_margin IS
    'Below this the position is closed out; amount in the settlement asset''s smallest unit';
COMMENT ON COLUMN margin_levels.search_level IS
    'Below this more is taken from the general account; amount in the settlement asset''s smallest unit';
COMMENT ON COLUMN margin_levels.initial_margin IS
    'What a new position needs; amount in the settlement asset''s smallest unit';
COMMENT ON COLUMN margin_levels.collateral_release_level IS
    'What is above this goes back to the general account; amount in the settlement asset''s smallest unit';

COMMENT ON TABLE market_data IS 'Prices and auctions of a market, one row per change.';
COMMENT ON COLUMN market_data.synthetic_time IS 'Block time plus seq_num in microseconds: unique';
COMMENT ON COLUMN market_data.market IS 'Market';
COMMENT ON COLUMN market_data.mark_price IS 'Price at which positions are valued';
COMMENT ON COLUMN market_data.best_bid_price IS 'Highest price that is bid; 0 = none';
COMMENT ON COLUMN market_data.best_bid_volume IS 'Size that is bid at it';
COMMENT ON COLUMN market_data.best_offer_price IS 'Lowest price that is asked; 0 = none';
COMMENT ON COLUMN market_data.best_offer_volume IS 'Size that is offered at it';
COMMENT ON COLUMN market_data.best_static_bid_price IS 'Highest bid without pegged orders; 0 = none';
COMMENT ON COLUMN market_data.best_static_bid_volume IS 'Size that is bid at it';
COMMENT ON COLUMN market_data.best_static_offer_price IS 'Lowest offer without pegged orders; 0 = none';
COMMENT ON COLUMN market_data.best_static_offer_volume IS 'Size that is offered at it';
COMMENT ON COLUMN market_data.mid_price IS 'Middle of best bid and best offer, a price; 0 = none';
COMMENT ON COLUMN market_data.static_mid_price IS 'Middle of the static ones, a price; 0 = none';
COMMENT ON COLUMN market_data.open_interest IS 'Sum of the long positions, a size';
COMMENT ON COLUMN market_data.auction_end IS 'When the auction ends, nanoseconds since the Unix epoch; 0 = none is running';
COMMENT ON COLUMN market_data.auction_start IS
    'When the auction began, nanoseconds since the Unix epoch; 0 = none is running';
COMMENT ON COLUMN market_data.indicative_price IS 'Price at which the auction would end now; 0 = none';
COMMENT ON COLUMN market_data.indicative_volume IS 'Size that would be traded then';
COMMENT ON COLUMN market_data.market_trading_mode IS 'How the market trades';
COMMENT ON COLUMN market_data.auction_trigger IS 'Why it is in an auction';
COMMENT ON COLUMN market_data.extension_trigger IS 'Why the auction was extended';
COMMENT ON COLUMN market_data.target_stake IS
    'Commitment that the market needs, amount in the settlement asset''s smallest unit';
COMMENT ON COLUMN market_data.supplied_stake IS 'Commitment that it has, amount in the settlement asset''s smallest unit';
COMMENT ON COLUMN market_data.price_monitoring_bounds IS
    'Prices beyond which an auction begins (JSON list, or the JSON value null)';
COMMENT ON COLUMN market_data.market_value_proxy IS
    'Estimated value of the market, amount in the settlement asset''s smallest unit, as a text';
COMMENT ON COLUMN market_data.liquidity_provider_fee_shares IS
    'How liquidity fees are shared (JSON list, or the JSON value null)';
COMMENT ON COLUMN market_data.market_state IS 'Where the market stands';
COMMENT ON COLUMN market_data.next_mark_to_market IS 'When positions are settled next';

COMMENT ON TABLE markets IS 'Definitions of markets, one row per change of a market.';
COMMENT ON COLUMN markets.id IS 'Market';
COMMENT ON COLUMN markets.instrument_id IS 'Id of the instrument; often empty';
COMMENT ON COLUMN markets.tradable_instrument IS
    'The instrument (JSON): code, name, settlement asset, quote name, risk model';
COMMENT ON COLUMN markets.decimal_places IS 'Decimal places of its prices';
COMMENT ON COLUMN markets.fees IS 'Fee factors (JSON)';
COMMENT ON COLUMN markets.opening_auction IS 'Length of the opening auction (JSON)';
COMMENT ON COLUMN markets.price_monitoring_settings IS 'When prices begin an auction (JSON)';
COMMENT ON COLUMN markets.liquidity_monitoring_parameters IS 'When missing liquidity begins an auction (JSON)';
COMMENT ON COLUMN markets.trading_mode IS 'How it trades';
COMMENT ON COLUMN markets.state IS 'Where it stands';
COMMENT ON COLUMN markets.market_timestamps IS 'proposed, pending, open, close in nanoseconds since the Unix epoch (JSON)';
COMMENT ON COLUMN markets.position_decimal_places IS 'Decimal places of its sizes; negative = sizes count tens, hundreds …';
COMMENT ON COLUMN markets.lp_price_range IS 'Range around the mid price in which liquidity counts, a share';
COMMENT ON COLUMN markets.quadratic_slippage_factor IS 'Factor of the margin';
COMMENT ON COLUMN markets.linear_slippage_factor IS 'Factor of the margin';

COMMENT ON TABLE orders IS 'Orders, one row per change of an order.';
COMMENT ON COLUMN orders.id IS 'Order';
COMMENT ON COLUMN orders.market_id IS 'Market';
COMMENT ON COLUMN orders.party_id IS 'Party that ordered';
COMMENT ON COLUMN orders.side IS '0 unspecified, 1 buy, 2 sell';
COMMENT ON COLUMN orders.price IS 'Price';
COMMENT ON COLUMN orders.size IS 'Size that was ordered';
COMMENT ON COLUMN orders.remaining IS 'Size that is left';
COMMENT ON COLUMN orders.time_in_force IS
    '0 unspecified, 1 GTC until cancelled, 2 GTT until expires_at, 3 IOC at once or not, 4 FOK whole or not, 5 '
    'GFA for auctions, 6 GFN for continuous trading';
COMMENT ON COLUMN orders.type IS '0 unspecified, 1 limit, 2 market, 3 network';
COMMENT ON COLUMN orders.status IS
    '0 unspecified, 1 active, 2 expired, 3 cancelled, 4 stopped, 5 filled, 6 rejected, 7 partially filled, 8 parked';
COMMENT ON COLUMN orders.reference IS 'Text of the party''s own';
COMMENT ON COLUMN orders.reason IS
    'Why it was refused, 0 = it was not: 0 UNSPECIFIED, 1 INVALID_MARKET_ID, 2 INVALID_ORDER_ID, 3 '
    'OUT_OF_SEQUENCE, 4 INVALID_REMAINING_SIZE, 5 TIME_FAILURE, 6 REMOVAL_FAILURE, 7 '
    'INVALID_EXPIRATION_DATETIME, 8 INVALID_ORDER_REFERENCE, 9 EDIT_NOT_ALLOWED, 10 AMEND_FAILURE, 11 '
    'NOT_FOUND, 12 INVALID_PARTY_ID, 13 MARKET_CLOSED, 14 MARGIN_CHECK_FAILED, 15 MISSING_GENERAL_ACCOUNT, 16 '
    'INTERNAL_ERROR, 17 INVALID_SIZE, 18 INVALID_PERSISTENCE, 19 INVALID_TYPE, 20 SELF_TRADING, 21 '
    'INSUFFICIENT_FUNDS_TO_PAY_FEES, 22 INCORRECT_MARKET_TYPE, 23 INVALID_TIME_IN_FORCE, 24 '
    'CANNOT_SEND_GFN_ORDER_DURING_AN_AUCTION, 25 CANNOT_SEND_GFA_ORDER_DURING_CONTINUOUS_TRADING, 26 '
    'CANNOT_AMEND_TO_GTT_WITHOUT_EXPIRYAT, 27 EXPIRYAT_BEFORE_CREATEDAT, 28 CANNOT_HAVE_GTC_AND_EXPIRYAT, 29 '
    'CANNOT_AMEND_TO_FOK_OR_IOC, 30 CANNOT_AMEND_TO_GFA_OR_GFN, 31 CANNOT_AMEND_FROM_GFA_OR_GFN, 32 '
    'CANNOT_SEND_IOC_ORDER_DURING_AUCTION, 33 CANNOT_SEND_FOK_ORDER_DURING_AUCTION, 34 MUST_BE_LIMIT_ORDER, 35 '
    'MUST_BE_GTT_OR_GTC, 36 WITHOUT_REFERENCE_PRICE, 37 BUY_CANNOT_REFERENCE_BEST_ASK_PRICE, 40 '
    'OFFSET_MUST_BE_GREATER_OR_EQUAL_TO_ZERO, 41 SELL_CANNOT_REFERENCE_BEST_BID_PRICE, 42 '
    'OFFSET_MUST_BE_GREATER_THAN_ZERO, 43 INSUFFICIENT_ASSET_BALANCE, 44 '
    'CANNOT_AMEND_PEGGED_ORDER_DETAILS_ON_NON_PEGGED_ORDER, 45 UNABLE_TO_REPRICE_PEGGED_ORDER, 46 '
    'UNABLE_TO_AMEND_PRICE_ON_PEGGED_ORDER, 47 NON_PERSISTENT_ORDER_OUT_OF_PRICE_BOUNDS, 48 '
    'TOO_MANY_PEGGED_ORDERS, 49 POST_ONLY_ORDER_WOULD_TRADE, 50 REDUCE_ONLY_ORDER_WOULD_NOT_REDUCE_POSITION';
COMMENT ON COLUMN orders.version IS 'Number of the change, from 1 on';
COMMENT ON COLUMN orders.batch_id IS 'Which batch of the block it came in';
COMMENT ON COLUMN orders.pegged_offset IS 'Distance to the pegged price, a price';
COMMENT ON COLUMN orders.pegged_reference IS '0 not pegged, 1 mid, 2 best bid, 3 best ask';
COMMENT ON COLUMN orders.lp_id IS 'Commitment that made it; empty = a party''s own order';
COMMENT ON COLUMN orders.created_at IS 'When it was made';
COMMENT ON COLUMN orders.updated_at IS 'When it was changed; 1970-01-01 or NULL = never';
COMMENT ON COLUMN orders.expires_at IS 'When it expires; 1970-01-01 or NULL = never';
COMMENT ON COLUMN orders.post_only IS 'Whether it may only rest in the book';
COMMENT ON COLUMN orders.reduce_only IS 'Whether it may only make a position smaller';

COMMENT ON TABLE positions IS 'What a party holds in a market, after each block that changed it. The columns before tx_hash are as of the last settlement, the pending ones as of the last trade.';
COMMENT ON COLUMN positions.market_id IS 'Market';
COMMENT ON COLUMN positions.party_id IS 'Party';
COMMENT ON COLUMN positions.open_volume IS 'Size; negative = sold';
COMMENT ON COLUMN positions.realised_pnl IS
    'Profit of what was closed, amount in the settlement asset''s smallest unit, with a fraction';
COMMENT ON COLUMN positions.unrealised_pnl IS
    'Profit of what is open at the mark price, amount in the settlement asset''s smallest unit, with a fraction';
COMMENT ON COLUMN positions.average_entry_price IS
    'Average price of what is open, with the decimals of the settlement asset';
COMMENT ON COLUMN positions.average_entry_market_price IS 'Average price of what is open, with the decimals of the market';
COMMENT ON COLUMN positions.loss IS
    'What the party lost because others could not pay, amount in the settlement asset''s smallest unit';
COMMENT ON COLUMN positions.adjustment IS 'What the party could not pay, amount in the settlement asset''s smallest unit';
COMMENT ON COLUMN positions.pending_open_volume IS 'As open_volume';
COMMENT ON COLUMN positions.pending_realised_pnl IS 'As realised_pnl';
COMMENT ON COLUMN positions.pending_unrealised_pnl IS 'As unrealised_pnl';
COMMENT ON COLUMN positions.pending_average_entry_price IS 'As average_entry_price';
COMMENT ON COLUMN positions.pending_average_entry_market_price IS 'As average_entry_market_price';
COMMENT ON COLUMN positions.loss_socialisation_amount IS
    'Share of the losses of others, amount in the settlement asset''s smallest unit';
COMMENT ON COLUMN positions.distressed_status IS 'Whether it is being closed out';

COMMENT ON TABLE rewards IS 'What parties were paid.';
COMMENT ON COLUMN rewards.party_id IS 'Party that was paid';
COMMENT ON COLUMN rewards.asset_id IS 'Asset';
COMMENT ON COLUMN rewards.market_id IS 'Market that the reward is tied to; empty = none';
COMMENT ON COLUMN rewards.reward_type IS 'What for: ACCOUNT_TYPE_FEES_INFRASTRUCTURE, ACCOUNT_TYPE_GLOBAL_REWARD …';
COMMENT ON COLUMN rewards.epoch_id IS 'Epoch';
COMMENT ON COLUMN rewards.amount IS 'Amount in the asset''s smallest unit';
COMMENT ON COLUMN rewards.percent_of_total IS 'Share of all that was paid of the kind, 0 to 100';
COMMENT ON COLUMN rewards."timestamp" IS 'When it was paid';

COMMENT ON TABLE trades IS 'Every trade.';
COMMENT ON COLUMN trades.synthetic_time IS 'Block time plus seq_num in microseconds: unique, in the order of the trades';
COMMENT ON COLUMN trades.id IS 'Trade';
COMMENT ON COLUMN trades.market_id IS 'Market';
COMMENT ON COLUMN trades.price IS 'Price';
COMMENT ON COLUMN trades.size IS 'Size';
COMMENT ON COLUMN trades.buyer IS 'Party that bought';
COMMENT ON COLUMN trades.seller IS 'Party that sold';
COMMENT ON COLUMN trades.aggressor IS '0 unspecified, 1 buy, 2 sell: whose order met the other one''s';
COMMENT ON COLUMN trades.buy_order IS 'Order of the buyer';
COMMENT ON COLUMN trades.sell_order IS 'Order of the seller';
COMMENT ON COLUMN trades.type IS
    '0 unspecified, 1 between two orders, 2 with the network at a close-out, 3 of the party that was closed out';
COMMENT ON COLUMN trades.buyer_maker_fee IS 'Amount in the settlement asset''s smallest unit';
COMMENT ON COLUMN trades.buyer_infrastructure_fee IS 'Amount in the settlement asset''s smallest unit';
COMMENT ON COLUMN trades.buyer_liquidity_fee IS 'Amount in the settlement asset''s smallest unit';
COMMENT ON COLUMN trades.seller_maker_fee IS 'Amount in the settlement asset''s smallest unit';
COMMENT ON COLUMN trades.seller_infrastructure_fee IS 'Amount in the settlement asset''s smallest unit';
COMMENT ON COLUMN trades.seller_liquidity_fee IS 'Amount in the settlement asset''s smallest unit';
COMMENT ON COLUMN trades.buyer_auction_batch IS 'Batch of the buyer''s order in an auction';
COMMENT ON COLUMN trades.seller_auction_batch IS 'Batch of the seller''s order in an auction';

COMMENT ON TABLE withdrawals IS 'Withdrawals to other chains, one row per change of a withdrawal.';
COMMENT ON COLUMN withdrawals.id IS 'Withdrawal';
COMMENT ON COLUMN withdrawals.party_id IS 'Party that withdraws';
COMMENT ON COLUMN withdrawals.amount IS 'Amount in the asset''s smallest unit';
COMMENT ON COLUMN withdrawals.asset IS 'Asset';
COMMENT ON COLUMN withdrawals.status IS 'Where it stands';
COMMENT ON COLUMN withdrawals.ref IS 'Reference that the other chain''s contract uses';
COMMENT ON COLUMN withdrawals.foreign_tx_hash IS 'Hash of the transaction on the other chain; empty until known';
COMMENT ON COLUMN withdrawals.created_timestamp IS 'When it was asked for';
COMMENT ON COLUMN withdrawals.withdrawn_timestamp IS 'When it was done; 1970-01-01 until then';
COMMENT ON COLUMN withdrawals.ext IS 'Facts for the other chain (JSON): {"erc20": {"receiverAddress": …}}, or {}';

-- What every table has.
DO $comments$
DECLARE
    named record;
BEGIN
    FOR named IN
        SELECT attrelid::regclass AS relation, attname AS name,
            CASE attname
                WHEN 'block_time' THEN 'Time of the block in which the row was written, unique per block: `blocks` has its height'
                WHEN 'tx_hash' THEN 'Transaction that caused it, 64 hex digits; empty = none did'
                WHEN 'seq_num' THEN 'Place of the event in its block, from 0 on'
            END AS comment
        FROM pg_attribute
        WHERE attname IN ('block_time', 'tx_hash', 'seq_num') AND attrelid = ANY (ARRAY[
            'balances', 'blocks', 'checkpoints', 'delegations', 'deposits', 'ledger', 'liquidity_provisions', 'margin_levels',
            'market_data', 'markets', 'orders', 'positions', 'rewards', 'trades', 'withdrawals']::regclass[])
    LOOP
        EXECUTE format('COMMENT ON COLUMN %s.%I IS %L', named.relation, named.name, named.comment);
    END LOOP;
END
$comments$;
