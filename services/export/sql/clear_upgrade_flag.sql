-- Clears the upgrade flag (4.11) unless the newest block is the upgrade's own: the first block above it ends the state.
UPDATE node_state SET upgrade_ready = false, updated_at = now()
WHERE upgrade_ready AND EXISTS (SELECT FROM last_block WHERE height IS DISTINCT FROM upgrade_height)
