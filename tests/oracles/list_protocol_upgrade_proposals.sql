-- The newest version of every upgrade proposal (contract 4.3); approvers are stored in lower case.
WITH newest AS (
    SELECT DISTINCT ON (upgrade_block_height, network_release_tag) *,
        array_remove(ARRAY(SELECT unnest(approvers)), NULL) AS keys
    FROM protocol_upgrade_proposals ORDER BY upgrade_block_height, network_release_tag, block_time DESC
)
SELECT 'pup' AS list, jsonb_build_array(upgrade_block_height, network_release_tag) AS key, jsonb_build_object(
    'upgradeBlockHeight', upgrade_block_height::text, 'networkReleaseTag', network_release_tag,
    'approvers', keys, 'status', status
) AS node
FROM newest
WHERE status::text = coalesce($1 ->> 'status', status::text)
    AND ($1 ->> 'approvedBy' IS NULL OR lower($1 ->> 'approvedBy') = ANY (keys))
ORDER BY upgrade_block_height, network_release_tag
