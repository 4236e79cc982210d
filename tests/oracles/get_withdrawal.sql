-- The newest version of one withdrawal (contract 4.5).
SELECT jsonb_build_object('withdrawal', pg_temp.node(withdrawals)) AS answer
FROM withdrawals
WHERE id = $1 ->> 'id'
ORDER BY block_time DESC, party_id DESC LIMIT 1
