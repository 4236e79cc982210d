//! Where the workloads find each other, and whether they fit a small machine. Behind a headless Service a restart lasts as
//! long as somebody caches the record of the pod's address; a ClusterIP outlives the pod.

use std::collections::BTreeSet;

use serde_json::{Value, json};

use crate::rendered::{Overlay, overlays, parts, text};

/// What the manifests leave to an operator: CloudNativePG makes the Services of its cluster, with addresses that last.
const MADE_BY_AN_OPERATOR: [&str; 2] = ["postgres-rw", "postgres-ro"];

/// What is free of a machine of two cores beside the control plane of kind, millicores.
const FREE_MILLICORES: u64 = 1000;

/// Host names of all addresses in the variables of the workloads, without those outside of the namespace.
fn hosts(overlay: &Overlay) -> BTreeSet<(String, String)> {
    let mut hosts = BTreeSet::new();
    for (workload, _) in overlay.templates() {
        for value in overlay.variables(workload).values() {
            for url in value.split(',').filter_map(|one| one.split_once("://")) {
                let (_, rest) = url;
                let authority = rest.split(['/', '?']).next().unwrap_or_default();
                let host =
                    authority.rsplit('@').next().unwrap_or_default().split(':').next().unwrap_or_default();
                hosts.insert((workload.to_owned(), host.to_owned()));
            }
        }
    }
    hosts.retain(|(_, host)| {
        !host.is_empty() && !host.ends_with(".example.org") && !host.starts_with("tradewind-")
    });
    hosts
}

/// What is wrong with the addresses of an overlay.
fn faults(overlay: &Overlay) -> Vec<String> {
    let is_headless = |service: &Value| service["spec"]["clusterIP"] == "None";
    let certified: BTreeSet<_> = overlay
        .of_kind("Certificate")
        .flat_map(|one| parts(one, "/spec/dnsNames"))
        .filter_map(Value::as_str)
        .collect();
    let mut faults = Vec::new();
    for (workload, host) in hosts(overlay) {
        let (pod, service_name) =
            host.split_once('.').map_or((None, host.as_str()), |(pod, of)| (Some(pod), of));
        let service = overlay.find("Service", service_name);
        let fault = match (pod, service) {
            (None, None) if overlay.name == "production" && MADE_BY_AN_OPERATOR.contains(&service_name) => {
                None
            }
            (_, None) => Some("there is no such Service"),
            (None, Some(service)) => is_headless(service).then_some("one address, and it goes with the pod"),
            (Some(pod), Some(service)) => {
                let set =
                    overlay.of_kind("StatefulSet").find(|set| set["spec"]["serviceName"] == service_name);
                let replicas = set.and_then(|set| set["spec"]["replicas"].as_u64()).unwrap_or_default();
                let of = set.map_or("", |set| text(set, "/metadata/name"));
                let is_pod = (0..replicas).any(|number| format!("{of}-{number}") == pod);
                if !is_pod || !is_headless(service) {
                    Some("no pod has this name")
                } else if service["spec"]["publishNotReadyAddresses"] != true {
                    Some("servers find each other before they are ready")
                } else {
                    (!certified.contains(host.as_str())).then_some("the certificate has not this name")
                }
            }
        };
        faults.extend(fault.map(|fault| format!("{workload} -> {host}: {fault}")));
    }
    faults
}

#[test]
fn whatever_is_one_address_outlives_its_pod() {
    for overlay in overlays() {
        assert_eq!(faults(overlay), Vec::<String>::new(), "{}", overlay.name);
        let asked = hosts(overlay);
        let bus = if overlay.name == "dev" { "nats" } else { "nats-1.nats" };
        assert!(asked.contains(&("edge".to_owned(), bus.to_owned())), "{asked:?}");
        assert!(asked.contains(&("query".to_owned(), "postgres-rw".to_owned())), "{asked:?}");
    }
}

#[test]
fn an_address_that_goes_with_its_pod_is_found() {
    for overlay in overlays() {
        for (kind, name, place, value) in [
            (
                "Service",
                "nats",
                "/spec/clusterIP",
                if overlay.name == "dev" { json!("None") } else { Value::Null },
            ),
            ("Service", "collector", "/spec/clusterIP", json!("None")),
        ] {
            let mut overlay = overlay.clone();
            let object = overlay
                .objects
                .iter_mut()
                .find(|object| object["kind"] == kind && object["metadata"]["name"] == name)
                .unwrap();
            let (parent, key) = place.rsplit_once('/').unwrap();
            object.pointer_mut(parent).unwrap()[key] = value;
            assert!(!faults(&overlay).is_empty(), "{}: {name}", overlay.name);
        }
    }
}

/// A bus server with others sends its clients to them before it ends; one alone would only be away for longer.
#[test]
fn a_bus_server_leaves_as_a_lame_duck_where_there_are_others() {
    for overlay in overlays() {
        let replicas = overlay.find("StatefulSet", "nats").unwrap()["spec"]["replicas"].as_u64().unwrap();
        let container = &overlay.pod("nats")["spec"]["containers"][0];
        let is_lame_duck = container.pointer("/lifecycle/preStop/exec/command").is_some();
        assert_eq!(is_lame_duck, replicas > 1, "{}", overlay.name);
    }
}

/// Cores asked for, millicores.
fn millicores(container: &Value) -> u64 {
    let cpu = text(container, "/resources/requests/cpu");
    cpu.strip_suffix('m').map_or_else(|| cpu.parse::<u64>().unwrap() * 1000, |milli| milli.parse().unwrap())
}

/// With all replicas that the autoscalers may make, and one more of each while it rolls.
#[test]
fn dev_fits_a_machine_of_two_cores() {
    let Some(dev) = overlays().iter().find(|overlay| overlay.name == "dev") else { return };
    let mut sum = 0;
    for (name, template) in dev.templates() {
        let scaler =
            dev.of_kind("HorizontalPodAutoscaler").find(|one| one["spec"]["scaleTargetRef"]["name"] == name);
        let most = scaler.map_or(1, |one| one["spec"]["maxReplicas"].as_u64().unwrap() + 1);
        sum += most * parts(template, "/spec/containers").iter().map(millicores).sum::<u64>();
    }
    assert!((1..=FREE_MILLICORES).contains(&sum), "{sum}");
}
