SELECT kept.created_timestamp, kept.id, kept.party_id, kept.asset, version.*
FROM deposits_current AS kept CROSS JOIN LATERAL (
    SELECT amount, status::text AS status, foreign_tx_hash, credited_timestamp
    FROM deposits AS version WHERE version.id = kept.id AND version.block_time <= {time}
    ORDER BY version.block_time DESC, version.party_id DESC LIMIT 1
) AS version
