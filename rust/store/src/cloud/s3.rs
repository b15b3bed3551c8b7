//! `s3://BUCKET/PREFIX`: Amazon S3 and servers that speak its protocol.
//!
//! Options are `object_store`'s (`aws_access_key_id`, `aws_region`, `aws_endpoint`, `allow_http`, ...), the environment's `AWS_*`, and the
//! static keys of a profile in `~/.aws/credentials`. Put-if-absent sends `If-None-Match: *`.

use std::collections::HashMap;
use std::sync::{Arc, Mutex};

use object_store::aws::{resolve_bucket_region, AmazonS3Builder, AmazonS3ConfigKey as Key};
use object_store::{ClientConfigKey, ClientOptions};

use super::backend::{not_built, shared, Backend};
use super::client::SharedConnector;
use super::options::Options;
use super::place::Place;
use super::{profile, Secrets};
use crate::block_on;
use crate::error::{Result, StoreError};

static REGIONS: Mutex<Vec<(String, String)>> = Mutex::new(Vec::new());

pub(super) fn backend(place: &Place, options: &Options) -> Result<Backend> {
    let bucket = place.bucket()?;
    let mut known = options.known::<Key>("AWS_")?;
    choose_provider(options, &mut known)?;
    profile::complete(options, &mut known)?;
    let allow_http = known.get(&Key::Client(ClientConfigKey::AllowHttp)).cloned();
    for key in [Key::Endpoint, Key::S3Endpoint, Key::StsEndpoint] {
        if let Some(endpoint) = known.get(&key) {
            options.check_endpoint(key.as_ref(), endpoint, allow_http.as_deref())?;
        }
    }
    if let Some(region) = known.get(&Key::Region) {
        if region.is_empty()
            || !region
                .bytes()
                .all(|byte| byte.is_ascii_alphanumeric() || b"-_".contains(&byte))
        {
            return Err(options.invalid("storage option aws_region: expected a name as eu-west-1"));
        }
    }
    let is_express = options.truthy("s3_express") || options.truthy("aws_s3_express") || bucket.ends_with("--x-s3");
    if is_express {
        known.insert(Key::S3Express, "true".into());
    }
    let secrets = Arc::new(options.secrets(known.iter(), None));
    let retry = options.retry()?;
    let more = [format!("{} {:?}", retry.max_retries, retry.retry_timeout)];
    shared("s3", place, &known.clone(), &more, || {
        let has_endpoint = known.contains_key(&Key::Endpoint) || known.contains_key(&Key::S3Endpoint);
        if !has_endpoint && !known.contains_key(&Key::Region) && !known.contains_key(&Key::DefaultRegion) {
            known.insert(Key::Region, region_of(place, bucket, &known, &secrets)?);
        }
        let agent = Key::Client(ClientConfigKey::UserAgent);
        known.entry(agent).or_insert_with(user_agent);
        let mut builder = AmazonS3Builder::new();
        for (key, value) in known {
            builder = builder.with_config(key, value);
        }
        let built = builder
            .with_bucket_name(bucket)
            .with_retry(retry)
            .with_http_connector(SharedConnector)
            .build();
        let store = Arc::new(built.map_err(|error| not_built(place, &secrets, &error))?);
        Ok(Backend {
            store: store.clone(),
            pages: store,
            // Directory buckets do not list in byte order.
            ordered: !is_express,
            counts_from_the_end: true,
            secrets,
        })
    })
}

pub(super) fn user_agent() -> String {
    concat!("esker/", env!("CARGO_PKG_VERSION")).to_owned()
}

/// pylance's `aws_provider_scheme`: the one credential provider to use, whatever other credentials there are.
fn choose_provider(options: &Options, known: &mut HashMap<Key, String>) -> Result<()> {
    let keys = [Key::AccessKeyId, Key::SecretAccessKey, Key::Token];
    match options.own("aws_provider_scheme").unwrap_or_default() {
        "" => {}
        "token" => {
            if !(known.contains_key(&Key::AccessKeyId) && known.contains_key(&Key::SecretAccessKey)) {
                let message = "aws_provider_scheme is \"token\": expected aws_access_key_id and aws_secret_access_key";
                return Err(options.invalid(message));
            }
        }
        "ecs" => {
            for key in keys.iter().chain(&[Key::WebIdentityTokenFile]) {
                known.remove(key);
            }
        }
        "irsa" => {
            for key in &keys {
                known.remove(key);
            }
        }
        other => {
            let message = format!("storage option aws_provider_scheme: expected token, ecs or irsa, found {other:?}");
            return Err(options.invalid(message));
        }
    }
    Ok(())
}

/// The bucket's region, looked up once per process.
fn region_of(place: &Place, bucket: &str, known: &HashMap<Key, String>, secrets: &Secrets) -> Result<String> {
    if let Ok(regions) = REGIONS.try_lock() {
        if let Some((_, region)) = regions.iter().find(|(name, _)| name == bucket) {
            return Ok(region.clone());
        }
    }
    let mut options = ClientOptions::new();
    for (key, value) in known {
        if let Key::Client(key) = key {
            options = options.with_config(*key, value.clone());
        }
    }
    let found = block_on(async { Ok::<_, StoreError>(resolve_bucket_region(bucket, &options).await) })?;
    let region = found.map_err(|error| {
        let why = secrets.hide(&error.to_string());
        let message =
            format!("cannot find the bucket's region: {why}; set aws_region, or aws_endpoint for a store of your own");
        StoreError::io(place.shown(), message)
    })?;
    if let Ok(mut regions) = REGIONS.try_lock() {
        regions.push((bucket.to_owned(), region.clone()));
    }
    Ok(region)
}
