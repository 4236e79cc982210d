//! GetOracleSpec: the latest version of one oracle spec.

use actix::{Context, Handler};
use mesh_bus::{Answer, AnswerFuture, Ask};
use mesh_problem::Problem;
use mesh_store::{ReadError, Row, TimeUs, head_of};
use proto_msgs::{
    numbers::get_oracle_spec::ORACLE_SPEC,
    v2::{
        DataSourceDefinition, DataSourceDefinitionExternal, DataSourceDefinitionInternal, DataSourceSpec,
        DataSourceSpecConfiguration, DataSourceSpecConfigurationTime, ExternalDataSourceSpec,
        GetOracleSpecReply, GetOracleSpecRequest, OracleSpec, data_source_definition,
        data_source_definition_external, data_source_definition_internal, data_source_spec::Status,
    },
};
use serde::de::DeserializeOwned;
use serde_json::Value;

use crate::Query;

impl Handler<Ask<GetOracleSpecRequest>> for Query {
    type Result = AnswerFuture<GetOracleSpecReply>;

    fn handle(
        &mut self,
        Ask(request, scope): Ask<GetOracleSpecRequest>,
        _: &mut Context<Self>,
    ) -> Self::Result {
        let store = self.store.clone();
        scope.run(async move {
            let failed = |error: ReadError| error.problem(ORACLE_SPEC);
            let id = request.oracle_spec_id;
            let row =
                store.point(include_str!("../../sql/get_oracle_spec.sql"), &[&id]).await.map_err(failed)?;
            let spec = spec(&row).map_err(failed)?;
            let spec =
                spec.ok_or_else(|| Problem::not_found(ORACLE_SPEC, "no such oracle spec").with_inner(id))?;
            let head = head_of(&row).map_err(failed)?;
            let external_data_source_spec = Some(ExternalDataSourceSpec { spec: Some(spec) });
            Ok(Answer::at(
                head,
                GetOracleSpecReply { oracle_spec: Some(OracleSpec { external_data_source_spec }) },
            ))
        })
    }
}

fn spec(row: &Row) -> Result<Option<DataSourceSpec>, ReadError> {
    let Some(id) = row.try_get::<_, Option<String>>("id")? else { return Ok(None) };
    let status: &str = row.try_get("status")?;
    Ok(Some(DataSourceSpec {
        id,
        created_at: row.try_get::<_, TimeUs>("created_at")?.ns(),
        updated_at: row.try_get::<_, TimeUs>("updated_at")?.ns(),
        status: Status::from_str_name(status).unwrap_or_default().into(),
        data: Some(definition(row)?),
    }))
}

/// Internal time source when `internal_conditions` is not NULL, external otherwise (DATA_MODEL 3.1).
fn definition(row: &Row) -> Result<DataSourceDefinition, ReadError> {
    let source_type = match row.try_get("internal_conditions")? {
        Some(conditions) => {
            let time = DataSourceSpecConfigurationTime { conditions: list(Some(conditions))? };
            let source_type = Some(data_source_definition_internal::SourceType::Time(time));
            data_source_definition::SourceType::Internal(DataSourceDefinitionInternal { source_type })
        }
        None => {
            let oracle = DataSourceSpecConfiguration {
                signers: list(row.try_get("signers")?)?,
                filters: list(row.try_get("filters")?)?,
            };
            let source_type = Some(data_source_definition_external::SourceType::Oracle(oracle));
            data_source_definition::SourceType::External(DataSourceDefinitionExternal { source_type })
        }
    };
    Ok(DataSourceDefinition { source_type: Some(source_type) })
}

/// A stored list in the API's own form, enums by name or number.
fn list<T: DeserializeOwned>(stored: Option<Value>) -> Result<Vec<T>, ReadError> {
    match without_nulls(stored.unwrap_or_default()) {
        Value::Null => Ok(Vec::new()),
        stored => serde_json::from_value(stored).map_err(|error| ReadError::Unreadable(error.to_string())),
    }
}

/// Removes members that are `null`: an absent list may be stored so, but the contract's messages do not parse
/// it.
fn without_nulls(value: Value) -> Value {
    match value {
        Value::Object(fields) => {
            let present = fields.into_iter().filter(|(_, value)| !value.is_null());
            Value::Object(present.map(|(name, value)| (name, without_nulls(value))).collect())
        }
        Value::Array(items) => Value::Array(items.into_iter().map(without_nulls).collect()),
        other => other,
    }
}

#[cfg(test)]
mod tests {
    use proto_msgs::v2::{Filter, Signer, condition::Operator, property_key::Type, signer};
    use serde_json::json;

    use super::*;

    #[test]
    fn enums_are_read_by_name_and_by_number() {
        let stored = json!([{
            "key": {"name": "price", "type": 2, "numberDecimalPlaces": 5, "unknown": null},
            "conditions": [{"operator": "OPERATOR_GREATER_THAN", "value": "1"}, {"operator": 5, "value": "2"}],
        }, {"key": {"name": "time", "type": "TYPE_TIMESTAMP"}, "conditions": null}]);
        let filters: Vec<Filter> = list(Some(stored)).unwrap();
        let key = filters[0].key.as_ref().unwrap();
        assert_eq!((key.r#type(), key.number_decimal_places), (Type::Integer, Some(5)));
        let operators: Vec<_> = filters[0].conditions.iter().map(|condition| condition.operator()).collect();
        assert_eq!(operators, [Operator::GreaterThan, Operator::LessThanOrEqual]);
        assert_eq!(filters[1].key.as_ref().unwrap().number_decimal_places, None);
    }

    #[test]
    fn both_kinds_of_signers_are_read() {
        let stored = json!([{"pubKey": {"key": "ab"}}, {"ethAddress": {"address": "0x1"}}]);
        let signers: Vec<Signer> = list(Some(stored)).unwrap();
        assert!(matches!(signers[0].signer, Some(signer::Signer::PubKey(_))));
        assert!(matches!(signers[1].signer, Some(signer::Signer::EthAddress(_))));
    }

    #[test]
    fn what_cannot_be_read_is_an_error_and_not_a_default() {
        assert!(list::<Filter>(Some(json!([{"key": {"type": "TYPE_FOO"}}]))).is_err());
    }
}
