-- The newest version of one oracle spec, and the head it was read at. Always one row.
-- $1 oracle spec id, $2 time of the block that it is as of, NULL = now. Leans on the primary key
-- (id, block_time).
SELECT head.height AS head_height, head.block_time AS head_time,
    spec.id, spec.created_at, spec.updated_at, spec.status::text AS status,
    spec.signers, spec.filters, spec.internal_conditions
FROM (VALUES (1)) AS always
LEFT JOIN last_block AS head ON true
LEFT JOIN LATERAL (
    SELECT * FROM oracle_specs WHERE id = $1 AND block_time <= coalesce($2::timestamptz, 'infinity') ORDER BY block_time DESC LIMIT 1
) AS spec ON true
