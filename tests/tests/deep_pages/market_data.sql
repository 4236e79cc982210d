-- Rows of a long list.
(synthetic_time, tx_hash, block_time, seq_num, market, mark_price)
SELECT block_time + n * interval '1 us', 'tx', block_time, n, id(n), n
FROM generate_series(0, 19999::int8) AS n, generate_series(1, 10) AS block,
    LATERAL (SELECT {start} + block * interval '1 s' AS block_time) AS times
