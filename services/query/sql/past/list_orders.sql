SELECT kept.first_time, kept.id, kept.market_id, kept.party_id, version.*
FROM orders_current AS kept CROSS JOIN LATERAL (
    SELECT side, price, size, remaining, time_in_force, type, status, reference, reason, version, batch_id,
        pegged_offset, pegged_reference, lp_id, post_only, reduce_only, created_at, updated_at, expires_at
    FROM orders AS version WHERE version.id = kept.id AND version.block_time <= {time}
    ORDER BY version.block_time DESC, version.seq_num DESC LIMIT 1
) AS version
