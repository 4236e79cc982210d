SELECT kept.side, kept.price, kept.size, kept.remaining, kept.time_in_force, kept.type, kept.status, kept.reference, kept.reason,
    kept.version, kept.batch_id, kept.pegged_offset, kept.pegged_reference, kept.lp_id, kept.post_only, kept.reduce_only,
    kept.created_at, kept.updated_at, kept.expires_at
WHERE kept.block_time <= {time}
