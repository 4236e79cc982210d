-- Rows of a long list.
(id, first_time, market_id, party_id, side, price, size, remaining, time_in_force, type, status, version,
    batch_id, created_at, post_only, reduce_only, block_time, seq_num, is_live)
SELECT id(n), {minute}, id(n / 100000), id(n % 100), 1, 5, 9, 9, 1, 1,
    CASE WHEN n / 100 % 2 = 0 THEN 1 WHEN n / 100 % 10 = 1 AND n < 100000 THEN 6 ELSE 5 END, 1, 0, {minute},
    false, false, {minute}, 0, n / 100 % 2 = 0
FROM {numbers}
