-- The newest version of every withdrawal (contract 4.26).
WITH newest AS (
    SELECT DISTINCT ON (id) withdrawals, id, party_id, asset, status::text, created_timestamp
    FROM withdrawals ORDER BY id, block_time DESC, party_id DESC
)
SELECT 'withdrawal' AS list, jsonb_build_array(pg_temp.ns(created_timestamp), id) AS key, pg_temp.node(withdrawals) AS node
FROM newest
WHERE party_id = coalesce(pg_temp.party($1 ->> 'partyId'), party_id) AND asset = coalesce($1 ->> 'assetId', asset)
    AND status = coalesce($1 ->> 'status', status)
ORDER BY created_timestamp, id
