CROSS JOIN LATERAL (
    -- The newest version, where it is of that time, and otherwise the newest one of then.
    SELECT kept.side, kept.price, kept.size, kept.remaining, kept.time_in_force, kept.type, kept.status, kept.reference,
        kept.reason, kept.version, kept.batch_id, kept.pegged_offset, kept.pegged_reference, kept.lp_id, kept.post_only,
        kept.reduce_only, kept.created_at, kept.updated_at, kept.expires_at
    WHERE kept.block_time <= {time}
    UNION ALL
    (
        SELECT side, price, size, remaining, time_in_force, type, status, reference, reason, version, batch_id,
            pegged_offset, pegged_reference, lp_id, post_only, reduce_only, created_at, updated_at, expires_at
        FROM orders AS version
        WHERE kept.block_time > {time} AND version.id = kept.id AND version.block_time <= {time}
        ORDER BY version.block_time DESC, version.seq_num DESC LIMIT 1
    )
) AS version
