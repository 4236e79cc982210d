-- Rows of a long list.
SELECT '1_minute', id(market), {minute}, 2, 3, 4, 1, 5, {minute}, {minute}
FROM {numbers}, generate_series(1, 2) AS market
