//! Rules for every pod and every service of all overlays.

use std::collections::BTreeSet;

use serde_json::{Value, json};

use crate::manifests::{
    SERVICES,
    rendered::{Overlay, overlays, parts, text, texts},
};

/// The bus server reads passwords from its environment, since it has no other way.
const MAY_HAVE_SECRETS_AS_VARIABLES: &str = "nats";

/// One replica writes and a second one stands by: more would do nothing.
const WITHOUT_AUTOSCALER: &str = "ingest";

/// Most time of the chassis after MESH_STOP_GRACE_S for its last telemetry and its exit, seconds.
const AFTER_GRACE_S: u64 = 5;

/// Time until no more new connections are sent to a terminating pod, seconds.
const ENDPOINTS_KNOWN_WITHIN_S: u64 = 5;

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

/// The violated rules.
#[derive(Default)]
struct Faults(Vec<String>);

impl Faults {
    fn must(&mut self, holds: bool, what: &str) {
        if !holds {
            self.0.push(what.to_owned());
        }
    }
}

fn faults_of_pod(overlay: &Overlay, name: &str, pod: &Value) -> Vec<String> {
    let mut faults = Faults::default();
    faults.must(pod["serviceAccountName"] == name, "an account of its own");
    let account = overlay.find("ServiceAccount", name);
    faults.must(
        account.is_some_and(|account| account["automountServiceAccountToken"] == false),
        "an account without token",
    );
    faults.must(pod["automountServiceAccountToken"] == false, "no token");
    faults.must(pod["enableServiceLinks"] == false, "no variables made of services");
    faults.must(
        ["hostNetwork", "hostPID", "hostIPC"].iter().all(|shared| pod.get(shared).is_none()),
        "nothing of the host's",
    );
    let context = &pod["securityContext"];
    faults.must(context["runAsNonRoot"] == true, "runAsNonRoot");
    faults.must(context["runAsUser"].as_u64().is_some_and(|user| user >= 500), "runAsUser");
    faults.must(context["seccompProfile"]["type"] == "RuntimeDefault", "seccompProfile");
    faults.must(
        pod["terminationGracePeriodSeconds"].as_u64().is_some() || pod["restartPolicy"] == "OnFailure",
        "time to stop",
    );
    for volume in parts(pod, "/volumes") {
        let allowed = ["configMap", "emptyDir", "persistentVolumeClaim", "projected", "secret"];
        faults.must(
            allowed.iter().any(|kind| volume.get(kind).is_some()),
            "volumes that a restricted pod may have",
        );
        faults.must(
            volume.get("emptyDir").is_none_or(|folder| folder.get("sizeLimit").is_some()),
            "a bound for each emptyDir",
        );
    }
    let containers: Vec<_> = parts(pod, "/containers").iter().chain(parts(pod, "/initContainers")).collect();
    faults.must(!containers.is_empty(), "containers");
    for container in containers {
        faults.0.extend(faults_of_container(name, pod, container));
    }
    faults.0
}

fn faults_of_container(name: &str, pod: &Value, container: &Value) -> Vec<String> {
    let mut faults = Faults::default();
    let context = &container["securityContext"];
    faults.must(context["allowPrivilegeEscalation"] == false, "allowPrivilegeEscalation");
    faults.must(context["readOnlyRootFilesystem"] == true, "readOnlyRootFilesystem");
    faults.must(context["capabilities"] == json!({"drop": ["ALL"]}), "no capabilities");
    faults.must(context.get("privileged").is_none(), "not privileged");
    let resources = &container["resources"];
    faults.must(
        resources["requests"]["cpu"].is_string() && resources["requests"]["memory"].is_string(),
        "requests",
    );
    faults.must(resources["limits"]["memory"].is_string(), "a limit of memory");
    let image = text(container, "/image");
    let tag = image.rsplit('/').next().and_then(|last| last.split_once(':')).map_or("", |(_, tag)| tag);
    faults.must(tag.starts_with(|first: char| first.is_ascii_digit()), "an image of a version");
    for mount in parts(container, "/volumeMounts") {
        let volume = parts(pod, "/volumes").iter().find(|volume| volume["name"] == mount["name"]);
        let is_secret =
            volume.is_some_and(|volume| volume.get("secret").or(volume.get("projected")).is_some());
        faults.must(!is_secret || mount["readOnly"] == true, "secrets that cannot be written");
    }
    let from_secret =
        parts(container, "/env").iter().any(|variable| variable.pointer("/valueFrom/secretKeyRef").is_some())
            || parts(container, "/envFrom").iter().any(|source| source.get("secretRef").is_some());
    faults.must(!from_secret || name == MAY_HAVE_SECRETS_AS_VARIABLES, "secrets as files");
    if pod["restartPolicy"] != "OnFailure" {
        for probe in ["startupProbe", "livenessProbe", "readinessProbe"] {
            faults.must(container.get(probe).is_some(), probe);
        }
    }
    faults.0
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
    let mut faults = Faults::default();
    let deployment = overlay.find("Deployment", name).unwrap();
    faults.must(
        (name == WITHOUT_AUTOSCALER) == deployment["spec"].get("replicas").is_some(),
        "the autoscaler alone says how many",
    );
    faults.must(
        deployment["spec"]["strategy"]["rollingUpdate"] == json!({"maxSurge": 1, "maxUnavailable": 0}),
        "a new one first",
    );
    let template = overlay.pod(name);
    let labels = texts(template, "/metadata/labels");
    faults.must(
        selects(name, &deployment["spec"]["selector"]) && labels["app.kubernetes.io/name"] == name,
        "labels",
    );
    faults.0.extend(faults_of_scaling(overlay, name));
    faults.0.extend(faults_of_start_and_stop(overlay, name));
    faults.0.extend(faults_of_ports(overlay, name));
    faults.0
}

/// Whether a selector selects the pods of this service and no others.
fn selects(name: &str, selector: &Value) -> bool {
    texts(selector, "/matchLabels") == [("app.kubernetes.io/name".to_owned(), name.to_owned())].into()
}

fn faults_of_scaling(overlay: &Overlay, name: &str) -> Vec<String> {
    let mut faults = Faults::default();
    let budgets: Vec<_> = overlay
        .of_kind("PodDisruptionBudget")
        .filter(|budget| selects(name, &budget["spec"]["selector"]))
        .collect();
    faults
        .must(budgets.len() == 1 && budgets[0]["spec"]["maxUnavailable"] == 1, "one is disrupted at a time");
    let scales = |scaler: &&Value| scaler["spec"]["scaleTargetRef"]["name"] == name;
    let by_hpa: Vec<_> = overlay.of_kind("HorizontalPodAutoscaler").filter(scales).collect();
    let by_keda: Vec<_> = overlay.of_kind("ScaledObject").filter(scales).collect();
    let autoscalers = usize::from(name != WITHOUT_AUTOSCALER);
    faults.must(by_hpa.len() + by_keda.len() == autoscalers, "one autoscaler");
    for behavior in by_hpa.iter().map(|scaler| &scaler["spec"]["behavior"]).chain(
        by_keda.iter().map(|scaler| &scaler["spec"]["advanced"]["horizontalPodAutoscalerConfig"]["behavior"]),
    ) {
        faults.must(
            behavior["scaleDown"]["policies"] == json!([{"type": "Pods", "value": 1, "periodSeconds": 60}]),
            "slowly down",
        );
        faults.must(behavior["scaleDown"]["stabilizationWindowSeconds"] == 300, "not down at once");
    }
    if overlay.name == "production" {
        let fixed = overlay.find("Deployment", name).and_then(|one| one["spec"].get("replicas"));
        let least = by_hpa.iter().map(|scaler| &scaler["spec"]["minReplicas"]).chain(fixed);
        let mut least = least.chain(by_keda.iter().map(|scaler| &scaler["spec"]["minReplicaCount"]));
        faults.must(least.all(|least| least.as_u64().is_some_and(|least| least >= 2)), "two at least");
    }

    let spread: BTreeSet<_> = parts(&overlay.pod(name)["spec"], "/topologySpreadConstraints")
        .iter()
        .filter(|constraint| selects(name, &constraint["labelSelector"]))
        .map(|constraint| text(constraint, "/topologyKey"))
        .collect();
    faults
        .must(spread == BTreeSet::from(["kubernetes.io/hostname", "topology.kubernetes.io/zone"]), "spread");
    faults.0
}

fn faults_of_start_and_stop(overlay: &Overlay, name: &str) -> Vec<String> {
    let mut faults = Faults::default();
    let pod = &overlay.pod(name)["spec"];
    let container = &pod["containers"][0];
    for (probe, path) in
        [("startupProbe", "/livez"), ("livenessProbe", "/livez"), ("readinessProbe", "/readyz")]
    {
        faults.must(container[probe]["httpGet"] == json!({"path": path, "port": "admin"}), probe);
    }
    let admin = parts(container, "/ports").iter().find(|port| port["name"] == "admin");
    let variables = overlay.variables(name);
    faults.must(
        admin.is_some_and(|port| {
            format!("0.0.0.0:{}", port["containerPort"]) == variables["MESH_ADMIN_LISTEN"]
        }),
        "admin port",
    );

    let pre_stop =
        container.pointer("/lifecycle/preStop/sleep/seconds").and_then(Value::as_u64).unwrap_or_default();
    let grace: u64 = variables["MESH_STOP_GRACE_S"].parse().unwrap();
    let time = pod["terminationGracePeriodSeconds"].as_u64().unwrap_or_default();
    faults.must(time >= pre_stop + grace + AFTER_GRACE_S, "time to stop");
    // The other services are reached over the bus, and announce there that they stop.
    faults.must(
        name != "edge" || pre_stop >= ENDPOINTS_KNOWN_WITHIN_S,
        "a pause until no load balancer connects",
    );
    faults.0
}

fn faults_of_ports(overlay: &Overlay, name: &str) -> Vec<String> {
    let mut faults = Faults::default();
    let container = &overlay.pod(name)["spec"]["containers"][0];
    let variables = overlay.variables(name);
    for (port, variable) in [("http", "MESH_EDGE_LISTEN"), ("grpc", "MESH_EDGE_GRPC_LISTEN")] {
        let port = parts(container, "/ports").iter().find(|named| named["name"] == port);
        let listens = port.map(|port| format!("0.0.0.0:{}", port["containerPort"]));
        faults.must(listens.as_ref() == variables.get(variable), variable);
    }
    let services: Vec<_> = overlay
        .of_kind("Service")
        .filter(|service| {
            texts(service, "/spec/selector").get("app.kubernetes.io/name").is_some_and(|of| of == name)
        })
        .collect();
    let expected = match name {
        "edge" => vec![Value::Null],
        "export" => vec![json!("None")],
        _ => Vec::new(),
    };
    faults.must(
        services.iter().map(|service| service["spec"]["clusterIP"].clone()).collect::<Vec<_>>() == expected,
        "services",
    );
    faults.0
}

/// A violation of each rule is found.
#[test]
fn unrestricted_pods_are_found() {
    let Some(overlay) = overlays().first() else { return };
    for (place, value, complaint) in [
        ("/spec/automountServiceAccountToken", json!(true), "no token"),
        ("/spec/securityContext/runAsNonRoot", json!(false), "runAsNonRoot"),
        ("/spec/containers/0/securityContext/readOnlyRootFilesystem", json!(false), "readOnlyRootFilesystem"),
        (
            "/spec/containers/0/securityContext/capabilities",
            json!({"drop": ["ALL"], "add": ["NET_ADMIN"]}),
            "no capabilities",
        ),
        ("/spec/containers/0/image", json!("tradewind/query"), "an image of a version"),
        ("/spec/containers/0/image", json!("tradewind/query:latest"), "an image of a version"),
        ("/spec/containers/0/envFrom", json!([{"secretRef": {"name": "bus-query"}}]), "secrets as files"),
        ("/spec/containers/0/resources", json!({}), "requests"),
        (
            "/spec/volumes/0",
            json!({"name": "bus", "hostPath": {"path": "/"}}),
            "volumes that a restricted pod may have",
        ),
    ] {
        let mut template = overlay.pod("query").clone();
        *template.pointer_mut(place).unwrap() = value;
        let faults = faults_of_pod(overlay, "query", &template["spec"]);
        assert!(faults.iter().any(|fault| fault == complaint), "{place}: {faults:?}");
    }
    for (kind, place, value, complaint) in [
        ("Deployment", "/spec/template/spec/terminationGracePeriodSeconds", json!(30), "time to stop"),
        (
            "Deployment",
            "/spec/template/spec/containers/0/lifecycle",
            json!({}),
            "a pause until no load balancer connects",
        ),
        ("Deployment", "/spec/template/spec/topologySpreadConstraints", json!([]), "spread"),
        ("PodDisruptionBudget", "/spec/maxUnavailable", json!("50%"), "one is disrupted at a time"),
        ("HorizontalPodAutoscaler", "/spec/scaleTargetRef/name", json!("other"), "one autoscaler"),
    ] {
        let mut overlay = overlay.clone();
        let object = overlay
            .objects
            .iter_mut()
            .find(|object| object["kind"] == kind && object["metadata"]["name"] == "edge");
        *object.unwrap().pointer_mut(place).unwrap() = value;
        let faults = faults_of_service(&overlay, "edge");
        assert!(faults.iter().any(|fault| fault == complaint), "{place}: {faults:?}");
    }
}

/// Config maps, secrets and claims that a pod refers to exist, or the operators' guide lists them.
#[test]
fn every_reference_resolves() {
    let guide = crate::manifests::read("docs/operations/kubernetes.md");
    for overlay in overlays() {
        let mut secrets = BTreeSet::new();
        for (name, template) in overlay.templates() {
            let spec = &template["spec"];
            for container in parts(spec, "/containers") {
                for source in parts(container, "/envFrom") {
                    if let Some(map) = source.pointer("/configMapRef/name").and_then(Value::as_str) {
                        assert!(overlay.find("ConfigMap", map).is_some(), "{}: {name}: {map}", overlay.name);
                    }
                    secrets.extend(source.pointer("/secretRef/name").and_then(Value::as_str));
                }
                for mount in parts(container, "/volumeMounts") {
                    let claims = overlay
                        .of_kind("StatefulSet")
                        .flat_map(|set| parts(set, "/spec/volumeClaimTemplates"));
                    let existing = parts(spec, "/volumes")
                        .iter()
                        .map(|volume| &volume["name"])
                        .chain(claims.map(|claim| &claim["metadata"]["name"]));
                    assert!(
                        existing.into_iter().any(|volume| *volume == mount["name"]),
                        "{}: {name}: {mount}",
                        overlay.name
                    );
                }
            }
            for volume in parts(spec, "/volumes") {
                secrets.extend(volume.pointer("/secret/secretName").and_then(Value::as_str));
                let projected = parts(volume, "/projected/sources").iter();
                secrets.extend(
                    projected.filter_map(|source| source.pointer("/secret/name").and_then(Value::as_str)),
                );
                if let Some(map) = volume.pointer("/configMap/name").and_then(Value::as_str) {
                    assert!(overlay.find("ConfigMap", map).is_some(), "{}: {name}: {map}", overlay.name);
                }
                if let Some(claim) =
                    volume.pointer("/persistentVolumeClaim/claimName").and_then(Value::as_str)
                {
                    assert!(
                        overlay.find("PersistentVolumeClaim", claim).is_some(),
                        "{}: {name}: {claim}",
                        overlay.name
                    );
                }
            }
        }
        let made = overlay.of_kind("Certificate").map(|certificate| text(certificate, "/spec/secretName"));
        // CloudNativePG creates a certificate authority for its cluster.
        let made = made.chain(overlay.of_kind("Cluster").map(|_| "postgres-ca"));
        let existing: BTreeSet<_> =
            overlay.of_kind("Secret").map(|secret| text(secret, "/metadata/name")).chain(made).collect();
        for secret in secrets.difference(&existing) {
            assert_eq!(overlay.name, "production", "{secret} is not there");
            assert!(guide.contains(&format!("| `{secret}` |")), "the guide does not mention {secret}");
        }
    }
}
