-- The newest version of every deposit (contract 4.25).
WITH newest AS (SELECT DISTINCT ON (id) * FROM deposits ORDER BY id, block_time DESC, party_id DESC)
SELECT 'deposit' AS list, jsonb_build_array(pg_temp.ns(created_timestamp), id) AS key, jsonb_build_object(
    'id', id, 'partyId', party_id, 'asset', asset, 'amount', coalesce(amount, 0)::text, 'status', status,
    'foreignTxHash', foreign_tx_hash, 'createdTimestamp', pg_temp.ns(created_timestamp)::text,
    'creditedTimestamp', pg_temp.ns(credited_timestamp)::text
) AS node
FROM newest
WHERE party_id = coalesce(pg_temp.party($1 ->> 'partyId'), party_id) AND asset = coalesce($1 ->> 'assetId', asset)
    AND status::text = coalesce($1 ->> 'status', status::text)
ORDER BY created_timestamp, id
