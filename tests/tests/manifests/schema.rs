//! Every object against the schema of its kind, strictly: fields that the API server would drop or refuse are
//! errors.

use std::collections::BTreeMap;

use jsonschema::Validator;
use serde_json::{Value, json};

use crate::manifests::{differences, overlays, text};

const DEFINITIONS: &str = include_str!("schemas/kubernetes.json");
const KINDS: &str = include_str!("schemas/kinds.json");

/// The schema of a kind, such as `apps/v1/Deployment`.
fn validator(kind: &str) -> Validator {
    let kinds: Value = serde_json::from_str(KINDS).unwrap();
    let definitions: Value = serde_json::from_str(DEFINITIONS).unwrap();
    let schema = kinds.get(kind).unwrap_or_else(|| panic!("schemas/make.py makes no schema for {kind}"));
    jsonschema::draft4::new(&json!({"allOf": [schema], "definitions": definitions})).unwrap()
}

fn kind(object: &Value) -> String {
    format!("{}/{}", text(object, "/apiVersion"), text(object, "/kind"))
}

fn faults(object: &Value) -> Vec<String> {
    differences(&validator(&kind(object)), object)
}

#[test]
fn every_object_conforms_to_its_schema() {
    for overlay in overlays() {
        assert!(overlay.objects.len() > 40, "{} has {} objects", overlay.name, overlay.objects.len());
        let mut validators = BTreeMap::new();
        for object in &overlay.objects {
            let name = text(object, "/metadata/name");
            let validator = validators.entry(kind(object)).or_insert_with_key(|kind| validator(kind));
            let faults = differences(validator, object);
            assert!(faults.is_empty(), "{}: {} {name}: {faults:#?}", overlay.name, kind(object));
            let is_here = object["kind"] == "Namespace" || object["metadata"]["namespace"] == "tradewind";
            assert!(is_here, "{}: {} {name} is in no namespace", overlay.name, kind(object));
        }
    }
}

/// An unknown field is found in a built-in kind and in each custom one.
#[test]
fn unknown_fields_are_found() {
    let Some(production) = overlays().iter().find(|overlay| overlay.name == "production") else { return };
    for (kind, name, pointer, wrong) in [
        ("Deployment", "edge", "/spec/template/spec/containers/0", json!({"readinesProbe": {}})),
        ("Deployment", "edge", "/spec", json!({"minReadySeconds": "5"})),
        ("NetworkPolicy", "edge", "/spec", json!({"policyType": []})),
        ("Cluster", "postgres", "/spec", json!({"instance": 3})),
        ("ScaledObject", "export", "/spec", json!({"minReplicas": 2})),
        ("Certificate", "nats", "/spec", json!({"dnsName": "nats"})),
        ("PodMonitor", "services", "/spec/podMetricsEndpoints/0", json!({"timeout": "10s"})),
        ("PrometheusRule", "mesh", "/spec/groups/0", json!({"rule": []})),
    ] {
        let mut object = production.find(kind, name).unwrap().clone();
        assert_eq!(faults(&object), Vec::<String>::new());
        let pointer = object.pointer_mut(pointer).unwrap().as_object_mut().unwrap();
        pointer.extend(wrong.as_object().unwrap().clone());
        assert_eq!(faults(&object).len(), 1, "{kind} {wrong}");
    }
}
