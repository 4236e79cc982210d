-- Rows of a long list.
SELECT 'account' || n, CASE n / 1000 WHEN 7 THEN 'network' ELSE id(n / 1000) END, 'ASSET',
    id(n / 10 % 100), n % 10, 'tx', {start}
FROM {numbers}
