-- The file of a party's ledger entries in one asset (contract 4.6). The session's time zone is UTC.
WITH sides AS (
    SELECT id, party_id, asset_id, format('%s,%s,%s', CASE market_id WHEN '' THEN '""' ELSE market_id END, party_id,
        pg_temp.account_type(type)) AS fields
    FROM accounts
)
SELECT to_jsonb('block_time,quantity,effect,transfer_type,asset_id,account_from_market_id,account_from_party_id,'
    || 'account_from_account_type,account_from_balance,account_to_market_id,account_to_party_id,'
    || E'account_to_account_type,account_to_balance\n' || coalesce(string_agg(format(E'%s,%s,%s,%s,%s,%s,%s,%s,%s\n',
        block_time, quantity,
        quantity * ((receiver.party_id = $1 ->> 'partyId')::int - (sender.party_id = $1 ->> 'partyId')::int),
        ledger.type, sender.asset_id, sender.fields, account_from_balance, receiver.fields, account_to_balance
    ), '' ORDER BY block_time, ledger_entry_time), '')) AS answer
FROM ledger
JOIN sides AS sender ON sender.id = account_from_id
JOIN sides AS receiver ON receiver.id = account_to_id
WHERE $1 ->> 'partyId' IN (sender.party_id, receiver.party_id) AND sender.asset_id = $1 ->> 'assetId'
    AND pg_temp.within(block_time, $1 ->> 'dateRange.startTimestamp', $1 ->> 'dateRange.endTimestamp')
