-- Rows of a long list.
SELECT {minute}, 'tx', {minute}, 0, n, id(n / 100000), 2, 3, id(n % 100), id(n / 100 % 100), 1, 'buy', 'sell', 1
FROM {numbers}
