//! The document is valid by a public validator; skipped where that is not installed.

use std::process::Command;

use mesh_tests::{client::MeshClient, say};

const VALIDATE: &str = "
import json, sys
from openapi_spec_validator import OpenAPIV31SpecValidator
faults = [str(fault) for fault in OpenAPIV31SpecValidator(json.load(open(sys.argv[1]))).iter_errors()]
print(len(faults), *faults[:5], sep='\\n')";

#[tokio::test]
async fn a_public_validator_finds_no_error() {
    let importable = Command::new("python3").args(["-c", "import openapi_spec_validator"]).output();
    if !importable.is_ok_and(|output| output.status.success()) {
        return say("skipped: there is no python3 with openapi-spec-validator");
    }
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("openapi.json");
    let validate = async |text: &[u8]| {
        std::fs::write(&file, text).unwrap();
        let output = Command::new("python3").args(["-c", VALIDATE]).arg(&file).output().unwrap();
        assert!(output.status.success(), "{output:?}");
        String::from_utf8(output.stdout).unwrap().trim().to_owned()
    };
    let document = MeshClient::fixture().await.get("/openapi.json").await;
    assert_eq!(validate(&document.body).await, "0");
    let mut broken = document.json();
    broken.as_object_mut().unwrap().remove("info");
    assert_ne!(validate(broken.to_string().as_bytes()).await, "0", "it would find something");
}
