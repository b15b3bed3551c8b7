//! Stores behind a network: `s3://`, `az://` and `gs://`, which the `object_store` crate speaks to.
//!
//! ```text
//! URI ──place──> scheme, bucket, prefix ┐
//! storage options ┐                     ├──s3, azure, google──> backend ──> ObjectAdapter
//! environment ────┴──options──> keys ───┘        │
//!                                 client: one pool of connections for all that want the same of it
//! ```

mod azure;
mod backend;
mod client;
mod google;
mod options;
mod place;
mod profile;
mod s3;
mod secrets;

pub use backend::open;
pub use secrets::is_secret;
pub(crate) use secrets::Secrets;

#[cfg(test)]
mod tests;
