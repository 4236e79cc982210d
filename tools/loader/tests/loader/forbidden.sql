CREATE TABLE more (n int)
CREATE TEMPORARY TABLE more (n int)
CREATE UNLOGGED TABLE more AS SELECT 1 AS n
CREATE SCHEMA more
CREATE VIEW more AS SELECT 1 AS n
CREATE SEQUENCE more
CREATE FUNCTION more() RETURNS int LANGUAGE sql AS 'SELECT 1'
CREATE FUNCTION pg_temp.more() RETURNS int LANGUAGE sql AS 'SELECT 1'
CREATE TYPE more AS ENUM ('a')
CREATE DATABASE more
CREATE ROLE more
ALTER ROLE CURRENT_USER SUPERUSER
GRANT pg_read_all_data TO CURRENT_USER
SET SESSION AUTHORIZATION DEFAULT; SET ROLE pg_write_all_data
SELECT pg_advisory_lock(1)
SELECT pg_try_advisory_xact_lock_shared(1, 1)
SELECT lo_create(0)
SELECT lo_from_bytea(0, 'x')
SELECT lo_import('/etc/hostname')
SELECT pg_read_file('PG_VERSION')
COPY (SELECT 1) TO PROGRAM 'true'
SELECT pg_reload_conf()
DELETE FROM trades_candle_1_hour WHERE false
