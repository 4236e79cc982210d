SELECT kept.first_time, kept.id, kept.market_id, kept.party_id, version.*
FROM orders_current AS kept
