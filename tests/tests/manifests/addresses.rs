//! How the workloads find each other, and whether they fit a small machine. Behind a headless Service a
//! restart is noticed only when cached DNS records of the pod's address expire; a ClusterIP outlives the pod.

use std::collections::BTreeSet;

use serde_json::{Value, json};

use crate::manifests::rendered::{Overlay, overlays, parts, text};

/// Services that are not in the manifests: CloudNativePG creates those of its cluster, with ClusterIPs.
const MADE_BY_AN_OPERATOR: [&str; 2] = ["postgres-rw", "postgres-ro"];

/// CPU left by the control plane of kind on a machine of two cores, millicores.
const FREE_MILLICORES: u64 = 1000;

/// Host names of all addresses in the variables of the workloads, without those outside of the namespace.
fn hosts(overlay: &Overlay) -> BTreeSet<(String, String)> {
    let mut hosts = BTreeSet::new();
    for (workload, _) in overlay.templates() {
        for value in overlay.variables(workload).values() {
            for url in value.split(',').filter_map(|one| one.split_once("://")) {
                let authority = url.1.split(['/', '?']).next().unwrap_or_default();
                let host = authority.rsplit('@').next().and_then(|host| host.split(':').next());
                hosts.insert((workload.to_owned(), host.unwrap_or_default().to_owned()));
            }
        }
    }
    hosts.retain(|(_, host)| {
        !host.is_empty() && !host.ends_with(".example.org") && !host.starts_with("tradewind-")
    });
    hosts
}

/// Violations of the rules for addresses in an overlay.
fn faults(overlay: &Overlay) -> Vec<String> {
    let names = overlay.of_kind("Certificate").flat_map(|one| parts(one, "/spec/dnsNames"));
    let certified: BTreeSet<_> = names.filter_map(Value::as_str).collect();
    let mut faults = Vec::new();
    for (workload, host) in hosts(overlay) {
        let is_made = overlay.name == "production" && MADE_BY_AN_OPERATOR.contains(&host.as_str());
        let fault = match overlay.find("Service", &host) {
            None => (!is_made).then_some("there is no such Service"),
            Some(service) if service["spec"]["clusterIP"] == "None" => {
                Some("one address, and it goes with the pod")
            }
            Some(service) => fault_of_server(overlay, service, &certified),
        };
        faults.extend(fault.map(|fault| format!("{workload} -> {host}: {fault}")));
    }
    faults
}

/// What is wrong with the Service of one server of a cluster.
fn fault_of_server(overlay: &Overlay, service: &Value, certified: &BTreeSet<&str>) -> Option<&'static str> {
    let selector = &service["spec"]["selector"];
    let index = selector["apps.kubernetes.io/pod-index"].as_str()?.parse::<u64>().unwrap_or(u64::MAX);
    let set = overlay.find("StatefulSet", text(selector, "/app.kubernetes.io~1name"));
    let replicas = set.and_then(|set| set["spec"]["replicas"].as_u64()).unwrap_or_default();
    if index >= replicas {
        Some("no pod has this index")
    } else if service["spec"]["publishNotReadyAddresses"] != true {
        Some("servers find each other before they are ready")
    } else {
        (!certified.contains(text(service, "/metadata/name"))).then_some("the certificate has not this name")
    }
}

#[test]
fn every_single_address_outlives_its_pod() {
    for overlay in overlays() {
        assert_eq!(faults(overlay), Vec::<String>::new(), "{}", overlay.name);
        let hosts = hosts(overlay);
        let bus = if overlay.name == "dev" { "nats" } else { "nats-1" };
        for (workload, host) in [("edge", bus), ("query", "postgres-rw")] {
            assert!(hosts.contains(&(workload.to_owned(), host.to_owned())), "{hosts:?}");
        }
    }
}

#[test]
fn an_address_that_ends_with_its_pod_is_found() {
    for overlay in overlays() {
        let bus = if overlay.name == "dev" { "nats" } else { "nats-2" };
        for (name, path, value) in [
            (bus, "/spec/clusterIP", json!("None")),
            ("collector", "/spec/clusterIP", json!("None")),
            ("nats-2", "/spec/publishNotReadyAddresses", Value::Null),
            ("nats-2", "/spec/selector/apps.kubernetes.io~1pod-index", json!("3")),
        ] {
            let mut overlay = overlay.clone();
            let named =
                |object: &&mut Value| object["kind"] == "Service" && object["metadata"]["name"] == name;
            let Some(service) = overlay.objects.iter_mut().find(named) else {
                assert_eq!(overlay.name, "dev", "{name}");
                continue;
            };
            let (parent, key) = path.rsplit_once('/').unwrap();
            service.pointer_mut(parent).unwrap()[key.replace("~1", "/")] = value;
            assert!(!faults(&overlay).is_empty(), "{}: {name}", overlay.name);
        }
    }
}

/// A bus server of a cluster moves its clients to the others before it ends; for a single one that would only
/// make its restart longer.
#[test]
fn a_bus_server_of_a_cluster_stops_in_lame_duck_mode() {
    for overlay in overlays() {
        let replicas = overlay.find("StatefulSet", "nats").unwrap()["spec"]["replicas"].as_u64().unwrap();
        let container = &overlay.pod("nats")["spec"]["containers"][0];
        let is_lame_duck = container.pointer("/lifecycle/preStop/exec/command").is_some();
        assert_eq!(is_lame_duck, replicas > 1, "{}", overlay.name);
    }
}

/// The CPU requests of a pod, millicores.
fn millicores(container: &Value) -> u64 {
    let cpu = text(container, "/resources/requests/cpu");
    cpu.strip_suffix('m').map_or_else(|| cpu.parse::<u64>().unwrap() * 1000, |milli| milli.parse().unwrap())
}

/// Counts all replicas that the autoscalers may create, and one more of each during a rolling update.
#[test]
fn dev_fits_a_machine_of_two_cores() {
    let Some(dev) = overlays().iter().find(|overlay| overlay.name == "dev") else { return };
    let mut sum = 0;
    for (name, template) in dev.templates() {
        let scaler =
            dev.of_kind("HorizontalPodAutoscaler").find(|one| one["spec"]["scaleTargetRef"]["name"] == name);
        let fixed = dev.find("Deployment", name).and_then(|one| one["spec"]["replicas"].as_u64());
        let most = match (scaler, fixed) {
            (Some(scaler), _) => scaler["spec"]["maxReplicas"].as_u64().unwrap() + 1,
            (None, Some(replicas)) => replicas + 1,
            (None, None) => 1,
        };
        sum += most * parts(template, "/spec/containers").iter().map(millicores).sum::<u64>();
    }
    assert!((1..=FREE_MILLICORES).contains(&sum), "{sum}");
}
