-- A trade of the newest block with the id in place of `{id}`, otherwise like the newest one.
INSERT INTO trades (synthetic_time, tx_hash, block_time, seq_num, id, market_id, price, size,
    buyer, seller, aggressor, buy_order, sell_order, type)
    SELECT block.block_time, tx_hash, block.block_time, 0, '{id}', market_id, price, 4242, buyer,
    seller, aggressor, buy_order, sell_order, type
    FROM trades, (SELECT max(block_time) AS block_time FROM blocks) AS block
    ORDER BY synthetic_time DESC LIMIT 1
