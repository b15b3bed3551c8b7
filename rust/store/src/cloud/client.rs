//! The HTTP clients: one connection pool for all stores with the same client options, and another one in every forked process.
//!
//! A fork copies the pool's sockets but not the tasks that serve them: two processes would write into one connection. So each process
//! id has a client of its own, in a chain that only grows (as with the runtime); the parent's stays in the child's chain, unused.

use std::fmt;
use std::sync::{Mutex, OnceLock};

use async_trait::async_trait;
use object_store::client::{
    HttpClient, HttpConnector, HttpError, HttpErrorKind, HttpRequest, HttpResponse, HttpService, ReqwestConnector,
};
use object_store::ClientOptions;

/// The most clients that are cached for later stores.
const KEPT: usize = 16;

static SHARED: Mutex<Vec<(String, HttpClient)>> = Mutex::new(Vec::new());

/// Connects a store to the cached client of the same options.
#[derive(Debug, Default)]
pub(super) struct SharedConnector;

impl HttpConnector for SharedConnector {
    fn connect(&self, options: &ClientOptions) -> object_store::Result<HttpClient> {
        // Clients differ in nothing but their options, and this text holds all of them (secrets, too); it never leaves memory.
        let key = format!("{options:?}");
        // In a forked child the lock may be held for ever by a thread that does not exist there: then one more client is made.
        let mut shared = SHARED.try_lock().ok();
        if let Some((_, client)) = shared
            .iter()
            .flat_map(|kept| kept.iter())
            .find(|(kept, _)| *kept == key)
        {
            return Ok(client.clone());
        }
        let client = HttpClient::new(PerProcess::new(options.clone())?);
        if let Some(shared) = &mut shared {
            if shared.len() >= KEPT {
                shared.remove(0);
            }
            shared.push((key, client.clone()));
        }
        Ok(client)
    }
}

struct Link {
    process: u32,
    client: HttpClient,
    next: OnceLock<Box<Link>>,
}

impl Link {
    fn new(options: &ClientOptions) -> object_store::Result<Box<Self>> {
        Ok(Box::new(Self {
            process: std::process::id(),
            client: ReqwestConnector::default().connect(options)?,
            next: OnceLock::new(),
        }))
    }
}

struct PerProcess {
    options: ClientOptions,
    first: Box<Link>,
}

impl fmt::Debug for PerProcess {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        // The options may hold a proxy's password.
        f.write_str("PerProcess")
    }
}

impl PerProcess {
    fn new(options: ClientOptions) -> object_store::Result<Self> {
        let first = Link::new(&options)?;
        Ok(Self { options, first })
    }

    fn client(&self) -> object_store::Result<&HttpClient> {
        let process = std::process::id();
        let mut link = &self.first;
        while link.process != process {
            if link.next.get().is_none() {
                // Another thread may have set it first; then ours is dropped.
                let _ = link.next.set(Link::new(&self.options)?);
            }
            match link.next.get() {
                Some(next) => link = next,
                None => break,
            }
        }
        Ok(&link.client)
    }
}

#[async_trait]
impl HttpService for PerProcess {
    async fn call(&self, request: HttpRequest) -> Result<HttpResponse, HttpError> {
        let client = self
            .client()
            .map_err(|error| HttpError::new(HttpErrorKind::Unknown, error))?;
        client.execute(request).await
    }
}
