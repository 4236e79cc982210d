-- Paths of single rows, which never change, and the JSON members that their answers contain.
SELECT '/api/v2/withdrawal/' || id, ARRAY[
    format('"id":"%s"', id), format('"partyId":"%s"', party_id), format('"amount":"%s"', amount),
    format('"txHash":"%s"', foreign_tx_hash)
] FROM withdrawals WHERE asset = repeat('a5', 32) ORDER BY id
