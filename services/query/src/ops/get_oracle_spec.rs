//! GetOracleSpec: the latest version of one oracle spec.

use actix::{Context, Handler};
use mesh_bus::{Answer, AnswerFuture, Ask};
use mesh_problem::Problem;
use mesh_store::{ReadError, RowReader, block_of};
use proto_msgs::{
    numbers::get_oracle_spec::ORACLE_SPEC,
    v2::{
        DataSourceDefinition, DataSourceDefinitionExternal, DataSourceDefinitionInternal, DataSourceSpec,
        DataSourceSpecConfiguration, DataSourceSpecConfigurationTime, ExternalDataSourceSpec,
        GetOracleSpecReply, GetOracleSpecRequest, OracleSpec, data_source_definition,
        data_source_definition_external, data_source_definition_internal, data_source_spec::Status,
    },
};
use serde_json::Value;

use super::data_source::{JsonReader, condition, filter, signer};
use crate::Query;

impl Handler<Ask<GetOracleSpecRequest>> for Query {
    type Result = AnswerFuture<GetOracleSpecReply>;

    fn handle(&mut self, ask: Ask<GetOracleSpecRequest>, _: &mut Context<Self>) -> Self::Result {
        let Ask(request, scope) = ask;
        let store = self.store.clone();
        scope.run(async move {
            let failed = |error: ReadError| error.problem(ORACLE_SPEC);
            let past = store.past(request.at_block, request.chain_id.as_deref(), ORACLE_SPEC).await?;
            let (id, time) = (request.oracle_spec_id, past.map(|past| past.time));
            let sql = include_str!("../../sql/get_oracle_spec.sql");
            let row = store.point(sql, &[&id, &time], past.as_ref()).await.map_err(failed)?;
            let spec =
                spec(&RowReader::new(&row, "oracle_specs", "id", store.unreadable())).map_err(failed)?;
            let spec =
                spec.ok_or_else(|| Problem::not_found(ORACLE_SPEC, "no such oracle spec").with_inner(id))?;
            let block = block_of(&row, past.as_ref()).map_err(failed)?;
            let external_data_source_spec = Some(ExternalDataSourceSpec { spec: Some(spec) });
            let reply = GetOracleSpecReply { oracle_spec: Some(OracleSpec { external_data_source_spec }) };
            Ok(Answer::at(block, reply).finally(past.is_some_and(|past| past.is_sealed)))
        })
    }
}

fn spec(row: &RowReader<'_>) -> Result<Option<DataSourceSpec>, ReadError> {
    let Some(id) = row.get::<Option<String>>("id")? else { return Ok(None) };
    Ok(Some(DataSourceSpec {
        id,
        created_at: row.ns("created_at")?,
        updated_at: row.ns("updated_at")?,
        status: row.named("status", Status::from_str_name)?.into(),
        data: Some(definition(row)?),
    }))
}

/// Internal time source when `internal_conditions` is not NULL, external otherwise (DATA_MODEL 3.1).
fn definition(row: &RowReader<'_>) -> Result<DataSourceDefinition, ReadError> {
    let note = |column| move |value: &Value| row.note(column, value);
    let source_type = match row.json("internal_conditions")? {
        Some(conditions) => {
            let conditions = JsonReader::new(&note("internal_conditions")).list(&conditions, condition);
            let time = DataSourceSpecConfigurationTime { conditions };
            let source_type = Some(data_source_definition_internal::SourceType::Time(time));
            data_source_definition::SourceType::Internal(DataSourceDefinitionInternal { source_type })
        }
        None => {
            let stored = |column| Ok::<_, ReadError>(row.json(column)?.unwrap_or_default());
            let oracle = DataSourceSpecConfiguration {
                signers: JsonReader::new(&note("signers")).list(&stored("signers")?, signer),
                filters: JsonReader::new(&note("filters")).list(&stored("filters")?, filter),
            };
            let source_type = Some(data_source_definition_external::SourceType::Oracle(oracle));
            data_source_definition::SourceType::External(DataSourceDefinitionExternal { source_type })
        }
    };
    Ok(DataSourceDefinition { source_type: Some(source_type) })
}
