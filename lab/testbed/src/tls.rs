//! Certificates for the servers of one test process.

use std::{fs, path::Path};

use mesh_launcher::servers::TlsFiles;
use rcgen::{BasicConstraints, CertificateParams, DnType, Error, IsCa, Issuer, KeyPair, KeyUsagePurpose};

/// A certificate authority of one test process.
#[derive(Debug)]
pub struct Authority {
    certificate: String,
    issuer: Issuer<'static, KeyPair>,
}

impl Authority {
    /// Makes one with a new key.
    pub fn generate() -> Self {
        Self::make().unwrap_or_else(|error| panic!("cannot make a certificate authority: {error}"))
    }

    fn make() -> Result<Self, Error> {
        let mut authority = CertificateParams::new(Vec::new())?;
        authority.is_ca = IsCa::Ca(BasicConstraints::Unconstrained);
        authority.key_usages = vec![KeyUsagePurpose::KeyCertSign];
        authority.distinguished_name.push(DnType::CommonName, "authority of a test");
        let key = KeyPair::generate()?;
        Ok(Self { certificate: authority.self_signed(&key)?.pem(), issuer: Issuer::new(authority, key) })
    }

    /// Makes a certificate for this machine, in a folder; it replaces an earlier one there.
    pub fn certify(&self, folder: &Path) -> TlsFiles {
        let made = self.certificate_and_key();
        let [certificate, key] =
            made.unwrap_or_else(|error| panic!("cannot make certificates for the tests: {error}"));
        let write = |name: &str, text: &str| {
            let file = folder.join(name);
            fs::create_dir_all(folder)
                .and_then(|()| fs::write(&file, text))
                .unwrap_or_else(|error| panic!("cannot write {}: {error}", file.display()));
            file
        };
        TlsFiles {
            certificate: write("certificate.pem", &certificate),
            key: write("key.pem", &key),
            ca: write("ca.pem", &self.certificate),
        }
    }

    fn certificate_and_key(&self) -> Result<[String; 2], Error> {
        let mut machine = CertificateParams::new(vec!["127.0.0.1".to_owned(), "localhost".to_owned()])?;
        machine.distinguished_name.push(DnType::CommonName, "this machine");
        let key = KeyPair::generate()?;
        Ok([machine.signed_by(&key, &self.issuer)?.pem(), key.serialize_pem()])
    }
}

/// Makes a certificate authority and a certificate for this machine, in a folder.
pub fn certify(folder: &Path) -> TlsFiles {
    Authority::generate().certify(folder)
}
