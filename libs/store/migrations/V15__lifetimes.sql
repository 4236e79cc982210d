-- Orders that were live at a time are found by the length of their lives: of each class of lengths those that began so
-- recently that they may have lived then. A walk of each class is in the order of the list, so that the walks are merged and a
-- page reads its own rows only; the GiST indexes gave all live orders, without an order.

-- The class of a life: the number of bounds, in seconds, that it reaches; 8 while it has no end.
CREATE FUNCTION lifetime_class(since timestamptz, until timestamptz) RETURNS int4 LANGUAGE sql IMMUTABLE PARALLEL SAFE
    RETURN coalesce(
        width_bucket(date_part('epoch', until - since), '{4,64,1024,16384,262144,4194304,67108864}'::float8[]),
        8
    );

DROP INDEX orders_current_lifetime_market_idx, orders_current_lifetime_party_idx;
DROP FUNCTION lifetime, micros;

-- An order that was never live is in neither index.
CREATE INDEX orders_current_lived_market_id_idx ON orders_current (
    market_id, lifetime_class(first_time, CASE WHEN NOT is_live THEN block_time END), first_time NULLS FIRST, id, block_time
) WHERE is_live OR block_time > first_time;
CREATE INDEX orders_current_lived_party_id_idx ON orders_current (
    party_id, lifetime_class(first_time, CASE WHEN NOT is_live THEN block_time END), first_time NULLS FIRST, id, block_time
) WHERE is_live OR block_time > first_time;
