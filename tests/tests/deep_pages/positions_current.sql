-- Rows of a long list.
SELECT id(n / 1000), id(n % 1000), n, 1, 2, 3, {start}, n, 1, 2, 3, 4, 'POSITION_STATUS_UNSPECIFIED'
FROM {numbers} WHERE n < 200000 OR n % 1000 = 42
