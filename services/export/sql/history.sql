-- Rows of one table in one span; {table} and {order_by} are those of an exportable table. Bounds from next_span.sql. Uses an
-- index that begins with block_time.
COPY (
    SELECT * FROM {table}
    WHERE block_time >= current_setting('mesh.time_from')::timestamptz
        AND block_time <= current_setting('mesh.time_to')::timestamptz
    ORDER BY {order_by}
) TO STDOUT (FORMAT csv, HEADER)
