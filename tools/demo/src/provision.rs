//! Liquidity provisions: commitments with a bond.

use serde::{Deserialize, Serialize};
use serde_json::{Value, json};

use crate::{
    block::Draft, json::jsonb, labels::labelled, moment::Moment, order::reference_or_default, tables::Table,
    world::World,
};

labelled! {
    /// Status of a provision.
    ProvisionStatus {
        Active = "STATUS_ACTIVE",
        Stopped = "STATUS_STOPPED",
        Cancelled = "STATUS_CANCELLED",
        Rejected = "STATUS_REJECTED",
        Undeployed = "STATUS_UNDEPLOYED",
        Pending = "STATUS_PENDING",
    }
}

impl ProvisionStatus {
    fn is_final(self) -> bool {
        matches!(self, ProvisionStatus::Stopped | ProvisionStatus::Cancelled | ProvisionStatus::Rejected)
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
    fee: i64,
    pub(crate) status: ProvisionStatus,
    version: i64,
    reference: Option<String>,
    created: Moment,
    updated: Moment,
    #[serde(skip)]
    changed: Option<usize>,
}

impl Provision {
    pub(crate) fn new(
        draft: &mut Draft,
        party: u16,
        commitment: i128,
        status: ProvisionStatus,
        reference: Option<String>,
    ) -> Self {
        Provision {
            id: draft.random.id(),
            party,
            commitment,
            fee: 10 + 5 * i64::from(party),
            status,
            version: 1,
            reference,
            created: draft.time,
            updated: draft.time,
            changed: Some(draft.transaction()),
        }
    }

    /// Whether the party still offers prices for it.
    pub(crate) fn is_alive(&self) -> bool {
        !self.status.is_final()
    }

    pub(crate) fn set_status(&mut self, draft: &Draft, status: ProvisionStatus) {
        self.status = status;
        self.updated = draft.time;
        self.changed = Some(draft.transaction());
    }

    /// Changes the commitment, as the provision's next version.
    pub(crate) fn amend(&mut self, draft: &Draft, more: i128) {
        self.commitment += more;
        self.fee += 1;
        self.version += 1;
        self.set_status(draft, self.status);
    }

    /// Writes a row when the block changed the provision.
    pub(crate) fn write_changes(&mut self, world: &World, draft: &mut Draft, market: u16) {
        let Some(transaction) = self.changed.take() else { return };
        let hash = draft.hash_of(transaction);
        let row = draft.rows.row(Table::LiquidityProvisions).text(&self.id).text(world.party_id(self.party));
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
