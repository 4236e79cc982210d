SELECT created_timestamp, id, party_id, asset, amount, status::text AS status, foreign_tx_hash, credited_timestamp
FROM deposits AS version
WHERE version.block_time <= {time} AND NOT EXISTS (
    SELECT FROM deposits AS newer
    WHERE newer.id = version.id AND newer.block_time <= {time}
        AND (newer.block_time, newer.party_id) > (version.block_time, version.party_id)
)
