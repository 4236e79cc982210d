-- Rows of a long list.
SELECT id(n), 'code', 'name', 'quote', 'ASSET' || n % 2, 1, 2, 'TRADING_MODE_CONTINUOUS', 'STATE_ACTIVE',
    n, {start}
FROM {numbers}
