-- A page of a filtered list is a walk along the index of its filter. The planner cannot know how rare a party, an
-- asset or a market is, and near the end of a list it would rather walk the index of all rows and throw most of them
-- away. No column here is ever NULL, so NULLS FIRST changes no order: it is the mark by which a statement asks for
-- the order of these indexes and of no other.

DROP INDEX delegations_current_party_id_epoch_id_node_id_idx, delegations_current_node_id_epoch_id_party_id_idx;
CREATE INDEX delegations_current_party_id_epoch_id_node_id_idx
    ON delegations_current (party_id, epoch_id NULLS FIRST, node_id);
CREATE INDEX delegations_current_node_id_epoch_id_party_id_idx
    ON delegations_current (node_id, epoch_id NULLS FIRST, party_id);

-- Reward summaries of some assets or markets: without these a page reads the rewards of all others in between.
CREATE INDEX rewards_asset_id_epoch_id_market_id_reward_type_idx
    ON rewards (asset_id, epoch_id NULLS FIRST, market_id, reward_type);
CREATE INDEX rewards_market_id_epoch_id_asset_id_reward_type_idx
    ON rewards (market_id, epoch_id NULLS FIRST, asset_id, reward_type);
