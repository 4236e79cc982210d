-- Whether the upgrade flag (4.11) or the noted span must change; always one row. $1: end of the last segment, -1 without one. It is due when
-- set_upgrade_flag.sql would set it, and over when the newest block is another than the upgrade's.
SELECT
    EXISTS (
        SELECT FROM last_block AS head
        CROSS JOIN LATERAL (
            SELECT DISTINCT ON (network_release_tag) status FROM protocol_upgrade_proposals
            WHERE upgrade_block_height = head.height AND block_time <= head.block_time
            ORDER BY network_release_tag, block_time DESC
        ) AS newest
        WHERE head.height = $1::int8 AND newest.status = 'PROTOCOL_UPGRADE_PROPOSAL_STATUS_APPROVED'
    ) AND NOT EXISTS (SELECT FROM node_state WHERE upgrade_ready AND upgrade_height = $1::int8) AS is_due,
    EXISTS (
        SELECT FROM node_state JOIN last_block ON height IS DISTINCT FROM upgrade_height WHERE upgrade_ready
    ) AS is_over,
    $1::int8 >= 0 AND NOT EXISTS (SELECT FROM last_snapshot_span WHERE to_height = $1::int8) AS is_unnoted
