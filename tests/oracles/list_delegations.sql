-- The newest amount of every party, node and epoch (contract 4.14).
WITH newest AS (
    SELECT DISTINCT ON (epoch_id, party_id, node_id) * FROM delegations
    ORDER BY epoch_id, party_id, node_id, block_time DESC, seq_num DESC
)
SELECT 'delegation' AS list, jsonb_build_array(epoch_id, party_id, node_id) AS key, jsonb_build_object(
    'party', party_id, 'nodeId', node_id, 'amount', coalesce(amount, 0)::text, 'epochSeq', epoch_id::text
) AS node
FROM newest
WHERE party_id = coalesce($1 ->> 'partyId', party_id) AND node_id = coalesce($1 ->> 'nodeId', node_id)
    AND epoch_id = coalesce(($1 ->> 'epochId')::int8, epoch_id)
ORDER BY epoch_id, party_id, node_id
