-- The next span to seal (H7), always one row; heights are NULL while no block is stored behind the last segment.
-- $1: end of the last segment, -1 without one. $2: interval in blocks. $3: a block at which the span ends at the latest, or NULL.
-- Sets, for the rest of the transaction, the bounds that the statements of history/ and currentstate/ read: COPY
-- takes no parameters. An upgrade ends a span at its own block when it is approved by the rows of that block or of earlier
-- ones. Rows of later blocks do not count, so that sealing late, or from imported rows, gives the same spans. That no height is
-- missing is checked before a span is sealed. Leans on the index of heights; proposals are few.
WITH first AS (
    SELECT height, block_time FROM blocks WHERE height > $1::int8 ORDER BY height LIMIT 1
), head AS (
    SELECT height FROM blocks ORDER BY height DESC LIMIT 1
), regular AS (
    SELECT (height + $2::int8 - 1) / $2::int8 * $2::int8 AS height FROM first
), upgrade AS (
    SELECT min(proposed.height) AS height
    FROM first CROSS JOIN regular
    CROSS JOIN LATERAL (
        SELECT DISTINCT upgrade_block_height AS height, network_release_tag FROM protocol_upgrade_proposals
        WHERE upgrade_block_height >= first.height AND upgrade_block_height <= regular.height
    ) AS proposed
    CROSS JOIN LATERAL (
        SELECT block_time FROM blocks WHERE height <= proposed.height ORDER BY height DESC LIMIT 1
    ) AS own
    CROSS JOIN LATERAL (
        SELECT status FROM protocol_upgrade_proposals AS told
        WHERE told.upgrade_block_height = proposed.height
            AND told.network_release_tag = proposed.network_release_tag AND told.block_time <= own.block_time
        ORDER BY told.block_time DESC LIMIT 1
    ) AS newest
    WHERE newest.status = 'PROTOCOL_UPGRADE_PROPOSAL_STATUS_APPROVED'
), span AS (
    SELECT first.height AS height_from, first.block_time AS time_from, head.height AS head,
        least(regular.height, upgrade.height, CASE WHEN first.height <= $3::int8 THEN $3 END) AS height_to
    FROM first CROSS JOIN head CROSS JOIN regular CROSS JOIN upgrade
)
SELECT span.height_from, span.height_to, span.time_from, ends.time_to, span.head >= span.height_to AS is_complete,
    (SELECT id FROM chain) AS chain_id,
    set_config('mesh.time_from', span.time_from::text, true), set_config('mesh.time_to', ends.time_to::text, true)
FROM (VALUES (1)) AS always
LEFT JOIN span ON true
LEFT JOIN LATERAL (
    SELECT block_time AS time_to FROM blocks WHERE height <= span.height_to ORDER BY height DESC LIMIT 1
) AS ends ON true
