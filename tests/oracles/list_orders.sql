-- The newest version of every order, by the time of its first one (contract 4.22).
WITH newest AS (
    SELECT DISTINCT ON (id) orders, id, min(block_time) OVER (PARTITION BY id) AS first_time
    FROM orders ORDER BY id, block_time DESC, seq_num DESC
)
SELECT 'order' AS list, jsonb_build_array(pg_temp.ns(first_time), id) AS key, pg_temp.node(orders) AS node
FROM newest
WHERE (orders).market_id = coalesce($1 ->> 'marketId', (orders).market_id)
    AND (orders).party_id = coalesce(pg_temp.party($1 ->> 'partyId'), (orders).party_id)
    AND ($1 -> 'status' IS NULL OR $1 -> 'status' ? pg_temp.order_status((orders).status))
    AND ($1 ->> 'liveOnly' IS DISTINCT FROM 'true' OR pg_temp.is_live(orders))
    AND pg_temp.within(first_time, $1 ->> 'dateRange.startTimestamp', $1 ->> 'dateRange.endTimestamp')
ORDER BY first_time, id
