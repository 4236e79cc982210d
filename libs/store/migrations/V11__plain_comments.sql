-- Comments of V7 in plainer words. A comment changes no export.

COMMENT ON TABLE delegations IS 'Amount that a party delegates to a node from the epoch on, one row per change.';
COMMENT ON COLUMN delegations.amount IS 'Amount in the staking asset''s smallest unit; 0 = the delegation has ended';
COMMENT ON COLUMN deposits.status IS 'Status';
COMMENT ON COLUMN deposits.credited_timestamp IS 'Time of the credit; 1970-01-01 until then';
COMMENT ON COLUMN deposits.created_timestamp IS 'Time of the announcement';
COMMENT ON COLUMN ledger.account_from_id IS 'Account that was debited';
COMMENT ON COLUMN ledger.account_to_id IS 'Account that was credited';
COMMENT ON COLUMN ledger.transfer_time IS 'Time of the transfer''s order';
COMMENT ON COLUMN ledger.ledger_entry_time IS
    'Block time plus the position in the block in microseconds: unique, in the order of the movements';
COMMENT ON COLUMN ledger.account_from_balance IS
    'Balance of the debited account after the movement, in the asset''s smallest unit';
COMMENT ON COLUMN ledger.account_to_balance IS
    'Balance of the credited account after the movement, in the asset''s smallest unit';
COMMENT ON COLUMN ledger.type IS 'Reason: TRANSFER_TYPE_DEPOSIT, TRANSFER_TYPE_MAKER_FEE_PAY …';
COMMENT ON COLUMN liquidity_provisions.created_at IS 'Time of creation';
COMMENT ON COLUMN liquidity_provisions.updated_at IS 'Time of the last change; 1970-01-01 = none';
COMMENT ON COLUMN liquidity_provisions.fee IS 'Fee that the party requests, as a share: 0.001 = 0.1 %';
COMMENT ON COLUMN liquidity_provisions.status IS 'Status';
COMMENT ON COLUMN liquidity_provisions.reference IS 'Text that the party chose';
COMMENT ON COLUMN margin_levels."timestamp" IS 'Time of the computation';
COMMENT ON COLUMN margin_levels.maintenance_margin IS
    'Below this the position is closed out; amount in the settlement asset''s smallest unit';
COMMENT ON COLUMN margin_levels.search_level IS
    'Below this, margin is added from the general account; amount in the settlement asset''s smallest unit';
COMMENT ON COLUMN margin_levels.initial_margin IS
    'Margin that a new position needs; amount in the settlement asset''s smallest unit';
COMMENT ON COLUMN margin_levels.collateral_release_level IS
    'The excess above this is returned to the general account; amount in the settlement asset''s smallest unit';
COMMENT ON COLUMN market_data.best_bid_price IS 'Highest bid; 0 = none';
COMMENT ON COLUMN market_data.best_bid_volume IS 'Size at the highest bid';
COMMENT ON COLUMN market_data.best_offer_price IS 'Lowest offer; 0 = none';
COMMENT ON COLUMN market_data.best_offer_volume IS 'Size at the lowest offer';
COMMENT ON COLUMN market_data.best_static_bid_volume IS 'Size at the highest bid without pegged orders';
COMMENT ON COLUMN market_data.best_static_offer_volume IS 'Size at the lowest offer without pegged orders';
COMMENT ON COLUMN market_data.indicative_volume IS 'Size that would be traded at the indicative price';
COMMENT ON COLUMN market_data.market_trading_mode IS 'Trading mode';
COMMENT ON COLUMN market_data.auction_trigger IS 'Reason of the auction';
COMMENT ON COLUMN market_data.extension_trigger IS 'Reason of the auction''s extension';
COMMENT ON COLUMN market_data.supplied_stake IS
    'Commitment that is supplied, amount in the settlement asset''s smallest unit';
COMMENT ON COLUMN market_data.market_state IS 'State of the market';
COMMENT ON COLUMN market_data.next_mark_to_market IS 'Time of the next settlement of positions';
COMMENT ON COLUMN markets.trading_mode IS 'Trading mode';
COMMENT ON COLUMN markets.state IS 'State';
COMMENT ON COLUMN orders.remaining IS 'Size that is not filled yet';
COMMENT ON COLUMN orders.reference IS 'Text that the party chose';
COMMENT ON COLUMN orders.batch_id IS 'Batch of the block that contained it';
COMMENT ON COLUMN orders.lp_id IS 'Commitment that created it; empty = the party itself';
COMMENT ON COLUMN orders.created_at IS 'Time of creation';
COMMENT ON COLUMN orders.updated_at IS 'Time of the last change; 1970-01-01 or NULL = none';
COMMENT ON COLUMN orders.expires_at IS 'Time of expiry; 1970-01-01 or NULL = none';
COMMENT ON COLUMN orders.post_only IS 'Whether it is rejected instead of trading at once';
COMMENT ON COLUMN orders.reduce_only IS 'Whether it can only reduce a position';
COMMENT ON COLUMN positions.loss IS
    'Amount that the party lost because other parties could not pay, in the settlement asset''s smallest unit';
COMMENT ON COLUMN positions.adjustment IS
    'Amount that the party could not pay, in the settlement asset''s smallest unit';
COMMENT ON COLUMN positions.distressed_status IS 'Whether the position is being closed out';
COMMENT ON TABLE rewards IS 'Rewards that were paid to parties.';
COMMENT ON COLUMN rewards.reward_type IS 'Kind: ACCOUNT_TYPE_FEES_INFRASTRUCTURE, ACCOUNT_TYPE_GLOBAL_REWARD …';
COMMENT ON COLUMN rewards.percent_of_total IS 'Share of all rewards of the kind, 0 to 100';
COMMENT ON COLUMN rewards."timestamp" IS 'Time of the payment';
COMMENT ON COLUMN trades.aggressor IS '0 unspecified, 1 buy, 2 sell: side of the order that arrived later';
COMMENT ON COLUMN withdrawals.status IS 'Status';
COMMENT ON COLUMN withdrawals.created_timestamp IS 'Time of the request';
COMMENT ON COLUMN withdrawals.withdrawn_timestamp IS 'Time of completion; 1970-01-01 until then';
COMMENT ON COLUMN withdrawals.ext IS 'Data for the other chain (JSON): {"erc20": {"receiverAddress": …}}, or {}';

DO $comments$
DECLARE
    named record;
BEGIN
    FOR named IN
        SELECT attrelid::regclass AS relation, attname AS name,
            CASE attname
                WHEN 'tx_hash' THEN 'Transaction that caused it, 64 hex digits; empty = none'
                WHEN 'seq_num' THEN 'Position of the event in its block, from 0'
            END AS comment
        FROM pg_attribute
        WHERE attname IN ('tx_hash', 'seq_num') AND NOT attisdropped AND col_description(attrelid, attnum) IS NOT NULL
            AND attrelid IN (SELECT oid FROM pg_class WHERE relnamespace = 'public'::regnamespace AND relkind IN ('r', 'p'))
    LOOP
        EXECUTE format('COMMENT ON COLUMN %s.%I IS %L', named.relation, named.name, named.comment);
    END LOOP;
END
$comments$;
