//! `az://CONTAINER/PREFIX`, `abfss://CONTAINER@ACCOUNT.dfs.core.windows.net/PREFIX` and the other URIs of Azure Blob Storage.
//!
//! Options are `object_store`'s (`azure_storage_account_name`, `azure_storage_account_key`, ...) and the environment's `AZURE_*`. A
//! conditional put that loses a race is answered with 409 BlobAlreadyExists, where S3 answers 412.

use std::sync::Arc;

use object_store::azure::{AzureConfigKey as Key, MicrosoftAzureBuilder};
use object_store::ClientConfigKey;

use super::backend::{not_built, shared, Backend};
use super::client::SharedConnector;
use super::options::Options;
use super::place::Place;
use super::s3::user_agent;
use crate::error::{Result, StoreError};

pub(super) fn backend(place: &Place, options: &Options) -> Result<Backend> {
    check_authority(place)?;
    let mut known = options.known::<Key>("AZURE_")?;
    let allow_http = known.get(&Key::Client(ClientConfigKey::AllowHttp)).cloned();
    for key in [Key::Endpoint, Key::MsiEndpoint] {
        if let Some(endpoint) = known.get(&key) {
            options.check_endpoint(key.as_ref(), endpoint, allow_http.as_deref())?;
        }
    }
    // `az://CONTAINER@ACCOUNT/...`, the short form that names the container's account.
    let (container, account) = place.authority.split_once('@').unwrap_or((&place.authority, ""));
    let (url, short) = match account.is_empty() || account.contains('.') {
        true => (format!("{}://{}", place.scheme, place.authority), None),
        false => (format!("{}://{container}", place.scheme), Some(account.to_owned())),
    };
    if let Some(account) = short {
        known.insert(Key::AccountName, account);
    }
    let secrets = Arc::new(options.secrets(known.iter(), None));
    let retry = options.retry()?;
    let more = [format!("{} {:?} {url}", retry.max_retries, retry.retry_timeout)];
    shared("azure", place, &known.clone(), &more, || {
        let agent = Key::Client(ClientConfigKey::UserAgent);
        known.entry(agent).or_insert_with(user_agent);
        let mut builder = MicrosoftAzureBuilder::new();
        if std::env::var_os("IDENTITY_ENDPOINT").is_some() && !known.contains_key(&Key::MsiEndpoint) {
            builder = MicrosoftAzureBuilder::from_env();
        }
        for (key, value) in known {
            builder = builder.with_config(key, value);
        }
        let built = builder
            .with_url(url)
            .with_retry(retry)
            .with_http_connector(SharedConnector)
            .build();
        let store = Arc::new(built.map_err(|error| not_built(place, &secrets, &error))?);
        Ok(Backend {
            store: store.clone(),
            pages: store,
            ordered: true,
            counts_from_the_end: false,
            secrets,
        })
    })
}

fn check_authority(place: &Place) -> Result<()> {
    if place.authority.matches('@').count() > 1 || place.authority.starts_with('@') {
        let message = "expected az://CONTAINER/..., or CONTAINER@ACCOUNT.dfs.core.windows.net after the scheme";
        return Err(StoreError::invalid_argument(format!("{}://...", place.scheme), message));
    }
    Ok(())
}
