-- One page of reward summaries of some markets: up to $4 groups of the walk, whether a group lies at its start or
-- behind it, and the head. At least one row, without a summary when the walk meets none.
-- $1 to $8 as in list_epoch_reward_summaries.sql. $9 markets, $10 assets, NULL = all.
-- Leans on rewards (market_id, epoch_id NULLS FIRST, asset_id, reward_type); NULLS FIRST asks for it.
-- One walk per market and asset, as long as a page at most, so that rows of others are not read; then the walks are
-- merged. Planned for the values at hand: the branches not taken vanish.
WITH wanted AS MATERIALIZED (
    SELECT DISTINCT market_id, asset_id
    FROM unnest($9::text[]) AS market (market_id), unnest(coalesce($10::text[], ARRAY[''])) AS asset (asset_id)
), page AS (
    (SELECT summary.* FROM wanted, LATERAL (
         SELECT epoch_id, market_id, asset_id, reward_type, sum(amount) AS amount FROM rewards
         WHERE rewards.market_id = wanted.market_id AND ($10 IS NULL OR rewards.asset_id = wanted.asset_id)
           AND ($1::int8 IS NULL OR epoch_id >= $1) AND ($2::int8 IS NULL OR $5 <= $2 OR epoch_id <= $2)
           AND ($5::int8 IS NULL OR $5 > $2
             OR (epoch_id, market_id, asset_id, reward_type) < ($5, $6::text, $7::text, $8::text))
         GROUP BY epoch_id, market_id, asset_id, reward_type
         ORDER BY epoch_id DESC NULLS LAST, market_id DESC, asset_id DESC, reward_type DESC
         LIMIT $4) AS summary
     WHERE $3
     ORDER BY epoch_id DESC NULLS LAST, market_id DESC, asset_id DESC, reward_type DESC
     LIMIT $4)
    UNION ALL
    (SELECT summary.* FROM wanted, LATERAL (
         SELECT epoch_id, market_id, asset_id, reward_type, sum(amount) AS amount FROM rewards
         WHERE rewards.market_id = wanted.market_id AND ($10 IS NULL OR rewards.asset_id = wanted.asset_id)
           AND ($1 IS NULL OR $5 >= $1 OR epoch_id >= $1) AND ($2 IS NULL OR epoch_id <= $2)
           AND ($5 IS NULL OR $5 < $1
             OR (epoch_id, market_id, asset_id, reward_type) > ($5, $6, $7, $8))
         GROUP BY epoch_id, market_id, asset_id, reward_type
         ORDER BY epoch_id NULLS FIRST, market_id, asset_id, reward_type
         LIMIT $4) AS summary
     WHERE NOT $3
     ORDER BY epoch_id NULLS FIRST, market_id, asset_id, reward_type
     LIMIT $4)
), behind AS (
    (SELECT FROM wanted, LATERAL (
         SELECT FROM rewards
         WHERE rewards.market_id = wanted.market_id AND ($10 IS NULL OR rewards.asset_id = wanted.asset_id)
           AND ($1 IS NULL OR $5 >= $1 OR epoch_id >= $1) AND ($2 IS NULL OR epoch_id <= $2)
           AND ($5 < $1
             OR (epoch_id, market_id, asset_id, reward_type) >= ($5, $6, $7, $8))
         ORDER BY epoch_id NULLS FIRST, market_id, asset_id, reward_type
         LIMIT 1) AS nearest
     WHERE $3 AND $5 IS NOT NULL)
    UNION ALL
    (SELECT FROM wanted, LATERAL (
         SELECT FROM rewards
         WHERE rewards.market_id = wanted.market_id AND ($10 IS NULL OR rewards.asset_id = wanted.asset_id)
           AND ($1 IS NULL OR epoch_id >= $1) AND ($2 IS NULL OR $5 <= $2 OR epoch_id <= $2)
           AND ($5 > $2
             OR (epoch_id, market_id, asset_id, reward_type) <= ($5, $6, $7, $8))
         ORDER BY epoch_id DESC NULLS LAST, market_id DESC, asset_id DESC, reward_type DESC
         LIMIT 1) AS nearest
     WHERE NOT $3 AND $5 IS NOT NULL)
)
SELECT head.height AS head_height, head.block_time AS head_time, EXISTS (SELECT FROM behind) AS behind,
    page.epoch_id, page.market_id, page.asset_id, page.reward_type, coalesce(page.amount, 0)::text AS amount
FROM (VALUES (1)) AS always
LEFT JOIN last_block AS head ON true
LEFT JOIN page ON true
