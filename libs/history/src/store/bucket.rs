//! Opens a bucket of an S3-compatible store.

use std::{net::IpAddr, sync::Arc};

use object_store::{
    ClientConfigKey,
    aws::{AmazonS3Builder, AmazonS3ConfigKey, S3ConditionalPut, S3CopyIfNotExists},
    path::Path,
};

use super::SegmentStore;

/// Keeps an endpoint on this machine out of the proxies of the environment, which could not reach it. An
/// explicit proxy replaces those; this one is used for no host that the client calls.
fn reach_this_machine_directly(builder: AmazonS3Builder) -> AmazonS3Builder {
    const PROXY: AmazonS3ConfigKey = AmazonS3ConfigKey::Client(ClientConfigKey::ProxyUrl);
    const DIRECT: AmazonS3ConfigKey = AmazonS3ConfigKey::Client(ClientConfigKey::ProxyExcludes);
    let Some(endpoint) = builder.get_config_value(&AmazonS3ConfigKey::Endpoint) else { return builder };
    let url = reqwest::Url::parse(&endpoint).ok();
    let host = url.as_ref().and_then(reqwest::Url::host_str).unwrap_or_default();
    let address = host.trim_matches(['[', ']']).parse::<IpAddr>();
    let is_here = address.map_or(host == "localhost", |address| address.is_loopback());
    if !is_here || builder.get_config_value(&PROXY).is_some() {
        return builder;
    }
    builder.with_config(PROXY, endpoint).with_config(DIRECT, "localhost,127.0.0.0/8,::1")
}

/// A bucket, with a prefix in it. Conditional puts keep publishing create-only.
pub(super) fn open(
    url: &str,
    bucket: &str,
    variables: &[(String, String)],
) -> object_store::Result<SegmentStore> {
    let mut builder = AmazonS3Builder::from_env();
    for (name, value) in variables.iter().filter(|(name, _)| name.starts_with("AWS_")) {
        if let Ok(key) = name.to_ascii_lowercase().parse() {
            builder = builder.with_config(key, value);
        }
    }
    let builder = builder
        .with_url(url)
        .with_conditional_put(S3ConditionalPut::ETagMatch)
        .with_copy_if_not_exists(S3CopyIfNotExists::Multipart);
    let objects = reach_this_machine_directly(builder).build()?;
    let prefix = bucket.split_once('/').map_or("", |(_, prefix)| prefix);
    Ok(SegmentStore::from_objects(Arc::new(objects), Path::parse(prefix)?))
}
