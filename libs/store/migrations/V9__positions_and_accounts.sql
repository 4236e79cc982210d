-- What the lists of positions and accounts read (contract 4.9 and 4.21).

-- Positions: what the trades since the last settlement changed (`pending_…`), beside the figures of that settlement.
-- Filled again from the history, whose newest rows are one step down an index per party and market.
TRUNCATE positions_current;
ALTER TABLE positions_current
    ADD COLUMN pending_open_volume                int8 NOT NULL,
    ADD COLUMN pending_realised_pnl               numeric NOT NULL,
    ADD COLUMN pending_unrealised_pnl             numeric NOT NULL,
    ADD COLUMN pending_average_entry_market_price numeric NOT NULL,
    ADD COLUMN loss_socialisation_amount          numeric NOT NULL,
    ADD COLUMN distressed_status                  position_status_type NOT NULL;

CREATE OR REPLACE FUNCTION keep_positions_current() RETURNS trigger
    LANGUAGE plpgsql SET search_path FROM CURRENT SET jit = off AS $$
BEGIN
    INSERT INTO positions_current AS kept
        (party_id, market_id, open_volume, realised_pnl, unrealised_pnl, average_entry_price, block_time,
        pending_open_volume, pending_realised_pnl, pending_unrealised_pnl, pending_average_entry_market_price,
        loss_socialisation_amount, distressed_status)
    SELECT DISTINCT ON (party_id, market_id)
        party_id, market_id, open_volume, realised_pnl, unrealised_pnl, average_entry_price, block_time,
        pending_open_volume, pending_realised_pnl, pending_unrealised_pnl, pending_average_entry_market_price,
        loss_socialisation_amount, distressed_status
    FROM inserted
    ORDER BY party_id, market_id, block_time DESC
    ON CONFLICT (party_id, market_id) DO UPDATE
        SET open_volume = EXCLUDED.open_volume, realised_pnl = EXCLUDED.realised_pnl,
            unrealised_pnl = EXCLUDED.unrealised_pnl, average_entry_price = EXCLUDED.average_entry_price,
            block_time = EXCLUDED.block_time, pending_open_volume = EXCLUDED.pending_open_volume,
            pending_realised_pnl = EXCLUDED.pending_realised_pnl,
            pending_unrealised_pnl = EXCLUDED.pending_unrealised_pnl,
            pending_average_entry_market_price = EXCLUDED.pending_average_entry_market_price,
            loss_socialisation_amount = EXCLUDED.loss_socialisation_amount,
            distressed_status = EXCLUDED.distressed_status
        WHERE EXCLUDED.block_time >= kept.block_time;
    RETURN NULL;
END
$$;

INSERT INTO positions_current
    (party_id, market_id, open_volume, realised_pnl, unrealised_pnl, average_entry_price, block_time,
    pending_open_volume, pending_realised_pnl, pending_unrealised_pnl, pending_average_entry_market_price,
    loss_socialisation_amount, distressed_status)
SELECT DISTINCT ON (party_id, market_id)
    party_id, market_id, open_volume, realised_pnl, unrealised_pnl, average_entry_price, block_time,
    pending_open_volume, pending_realised_pnl, pending_unrealised_pnl, pending_average_entry_market_price,
    loss_socialisation_amount, distressed_status
FROM positions
ORDER BY party_id, market_id, block_time DESC;

-- Accounts in the order of the contract: by party, `network` before all others, market, asset and type. `party_order`
-- is the form of a party in which the bytes sort so; the readers of pages know it.
CREATE VIEW accounts_with_balances AS
    SELECT
        CASE accounts.party_id WHEN 'network' THEN '' ELSE '+' || coalesce(accounts.party_id, '') END AS party_order,
        coalesce(accounts.market_id, '') AS market, accounts.asset_id AS asset,
        coalesce(accounts.type, 0)::int8 AS type_number, coalesce(accounts.party_id, '') AS party,
        coalesce(current_balances.balance, 0) AS balance
    FROM accounts
    LEFT JOIN current_balances ON current_balances.account_id = accounts.id;
CREATE INDEX accounts_order_idx ON accounts (
    (CASE party_id WHEN 'network' THEN '' ELSE '+' || coalesce(party_id, '') END),
    (coalesce(market_id, '')), asset_id, (coalesce(type, 0)::int8)
);
-- NULLS FIRST is the mark of the walks that filter (see V5__walks.sql).
CREATE INDEX accounts_market_order_idx ON accounts (
    (coalesce(market_id, '')), (CASE party_id WHEN 'network' THEN '' ELSE '+' || coalesce(party_id, '') END) NULLS FIRST,
    asset_id, (coalesce(type, 0)::int8)
);

COMMENT ON COLUMN positions.open_volume IS 'Size at the last settlement; negative = sold';
COMMENT ON COLUMN positions.pending_open_volume IS 'As open_volume, with the trades since the last settlement';
COMMENT ON COLUMN positions.pending_realised_pnl IS 'As realised_pnl, with the trades since the last settlement';
COMMENT ON COLUMN positions.pending_unrealised_pnl IS 'As unrealised_pnl, with the trades since the last settlement';
COMMENT ON COLUMN positions.pending_average_entry_price IS
    'As average_entry_price, with the trades since the last settlement';
COMMENT ON COLUMN positions.pending_average_entry_market_price IS
    'As average_entry_market_price, with the trades since the last settlement';
