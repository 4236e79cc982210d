-- Rows of one exportable table in one span, in the order of its primary key. Bounds from next_span.sql, each read once
-- and not for every row. Uses an index that begins with block_time.
COPY (
    SELECT * FROM {table}
    WHERE block_time >= (SELECT current_setting('mesh.time_from')::timestamptz)
        AND block_time <= (SELECT current_setting('mesh.time_to')::timestamptz)
    ORDER BY {order_by}
) TO STDOUT (FORMAT csv, HEADER)
