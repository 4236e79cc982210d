//! Certificates for the servers of one test process.

use std::{fs, path::Path};

use mesh_launcher::servers::NatsTls;
use rcgen::{BasicConstraints, CertificateParams, DnType, Error, IsCa, Issuer, KeyPair, KeyUsagePurpose};

/// Makes a certificate authority and a certificate for this machine, in a folder.
pub fn certify(folder: &Path) -> NatsTls {
    let made = make().unwrap_or_else(|error| panic!("cannot make certificates for the tests: {error}"));
    let write = |name: &str, text: String| {
        let file = folder.join(name);
        fs::create_dir_all(folder)
            .and_then(|()| fs::write(&file, text))
            .unwrap_or_else(|error| panic!("cannot write {}: {error}", file.display()));
        file
    };
    let [ca, certificate, key] = made;
    NatsTls {
        certificate: write("certificate.pem", certificate),
        key: write("key.pem", key),
        ca: write("ca.pem", ca),
    }
}

/// The authority's certificate, the machine's certificate and its key, as PEM.
fn make() -> Result<[String; 3], Error> {
    let mut authority = CertificateParams::new(Vec::new())?;
    authority.is_ca = IsCa::Ca(BasicConstraints::Unconstrained);
    authority.key_usages = vec![KeyUsagePurpose::KeyCertSign];
    authority.distinguished_name.push(DnType::CommonName, "authority of a test");
    let authority_key = KeyPair::generate()?;
    let ca = authority.self_signed(&authority_key)?.pem();
    let mut machine = CertificateParams::new(vec!["127.0.0.1".to_owned(), "localhost".to_owned()])?;
    machine.distinguished_name.push(DnType::CommonName, "this machine");
    let key = KeyPair::generate()?;
    let certificate = machine.signed_by(&key, &Issuer::new(authority, authority_key))?;
    Ok([ca, certificate.pem(), key.serialize_pem()])
}
