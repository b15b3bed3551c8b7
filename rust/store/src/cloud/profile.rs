//! The static keys of a profile in the files that Amazon's tools share: `~/.aws/credentials` and `~/.aws/config`.
//!
//! Read only where neither the options nor the environment give credentials. A profile that needs more than its keys (a role, single
//! sign-on, a credential process) is refused by name when `AWS_PROFILE` asks for it.

use std::collections::HashMap;
use std::path::PathBuf;

use object_store::aws::AmazonS3ConfigKey as Key;

use super::options::Options;
use crate::error::Result;

const WAYS: [Key; 6] = [
    Key::AccessKeyId,
    Key::SecretAccessKey,
    Key::WebIdentityTokenFile,
    Key::ContainerCredentialsRelativeUri,
    Key::ContainerCredentialsFullUri,
    Key::SkipSignature,
];

/// Adds the profile's keys and region to the known settings.
pub(super) fn complete(options: &Options, known: &mut HashMap<Key, String>) -> Result<()> {
    let asked = std::env::var("AWS_PROFILE").ok().filter(|name| !name.is_empty());
    let name = asked.clone().unwrap_or_else(|| "default".into());
    let keys = section("AWS_SHARED_CREDENTIALS_FILE", "credentials", &name);
    let config_name = if name == "default" {
        name.clone()
    } else {
        format!("profile {name}")
    };
    let config = section("AWS_CONFIG_FILE", "config", &config_name);
    let find = |key: &str| keys.get(key).or_else(|| config.get(key)).cloned();
    let has_endpoint = known.contains_key(&Key::Endpoint) || known.contains_key(&Key::S3Endpoint);
    if let (Some(region), false) = (find("region"), has_endpoint) {
        known.entry(Key::Region).or_insert(region);
    }
    if WAYS.iter().any(|key| known.contains_key(key)) {
        return Ok(());
    }
    match (find("aws_access_key_id"), find("aws_secret_access_key")) {
        (Some(id), Some(secret)) => {
            known.insert(Key::AccessKeyId, id);
            known.insert(Key::SecretAccessKey, secret);
            if let Some(token) = find("aws_session_token") {
                known.insert(Key::Token, token);
            }
            Ok(())
        }
        _ => match asked {
            Some(name) => Err(options.invalid(format!(
                "AWS_PROFILE is {name:?}, a profile without aws_access_key_id and aws_secret_access_key; roles, single sign-on \
                 and credential_process are not supported: export its keys (aws configure export-credentials --format env)"
            ))),
            None => Ok(()),
        },
    }
}

/// The settings of one section of an INI file; empty where there is no such file or section.
fn section(variable: &str, file: &str, name: &str) -> HashMap<String, String> {
    let path = std::env::var_os(variable).map(PathBuf::from).or_else(|| {
        let home = std::env::var_os("HOME")?;
        Some(PathBuf::from(home).join(".aws").join(file))
    });
    let text = path
        .and_then(|path| std::fs::read_to_string(path).ok())
        .unwrap_or_default();
    parse_section(&text, name)
}

fn parse_section(text: &str, name: &str) -> HashMap<String, String> {
    let mut found = HashMap::new();
    let mut inside = false;
    for line in text.lines() {
        let trimmed = line.trim();
        if let Some(header) = trimmed.strip_prefix('[').and_then(|line| line.split(']').next()) {
            inside = header.trim() == name;
        } else if inside && !trimmed.starts_with(['#', ';']) && !line.starts_with([' ', '\t']) {
            if let Some((key, value)) = trimmed.split_once('=') {
                found.insert(key.trim().to_ascii_lowercase(), value.trim().to_owned());
            }
        }
    }
    found
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn test_a_section_ends_where_the_next_begins() {
        let text = "[default]\naws_access_key_id = A\n# no = 1\n[ other ]\nAWS_ACCESS_KEY_ID=B=\ns3 =\n  region = nested\n[third]\nregion = x\n";
        assert_eq!(parse_section(text, "default")["aws_access_key_id"], "A");
        let other = parse_section(text, "other");
        assert_eq!((other["aws_access_key_id"].as_str(), other.get("region")), ("B=", None));
        assert!(parse_section(text, "none").is_empty());
    }
}
