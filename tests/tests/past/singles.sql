-- The paths of the operations that read one thing.
SELECT path FROM (
    SELECT DISTINCT '/api/v2/order/' || id || '?' FROM orders
    UNION SELECT '/api/v2/order/' || id || '?version=' || version FROM orders
    UNION SELECT '/api/v2/withdrawal/' || id || '?' FROM withdrawals
    UNION SELECT '/api/v2/oracle/spec/' || id || '?' FROM oracle_specs
    UNION SELECT '/api/v2/market/' || id || '/depth?' FROM markets
    UNION SELECT '/api/v2/party/' || party_id || '/portfolio?' FROM accounts
    UNION SELECT '/api/v2/network/limits?'
) AS all_paths (path) ORDER BY path
