-- Session locks count the calls: unlike rows, they stay when a read-only statement fails.
CREATE FUNCTION abort_some() RETURNS bool LANGUAGE plpgsql SECURITY DEFINER AS $$ BEGIN
    IF (SELECT count(*) < {failures} FROM pg_locks WHERE locktype = 'advisory' AND database =
        (SELECT oid FROM pg_database WHERE datname = current_database())) THEN
        PERFORM pg_advisory_lock((random() * 1e9)::int);
        RAISE 'canceling statement due to conflict with recovery' USING ERRCODE = '40001';
    END IF;
    RETURN true;
END $$
