-- The newest version of every asset (contract 4.19).
WITH newest AS (
    SELECT DISTINCT ON (id) * FROM assets ORDER BY id, block_time DESC
)
SELECT 'asset' AS list, jsonb_build_array(id) AS key, jsonb_build_object(
    'id', id, 'name', name, 'symbol', symbol, 'decimals', coalesce(decimals, 0),
    'quantum', coalesce(quantum::text, ''), 'status', status, 'erc20Contract', coalesce(erc20_contract, '')
) AS node
FROM newest
WHERE status::text = coalesce($1 ->> 'status', status::text)
ORDER BY id
