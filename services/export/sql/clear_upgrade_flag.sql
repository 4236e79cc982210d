-- Clears the upgrade flag (4.11) once a block at or above the upgrade is stored.
UPDATE node_state SET upgrade_ready = false, updated_at = now()
WHERE upgrade_ready AND EXISTS (SELECT FROM last_block WHERE height >= upgrade_height)
