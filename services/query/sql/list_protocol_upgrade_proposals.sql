-- One page of upgrade proposals: up to $4 rows of the walk, whether a row lies at its start or behind it, and the
-- head. At least one row, without a proposal when the walk meets none.
-- $1 status, $2 approver: filters, NULL = not given. $3 whether the walk goes towards lower keys.
-- $5 height, $6 tag: start of the walk, exclusive; NULL = at the end of the list that it comes from.
-- Leans on the primary key (upgrade_block_height, network_release_tag); a network has few proposals, so that filters
-- are applied along the walk. Planned for the values at hand: the branches not taken vanish.
WITH matching AS NOT MATERIALIZED (
    SELECT upgrade_block_height, network_release_tag, approvers, status
    FROM protocol_upgrade_proposals_current
    WHERE ($1::text IS NULL OR status = $1::protocol_upgrade_proposal_status)
      AND ($2::text IS NULL OR approvers @> ARRAY[$2])
), page AS (
    (SELECT * FROM matching
     WHERE $3 AND ($5::int8 IS NULL OR (upgrade_block_height, network_release_tag) < ($5, $6::text))
     ORDER BY upgrade_block_height DESC, network_release_tag DESC LIMIT $4)
    UNION ALL
    (SELECT * FROM matching
     WHERE NOT $3 AND ($5::int8 IS NULL OR (upgrade_block_height, network_release_tag) > ($5, $6::text))
     ORDER BY upgrade_block_height, network_release_tag LIMIT $4)
), behind AS (
    (SELECT FROM matching
     WHERE $3 AND $5 IS NOT NULL AND (upgrade_block_height, network_release_tag) >= ($5, $6::text)
     ORDER BY upgrade_block_height, network_release_tag LIMIT 1)
    UNION ALL
    (SELECT FROM matching
     WHERE NOT $3 AND $5 IS NOT NULL AND (upgrade_block_height, network_release_tag) <= ($5, $6::text)
     ORDER BY upgrade_block_height DESC, network_release_tag DESC LIMIT 1)
)
SELECT head.height AS head_height, head.block_time AS head_time, EXISTS (SELECT FROM behind) AS behind,
    page.upgrade_block_height, page.network_release_tag, page.approvers, page.status::text AS status
FROM (VALUES (1)) AS always
LEFT JOIN last_block AS head ON true
LEFT JOIN page ON true
