-- The plain statement that gives the same row as GetWithdrawal.
SELECT id, party_id, trim_scale(amount)::text, asset, status::text, ref, foreign_tx_hash,
    created_timestamp, withdrawn_timestamp, ext
FROM withdrawals WHERE id = :n ORDER BY block_time DESC LIMIT 1
