//! Storage options: pylance's names, which are those of `object_store`, with or without the store's prefix, in any case.
//!
//! The caller's options take precedence over the environment. Unknown keys are carried along and ignored, as in pylance, since one set of
//! options may serve several stores. Options that pylance supports and esker does not are refused by name.

use std::collections::HashMap;
use std::hash::Hash;
use std::str::FromStr;
use std::time::Duration;

use object_store::{BackoffConfig, ClientConfigKey, RetryConfig};

use super::secrets::Secrets;
use crate::error::{Result, StoreError};

const MAX_RETRIES: usize = 10;
const RETRY_TIMEOUT_S: u64 = 180;

/// The options of one store, their keys in lower case.
pub(super) struct Options {
    /// The URI as messages show it, without its path.
    shown: String,
    given: HashMap<String, String>,
}

impl Options {
    pub fn new(shown: String, given: &HashMap<String, String>) -> Result<Self> {
        let mut lower = HashMap::new();
        for (key, value) in given {
            let name = key.to_ascii_lowercase();
            if lower.insert(name, value.clone()).is_some_and(|other| other != *value) {
                let message = format!("storage option {key:?} is given twice, in two cases; leave one of them out");
                return Err(StoreError::invalid_argument(shown, message));
            }
        }
        let options = Self { shown, given: lower };
        if options.truthy("use_opendal") {
            let message = "storage option use_opendal is not supported; leave it out";
            return Err(StoreError::unsupported(options.shown, message));
        }
        if let Some(key) = options.given.keys().find(|key| key.starts_with("headers.")) {
            let message = format!("storage option {key:?} is not supported: requests carry no headers of the caller's");
            return Err(StoreError::unsupported(options.shown.clone(), message));
        }
        Ok(options)
    }

    /// An option that is ours or pylance's own, not one of `object_store`.
    pub fn own(&self, key: &str) -> Option<&str> {
        self.given.get(key).map(String::as_str)
    }

    pub fn truthy(&self, key: &str) -> bool {
        let value = self.own(key).unwrap_or_default().to_ascii_lowercase();
        matches!(value.as_str(), "1" | "true" | "on" | "yes" | "y")
    }

    pub fn invalid(&self, message: impl Into<String>) -> StoreError {
        StoreError::invalid_argument(self.shown.clone(), message)
    }

    /// The options that a kind of store knows, with those of the environment whose names start with `prefix`.
    pub fn known<K>(&self, prefix: &str) -> Result<HashMap<K, String>>
    where
        K: FromStr + AsRef<str> + Copy + Eq + Hash,
    {
        let mut known: HashMap<K, String> = HashMap::new();
        let mut named: HashMap<K, &str> = HashMap::new();
        for (name, value) in &self.given {
            let Ok(key) = name.parse::<K>() else { continue };
            if let Some(other) = named.insert(key, name) {
                if known.get(&key) != Some(value) {
                    let message =
                        format!("storage options {other:?} and {name:?} mean the same and differ; leave one out");
                    return Err(self.invalid(message));
                }
            }
            known.insert(key, value.clone());
        }
        for (name, value) in std::env::vars_os() {
            let (Some(name), Some(value)) = (name.to_str(), value.to_str()) else {
                continue;
            };
            let lower = name.to_ascii_lowercase();
            if !name.starts_with(prefix) && lower.parse::<ClientConfigKey>().is_err() {
                continue;
            }
            if let Ok(key) = lower.parse::<K>() {
                known.entry(key).or_insert_with(|| value.to_owned());
            }
        }
        for (key, value) in &known {
            self.check_value(key.as_ref(), value)?;
        }
        Ok(known)
    }

    /// How often and for how long a request is retried.
    pub fn retry(&self) -> Result<RetryConfig> {
        Ok(RetryConfig {
            backoff: BackoffConfig {
                init_backoff: Duration::from_millis(100),
                max_backoff: Duration::from_secs(5),
                base: 2.0,
            },
            max_retries: self.number("client_max_retries")?.unwrap_or(MAX_RETRIES),
            retry_timeout: Duration::from_secs(self.number("client_retry_timeout")?.unwrap_or(RETRY_TIMEOUT_S)),
        })
    }

    fn number<T: FromStr>(&self, key: &str) -> Result<Option<T>> {
        let variable = format!("OBJECT_STORE_{}", key.to_ascii_uppercase());
        let value = self
            .own(key)
            .map(str::to_owned)
            .or_else(|| std::env::var(variable).ok());
        let Some(value) = value else { return Ok(None) };
        let number = value.trim().parse().map_err(|_| {
            self.invalid(format!(
                "storage option {key}: expected a whole number, found {value:?}"
            ))
        })?;
        Ok(Some(number))
    }

    /// Refuses line breaks and anything but ASCII: values go into URLs and headers.
    fn check_value(&self, key: &str, value: &str) -> Result<()> {
        let is_text = key.contains("certificate") || key.contains("service_account_key");
        if !is_text && !value.bytes().all(|byte| (b' '..=b'~').contains(&byte)) {
            let message = format!("storage option {key}: expected printable ASCII; look for a line break at its end");
            return Err(self.invalid(message));
        }
        Ok(())
    }

    /// Refuses an endpoint that is no URL, or one without TLS where that is not allowed.
    pub fn check_endpoint(&self, key: &str, value: &str, allow_http: Option<&str>) -> Result<()> {
        let (scheme, rest) = value.split_once("://").unwrap_or(("", value));
        let host = rest.split('/').next().unwrap_or_default();
        if !matches!(scheme, "http" | "https") || host.is_empty() {
            let message = format!("storage option {key}: expected a URL as https://HOST[:PORT]");
            return Err(self.invalid(message));
        }
        if host.contains('@') {
            let message =
                format!("storage option {key}: expected a host without a user; credentials have options of their own");
            return Err(self.invalid(message));
        }
        let (name, port) = match host.rsplit_once(':') {
            Some((name, port)) if !port.ends_with(']') => (name, Some(port)),
            _ => (host, None),
        };
        let is_name = !name.is_empty()
            && name
                .bytes()
                .all(|byte| byte.is_ascii_alphanumeric() || b"-._[]:".contains(&byte));
        let is_port = port.is_none_or(|port| port.parse::<u16>().is_ok());
        let is_path = rest
            .bytes()
            .all(|byte| byte.is_ascii_graphic() && !b"?#\"<>\\^`{}|".contains(&byte));
        if !(is_name && is_port && is_path) {
            let message = format!("storage option {key}: expected a URL as https://HOST[:PORT], found {value:?}");
            return Err(self.invalid(message));
        }
        let allowed = allow_http
            .is_some_and(|value| matches!(value.to_ascii_lowercase().as_str(), "1" | "true" | "on" | "yes" | "y"));
        if scheme == "http" && !allowed {
            let message = format!(
                "storage option {key} is not encrypted ({value}); if that is meant, set allow_http to \"true\""
            );
            return Err(self.invalid(message));
        }
        Ok(())
    }

    /// The secrets among the caller's options and those of the environment, and one more.
    pub fn secrets<'a, K: AsRef<str> + 'a>(
        &'a self,
        known: impl Iterator<Item = (&'a K, &'a String)>,
        more: Option<(&'a str, &'a str)>,
    ) -> Secrets {
        let given = self.given.iter().map(|(key, value)| (key.as_str(), value.as_str()));
        let known = known.map(|(key, value)| (key.as_ref(), value.as_str()));
        Secrets::of(given.chain(known).chain(more))
    }
}
