-- Whether the upgrade flag (4.11) must change; always one row. $1: end of the last segment, -1 without one. It is set
-- when the block before an approved upgrade is the newest, and cleared by a block at or above the upgrade.
SELECT
    EXISTS (
        SELECT FROM protocol_upgrade_proposals_current
        WHERE upgrade_block_height = $1::int8 + 1 AND status = 'PROTOCOL_UPGRADE_PROPOSAL_STATUS_APPROVED'
    ) AND EXISTS (SELECT FROM last_block WHERE height = $1::int8)
    AND NOT EXISTS (SELECT FROM node_state WHERE upgrade_ready) AS is_due,
    EXISTS (
        SELECT FROM node_state JOIN last_block ON height >= upgrade_height WHERE upgrade_ready
    ) AS is_over
