-- Ends the sessions of this user that append blocks and have sent nothing for a while inside a transaction: their
-- process is frozen, or its machine is gone.
SELECT pg_terminate_backend(pid) FROM pg_stat_activity
WHERE usename = current_user AND datname = current_database() AND pid <> pg_backend_pid()
    AND application_name = current_setting('application_name')
    AND wait_event = 'ClientRead' AND state IN ('active', 'idle in transaction')
    -- Of a COPY only the transaction's beginning is known.
    AND CASE state WHEN 'active' THEN xact_start ELSE state_change END < clock_timestamp() - interval '900 ms'
