-- What the recipe for PostgreSQL has made, in the form of expected.sql.

SELECT jsonb_build_object(
    'trades', (SELECT jsonb_agg(jsonb_build_array(
        id, (extract(epoch FROM synthetic_time) * 1000000)::bigint::text, market, price::text, trim_scale(price_scaled)::text,
        trim_scale(size_scaled)::text, aggressor_name, type_name, buyer, seller, buyer_maker_fee::text, seller_auction_batch::text))
        FROM trades_named),
    'orders', (SELECT jsonb_agg(jsonb_build_array(
        id, (extract(epoch FROM created_at) * 1000000)::bigint::text,
        (extract(epoch FROM nullif(updated_at, '1970-01-01 00:00:00+00')) * 1000000)::bigint::text, market, price::text,
        trim_scale(price_scaled)::text, trim_scale(remaining_scaled)::text, side_name, type_name, time_in_force_name, status_name,
        reference, lp_id, pegged_offset::text, CASE WHEN post_only THEN 't' ELSE 'f' END))
        FROM orders_named),
    'ledger', (SELECT jsonb_agg(jsonb_build_array(
        (extract(epoch FROM block_time) * 1000000)::bigint::text, quantity::text, effect::text, trim_scale(effect_scaled)::text,
        symbol, transfer_type, account_from_market_id, account_to_balance::text))
        FROM ledger_named))
