#!/usr/bin/env python3
"""Makes the schemas of this folder out of their sources, as README.md says. Standard library and PyYAML.

Descriptions go, what no rendered manifest needs goes, and an object with named fields takes no others: the API server
would drop or refuse them, here they are mistakes.
"""

import json
import subprocess
import sys
from pathlib import Path

import yaml

KUBERNETES = ("k8s.io/kubernetes", "v1.36.3")
# Group version and kind of what is built in.
KINDS = {
    "apps/v1/Deployment": "io.k8s.api.apps.v1.Deployment",
    "apps/v1/StatefulSet": "io.k8s.api.apps.v1.StatefulSet",
    "autoscaling/v2/HorizontalPodAutoscaler": "io.k8s.api.autoscaling.v2.HorizontalPodAutoscaler",
    "batch/v1/Job": "io.k8s.api.batch.v1.Job",
    "networking.k8s.io/v1/Ingress": "io.k8s.api.networking.v1.Ingress",
    "networking.k8s.io/v1/NetworkPolicy": "io.k8s.api.networking.v1.NetworkPolicy",
    "policy/v1/PodDisruptionBudget": "io.k8s.api.policy.v1.PodDisruptionBudget",
    "v1/ConfigMap": "io.k8s.api.core.v1.ConfigMap",
    "v1/Namespace": "io.k8s.api.core.v1.Namespace",
    "v1/PersistentVolumeClaim": "io.k8s.api.core.v1.PersistentVolumeClaim",
    "v1/Secret": "io.k8s.api.core.v1.Secret",
    "v1/Service": "io.k8s.api.core.v1.Service",
    "v1/ServiceAccount": "io.k8s.api.core.v1.ServiceAccount",
}
# Module, version, files, and the kinds in them.
CUSTOM = [
    ("github.com/cert-manager/cert-manager", "v1.21.2",
     ["deploy/crds/cert-manager.io_certificates.yaml", "deploy/crds/cert-manager.io_issuers.yaml"]),
    ("github.com/cloudnative-pg/cloudnative-pg", "v1.27.1",
     ["config/crd/bases/postgresql.cnpg.io_clusters.yaml", "config/crd/bases/postgresql.cnpg.io_scheduledbackups.yaml"]),
    ("github.com/kedacore/keda/v2", "v2.21.0", ["config/crd/bases/keda.sh_scaledobjects.yaml"]),
    ("github.com/prometheus-operator/prometheus-operator", "v0.85.0",
     ["example/prometheus-operator-crd/monitoring.coreos.com_podmonitors.yaml",
      "example/prometheus-operator-crd/monitoring.coreos.com_prometheusrules.yaml"]),
]
COMPOSE = ("github.com/compose-spec/compose-go/v2", "v2.16.2", "schema/compose-spec.json")

# Kubernetes writes a quantity or a port in two ways, which its schemas say beside the type.
EITHER = {
    "io.k8s.apimachinery.pkg.api.resource.Quantity": {"type": ["string", "number"]},
    "io.k8s.apimachinery.pkg.util.intstr.IntOrString": {"type": ["string", "integer"]},
}


def folder(module, version):
    told = subprocess.run(["go", "mod", "download", "-json", f"{module}@{version}"],
                          check=True, capture_output=True, text=True)
    return Path(json.loads(told.stdout)["Dir"])


def strict(node):
    """A schema without words, closed against fields that it does not name. A `properties` holds names, not keywords."""
    if isinstance(node, list):
        return [strict(part) for part in node]
    if not isinstance(node, dict):
        return node
    made = {}
    for key, value in node.items():
        if key in ("properties", "definitions", "patternProperties"):
            made[key] = {name: strict(schema) for name, schema in value.items()}
        elif key in ("enum", "required"):
            made[key] = value
        elif key in ("description", "title", "default", "example", "format") or key.startswith("x-"):
            continue
        elif key == "pattern" and "(?i)" in value:
            # Go's way of writing it, which JSON Schema does not know.
            continue
        else:
            made[key] = strict(value)
    if node.get("x-kubernetes-int-or-string"):
        return {"type": ["integer", "string"]}
    if "properties" in made and not node.get("x-kubernetes-preserve-unknown-fields"):
        made.setdefault("additionalProperties", False)
    if made.pop("nullable", False) and isinstance(made.get("type"), str):
        made["type"] = [made["type"], "null"]
    return made


def wordless(node):
    """A schema without its descriptions and otherwise as it is."""
    if isinstance(node, list):
        return [wordless(part) for part in node]
    if not isinstance(node, dict):
        return node
    names = ("properties", "$defs", "patternProperties")
    kept = {key: value for key, value in node.items() if key != "description" or not isinstance(value, str)}
    return {key: {name: wordless(part) for name, part in value.items()} if key in names else wordless(value)
            for key, value in kept.items()}


def references(node):
    if isinstance(node, dict):
        if isinstance(node.get("$ref"), str):
            yield node["$ref"].removeprefix("#/definitions/")
        for part in node.values():
            yield from references(part)
    elif isinstance(node, list):
        for part in node:
            yield from references(part)


def kubernetes():
    swagger = json.loads((folder(*KUBERNETES) / "api/openapi-spec/swagger.json").read_text())["definitions"]
    made, wanted = {}, list(KINDS.values())
    while wanted:
        name = wanted.pop()
        if name not in made:
            made[name] = EITHER.get(name) or strict(swagger[name])
            wanted.extend(references(made[name]))
    return made


def custom(meta):
    for module, version, files in CUSTOM:
        root = folder(module, version)
        for file in files:
            text = "\n".join(line for line in (root / file).read_text().splitlines() if not line.startswith("{{"))
            crd = next(document for document in yaml.safe_load_all(text) if document)["spec"]
            kept = next(version for version in crd["versions"] if version["storage"])
            schema = strict(kept["schema"]["openAPIV3Schema"])
            schema["properties"]["metadata"] = {"$ref": meta}
            yield f"{crd['group']}/{kept['name']}/{crd['names']['kind']}", schema


def write(file, parts):
    """One part a line: small, and a change can be read."""
    lines = ",\n".join(f"{json.dumps(name)}:{json.dumps(part, separators=(',', ':'))}" for name, part in parts)
    (Path(__file__).parent / file).write_text("{\n" + lines + "\n}\n")


def main():
    definitions = kubernetes()
    schemas = {kind: {"$ref": f"#/definitions/{name}"} for kind, name in KINDS.items()}
    schemas.update(custom("#/definitions/io.k8s.apimachinery.pkg.apis.meta.v1.ObjectMeta"))
    write("kubernetes.json", sorted(definitions.items()))
    write("kinds.json", sorted(schemas.items()))
    module, version, file = COMPOSE
    write("compose.json", wordless(json.loads((folder(module, version) / file).read_text())).items())


if __name__ == "__main__":
    sys.exit(main())
