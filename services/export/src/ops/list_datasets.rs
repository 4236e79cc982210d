//! ListDatasets: the tables that can be exported, with what the stored segments have of them and with their columns. Needs
//! the object store, not the database.

use actix::{Context, Handler};
use mesh_bus::{AnswerFuture, Ask};
use mesh_history::TableTotals;
use mesh_store::dictionary::{self, DescribedColumn};
use proto_msgs::{
    numbers::list_datasets::SEGMENTS,
    v2::{Dataset, DatasetColumn, ListDatasetsReply, ListDatasetsRequest, Table},
};

use crate::Export;

impl Handler<Ask<ListDatasetsRequest>> for Export {
    type Result = AnswerFuture<ListDatasetsReply>;

    fn handle(&mut self, Ask(_, scope): Ask<ListDatasetsRequest>, _: &mut Context<Self>) -> Self::Result {
        let (listing, catalogue) = (self.listing.borrow().clone(), self.catalogue.clone());
        scope.run(async move {
            let list = listing.newest(&catalogue, SEGMENTS).await?;
            let totals = list.totals();
            let dataset = |table: Table| to_message(table, totals.get(table.relation().as_str()));
            Ok(ListDatasetsReply { datasets: Table::exportable().into_iter().map(dataset).collect() }.into())
        })
    }
}

fn to_message(table: Table, totals: Option<&TableTotals>) -> Dataset {
    // Heights fit: the parser of segment names refuses those above `i64::MAX`.
    let signed = |number: u64| i64::try_from(number).unwrap_or(i64::MAX);
    let relation = table.relation();
    let columns = dictionary::tables().iter().find(|described| described.table == relation);
    let columns = columns.map(|described| described.columns.iter().map(column).collect()).unwrap_or_default();
    let named = Dataset { table: relation, r#enum: table.into(), columns, ..Dataset::default() };
    match totals {
        None => named,
        Some(totals) => Dataset {
            first_block: signed(totals.height_from),
            last_block: signed(totals.height_to),
            first_time: totals.block_time_from,
            last_time: totals.block_time_to,
            rows: totals.rows,
            bytes: totals.bytes,
            segments: u32::try_from(totals.segments).unwrap_or(u32::MAX),
            schema_versions: totals.database_versions.iter().map(|version| i64::from(*version)).collect(),
            ..named
        },
    }
}

fn column(described: &DescribedColumn) -> DatasetColumn {
    let DescribedColumn { name, kind, description, unit } = described.clone();
    DatasetColumn { name, r#type: kind, description, unit }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_exportable_table_is_described() {
        for table in Table::exportable() {
            let dataset = to_message(table, None);
            assert!(!dataset.columns.is_empty(), "{}", dataset.table);
            assert!(dataset.columns.iter().all(|column| !column.description.is_empty()), "{}", dataset.table);
        }
    }
}
