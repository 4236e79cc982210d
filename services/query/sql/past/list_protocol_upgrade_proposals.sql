SELECT kept.upgrade_block_height, kept.network_release_tag, version.approvers, version.status
FROM protocol_upgrade_proposals_current AS kept CROSS JOIN LATERAL (
    SELECT approvers, status FROM protocol_upgrade_proposals AS version
    WHERE version.upgrade_block_height = kept.upgrade_block_height
        AND version.network_release_tag = kept.network_release_tag AND version.block_time <= {time}
    ORDER BY version.block_time DESC LIMIT 1
) AS version
