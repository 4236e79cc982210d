//! The rows of a market: its definition with its state, its data from block to block, and positions.

use mesh_store::TimeUs;
use serde_json::{Value, json};

use crate::{
    block::Draft,
    catalogue::{ASSETS, CATALOGUE},
    market::{Market, State, Trigger},
    oracles,
    position::{Holding, quotient},
    rows::label,
};

/// An unset time as real networks write it: the zero time of their clock (year 1) as 64-bit nanoseconds, which
/// overflows.
const ZERO_TIME: TimeUs = TimeUs(-6_795_364_578_871_346);

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
    pub(crate) fn write_changes(&mut self, draft: &mut Draft<'_>) {
        self.data_changed |= self.book.write_changes(draft, self.number);
        for (party, hash) in std::mem::take(&mut self.touched) {
            self.update_margin(draft, party, &hash);
            self.write_position(draft, party, &hash);
        }
        let place = draft.height + u64::from(self.number);
        let lives = !self.times.is_empty() && (!self.has_ended() || self.data_changed);
        if lives && (place.is_multiple_of(2) && self.data_changed || place.is_multiple_of(10)) {
            self.write_data(draft);
            self.data_changed = false;
            self.traded = self.traded * 9 / 10;
        }
    }

    fn write_position(&mut self, draft: &mut Draft<'_>, party: u16, hash: &str) {
        let (scale, template) = (self.scale(), self.template());
        let asset_scale = 10i128.pow(ASSETS[usize::from(template.asset)].decimals - template.decimals);
        let position = self.positions.entry(party).or_default();
        let (settled, pending) = (&position.settled, &position.pending);
        let unrealised = |holding: &Holding| holding.unrealised(self.mark) * scale;
        let average =
            |holding: &Holding, scale| quotient(holding.entry * scale, i128::from(holding.open.abs()));
        // Real networks write no transaction hash before the first settlement.
        let hash = if *settled == Holding::default() { "" } else { hash };
        row! { draft, positions:
            market_id: draft.world.market_id(self.number), party_id: draft.world.party_id(party),
            open_volume: settled.open, realised_pnl: settled.realised * scale,
            unrealised_pnl: unrealised(settled), average_entry_price: average(settled, asset_scale),
            average_entry_market_price: average(settled, 1), loss: position.loss,
            adjustment: -position.socialised, tx_hash: hash, pending_open_volume: pending.open,
            pending_realised_pnl: pending.realised * scale, pending_unrealised_pnl: unrealised(pending),
            pending_average_entry_price: average(pending, asset_scale),
            pending_average_entry_market_price: average(pending, 1),
            loss_socialisation_amount: position.socialised,
            distressed_status: label("POSITION_STATUS", position.distress),
        }
    }

    pub(crate) fn write_definition(&self, draft: &mut Draft<'_>) {
        let template = self.template();
        let shared = |name: &str| &CATALOGUE.definition[name];
        let monitoring = if self.number.is_multiple_of(3) { "priceMonitoring" } else { "noPriceMonitoring" };
        // Releases without slippage factors write NULL.
        let slippage = |factor: &'static str| (self.number % 4 != 3).then_some(factor);
        // Real networks give their instruments a code and leave the id empty.
        row! { draft, markets:
            id: draft.world.market_id(self.number), instrument_id: "",
            tradable_instrument: self.instrument(draft), decimal_places: template.decimals,
            fees: shared("fees"), opening_auction: shared("openingAuction"),
            price_monitoring_settings: shared(monitoring),
            liquidity_monitoring_parameters: shared("liquidityMonitoring"),
            trading_mode: self.trading_mode(), state: label("STATE", self.state),
            market_timestamps: json!(self.times), position_decimal_places: template.position_decimals,
            lp_price_range: ["0.95", "0.5", "1", "0.8"][usize::from(self.number % 4)],
            quadratic_slippage_factor: slippage("0.1"), linear_slippage_factor: slippage("0.10"),
        }
    }

    fn instrument(&self, draft: &Draft<'_>) -> Value {
        let template = self.template();
        let [settlement, termination] = oracles::of_market(draft.plan, self.number);
        // Templates are repeated when there are more markets, with a number in the later names.
        let series = match usize::from(self.number) / CATALOGUE.markets.len() {
            0 => String::new(),
            round => format!(".{}", round + 1),
        };
        let mut tradable = CATALOGUE.definition["tradable"].clone();
        tradable["logNormalRiskModel"]["params"]["sigma"] = json!(template.daily_volatility / 500.0);
        let instrument = &mut tradable["instrument"];
        instrument["code"] = json!(format!("{}{series}", template.code));
        instrument["name"] = json!(format!("{}{series}", template.name));
        instrument["metadata"]["tags"] = json!(template.tags);
        let future = &mut instrument["future"];
        future["quoteName"] = json!(template.quote);
        future["settlementAsset"] = json!(draft.world.asset_id(template.asset));
        future["dataSourceSpecForSettlementData"]["id"] = json!(settlement);
        future["dataSourceSpecForTradingTermination"]["id"] = json!(termination);
        future["dataSourceSpecBinding"]["settlementDataProperty"] =
            json!(format!("prices.{}.value", template.code));
        tradable
    }

    fn write_data(&self, draft: &mut Draft<'_>) {
        // A market that ended before it traded has no prices: 0 means none.
        let has_prices = !matches!(self.state, State::Rejected | State::Cancelled | State::Closed);
        let level = |buy, pegged| if has_prices { self.book.best_level(buy, pegged) } else { (0, 0) };
        let [bid, ask, static_bid, static_ask] = [(true, true), (false, true), (true, false), (false, false)]
            .map(|(buy, pegged)| level(buy, pegged));
        let middle =
            |bid: (i64, i64), ask: (i64, i64)| if bid.0 > 0 && ask.0 > 0 { (bid.0 + ask.0) / 2 } else { 0 };
        let mark = if has_prices { self.mark } else { 0 };
        let indicative = self.auction_volume();
        let shares = self.shares();
        let supplied: i128 = shares.iter().map(|(_, commitment, _)| commitment).sum();
        let proxy =
            matches!(self.state, State::Active | State::Suspended).then_some(supplied).unwrap_or_default();
        row! { draft, market_data:
            market: draft.world.market_id(self.number), mark_price: mark, best_bid_price: bid.0,
            best_bid_volume: bid.1, best_offer_price: ask.0, best_offer_volume: ask.1,
            best_static_bid_price: static_bid.0, best_static_bid_volume: static_bid.1,
            best_static_offer_price: static_ask.0, best_static_offer_volume: static_ask.1,
            mid_price: middle(bid, ask), static_mid_price: middle(static_bid, static_ask),
            open_interest: self.positions.values().map(|position| position.pending.open.max(0)).sum::<i64>(),
            auction_end: self.auction.end.ns(), auction_start: self.auction.start.ns(),
            indicative_price: if indicative > 0 { self.price() } else { 0 },
            indicative_volume: indicative, market_trading_mode: self.trading_mode(),
            auction_trigger: label("AUCTION_TRIGGER", self.auction.trigger),
            extension_trigger: label("AUCTION_TRIGGER", self.auction.extension),
            target_stake: self.value(self.mark, self.traded) / 20, supplied_stake: supplied,
            price_monitoring_bounds: bounds(self.number, self.mark), market_value_proxy: proxy,
            liquidity_provider_fee_shares: fee_shares(draft, &shares),
            market_state: label("STATE", self.state),
            next_mark_to_market: self.next_mark_to_market(draft.time),
        }
    }

    /// The next mark-to-market time. It does not advance while nothing is traded.
    fn next_mark_to_market(&self, now: TimeUs) -> TimeUs {
        let last = match self.state {
            State::Active => now,
            State::Suspended | State::TradingTerminated | State::Settled => self.since,
            _ => ZERO_TIME,
        };
        last.plus_seconds(5)
    }
}

fn fee_shares(draft: &Draft<'_>, shares: &[(u16, i128, f64)]) -> Value {
    let share = |(party, commitment, share): &(u16, i128, f64)| {
        let share = format!("{share:.16}");
        json!({
            "party": draft.world.party_id(*party), "average_score": share, "equity_like_share": share,
            "average_entry_valuation": commitment.to_string(),
        })
    };
    if shares.is_empty() { Value::Null } else { shares.iter().map(share).collect() }
}

/// The price monitoring bounds, beyond which an auction would begin; every third market has them. Durations
/// in seconds are numbers, prices and probabilities texts, as in the other lists of market data.
fn bounds(market: u16, mark: i64) -> Value {
    if !market.is_multiple_of(3) || mark == 0 {
        return Value::Null;
    }
    json!([{
        "trigger": {"horizon": 43_200, "probability": "0.9999999", "auction_extension": 600},
        "max_valid_price": (mark * 108 / 100).to_string(), "min_valid_price": (mark * 92 / 100).to_string(),
        "reference_price": mark.to_string(),
    }])
}
