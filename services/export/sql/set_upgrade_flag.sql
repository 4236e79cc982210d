-- Sets the upgrade flag (4.11) when the last segment ends before an approved upgrade and no later block is stored.
-- $1: end of the last segment, -1 without one.
INSERT INTO node_state AS kept (upgrade_ready, upgrade_height, updated_at)
SELECT true, $1::int8 + 1, now()
WHERE EXISTS (
        SELECT FROM protocol_upgrade_proposals_current
        WHERE upgrade_block_height = $1::int8 + 1 AND status = 'PROTOCOL_UPGRADE_PROPOSAL_STATUS_APPROVED'
    ) AND EXISTS (SELECT FROM last_block WHERE height = $1::int8)
ON CONFLICT (onerow_check) DO UPDATE
    SET upgrade_ready = true, upgrade_height = EXCLUDED.upgrade_height, updated_at = EXCLUDED.updated_at
    WHERE NOT kept.upgrade_ready
