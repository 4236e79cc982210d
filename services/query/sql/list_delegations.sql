-- One page of delegations: up to $5 rows of the walk, whether a row lies at its start or behind it, and the head.
-- At least one row, without a delegation when the walk meets none.
-- $1 party, $2 node, $3 epoch: filters, NULL = not given. $4 whether the walk goes towards lower keys.
-- $6 epoch, $7 party, $8 node: start of the walk, exclusive; NULL = at the end of the list that it comes from.
-- Leans on delegations_current's four indexes, by filter. Planned for the values at hand: filters not given and
-- the branches not taken vanish. Columns that a filter holds at their value in the start are left out of the
-- comparison, because an index walk begins right at a bound only on the columns that follow the fixed ones. Of one
-- party or one node, `any_epoch` vanishes from the order, and NULLS FIRST asks for the index of that filter.
WITH matching AS NOT MATERIALIZED (
    SELECT epoch_id, party_id, node_id, amount,
        CASE WHEN ($1::text IS NULL) = ($2::text IS NULL) THEN epoch_id END AS any_epoch
    FROM delegations_current
    WHERE ($1::text IS NULL OR party_id = $1)
      AND ($2::text IS NULL OR node_id = $2)
      AND ($3::int8 IS NULL OR epoch_id = $3)
), page AS (
    (SELECT * FROM matching
     WHERE $4 AND ($3 > $6) IS NOT TRUE AND CASE
         WHEN $6::int8 IS NULL THEN true
         WHEN $1 = $7::text AND $3 = $6 THEN node_id < $8::text
         WHEN $1 = $7 THEN (epoch_id, node_id) < ($6, $8)
         WHEN $3 = $6 THEN (party_id, node_id) < ($7, $8)
         ELSE (epoch_id, party_id, node_id) < ($6, $7, $8) END
     ORDER BY any_epoch DESC, epoch_id DESC NULLS LAST, party_id DESC, node_id DESC LIMIT $5)
    UNION ALL
    (SELECT * FROM matching
     WHERE NOT $4 AND ($3 < $6) IS NOT TRUE AND CASE
         WHEN $6 IS NULL THEN true
         WHEN $1 = $7 AND $3 = $6 THEN node_id > $8
         WHEN $1 = $7 THEN (epoch_id, node_id) > ($6, $8)
         WHEN $3 = $6 THEN (party_id, node_id) > ($7, $8)
         ELSE (epoch_id, party_id, node_id) > ($6, $7, $8) END
     ORDER BY any_epoch, epoch_id NULLS FIRST, party_id, node_id LIMIT $5)
), behind AS (
    (SELECT FROM matching
     WHERE $4 AND $6 IS NOT NULL AND ($3 < $6) IS NOT TRUE AND CASE
         WHEN $1 = $7 AND $3 = $6 THEN node_id >= $8
         WHEN $1 = $7 THEN (epoch_id, node_id) >= ($6, $8)
         WHEN $3 = $6 THEN (party_id, node_id) >= ($7, $8)
         ELSE (epoch_id, party_id, node_id) >= ($6, $7, $8) END
     ORDER BY any_epoch, epoch_id NULLS FIRST, party_id, node_id LIMIT 1)
    UNION ALL
    (SELECT FROM matching
     WHERE NOT $4 AND $6 IS NOT NULL AND ($3 > $6) IS NOT TRUE AND CASE
         WHEN $1 = $7 AND $3 = $6 THEN node_id <= $8
         WHEN $1 = $7 THEN (epoch_id, node_id) <= ($6, $8)
         WHEN $3 = $6 THEN (party_id, node_id) <= ($7, $8)
         ELSE (epoch_id, party_id, node_id) <= ($6, $7, $8) END
     ORDER BY any_epoch DESC, epoch_id DESC NULLS LAST, party_id DESC, node_id DESC LIMIT 1)
)
SELECT head.height AS head_height, head.block_time AS head_time, EXISTS (SELECT FROM behind) AS behind,
    page.epoch_id, page.party_id, page.node_id, page.amount::text AS amount
FROM (VALUES (1)) AS always
LEFT JOIN last_block AS head ON true
LEFT JOIN page ON true
