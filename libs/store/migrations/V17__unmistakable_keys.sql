-- Rows that would make lists contradict each other are refused.

-- Pages of accounts are cut between keys of the list, so that of accounts with the same key some would be on no page. NULL and
-- '' are the same party and market there. A database that has such accounts keeps them.
DO $$
BEGIN
    CREATE UNIQUE INDEX accounts_key_idx ON accounts (
        (CASE party_id WHEN 'network' THEN '' ELSE '+' || coalesce(party_id, '') END),
        (coalesce(market_id, '')), asset_id, (coalesce(type, 0)::int8)
    );
    DROP INDEX accounts_order_idx;
    ALTER INDEX accounts_key_idx RENAME TO accounts_order_idx;
EXCEPTION WHEN unique_violation THEN
    RAISE WARNING 'accounts with the same party, market, asset and type are stored; pages of accounts miss some of them';
END
$$;

-- Market and party of an order are those of its first version: lists as of a block find its versions by those of the newest one.
-- The trigger runs after keep_orders_current(), by the order of their names.
CREATE FUNCTION keep_orders_owner() RETURNS trigger
    LANGUAGE plpgsql SECURITY DEFINER SET search_path FROM CURRENT SET jit = off
    SET enable_seqscan = off SET enable_hashjoin = off SET enable_mergejoin = off AS $$
DECLARE
    moved text;
BEGIN
    SELECT inserted.id INTO moved FROM inserted JOIN orders_current AS kept USING (id)
    WHERE (kept.market_id, kept.party_id) IS DISTINCT FROM (inserted.market_id, inserted.party_id) LIMIT 1;
    IF moved IS NOT NULL THEN
        RAISE EXCEPTION 'order % has another market or party than before', moved;
    END IF;
    RETURN NULL;
END
$$;
CREATE TRIGGER keep_orders_owner AFTER INSERT ON orders
    REFERENCING NEW TABLE AS inserted FOR EACH STATEMENT EXECUTE FUNCTION keep_orders_owner();
