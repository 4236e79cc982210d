//! Liquidity provisions: commitments with a bond.

use serde::{Deserialize, Serialize};
use serde_json::{Value, json};

use crate::{
    block::Draft, json::jsonb, labels::labelled, moment::Moment, order::reference_or_default, world::World,
};

labelled! {
    /// Status of a provision.
    ProvisionStatus {
        #[default]
        Pending = "STATUS_PENDING",
        Active = "STATUS_ACTIVE",
        Stopped = "STATUS_STOPPED",
        Cancelled = "STATUS_CANCELLED",
        Rejected = "STATUS_REJECTED",
        Undeployed = "STATUS_UNDEPLOYED",
    }
}

/// Price levels that a provider offers on each side.
pub(crate) const LEVELS: i64 = 2;

/// A party's commitment to a market.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub(crate) struct Provision {
    pub(crate) id: String,
    pub(crate) party: u16,
    pub(crate) commitment: i128,
    /// Fee in hundredths of a percent.
    pub(crate) fee: i64,
    pub(crate) status: ProvisionStatus,
    pub(crate) version: i64,
    pub(crate) reference: Option<String>,
    pub(crate) created: Moment,
    pub(crate) updated: Moment,
    /// Hash of the transaction of the present block that changed the provision.
    #[serde(skip)]
    pub(crate) changed: Option<String>,
}

impl Provision {
    /// Whether the party still offers prices for it, or will again.
    pub(crate) fn is_alive(&self) -> bool {
        use ProvisionStatus::{Active, Pending, Undeployed};
        matches!(self.status, Active | Pending | Undeployed)
    }

    pub(crate) fn set_status(&mut self, draft: &Draft, status: ProvisionStatus) {
        (self.status, self.updated, self.changed) = (status, draft.time, Some(draft.hash()));
    }

    /// Writes a row when the block changed the provision.
    pub(crate) fn write(&mut self, world: &World, draft: &mut Draft, market: u16) {
        let Some(hash) = self.changed.take() else { return };
        let row = draft.rows.row("liquidity_provisions").text(&self.id).text(world.party_id(self.party));
        let row = row.time(self.created).time(self.updated).text(world.market_id(market));
        let row = row.number(self.commitment).text(&format!("0.{:04}000000000000", self.fee));
        let (sells, buys) = (shape(&self.id, 3), shape(&self.id, 2));
        let row = row.text(&jsonb(&sells)).text(&jsonb(&buys)).number(self.version);
        let row = row.text(self.status.label());
        let row = row.text(&reference_or_default(self.reference.as_deref(), &self.id));
        row.text(&hash).time(draft.time).end();
    }
}

/// The promised orders of one side of the book; `reference` is 3 for the best ask, 2 for the best bid.
fn shape(id: &str, reference: i64) -> Value {
    let orders = (0..LEVELS).map(|level| {
        let liquidity_order = json!({
            "reference": reference,
            "proportion": 10 - 3 * level,
            "offset": (1 + 2 * level).to_string(),
        });
        json!({"order_id": format!("{}{reference}{level}", &id[..62]), "liquidity_order": liquidity_order})
    });
    orders.collect()
}
