//! What URIs and options mean, and the errors of invalid ones. What the stores do is tested against real servers.

use std::collections::HashMap;

use super::place::Place;
use super::secrets::Secrets;
use crate::open;

fn options(given: &[(&str, &str)]) -> HashMap<String, String> {
    given
        .iter()
        .map(|(key, value)| ((*key).into(), (*value).into()))
        .collect()
}

/// Enough options to open a store of each kind without a request.
const LOCAL: [(&str, &str); 8] = [
    ("aws_access_key_id", "AKIATEST"),
    ("aws_secret_access_key", "topsecret-aws"),
    ("aws_region", "eu-west-1"),
    ("azure_storage_account_name", "someone"),
    ("azure_storage_account_key", "dG9wc2VjcmV0LWF6dXJl"),
    ("google_storage_token", "topsecret-google"),
    ("google_base_url", "https://127.0.0.1:1"),
    ("something_else", "is carried"),
];

#[test]
fn test_keys_are_those_that_lance_makes_of_the_same_uri() {
    // The keys that pylance 14 wrote to a server, for each URI.
    for (path, key) in [
        ("plain/t", "plain/t"),
        ("a b/t", "a b/t"),
        ("a%20b/t", "a b/t"),
        ("a%b/t", "a%b/t"),
        ("a%25b/t", "a%b/t"),
        ("a%2Fb/t", "a/b/t"),
        ("ä/日本/t", "ä/日本/t"),
        ("tail/t/", "tail/t"),
        ("a+b&c=d/t", "a+b&c=d/t"),
        ("a~b*'()/[x]/<y>|^`{}/a:b@c/t", "a~b*'()/[x]/<y>|^`{}/a:b@c/t"),
        ("back\\slash/t", "back\\slash/t"),
        ("", ""),
    ] {
        let place = Place::parse(&format!("S3://bucket/{path}")).unwrap();
        assert_eq!((place.scheme.as_str(), place.prefix.as_str()), ("s3", key), "{path}");
        open(&format!("s3://bucket/{path}"), &options(&LOCAL), true).unwrap();
    }
    assert_eq!(Place::parse("gs://bucket").unwrap().prefix, "");
}

#[test]
fn test_uris_that_lead_elsewhere_are_refused() {
    for uri in [
        "s3://",
        "s3:///t",
        "s3://bucket:80/t",
        "s3://buck et/t",
        "s3://bücket/t",
        "s3://bucket/a?x=1",
        "s3://bucket/a#x",
        "s3://bucket/a//b",
        "s3://bucket//a",
        "s3://bucket/a/../b",
        "s3://bucket/%2e%2e/b",
        "s3://bucket/a%00b",
        "s3://bucket/%ff",
        "gs://user@bucket/t",
        "az://a@b@c/t",
        "az://@b/t",
    ] {
        let error = open(uri, &options(&LOCAL), true).unwrap_err();
        assert_eq!(error.kind(), "invalid_argument", "{uri}: {error}");
    }
}

#[test]
fn test_every_scheme_opens() {
    for uri in [
        "s3://b/t",
        "s3a://b/t",
        "gs://b/t",
        "az://c/t",
        "az://c@someone/t",
        "azure://c/t",
        "adl://c/t",
        "abfs://c/t",
        "abfss://c@someone.dfs.core.windows.net/t",
    ] {
        assert_eq!(open(uri, &options(&LOCAL), true).unwrap().uri(), uri);
    }
}

#[test]
fn test_a_bad_option_is_named_and_no_secret_is_shown() {
    for (uri, key, value) in [
        ("s3://b/t", "allow_http", "maybe"),
        ("s3://b/t", "timeout", "soon"),
        ("s3://b/t", "client_max_retries", "many"),
        ("s3://b/t", "aws_endpoint", "garbage"),
        ("s3://b/t", "aws_endpoint", "http://127.0.0.1:1"),
        ("s3://b/t", "aws_endpoint", "https://user:topsecret@host"),
        ("s3://b/t", "aws_endpoint", "https://host:99999"),
        ("s3://b/t", "aws_endpoint", "https://ho st"),
        ("s3://b/t", "aws_region", "not a region"),
        ("s3://b/t", "access_key_id", "another-topsecret"),
        ("s3://b/t", "AWS_SESSION_TOKEN", "topsecret\n"),
        ("s3://b/t", "aws_conditional_put", "dynamo:table"),
        ("s3://b/t", "aws_provider_scheme", "magic"),
        ("az://c/t", "azure_storage_account_key", "!topsecret!"),
        ("az://c/t", "azure_endpoint", "host"),
        ("gs://b/t", "google_base_url", "http://127.0.0.1:1"),
        ("gs://b/t", "google_service_account_key", "{topsecret"),
    ] {
        let mut given = options(&LOCAL);
        given.insert(key.into(), value.into());
        let error = open(uri, &given, true).unwrap_err();
        assert_eq!(error.kind(), "invalid_argument", "{key}={value}: {error}");
        let told = format!("{error} {error:?}");
        assert!(!told.contains("topsecret"), "{told}");
    }
}

#[test]
fn test_what_pylance_knows_and_we_do_not_do_is_refused_by_name() {
    for (key, value) in [("use_opendal", "true"), ("headers.x-ms-version", "2023-11-03")] {
        let mut given = options(&LOCAL);
        given.insert(key.into(), value.into());
        let error = open("s3://b/t", &given, true).unwrap_err();
        assert_eq!(error.kind(), "unsupported");
        assert!(error.message().contains(key), "{error}");
    }
}

#[test]
fn test_a_store_prints_no_settings() {
    for uri in ["s3://b/t", "az://c/t", "gs://b/t"] {
        let printed = format!("{:?}", open(uri, &options(&LOCAL), true).unwrap());
        assert!(printed.contains(uri) && !printed.contains("secret"), "{printed}");
    }
    let secrets = Secrets::of([("aws_secret_access_key", "topsecret")].into_iter());
    assert!(!format!("{secrets:?}").contains("topsecret"));
}
