//! The overlays as a cluster gets them.

use std::{collections::BTreeMap, process::Command, sync::OnceLock};

use mesh_tests::say;
use serde_json::Value;

use crate::manifests::path;

pub(crate) const OVERLAYS: [&str; 2] = ["dev", "production"];

/// A rendered overlay: its objects.
#[derive(Debug, Clone)]
pub(crate) struct Overlay {
    pub(crate) name: &'static str,
    pub(crate) objects: Vec<Value>,
}

/// All overlays; none, with a message, when kustomize is not installed.
pub(crate) fn overlays() -> &'static [Overlay] {
    static RENDERED: OnceLock<Vec<Overlay>> = OnceLock::new();
    RENDERED.get_or_init(|| {
        let rendered = OVERLAYS.iter().map(|name| Some(Overlay { name, objects: render(name)? }));
        rendered.collect::<Option<_>>().unwrap_or_else(|| {
            say("skipped: there is neither kubectl nor kustomize to render the manifests");
            Vec::new()
        })
    })
}

fn render(name: &str) -> Option<Vec<Value>> {
    let folder = path("k8s/overlays").join(name);
    for [program, verb] in [["kubectl", "kustomize"], ["kustomize", "build"]] {
        let Ok(run) = Command::new(program).arg(verb).arg(&folder).output() else { continue };
        assert!(run.status.success(), "{name}: {}", String::from_utf8_lossy(&run.stderr));
        return Some(serde_saphyr::from_multiple(&String::from_utf8(run.stdout).unwrap()).unwrap());
    }
    None
}

/// A text at a path such as `/metadata/name`; empty when there is none.
pub(crate) fn text<'a>(object: &'a Value, pointer: &str) -> &'a str {
    object.pointer(pointer).and_then(Value::as_str).unwrap_or_default()
}

/// The items of a list at a path; empty when there is none.
pub(crate) fn parts<'a>(object: &'a Value, pointer: &str) -> &'a [Value] {
    object.pointer(pointer).and_then(Value::as_array).map_or(&[], Vec::as_slice)
}

/// A map of strings at a path; empty when there is none.
pub(crate) fn texts(object: &Value, pointer: &str) -> BTreeMap<String, String> {
    let map = object.pointer(pointer).and_then(Value::as_object).into_iter().flatten();
    map.map(|(key, value)| (key.clone(), value.as_str().unwrap_or_default().to_owned())).collect()
}

impl Overlay {
    pub(crate) fn of_kind<'a>(&'a self, kind: &'a str) -> impl Iterator<Item = &'a Value> {
        self.objects.iter().filter(move |object| object["kind"] == kind)
    }

    pub(crate) fn find<'a>(&'a self, kind: &'a str, name: &str) -> Option<&'a Value> {
        self.of_kind(kind).find(|object| object["metadata"]["name"] == name)
    }

    /// The objects with a pod template: deployments, stateful sets and jobs.
    pub(crate) fn templates(&self) -> impl Iterator<Item = (&str, &Value)> {
        let kinds = ["Deployment", "StatefulSet", "Job"];
        let starting = self.objects.iter().filter(move |object| kinds.contains(&text(object, "/kind")));
        starting.map(|object| (text(object, "/metadata/name"), &object["spec"]["template"]))
    }

    pub(crate) fn pod(&self, name: &str) -> &Value {
        let template = self.templates().find(|(of, _)| *of == name);
        template.unwrap_or_else(|| panic!("{}: there is no {name}", self.name)).1
    }

    /// The variables of a workload's containers with a literal value in the manifests.
    pub(crate) fn variables(&self, name: &str) -> BTreeMap<String, String> {
        let mut variables = BTreeMap::new();
        for container in parts(self.pod(name), "/spec/containers") {
            for source in parts(container, "/envFrom") {
                let map = text(source, "/configMapRef/name");
                if let Some(map) = self.find("ConfigMap", map) {
                    variables.extend(texts(map, "/data"));
                }
            }
            for variable in parts(container, "/env") {
                variables.insert(text(variable, "/name").to_owned(), text(variable, "/value").to_owned());
            }
        }
        variables
    }
}
