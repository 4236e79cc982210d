-- One page of reward summaries: up to $6 groups of the walk, whether a group lies at its start or behind it, and
-- the head. At least one row, without a summary when the walk meets none.
-- $1 assets, $2 markets: filters, NULL = not given. $3 first epoch, $4 last epoch, inclusive: NULL = open.
-- $5 whether the walk goes towards lower keys. $7 epoch, $8 market, $9 asset, $10 reward type: start of the walk,
-- exclusive; NULL = at the end of the list that it comes from. It bounds the rows before they are grouped, and a
-- group never straddles a page.
-- Leans on rewards (epoch_id, market_id, asset_id, reward_type). Planned for the values at hand.
WITH matching AS NOT MATERIALIZED (
    SELECT epoch_id, market_id, asset_id, reward_type, amount
    FROM rewards
    WHERE ($1::text[] IS NULL OR asset_id = ANY ($1))
      AND ($2::text[] IS NULL OR market_id = ANY ($2))
      AND ($3::int8 IS NULL OR epoch_id >= $3)
      AND ($4::int8 IS NULL OR epoch_id <= $4)
), page AS (
    (SELECT epoch_id, market_id, asset_id, reward_type, sum(amount) AS amount FROM matching
     WHERE $5 AND ($7::int8 IS NULL
         OR (epoch_id, market_id, asset_id, reward_type) < ($7, $8::text, $9::text, $10::text))
     GROUP BY epoch_id, market_id, asset_id, reward_type
     ORDER BY epoch_id DESC, market_id DESC, asset_id DESC, reward_type DESC LIMIT $6)
    UNION ALL
    (SELECT epoch_id, market_id, asset_id, reward_type, sum(amount) AS amount FROM matching
     WHERE NOT $5 AND ($7::int8 IS NULL
         OR (epoch_id, market_id, asset_id, reward_type) > ($7, $8::text, $9::text, $10::text))
     GROUP BY epoch_id, market_id, asset_id, reward_type
     ORDER BY epoch_id, market_id, asset_id, reward_type LIMIT $6)
)
SELECT head.height AS head_height, head.block_time AS head_time,
    EXISTS (
        SELECT FROM matching
        WHERE ($5 AND (epoch_id, market_id, asset_id, reward_type) >= ($7, $8::text, $9::text, $10::text))
           OR (NOT $5 AND (epoch_id, market_id, asset_id, reward_type) <= ($7, $8::text, $9::text, $10::text))
    ) AS behind,
    page.epoch_id, page.market_id, page.asset_id, page.reward_type, coalesce(page.amount, 0)::text AS amount
FROM (VALUES (1)) AS always
LEFT JOIN last_block AS head ON true
LEFT JOIN page ON true
