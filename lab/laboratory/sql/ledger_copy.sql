-- The ledger of party :party of the benchmark from :start on, as the service exports it, written as one join and
-- sorted: what a person would type.
COPY (
    SELECT entry.block_time, entry.quantity,
        CASE
            WHEN sender.party_id = receiver.party_id THEN 0
            WHEN sender.party_id = party.id THEN -entry.quantity
            ELSE entry.quantity
        END AS effect,
        entry.type AS transfer_type, sender.asset_id,
        sender.market_id AS account_from_market_id, sender.party_id AS account_from_party_id,
        CASE sender.type WHEN 3 THEN 'MARGIN' WHEN 4 THEN 'GENERAL' END AS account_from_account_type,
        entry.account_from_balance,
        receiver.market_id AS account_to_market_id, receiver.party_id AS account_to_party_id,
        CASE receiver.type WHEN 3 THEN 'MARGIN' WHEN 4 THEN 'GENERAL' END AS account_to_account_type,
        entry.account_to_balance
    FROM (VALUES (encode(sha256('party:party'), 'hex'), encode(sha256('asset0'), 'hex'))) AS party (id, asset_id)
    CROSS JOIN ledger AS entry
    JOIN accounts AS sender ON sender.id = entry.account_from_id
    JOIN accounts AS receiver ON receiver.id = entry.account_to_id
    WHERE sender.asset_id = party.asset_id AND (sender.party_id = party.id OR receiver.party_id = party.id)
        AND entry.block_time >= ':start'
    ORDER BY entry.block_time, entry.ledger_entry_time
) TO STDOUT (FORMAT csv, HEADER)
