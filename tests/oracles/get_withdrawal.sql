-- The newest version of one withdrawal (contract 4.5).
SELECT jsonb_build_object('withdrawal', jsonb_build_object(
    'id', id, 'partyId', party_id, 'amount', trim_scale(coalesce(amount, 0))::text, 'asset', asset, 'status', status,
    'ref', ref, 'txHash', foreign_tx_hash, 'createdTimestamp', pg_temp.ns(created_timestamp)::text,
    'withdrawnTimestamp', pg_temp.ns(withdrawn_timestamp)::text, 'ext', CASE WHEN ext ? 'erc20' THEN ext ELSE '{}' END
)) AS answer
FROM withdrawals
WHERE id = $1 ->> 'id'
ORDER BY block_time DESC LIMIT 1
