-- The newest amount of every party, node and epoch as of the end of the span (set by next_span.sql), computed from
-- history: the table of this name knows later blocks. Walks the index (party_id, node_id, epoch_id) from one key to
-- the next.
COPY (
    WITH RECURSIVE known (party_id, node_id, epoch_id) AS (
        (SELECT party_id, node_id, epoch_id FROM delegations ORDER BY party_id, node_id, epoch_id LIMIT 1)
        UNION ALL
        SELECT following.* FROM known CROSS JOIN LATERAL (
            SELECT party_id, node_id, epoch_id FROM delegations
            WHERE (party_id, node_id, epoch_id) > (known.party_id, known.node_id, known.epoch_id)
            ORDER BY party_id, node_id, epoch_id LIMIT 1
        ) AS following
    )
    SELECT newest.* FROM known CROSS JOIN LATERAL (
        SELECT party_id, node_id, epoch_id, amount, tx_hash, block_time, seq_num FROM delegations
        WHERE (party_id, node_id, epoch_id) = (known.party_id, known.node_id, known.epoch_id)
            AND block_time <= current_setting('mesh.time_to')::timestamptz
        ORDER BY block_time DESC, seq_num DESC LIMIT 1
    ) AS newest
    ORDER BY party_id, node_id, epoch_id
) TO STDOUT (FORMAT csv, HEADER)
