-- The session that a migration of this database waits for. No parameters; reads the list of sessions alone.
SELECT blocker.pid, coalesce(blocker.usename, '') AS user_name, coalesce(blocker.application_name, '') AS program
FROM pg_stat_activity AS waiting
CROSS JOIN LATERAL unnest(pg_blocking_pids(waiting.pid)) AS held(pid)
JOIN pg_stat_activity AS blocker ON blocker.pid = held.pid
WHERE waiting.datname = current_database() AND waiting.application_name = 'mesh migrate'
LIMIT 1
