SELECT kept.epoch_id, kept.party_id, kept.node_id, version.amount
FROM delegations_current AS kept CROSS JOIN LATERAL (
    SELECT amount FROM delegations AS version
    WHERE version.party_id = kept.party_id AND version.node_id = kept.node_id AND version.epoch_id = kept.epoch_id
        AND version.block_time <= {time}
    ORDER BY version.block_time DESC, version.seq_num DESC LIMIT 1
) AS version
