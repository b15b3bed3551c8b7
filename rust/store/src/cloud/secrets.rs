//! Secrets: the values of options that grant access, which no message may show.

/// Keys with one of these in their name hold a secret.
const SECRET_PARTS: [&str; 12] = [
    "key",
    "secret",
    "token",
    "sas",
    "password",
    "credential",
    "service_account",
    "client_id",
    "tenant",
    "proxy_url",
    "customer",
    "bearer",
];

/// Whether an option of that name holds a secret, which messages (and pickles without secrets) leave out.
pub fn is_secret(key: &str) -> bool {
    let key = key.to_ascii_lowercase();
    SECRET_PARTS.iter().any(|part| key.contains(part))
}

/// Shorter values are taken for words like "true", not for secrets.
const SHORTEST: usize = 6;

/// The values that are cut out of every message of a store.
#[derive(Default)]
pub(crate) struct Secrets(Vec<String>);

// A derived Debug would print the values.
impl std::fmt::Debug for Secrets {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "Secrets({})", self.0.len())
    }
}

impl Secrets {
    /// The secrets among options.
    pub fn of<'a>(options: impl Iterator<Item = (&'a str, &'a str)>) -> Self {
        let mut values: Vec<String> = options
            .filter(|(key, value)| value.len() >= SHORTEST && is_secret(key))
            .flat_map(|(_, value)| [value.to_owned(), percent_encoded(value)])
            .collect();
        // The longest first, since one secret may contain another.
        values.sort_unstable_by(|left, right| (right.len(), left).cmp(&(left.len(), right)));
        values.dedup();
        Self(values)
    }

    /// The text with every secret cut out.
    pub fn hide(&self, text: &str) -> String {
        let mut text = text.to_owned();
        for value in &self.0 {
            if text.contains(value.as_str()) {
                text = text.replace(value.as_str(), "***");
            }
        }
        text
    }
}

fn percent_encoded(value: &str) -> String {
    let mut encoded = String::new();
    for byte in value.bytes() {
        if byte.is_ascii_alphanumeric() || b"-._~".contains(&byte) {
            encoded.push(char::from(byte));
        } else {
            encoded.push_str(&format!("%{byte:02X}"));
        }
    }
    encoded
}
