-- All pairs of a party and an asset, with the number of their entries.
SELECT party, asset, (
    SELECT count(*) FROM ledger
    JOIN accounts AS sender ON sender.id = account_from_id
    JOIN accounts AS receiver ON receiver.id = account_to_id
    WHERE party IN (sender.party_id, receiver.party_id) AND sender.asset_id = asset)
FROM (SELECT DISTINCT party_id AS party FROM accounts) AS parties,
    (SELECT asset_id AS asset FROM accounts UNION SELECT id FROM assets) AS assets ORDER BY party, asset
