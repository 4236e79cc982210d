SELECT kept.first_time, kept.id, kept.market_id, kept.party_id, version.*,
    is_live_order(version.status, version.remaining, version.time_in_force) AS is_live
FROM (
