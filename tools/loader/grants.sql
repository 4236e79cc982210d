-- What the users beside the owner of a database may do in it. Run by that owner after every migration (`migrate` does), as
-- often as one likes. Of a user that the server does not know nothing is granted; where it knows none, nothing changes.
--
-- query, node-info   read every table
-- export             reads every table, and keeps the upgrade flag and the newest sealed span
-- ingest             reads every table, and inserts the rows of blocks
--
-- They are named like the services that log in as them: CREATE ROLE query LOGIN PASSWORD '…'
DO $grants$
DECLARE
    reader text;
    ours regclass;
    lock_function regprocedure;
    owner name;
    is_used boolean := false;
BEGIN
    FOR reader IN SELECT rolname FROM pg_roles WHERE rolname IN ('query', 'node-info', 'export', 'ingest') ORDER BY 1 LOOP
        is_used := true;
        EXECUTE format('GRANT CONNECT ON DATABASE %I TO %I', current_database(), reader);
        EXECUTE format('GRANT USAGE ON SCHEMA public TO %I', reader);
        FOR ours IN
            SELECT oid::regclass FROM pg_class
            WHERE relnamespace = 'public'::regnamespace AND relkind IN ('r', 'p', 'v', 'm') AND pg_has_role(relowner, 'USAGE')
        LOOP
            EXECUTE format('GRANT SELECT ON %s TO %I', ours, reader);
        END LOOP;
        -- And of tables that the owner adds by hand.
        EXECUTE format('ALTER DEFAULT PRIVILEGES IN SCHEMA public GRANT SELECT ON TABLES TO %I', reader);
        IF reader = 'export' THEN
            EXECUTE format('GRANT INSERT, UPDATE ON node_state, last_snapshot_span TO %I', reader);
        ELSIF reader = 'ingest' THEN
            EXECUTE format(
                'GRANT INSERT ON accounts, assets, balances, blocks, chain, checkpoints, delegations, deposits, epochs, '
                'ledger, liquidity_provisions, margin_levels, market_data, markets, network_limits, network_parameters, '
                'oracle_specs, orders, positions, protocol_upgrade_proposals, rewards, trades, withdrawals TO %I', reader);
            EXECUTE format('GRANT EXECUTE ON FUNCTION lock_head() TO %I', reader);
        END IF;
    END LOOP;
    IF NOT is_used THEN
        RETURN;
    END IF;
    -- What everybody may otherwise do: make temporary tables …
    EXECUTE format('REVOKE TEMPORARY ON DATABASE %I FROM PUBLIC', current_database());
    -- … and, which only a superuser can forbid, write large objects and hold the locks of writers.
    IF current_setting('is_superuser')::boolean THEN
        REVOKE EXECUTE ON FUNCTION lo_creat(integer), lo_create(oid), lo_from_bytea(oid, bytea) FROM PUBLIC;
        FOR lock_function IN
            SELECT oid FROM pg_proc WHERE pronamespace = 'pg_catalog'::regnamespace AND proname ~ '^pg_(try_)?advisory_'
        LOOP
            EXECUTE format('REVOKE EXECUTE ON FUNCTION %s FROM PUBLIC', lock_function);
            -- Owners migrate, load and seal, also when a superuser has migrated once.
            FOR owner IN
                SELECT pg_get_userbyid(datdba) FROM pg_database WHERE datname = current_database()
                UNION SELECT pg_get_userbyid(relowner) FROM pg_class WHERE oid = 'public.blocks'::regclass
            LOOP
                EXECUTE format('GRANT EXECUTE ON FUNCTION %s TO %I', lock_function, owner);
            END LOOP;
        END LOOP;
        -- The lock of sealing.
        IF EXISTS (SELECT FROM pg_roles WHERE rolname = 'export') THEN
            GRANT EXECUTE ON FUNCTION pg_try_advisory_lock(bigint), pg_advisory_unlock(bigint) TO export;
        END IF;
    END IF;
END
$grants$;
