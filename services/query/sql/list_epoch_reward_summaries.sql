-- One page of reward summaries of all assets and markets: up to $4 groups of the walk, whether a group lies at its
-- start or behind it, and the head. At least one row, without a summary when the walk meets none.
-- $1 first epoch, $2 last epoch, inclusive: NULL = open. $3 whether the walk goes towards lower keys.
-- $5 epoch, $6 market, $7 asset, $8 reward type: start of the walk, exclusive; NULL = at the end of the list that it
-- comes from. It bounds the rows before they are grouped, and a group never straddles a page.
-- Leans on rewards (epoch_id, market_id, asset_id, reward_type). Planned for the values at hand: the branches not
-- taken vanish. An index walk begins at one bound only, so each branch gives it the tighter one of start and epoch.
WITH page AS (
    (SELECT epoch_id, market_id, asset_id, reward_type, sum(amount) AS amount FROM rewards
     WHERE $3 AND ($1::int8 IS NULL OR epoch_id >= $1) AND ($2::int8 IS NULL OR $5 <= $2 OR epoch_id <= $2)
       AND ($5::int8 IS NULL OR $5 > $2
         OR (epoch_id, market_id, asset_id, reward_type) < ($5, $6::text, $7::text, $8::text))
     GROUP BY epoch_id, market_id, asset_id, reward_type
     ORDER BY epoch_id DESC, market_id DESC, asset_id DESC, reward_type DESC LIMIT $4)
    UNION ALL
    (SELECT epoch_id, market_id, asset_id, reward_type, sum(amount) AS amount FROM rewards
     WHERE NOT $3 AND ($1 IS NULL OR $5 >= $1 OR epoch_id >= $1) AND ($2 IS NULL OR epoch_id <= $2)
       AND ($5 IS NULL OR $5 < $1
         OR (epoch_id, market_id, asset_id, reward_type) > ($5, $6::text, $7::text, $8::text))
     GROUP BY epoch_id, market_id, asset_id, reward_type
     ORDER BY epoch_id, market_id, asset_id, reward_type LIMIT $4)
), behind AS (
    (SELECT FROM rewards
     WHERE $3 AND $5 IS NOT NULL AND ($1 IS NULL OR $5 >= $1 OR epoch_id >= $1) AND ($2 IS NULL OR epoch_id <= $2)
       AND ($5 < $1 OR (epoch_id, market_id, asset_id, reward_type) >= ($5, $6::text, $7::text, $8::text))
     ORDER BY epoch_id, market_id, asset_id, reward_type LIMIT 1)
    UNION ALL
    (SELECT FROM rewards
     WHERE NOT $3 AND $5 IS NOT NULL AND ($1 IS NULL OR epoch_id >= $1)
       AND ($2 IS NULL OR $5 <= $2 OR epoch_id <= $2)
       AND ($5 > $2 OR (epoch_id, market_id, asset_id, reward_type) <= ($5, $6::text, $7::text, $8::text))
     ORDER BY epoch_id DESC, market_id DESC, asset_id DESC, reward_type DESC LIMIT 1)
)
SELECT head.height AS head_height, head.block_time AS head_time, EXISTS (SELECT FROM behind) AS behind,
    page.epoch_id, page.market_id, page.asset_id, page.reward_type, coalesce(page.amount, 0)::text AS amount
FROM (VALUES (1)) AS always
LEFT JOIN last_block AS head ON true
LEFT JOIN page ON true
