SELECT kept.first_time, kept.id, version.*,
    is_live_order(version.status, version.remaining, version.time_in_force) AS is_live
FROM orders_current AS kept CROSS JOIN LATERAL (
    SELECT market_id, party_id, side, price, size, remaining, time_in_force, type, status, reference, reason, version,
        batch_id, pegged_offset, pegged_reference, lp_id, post_only, reduce_only, created_at, updated_at, expires_at
    FROM orders AS version WHERE version.id = kept.id AND version.block_time <= {time}
    ORDER BY version.block_time DESC, version.seq_num DESC LIMIT 1
) AS version
WHERE (kept.is_live OR kept.block_time > kept.first_time) AND
