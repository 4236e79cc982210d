-- The newest version of one withdrawal, and the head it was read at. Always one row.
-- $1 withdrawal id, $2 time of the block that it is as of, NULL = now. Leans on the primary key
-- (id, party_id, block_time): an id has a handful of versions.
SELECT head.height AS head_height, head.block_time AS head_time,
    withdrawal.id, withdrawal.party_id, trim_scale(withdrawal.amount)::text AS amount, withdrawal.asset,
    withdrawal.status::text AS status, withdrawal.ref, withdrawal.foreign_tx_hash,
    withdrawal.created_timestamp, withdrawal.withdrawn_timestamp, withdrawal.ext
FROM (VALUES (1)) AS always
LEFT JOIN last_block AS head ON true
LEFT JOIN LATERAL (
    SELECT * FROM withdrawals WHERE id = $1 AND block_time <= coalesce($2::timestamptz, 'infinity')
    ORDER BY block_time DESC, party_id DESC LIMIT 1
) AS withdrawal ON true
