-- All rows as of the end of the span, which is set by next_span.sql.
COPY (
    SELECT * FROM protocol_upgrade_proposals
    WHERE block_time <= current_setting('mesh.time_to')::timestamptz
    ORDER BY block_time, upgrade_block_height, network_release_tag
) TO STDOUT (FORMAT csv, HEADER)
