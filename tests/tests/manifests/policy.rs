//! Rules for every pod and every service of all overlays: those of one object are `schemas/policy.json`,
//! those of several are here.

use std::collections::BTreeSet;

use serde_json::{Value, json};

use crate::manifests::{Overlay, SERVICES, differences, overlays, parts, text, texts};

/// The bus server reads passwords from its environment, since it has no other way.
const MAY_HAVE_SECRETS_AS_VARIABLES: &str = "nats";

/// One replica writes and a second one stands by: more would do nothing.
const WITHOUT_AUTOSCALER: &str = "ingest";

/// Most time of the chassis after MESH_STOP_GRACE_S for its last telemetry and its exit, seconds.
const AFTER_GRACE_S: u64 = 5;

/// Time until no more new connections are sent to a terminating pod, seconds.
const ENDPOINTS_KNOWN_WITHIN_S: u64 = 5;

/// The differences of a value from a definition of `schemas/policy.json`.
pub(crate) fn faults_by(definition: &str, value: &Value) -> Vec<String> {
    let mut schema: Value = serde_json::from_str(include_str!("schemas/policy.json")).unwrap();
    schema["$ref"] = json!(format!("#/$defs/{}", definition.replace(' ', "%20")));
    differences(&jsonschema::draft202012::new(&schema).unwrap(), value)
}

/// The rules that do not hold, of several.
fn broken<const N: usize>(rules: [(bool, &str); N]) -> impl Iterator<Item = String> {
    rules.into_iter().filter(|(holds, _)| !holds).map(|(_, rule)| rule.to_owned())
}

#[test]
fn every_pod_is_restricted() {
    for overlay in overlays() {
        let mut names = BTreeSet::new();
        for (name, template) in overlay.templates() {
            let faults = faults_of_pod(overlay, name, &template["spec"]);
            assert!(faults.is_empty(), "{}: {name}: {faults:#?}", overlay.name);
            names.insert(name);
        }
        assert!(SERVICES.iter().chain(&["nats", "migrate", "collector"]).all(|name| names.contains(name)));
        let namespace = overlay.of_kind("Namespace").next().unwrap();
        let enforced = texts(namespace, "/metadata/labels");
        assert_eq!(enforced["pod-security.kubernetes.io/enforce"], "restricted");
    }
}

/// Alertmanager shows a link only for an absolute address; the overlay sets its first part in one place.
#[test]
fn the_overlay_sets_where_runbooks_are() {
    for overlay in overlays().iter().filter(|overlay| overlay.name == "production") {
        let rules = overlay.find("PrometheusRule", "mesh").unwrap();
        let rules: Vec<_> =
            parts(rules, "/spec/groups").iter().flat_map(|group| parts(group, "/rules")).collect();
        assert!(rules.len() > 10, "{rules:?}");
        for rule in rules {
            let anchor = text(rule, "/alert").to_ascii_lowercase();
            let url = format!("https://docs.example.org/operations/alerts.md#{anchor}");
            assert_eq!(text(rule, "/annotations/runbook_url"), url);
        }
        assert!(overlay.of_kind("ConfigMap").all(|map| !text(map, "/metadata/name").starts_with("runbooks")));
    }
}

fn faults_of_pod(overlay: &Overlay, name: &str, pod: &Value) -> Vec<String> {
    let mut faults = faults_by("pod", pod);
    if name != MAY_HAVE_SECRETS_AS_VARIABLES {
        faults.extend(faults_by("without secrets as variables", pod));
    }
    let account = overlay.find("ServiceAccount", name);
    let is_secret = |mount: &Value| {
        let volume = parts(pod, "/volumes").iter().find(|volume| volume["name"] == mount["name"]);
        volume.is_some_and(|volume| volume.get("secret").or(volume.get("projected")).is_some())
    };
    let mut mounts = parts(pod, "/containers").iter().flat_map(|container| parts(container, "/volumeMounts"));
    let has_no_token = account.is_some_and(|account| account["automountServiceAccountToken"] == false);
    let are_read_only = mounts.all(|mount| mount["readOnly"] == true || !is_secret(mount));
    faults.extend(broken([
        (pod["serviceAccountName"] == name, "an account of its own"),
        (has_no_token, "an account without token"),
        (are_read_only, "secrets that cannot be written"),
    ]));
    faults
}

#[test]
fn a_service_starts_stops_scales_and_spreads_as_it_can() {
    for overlay in overlays() {
        for name in SERVICES {
            let faults = faults_of_service(overlay, name);
            assert!(faults.is_empty(), "{}: {name}: {faults:#?}", overlay.name);
        }
    }
}

fn faults_of_service(overlay: &Overlay, name: &str) -> Vec<String> {
    let deployment = &overlay.find("Deployment", name).unwrap()["spec"];
    let mut faults = faults_by("deployment", deployment);
    let has_fixed_replicas = deployment.get("replicas").is_some();
    let labels = texts(&deployment["template"], "/metadata/labels");
    faults.extend(broken([
        ((name == WITHOUT_AUTOSCALER) == has_fixed_replicas, "the autoscaler alone says how many"),
        (selects(name, &deployment["selector"]) && labels["app.kubernetes.io/name"] == name, "labels"),
    ]));
    faults.extend(faults_of_scaling(overlay, name));
    faults.extend(faults_of_stop(overlay, name));
    faults.extend(faults_of_ports(overlay, name));
    faults
}

/// Whether a selector selects the pods of this service and no others.
fn selects(name: &str, selector: &Value) -> bool {
    texts(selector, "/matchLabels") == [("app.kubernetes.io/name".to_owned(), name.to_owned())].into()
}

fn faults_of_scaling(overlay: &Overlay, name: &str) -> Vec<String> {
    let is_of_service = |budget: &&Value| selects(name, &budget["spec"]["selector"]);
    let budgets: Vec<_> = overlay.of_kind("PodDisruptionBudget").filter(is_of_service).collect();
    let spec = |kind| {
        let specs = overlay.of_kind(kind).map(|scaler| &scaler["spec"]);
        specs.filter(|spec| spec["scaleTargetRef"]["name"] == name).collect::<Vec<_>>()
    };
    let (by_hpa, by_keda) = (spec("HorizontalPodAutoscaler"), spec("ScaledObject"));
    let fixed = overlay.find("Deployment", name).and_then(|one| one["spec"].get("replicas"));
    let least = by_hpa.iter().map(|spec| &spec["minReplicas"]).chain(fixed);
    let mut least = least.chain(by_keda.iter().map(|spec| &spec["minReplicaCount"]));
    let spread = parts(&overlay.pod(name)["spec"], "/topologySpreadConstraints").iter();
    let spread = spread.filter(|constraint| selects(name, &constraint["labelSelector"]));
    let spread: BTreeSet<_> = spread.map(|constraint| text(constraint, "/topologyKey")).collect();
    let autoscalers = usize::from(name != WITHOUT_AUTOSCALER);
    let are_two = overlay.name != "production" || least.all(|least| least.as_u64() >= Some(2));
    let rules = [
        (budgets.len() == 1 && budgets[0]["spec"]["maxUnavailable"] == 1, "one is disrupted at a time"),
        (by_hpa.len() + by_keda.len() == autoscalers, "one autoscaler"),
        (are_two, "two at least"),
        (spread == BTreeSet::from(["kubernetes.io/hostname", "topology.kubernetes.io/zone"]), "spread"),
    ];
    let of_keda = by_keda.iter().map(|spec| &spec["advanced"]["horizontalPodAutoscalerConfig"]["behavior"]);
    let behaviors = by_hpa.iter().map(|spec| &spec["behavior"]).chain(of_keda);
    broken(rules).chain(behaviors.flat_map(|behavior| faults_by("behavior", behavior))).collect()
}

fn faults_of_stop(overlay: &Overlay, name: &str) -> Vec<String> {
    let (pod, variables) = (&overlay.pod(name)["spec"], overlay.variables(name));
    let pre_stop = pod.pointer("/containers/0/lifecycle/preStop/sleep/seconds").and_then(Value::as_u64);
    let pre_stop = pre_stop.unwrap_or_default();
    let grace: u64 = variables["MESH_STOP_GRACE_S"].parse().unwrap();
    let time = pod["terminationGracePeriodSeconds"].as_u64().unwrap_or_default();
    let rules = [
        (time >= pre_stop + grace + AFTER_GRACE_S, "time to stop"),
        // The other services are reached over the bus, and announce there that they stop.
        (name != "edge" || pre_stop >= ENDPOINTS_KNOWN_WITHIN_S, "a pause until no load balancer connects"),
    ];
    broken(rules).collect()
}

fn faults_of_ports(overlay: &Overlay, name: &str) -> Vec<String> {
    let container = &overlay.pod(name)["spec"]["containers"][0];
    let variables = overlay.variables(name);
    let ports =
        [("admin", "MESH_ADMIN_LISTEN"), ("http", "MESH_EDGE_LISTEN"), ("grpc", "MESH_EDGE_GRPC_LISTEN")];
    let ports = ports.map(|(port, variable)| {
        let port = parts(container, "/ports").iter().find(|named| named["name"] == port);
        let listens = port.map(|port| format!("0.0.0.0:{}", port["containerPort"]));
        (listens.as_ref() == variables.get(variable), variable)
    });
    let is_of_service = |service: &&Value| service["spec"]["selector"]["app.kubernetes.io/name"] == name;
    let services = overlay.of_kind("Service").filter(is_of_service);
    let services: Vec<_> = services.map(|service| service["spec"]["clusterIP"].clone()).collect();
    let expected = match name {
        "edge" => vec![Value::Null],
        "export" => vec![json!("None")],
        _ => Vec::new(),
    };
    broken(ports).chain(broken([(services == expected, "services")])).collect()
}

/// A violation of each kind is found: by a schema at the place, or by a rule with its name.
#[test]
fn unrestricted_pods_are_found() {
    let Some(overlay) = overlays().first() else { return };
    for (place, value) in [
        ("/automountServiceAccountToken", json!(true)),
        ("/securityContext/runAsNonRoot", json!(false)),
        ("/containers/0/securityContext/readOnlyRootFilesystem", json!(false)),
        ("/containers/0/securityContext/capabilities", json!({"drop": ["ALL"], "add": ["NET_ADMIN"]})),
        ("/containers/0/image", json!("tradewind/query")),
        ("/containers/0/image", json!("tradewind/query:latest")),
        ("/containers/0/envFrom", json!([{"secretRef": {"name": "bus-query"}}])),
        ("/containers/0/resources", json!({})),
        ("/containers/0", json!({"image": "tradewind/query:1"})),
        ("/volumes/0", json!({"name": "bus", "hostPath": {"path": "/"}})),
        ("/volumes/0", json!({"name": "bus", "emptyDir": {}})),
    ] {
        let mut pod = overlay.pod("query")["spec"].clone();
        *pod.pointer_mut(place).unwrap() = value;
        let faults = faults_of_pod(overlay, "query", &pod);
        assert!(faults.iter().any(|fault| fault.starts_with(place)), "{place}: {faults:?}");
    }
    let container = "/spec/template/spec/containers/0";
    for (kind, place, value, complaint) in [
        ("Deployment", "/spec/template/spec/terminationGracePeriodSeconds", json!(30), "time to stop"),
        ("Deployment", &format!("{container}/lifecycle"), json!({}), "a pause until no load balancer"),
        ("Deployment", &format!("{container}/livenessProbe/httpGet/path"), json!("/readyz"), "livez"),
        ("Deployment", "/spec/template/spec/topologySpreadConstraints", json!([]), "spread"),
        ("PodDisruptionBudget", "/spec/maxUnavailable", json!("50%"), "one is disrupted at a time"),
        ("HorizontalPodAutoscaler", "/spec/scaleTargetRef/name", json!("other"), "one autoscaler"),
        ("HorizontalPodAutoscaler", "/spec/behavior/scaleDown", json!({}), "policies"),
    ] {
        let mut overlay = overlay.clone();
        let named = |object: &&mut Value| object["kind"] == kind && object["metadata"]["name"] == "edge";
        *overlay.objects.iter_mut().find(named).unwrap().pointer_mut(place).unwrap() = value;
        let faults = faults_of_service(&overlay, "edge");
        assert!(faults.iter().any(|fault| fault.contains(complaint)), "{place}: {faults:?}");
    }
}

/// The objects that a pod template refers to by name, at any depth: their kinds and names.
fn references<'a>(value: &'a Value, found: &mut BTreeSet<(&'static str, &'a str)>) {
    for item in value.as_array().into_iter().flatten() {
        references(item, found);
    }
    for (member, inner) in value.as_object().into_iter().flatten() {
        let (kind, name) = match member.as_str() {
            "configMap" | "configMapRef" | "configMapKeyRef" => ("ConfigMap", "/name"),
            "secret" if inner.get("secretName").is_some() => ("Secret", "/secretName"),
            "secret" | "secretRef" | "secretKeyRef" => ("Secret", "/name"),
            "persistentVolumeClaim" => ("PersistentVolumeClaim", "/claimName"),
            _ => ("", ""),
        };
        if !kind.is_empty() {
            found.insert((kind, text(inner, name)));
        }
        references(inner, found);
    }
}

/// Secrets without which pods start.
const OPTIONAL_SECRETS: [&str; 1] = ["edge-keys"];

/// Config maps, secrets and claims that a pod refers to exist, or the operators' guide lists them.
#[test]
fn every_reference_resolves() {
    let guide = crate::manifests::read("docs/operations/kubernetes.md");
    for overlay in overlays() {
        let mut found = BTreeSet::new();
        for (name, template) in overlay.templates() {
            references(template, &mut found);
            let sets = overlay.of_kind("StatefulSet");
            let claims: Vec<_> = sets.flat_map(|set| parts(set, "/spec/volumeClaimTemplates")).collect();
            let volumes = parts(&template["spec"], "/volumes").iter().map(|volume| text(volume, "/name"));
            let claims = claims.iter().map(|claim| text(claim, "/metadata/name"));
            let volumes: BTreeSet<&str> = volumes.chain(claims).collect();
            let containers = parts(&template["spec"], "/containers").iter();
            for mount in containers.flat_map(|container| parts(container, "/volumeMounts")) {
                assert!(volumes.contains(text(mount, "/name")), "{}: {name}: {mount}", overlay.name);
            }
        }
        assert!(found.len() > 10, "{found:?}");
        let made = overlay.of_kind("Certificate").map(|certificate| text(certificate, "/spec/secretName"));
        // CloudNativePG creates a certificate authority for its cluster.
        let made: Vec<_> = made.chain(overlay.of_kind("Cluster").map(|_| "postgres-ca")).collect();
        for (kind, name) in found {
            let is_there = overlay.find(kind, name).is_some() || kind == "Secret" && made.contains(&name);
            let is_made_later = overlay.name == "production" || OPTIONAL_SECRETS.contains(&name);
            let is_documented = kind == "Secret" && is_made_later && guide.contains(&format!("| `{name}` |"));
            assert!(is_there || is_documented, "{}: there is no {kind} {name}", overlay.name);
        }
    }
}
