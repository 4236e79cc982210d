-- Makes every read of accounts wait for advisory lock 1 after its snapshot.
CREATE FUNCTION waited() RETURNS bool LANGUAGE plpgsql SECURITY DEFINER AS
    $$ BEGIN
        WHILE NOT pg_try_advisory_xact_lock_shared(1) LOOP PERFORM pg_sleep(0.002); END LOOP;
        RETURN true;
    END $$;
ALTER TABLE accounts RENAME TO accounts_table;
CREATE VIEW accounts AS SELECT * FROM accounts_table WHERE waited();
