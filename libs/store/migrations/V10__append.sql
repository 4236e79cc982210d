-- What the user `ingest` needs: it inserts rows of history and state, and may not write the tables that follow from them.
-- The triggers that keep those run with the rights of their owner.

ALTER FUNCTION keep_last_block() SECURITY DEFINER;
ALTER FUNCTION keep_current_balances() SECURITY DEFINER;
ALTER FUNCTION keep_delegations_current() SECURITY DEFINER;
ALTER FUNCTION keep_network_parameters_current() SECURITY DEFINER;
ALTER FUNCTION keep_protocol_upgrade_proposals_current() SECURITY DEFINER;
ALTER FUNCTION keep_trades_candle() SECURITY DEFINER;
ALTER FUNCTION keep_assets_current() SECURITY DEFINER;
ALTER FUNCTION keep_markets_current() SECURITY DEFINER;
ALTER FUNCTION keep_positions_current() SECURITY DEFINER;

-- Locks the head until the end of the transaction and returns it: of all sessions that append blocks one continues, the
-- others wait. Without a block there is no row to lock, so an advisory lock ("meshhead") stands for it.
CREATE FUNCTION lock_head() RETURNS SETOF last_block
    LANGUAGE plpgsql SECURITY DEFINER SET search_path FROM CURRENT AS $$
BEGIN
    RETURN QUERY SELECT * FROM last_block FOR UPDATE;
    IF NOT FOUND THEN
        PERFORM pg_advisory_xact_lock(x'6d65736868656164'::int8);
        RETURN QUERY SELECT * FROM last_block FOR UPDATE;
    END IF;
END
$$;
REVOKE EXECUTE ON FUNCTION lock_head() FROM PUBLIC;
