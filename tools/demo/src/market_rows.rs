//! The rows of a market: its definition with its state, its data from block to block, positions and margins.

use std::mem::take;

use serde_json::{Value, json};

use crate::{
    block::Draft,
    catalogue::{ASSETS, CATALOGUE},
    json::jsonb,
    market::{Market, State, Trigger},
    moment::Moment,
    oracles,
    plan::Plan,
    position::{Distress, Holding, Position, quotient},
    settlement::levels_above,
    world::{Kind, World},
};

impl Market {
    fn trading_mode(&self) -> &'static str {
        match (self.state, self.auction.trigger) {
            (State::Active, _) => "TRADING_MODE_CONTINUOUS",
            (State::Pending, _) => "TRADING_MODE_OPENING_AUCTION",
            (State::Suspended, Trigger::Batch) => "TRADING_MODE_BATCH_AUCTION",
            (State::Suspended, _) => "TRADING_MODE_MONITORING_AUCTION",
            _ => "TRADING_MODE_NO_TRADING",
        }
    }

    /// Writes the rows of everything that the block changed in this market.
    pub(crate) fn write_changes(&mut self, world: &mut World, draft: &mut Draft, plan: &Plan) {
        self.data_changed |= self.book.write_changes(world, draft, self.number);
        self.write_positions(world, draft);
        self.write_margins(world, draft);
        self.write_provisions(world, draft);
        if let Some(hash) = self.changed.take() {
            self.write_definition(world, draft, plan, &hash);
        }
        let turn = (draft.height + u64::from(self.number)).is_multiple_of(2);
        let lives = self.is_proposed() && (!self.state.is_final() || self.data_changed);
        let tenth = (draft.height + u64::from(self.number)).is_multiple_of(10);
        if lives && (turn && self.data_changed || tenth) {
            self.write_data(world, draft);
            self.data_changed = false;
            self.traded = self.traded * 9 / 10;
        }
    }

    /// Writes one row for every position that the block changed.
    fn write_positions(&mut self, world: &World, draft: &mut Draft) {
        let mut positions = take(&mut self.positions);
        for (&party, position) in &mut positions {
            let Some(transaction) = position.changed.take() else { continue };
            if take(&mut position.settles) {
                position.settled = position.pending;
                position.has_settled = true;
            }
            // Real networks write no transaction hash before the first settlement.
            let hash = if position.has_settled { transaction } else { String::new() };
            self.write_position(world, draft, party, position, &hash);
            if position.distress == Distress::ClosedOut && position.pending.open == 0 {
                position.distress = Distress::None;
            }
        }
        self.positions = positions;
    }

    fn write_position(&self, world: &World, draft: &mut Draft, party: u16, position: &Position, hash: &str) {
        let (scale, template) = (self.scale(), self.template());
        let asset_scale = 10i128.pow(ASSETS[usize::from(template.asset)].decimals - template.decimals);
        let figures = |holding: &Holding| {
            let volume = i128::from(holding.open.abs());
            [
                (holding.realised * scale).to_string(),
                (holding.unrealised(self.mark) * scale).to_string(),
                quotient(holding.entry * asset_scale, volume),
                quotient(holding.entry, volume),
            ]
        };
        let mut row = draft.rows.row("positions").text(world.market_id(self.number));
        row = row.text(world.party_id(party)).number(position.settled.open);
        for figure in figures(&position.settled) {
            row = row.text(&figure);
        }
        row = row.number(position.loss).number(-position.socialised).text(hash).time(draft.time);
        row = row.number(position.pending.open);
        for figure in figures(&position.pending) {
            row = row.text(&figure);
        }
        row.number(position.socialised).text(position.distress.label()).end();
    }

    /// Writes the margin levels that the block computed.
    fn write_margins(&mut self, world: &mut World, draft: &mut Draft) {
        for (party, (maintenance, hash)) in take(&mut self.margins) {
            let id = world.account_id(draft, self.party_key(party, Kind::Margin));
            let row = draft.rows.row("margin_levels").text(&id).time(draft.time).number(maintenance);
            let row = levels_above(maintenance).into_iter().fold(row, |row, level| row.number(level));
            row.text(&hash).time(draft.time).end();
        }
    }

    fn write_definition(&self, world: &World, draft: &mut Draft, plan: &Plan, hash: &str) {
        let template = self.template();
        // A step not reached yet has the time of the previous step; the end has none.
        let or = |time: Moment, before: Moment| if time == Moment::UNSET { before } else { time };
        let pending = or(self.times.pending, self.times.proposed);
        let open = or(self.times.open, pending);
        let mut times =
            json!({"proposed": self.times.proposed.ns(), "pending": pending.ns(), "open": open.ns()});
        if self.times.close != Moment::UNSET {
            times["close"] = self.times.close.ns().into();
        }
        let shared = |name: &str| jsonb(&CATALOGUE.definition[name]);
        let monitoring = if self.number.is_multiple_of(3) { "priceMonitoring" } else { "noPriceMonitoring" };
        let row = draft.rows.row("markets").text(world.market_id(self.number)).text(hash);
        // Real networks give their instruments a code and leave the id empty.
        let row = row.time(draft.time).text("");
        let row = row.text(&jsonb(&self.instrument(world, plan))).number(template.decimals);
        let row = row.text(&shared("fees")).text(&shared("openingAuction"));
        let row = row.text(&shared(monitoring)).text(&shared("liquidityMonitoring"));
        let row = row.text(self.trading_mode()).text(self.state.label()).text(&jsonb(&times));
        let row = row.number(template.position_decimals);
        let row = row.text(["0.95", "0.5", "1", "0.8"][usize::from(self.number % 4)]);
        // Releases without slippage factors write NULL here.
        match self.number % 4 {
            3 => row.null().null().end(),
            _ => row.text("0.1").text("0.10").end(),
        }
    }

    fn instrument(&self, world: &World, plan: &Plan) -> Value {
        let template = self.template();
        let (settlement, termination) = oracles::of_market(plan, self.number);
        // Templates are repeated when there are more markets, with a number in the later names.
        let series = match usize::from(self.number) / CATALOGUE.markets.len() {
            0 => String::new(),
            round => format!(".{}", round + 1),
        };
        json!({
            "instrument": {
                "code": format!("{}{series}", template.code),
                "name": format!("{}{series}", template.name),
                "metadata": {"tags": template.tags},
                "future": {
                    "quoteName": template.quote,
                    "settlementAsset": world.asset_id(template.asset),
                    "dataSourceSpecForSettlementData": {"id": settlement},
                    "dataSourceSpecForTradingTermination": {"id": termination},
                    "dataSourceSpecBinding": {
                        "settlementDataProperty": format!("prices.{}.value", template.code),
                        "tradingTerminationProperty": "trading.terminated",
                    },
                },
            },
            "marginCalculator": CATALOGUE.definition["marginCalculator"],
            "logNormalRiskModel": {
                "tau": 0.0001140771161,
                "params": {"mu": 0, "r": 0.016, "sigma": template.daily_volatility / 500.0},
                "riskAversionParameter": 0.000001,
            },
        })
    }

    fn write_data(&self, world: &World, draft: &mut Draft) {
        let position = draft.next_position();
        let hash = draft.hash();
        // A market that ended before it traded has no prices: 0 means none.
        let has_prices = !matches!(self.state, State::Rejected | State::Cancelled | State::Closed);
        let level = |is_bid, pegged| {
            if has_prices { self.book.best_level(is_bid, pegged) } else { (0, 0) }
        };
        let (bid, ask, static_bid, static_ask) =
            (level(true, true), level(false, true), level(true, false), level(false, false));
        let mark = if has_prices { self.mark } else { 0 };
        let middle = |bid: i64, ask: i64| if bid > 0 && ask > 0 { (bid + ask) / 2 } else { 0 };
        let open_interest: i64 = self.positions.values().map(|position| position.pending.open.max(0)).sum();
        let row = draft.rows.row("market_data").time(draft.time.plus_us(position)).text(&hash);
        let row = row.time(draft.time).number(position).text(world.market_id(self.number));
        let mut row = row.number(mark);
        for (price, volume) in [bid, ask, static_bid, static_ask] {
            row = row.number(price).number(volume);
        }
        row = row.number(middle(bid.0, ask.0)).number(middle(static_bid.0, static_ask.0));
        row = row.number(open_interest);
        row = row.number(self.auction.end.ns()).number(self.auction.start.ns());
        let volume = if self.in_auction() { self.indicative_volume() } else { 0 };
        let price = if volume > 0 { self.price() } else { 0 };
        row = row.number(price).number(volume).text(self.trading_mode()).text(self.auction.trigger.label());
        row = row.text(self.auction.extension.label());
        let supplied: i128 = self.shares().iter().map(|(_, commitment, _)| commitment).sum();
        row = row.number(self.value(self.mark, self.traded) / 20).number(supplied);
        row = match (self.number % 3, self.mark) {
            (0, 1..) => row.text(&bounds(self.mark)),
            _ => row.text("null"),
        };
        row = match self.state {
            State::Active | State::Suspended => row.text(&supplied.to_string()),
            _ => row.text("0"),
        };
        row = row.text(&self.fee_shares(world)).text(self.state.label());
        row.time(self.next_mark_to_market(draft.time)).end();
    }

    /// The next mark-to-market time. It does not advance while nothing is traded.
    fn next_mark_to_market(&self, now: Moment) -> Moment {
        let last = match self.state {
            State::Active => now,
            State::Suspended => self.auction.start,
            State::TradingTerminated | State::Settled => self.times.close,
            _ => Moment::ZERO_TIME,
        };
        last.plus_seconds(5)
    }

    fn fee_shares(&self, world: &World) -> String {
        let shares = self.shares();
        if shares.is_empty() {
            return "null".to_owned();
        }
        let share = |(party, commitment, share): &(u16, i128, f64)| {
            let party = world.party_id(*party);
            let share = format!("{share:.16}");
            format!(
                "{{\"party\": \"{party}\", \"average_score\": \"{share}\", \"equity_like_share\": \"{share}\", \
                 \"average_entry_valuation\": \"{commitment}\"}}"
            )
        };
        format!("[{}]", shares.iter().map(share).collect::<Vec<_>>().join(", "))
    }
}

/// The price monitoring bounds, beyond which an auction would begin, in the normal form of `jsonb`. Durations
/// in seconds are numbers, prices and probabilities texts, as in the other lists of market data.
fn bounds(mark: i64) -> String {
    let (low, high) = (mark * 92 / 100, mark * 108 / 100);
    format!(
        "[{{\"trigger\": {{\"horizon\": 43200, \"probability\": \"0.9999999\", \"auction_extension\": 600}}, \
         \"max_valid_price\": \"{high}\", \"min_valid_price\": \"{low}\", \"reference_price\": \"{mark}\"}}]"
    )
}
