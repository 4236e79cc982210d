-- Four blocks and four thousand trades that do not pack well: with two blocks a segment, downloads of half a megabyte.
INSERT INTO chain (id) VALUES ('test/net');

INSERT INTO trades (synthetic_time, tx_hash, block_time, seq_num, id, market_id, price, size, buyer, seller,
    buy_order, sell_order, type)
SELECT block_time + seq * interval '1 us', md5(seq || 't'), block_time, seq, md5(block || 'i' || seq),
    repeat('a1', 32), 1000, 10, md5(seq || 'b'), md5(seq || 's'), md5(seq || 'o'), md5(seq || 'p'), 1
FROM (SELECT block, timestamptz '2023-06-20 10:00:00+00' + block * interval '1 s' AS block_time
      FROM generate_series(1, 4) AS block) AS blocks, generate_series(0, 999) AS seq;

INSERT INTO blocks (block_time, height, hash)
SELECT timestamptz '2023-06-20 10:00:00+00' + block * interval '1 s', block, md5('' || block)
FROM generate_series(1, 4) AS block;
