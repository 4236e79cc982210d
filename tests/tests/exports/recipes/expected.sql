-- What every tool must have made of the downloads, out of the gateway's own tables: a JSON list for each row, of texts and NULL.
-- $1: the party of the ledger, $2 its asset.

WITH newest AS (
    SELECT DISTINCT ON (id) id, tradable_instrument #>> '{instrument,code}' AS code, decimal_places, position_decimal_places
    FROM markets ORDER BY id, block_time DESC
), trades_made AS (
    SELECT jsonb_build_array(
        t.id, (extract(epoch FROM synthetic_time) * 1000000)::bigint::text, code, price::text,
        trim_scale(price / 10 ^ decimal_places::numeric)::text, trim_scale(size / 10 ^ position_decimal_places::numeric)::text,
        CASE aggressor WHEN 0 THEN 'unspecified' WHEN 1 THEN 'buy' WHEN 2 THEN 'sell' END,
        CASE type WHEN 0 THEN 'unspecified' WHEN 1 THEN 'between orders' WHEN 2 THEN 'close-out: network' WHEN 3 THEN 'close-out: party' END,
        buyer, seller, buyer_maker_fee::text, seller_auction_batch::text) AS made
    FROM trades AS t LEFT JOIN newest AS m ON m.id = market_id
), orders_made AS (
    SELECT jsonb_build_array(
        o.id, (extract(epoch FROM created_at) * 1000000)::bigint::text,
        (extract(epoch FROM nullif(updated_at, '1970-01-01 00:00:00+00')) * 1000000)::bigint::text, code, price::text,
        trim_scale(price / 10 ^ decimal_places::numeric)::text, trim_scale(remaining / 10 ^ position_decimal_places::numeric)::text,
        CASE side WHEN 0 THEN 'unspecified' WHEN 1 THEN 'buy' WHEN 2 THEN 'sell' END,
        CASE type WHEN 0 THEN 'unspecified' WHEN 1 THEN 'limit' WHEN 2 THEN 'market' WHEN 3 THEN 'network' END,
        CASE time_in_force WHEN 0 THEN 'unspecified' WHEN 1 THEN 'GTC' WHEN 2 THEN 'GTT' WHEN 3 THEN 'IOC' WHEN 4 THEN 'FOK'
            WHEN 5 THEN 'GFA' WHEN 6 THEN 'GFN' END,
        CASE status WHEN 0 THEN 'unspecified' WHEN 1 THEN 'active' WHEN 2 THEN 'expired' WHEN 3 THEN 'cancelled' WHEN 4 THEN 'stopped'
            WHEN 5 THEN 'filled' WHEN 6 THEN 'rejected' WHEN 7 THEN 'partially filled' WHEN 8 THEN 'parked' END,
        reference, lp_id, pegged_offset::text, CASE WHEN post_only THEN 't' ELSE 'f' END) AS made
    FROM orders AS o LEFT JOIN newest AS m ON m.id = market_id
), sides AS (
    SELECT l.*, sender.party_id AS sender, sender.market_id AS sender_market, receiver.party_id AS receiver
    FROM ledger AS l JOIN accounts AS sender ON sender.id = account_from_id JOIN accounts AS receiver ON receiver.id = account_to_id
    WHERE sender.asset_id = $2 AND $1 IN (sender.party_id, receiver.party_id)
), ledger_made AS (
    SELECT jsonb_build_array(
        (extract(epoch FROM block_time) * 1000000)::bigint::text, quantity::text, effect::text,
        trim_scale(effect / 10 ^ 6::numeric)::text, 'tUSD', type, sender_market, account_to_balance::text) AS made
    FROM sides, LATERAL (SELECT CASE WHEN sender = receiver THEN 0 WHEN receiver = $1 THEN quantity ELSE -quantity END AS effect) AS e
)
SELECT jsonb_build_object(
    'trades', (SELECT jsonb_agg(made ORDER BY made::text COLLATE "C") FROM trades_made),
    'orders', (SELECT jsonb_agg(made ORDER BY made::text COLLATE "C") FROM orders_made),
    'ledger', (SELECT jsonb_agg(made ORDER BY made::text COLLATE "C") FROM ledger_made))
