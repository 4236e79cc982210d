-- What the earlier text of V13 left.
DELETE FROM refinery_schema_history WHERE version > 13;
UPDATE refinery_schema_history SET checksum = '8457550076064620688' WHERE version = 13;
CREATE INDEX deposits_marked_created_timestamp_id_idx ON deposits (id);
CREATE INDEX withdrawals_marked_created_timestamp_id_idx ON withdrawals (id);
CREATE INDEX orders_current_lifetime_market_idx ON orders_current (id);
CREATE INDEX orders_current_lifetime_party_idx ON orders_current (id);
DROP INDEX orders_current_lived_market_id_idx, orders_current_lived_party_id_idx;
DROP TABLE orders_rested;
DROP FUNCTION keep_orders_rested, keep_orders_owner CASCADE;
DROP FUNCTION lifetime_class;
