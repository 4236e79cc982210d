-- Rows of a long list.
SELECT 'party' || n % 2, id(n / 12 % 5), id(n / 60 % 20), 'ACCOUNT_TYPE_' || n / 2 % 6, n / 1200, n, 0.5,
    {start}, 'tx', {start}, n
FROM {numbers}
