//! The connections that all network policies together allow, compared with the table of the intended ones.

use std::collections::{BTreeMap, BTreeSet};

use serde_json::Value;

use crate::manifests::rendered::{Overlay, overlays, parts, text, texts};

/// An end of a connection: a namespace and labels.
#[derive(Debug, Clone)]
struct Actor {
    name: String,
    namespace: &'static str,
    labels: BTreeMap<String, String>,
}

const NAMESPACE: &str = "tradewind";

/// All ports that any program listens on.
const PORTS: [u16; 14] = [53, 443, 4222, 4318, 5432, 6222, 6443, 8000, 8080, 8222, 9090, 9100, 9187, 26657];

/// Actors outside of the namespace; `anywhere` is any other place in the cluster or on the internet.
const OUTSIDE: [(&str, &[(&str, &str)]); 6] = [
    ("anywhere", &[]),
    ("cnpg-system", &[]),
    ("ingress", &[]),
    ("keda", &[]),
    ("monitoring", &[]),
    ("kube-system", &[("k8s-app", "kube-dns")]),
];

/// The intended connections of every overlay, without name resolution, which all actors use.
const PAIRS: &str = "
    edge query tx-relay node-info export ingest -> nats:4222
    edge query tx-relay node-info export ingest -> collector:4318
    query node-info export ingest migrate writer -> postgres:5432
    tx-relay node-info ingest -> anywhere:26657
    collector -> monitoring:4318
";

/// Additional ones of the overlay for a developer's machine.
const DEV: &str = "
    anywhere -> edge:8080 edge:9090
    node -> postgres:5432
    tx-relay node-info ingest -> node:26657
";

const PRODUCTION: &str = "
    ingress -> edge:8080 edge:9090
    keda -> export:9100
    monitoring -> edge:9100 query:9100 tx-relay:9100 node-info:9100 export:9100 ingest:9100
    monitoring -> postgres:9187
    nats -> nats:6222
    postgres -> postgres:5432 postgres:8000
    cnpg-system -> postgres:8000
    postgres -> anywhere:443 anywhere:6443
    export migrate -> anywhere:443
";

/// One row for each pair of a table.
fn table(rows: &str) -> BTreeSet<String> {
    let pairs = |row: &str| {
        let (from, to) = row.split_once(" -> ")?;
        let pair = |from| to.split_whitespace().map(move |to| format!("{from} -> {to}"));
        Some(from.split_whitespace().flat_map(pair).collect::<Vec<_>>())
    };
    rows.lines().filter_map(pairs).flatten().collect()
}

/// Whether a label selector matches; an empty one matches everything.
fn selects(selector: &Value, labels: &BTreeMap<String, String>) -> bool {
    let equal = selector.get("matchLabels").and_then(Value::as_object).into_iter().flatten();
    let equal = equal.into_iter().all(|(key, value)| labels.get(key).is_some_and(|label| value == label));
    let mut within = parts(selector, "/matchExpressions").iter().map(|expression| {
        assert_eq!(expression["operator"], "In", "this test does not know {expression}");
        let value = labels.get(text(expression, "/key"));
        value.is_some_and(|value| parts(expression, "/values").iter().any(|one| one == value))
    });
    equal && within.all(|holds| holds)
}

/// Whether a peer of a rule matches this actor.
fn is_peer(peer: &Value, actor: &Actor) -> bool {
    assert!(peer.get("ipBlock").is_none(), "this test does not know {peer}");
    let namespace = [("kubernetes.io/metadata.name".to_owned(), actor.namespace.to_owned())].into();
    let in_namespace = match peer.get("namespaceSelector") {
        Some(selector) => selects(selector, &namespace),
        None => actor.namespace == NAMESPACE,
    };
    in_namespace && peer.get("podSelector").is_none_or(|selector| selects(selector, &actor.labels))
}

/// The policies that select an actor, for one direction.
struct Side<'a> {
    /// No policy selects the actor: everything is allowed.
    is_open: bool,
    rules: Vec<&'a Value>,
    peers: &'static str,
}

impl<'a> Side<'a> {
    fn new(overlay: &'a Overlay, actor: &Actor, direction: &str, peers: &'static str) -> Self {
        let says = |policy: &&Value| {
            selects(&policy["spec"]["podSelector"], &actor.labels)
                && parts(policy, "/spec/policyTypes").iter().any(|kind| *kind == direction)
        };
        let policies: Vec<_> = overlay.of_kind("NetworkPolicy").filter(says).collect();
        let rules = format!("/spec/{}", direction.to_lowercase());
        Self {
            is_open: actor.namespace != NAMESPACE || policies.is_empty(),
            rules: policies.iter().flat_map(|policy| parts(policy, &rules)).collect(),
            peers,
        }
    }

    fn allows(&self, with: &Actor, port: u16) -> bool {
        self.is_open
            || self.rules.iter().any(|rule| {
                let peers = rule.get(self.peers).and_then(Value::as_array);
                let ports = rule.get("ports").and_then(Value::as_array);
                ports.is_none_or(|ports| ports.iter().any(|one| one["port"] == port))
                    && peers.is_none_or(|peers| peers.iter().any(|peer| is_peer(peer, with)))
            })
    }
}

/// All actors, including the pods that an operator starts.
fn actors(overlay: &Overlay) -> Vec<Actor> {
    let owned = |labels: &[(&str, &str)]| {
        labels.iter().map(|(key, value)| ((*key).to_owned(), (*value).to_owned())).collect()
    };
    let actor_here = |name: &str, labels| Actor { name: name.to_owned(), namespace: NAMESPACE, labels };
    let pods = overlay.templates();
    let pods = pods.map(|(name, template)| actor_here(name, texts(template, "/metadata/labels")));
    let mut actors: Vec<_> = pods.collect();
    for cluster in overlay.of_kind("Cluster") {
        let labels = texts(cluster, "/spec/inheritedMetadata/labels");
        actors.push(actor_here(text(cluster, "/metadata/name"), labels));
    }
    actors.push(actor_here("writer", owned(&[("tradewind", "writer")])));
    actors.push(actor_here("stranger", BTreeMap::new()));
    actors.extend(OUTSIDE.map(|(name, labels)| Actor {
        name: name.to_owned(),
        namespace: name,
        labels: owned(labels),
    }));
    actors
}

/// The allowed connections as rows of the table. What is allowed to or from every actor is listed for
/// `anywhere` alone.
fn connections_allowed(overlay: &Overlay) -> BTreeSet<String> {
    let sides = actors(overlay).into_iter().map(|actor| {
        let (out, into) =
            (Side::new(overlay, &actor, "Egress", "to"), Side::new(overlay, &actor, "Ingress", "from"));
        (actor, out, into)
    });
    let sides: Vec<_> = sides.collect();
    let mut rows = BTreeSet::new();
    for (from, out, _) in &sides {
        for (to, _, into) in &sides {
            if from.namespace != NAMESPACE && to.namespace != NAMESPACE {
                continue;
            }
            let passing = PORTS.iter().filter(|port| out.allows(to, **port) && into.allows(from, **port));
            rows.extend(passing.map(|port| format!("{} -> {}:{port}", from.name, to.name)));
        }
    }
    let everywhere = |row: &String| {
        let (from, rest) = row.split_once(" -> ").unwrap();
        let (to, port) = rest.split_once(':').unwrap();
        let mesh_client = |name: &str| name != "anywhere" && OUTSIDE.iter().any(|(of, _)| *of == name);
        mesh_client(from) && rows.contains(&format!("anywhere -> {to}:{port}"))
            || mesh_client(to) && rows.contains(&format!("{from} -> anywhere:{port}"))
    };
    rows.iter().filter(|row| !everywhere(row)).cloned().collect()
}

fn expected(overlay: &Overlay) -> BTreeSet<String> {
    let own = if overlay.name == "dev" { DEV } else { PRODUCTION };
    let names = actors(overlay).into_iter().filter(|actor| actor.namespace == NAMESPACE);
    let names = names.map(|actor| format!("{} -> kube-system:53", actor.name));
    table(PAIRS).into_iter().chain(table(own)).chain(names).collect()
}

#[test]
fn exactly_the_intended_connections_are_allowed() {
    for overlay in overlays() {
        let (allowed, expected) = (connections_allowed(overlay), expected(overlay));
        let differences: Vec<_> = allowed.symmetric_difference(&expected).collect();
        assert!(differences.is_empty(), "{}: too much or too little {differences:#?}", overlay.name);
    }
}

#[test]
fn a_removed_or_added_policy_is_found() {
    for overlay in overlays() {
        for policy in overlay.of_kind("NetworkPolicy") {
            let mut without = overlay.clone();
            without.objects.retain(|object| object != policy);
            assert_ne!(connections_allowed(&without), expected(overlay), "{}: {policy}", overlay.name);
        }
    }
}
