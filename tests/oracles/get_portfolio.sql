-- The accounts, positions and live orders of a party (contract 4.27).
WITH party AS (SELECT pg_temp.party($1 ->> 'partyId') AS id),
newest_position AS (
    SELECT DISTINCT ON (market_id) positions, market_id FROM positions
    WHERE party_id = (SELECT id FROM party) ORDER BY market_id, block_time DESC
), newest_order AS (
    SELECT DISTINCT ON (id) orders, id, min(block_time) OVER (PARTITION BY id) AS first_time FROM orders
    WHERE party_id = (SELECT id FROM party) ORDER BY id, block_time DESC, seq_num DESC
)
SELECT jsonb_build_object('portfolio', jsonb_build_object(
    'accounts', coalesce((
        SELECT jsonb_agg(pg_temp.node(accounts) ORDER BY coalesce(market_id, ''), asset_id, coalesce(type, 0))
        FROM accounts WHERE party_id = (SELECT id FROM party)
    ), '[]'),
    'positions', coalesce((
        SELECT jsonb_agg(pg_temp.node(positions) ORDER BY market_id DESC) FROM newest_position
    ), '[]'),
    'orders', coalesce((
        SELECT jsonb_agg(pg_temp.node(orders) ORDER BY first_time DESC, id DESC)
        FROM newest_order WHERE pg_temp.is_live(orders)
    ), '[]')
)) AS answer
