//! `gs://BUCKET/PREFIX`: Google Cloud Storage.
//!
//! Options are `object_store`'s (`google_service_account`, `google_application_credentials`, ...), pylance's `google_storage_token`, and the
//! environment's `GOOGLE_*`. Put-if-absent sends `x-goog-if-generation-match: 0`.

use std::sync::Arc;

use object_store::gcp::{GcpCredential, GoogleCloudStorageBuilder, GoogleConfigKey as Key};
use object_store::{ClientConfigKey, StaticCredentialProvider};

use super::backend::{not_built, shared, Backend};
use super::client::SharedConnector;
use super::options::Options;
use super::place::Place;
use super::s3::user_agent;
use crate::error::Result;

pub(super) fn backend(place: &Place, options: &Options) -> Result<Backend> {
    let bucket = place.bucket()?;
    let mut known = options.known::<Key>("GOOGLE_")?;
    if let Ok(path) = std::env::var("SERVICE_ACCOUNT") {
        known.entry(Key::ServiceAccount).or_insert(path);
    }
    let allow_http = known.get(&Key::Client(ClientConfigKey::AllowHttp)).cloned();
    if let Some(endpoint) = known.get(&Key::BaseUrl) {
        options.check_endpoint(Key::BaseUrl.as_ref(), endpoint, allow_http.as_deref())?;
    }
    let token = match options.own("google_storage_token") {
        Some(token) => Some(token.to_owned()),
        None => std::env::var("GOOGLE_STORAGE_TOKEN").ok(),
    };
    let hidden = token.as_deref().map(|token| ("google_storage_token", token));
    let secrets = Arc::new(options.secrets(known.iter(), hidden));
    let retry = options.retry()?;
    let more = [
        format!("{} {:?}", retry.max_retries, retry.retry_timeout),
        token.clone().unwrap_or_default(),
    ];
    shared("gs", place, &known.clone(), &more, || {
        let agent = Key::Client(ClientConfigKey::UserAgent);
        known.entry(agent).or_insert_with(user_agent);
        let mut builder = GoogleCloudStorageBuilder::new();
        for (key, value) in known {
            builder = builder.with_config(key, value);
        }
        if let Some(bearer) = token {
            builder = builder.with_credentials(Arc::new(StaticCredentialProvider::new(GcpCredential { bearer })));
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
            ordered: true,
            counts_from_the_end: true,
            secrets,
        })
    })
}
