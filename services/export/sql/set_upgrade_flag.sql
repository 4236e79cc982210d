-- Sets the upgrade flag (4.11) when the last segment ends with the newest block and an upgrade at that height is approved
-- by the rows of that block or of earlier ones, as in next_span.sql (H7).
-- $1: end of the last segment, -1 without one.
INSERT INTO node_state AS kept (upgrade_ready, upgrade_height, updated_at)
SELECT true, head.height, now()
FROM last_block AS head
WHERE head.height = $1::int8 AND EXISTS (
        SELECT FROM (
            SELECT DISTINCT ON (network_release_tag) status FROM protocol_upgrade_proposals
            WHERE upgrade_block_height = head.height AND block_time <= head.block_time
            ORDER BY network_release_tag, block_time DESC
        ) AS newest
        WHERE status = 'PROTOCOL_UPGRADE_PROPOSAL_STATUS_APPROVED'
    )
ON CONFLICT (onerow_check) DO UPDATE
    SET upgrade_ready = true, upgrade_height = EXCLUDED.upgrade_height, updated_at = EXCLUDED.updated_at
    WHERE NOT kept.upgrade_ready OR kept.upgrade_height IS DISTINCT FROM EXCLUDED.upgrade_height
