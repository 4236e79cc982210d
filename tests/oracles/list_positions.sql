-- The newest position of every party in every market (contract 4.21).
WITH newest AS (
    SELECT DISTINCT ON (party_id, market_id) positions, party_id, market_id
    FROM positions ORDER BY party_id, market_id, block_time DESC
)
SELECT 'position' AS list, jsonb_build_array(party_id, market_id) AS key, pg_temp.node(positions) AS node
FROM newest
WHERE party_id = coalesce($1 ->> 'partyId', party_id) AND market_id = coalesce($1 ->> 'marketId', market_id)
ORDER BY party_id, market_id
