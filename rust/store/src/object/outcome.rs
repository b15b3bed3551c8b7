//! Classifies an object store's errors: the kind, whether the request may have had its effect all the same, and what a message may show.
//!
//! A store's reply can hold the request's signature, its access key or its token, and a URL can hold them all. Of a reply only the code
//! and the message are shown, of a URL no query, and of either no value that was given as a secret.

use object_store::Error;

use crate::cloud::Secrets;
use crate::error::StoreError;

/// The system's code for what a user may not do (`EACCES`): writers take it to say that nothing was done.
const DENIED: i32 = 13;

/// What S3 answers, with a status of 400, to the token of a session that has ended: a denial that `object_store` takes for a generic error.
const ENDED_SESSIONS: [&str; 3] = [
    "<Code>ExpiredToken<",
    "<Code>InvalidToken<",
    "<Code>TokenRefreshRequired<",
];

/// Longer texts of a store's reply are cut to this many bytes.
const LONGEST: usize = 400;

/// Converts an `object_store` error to a [`StoreError`] of the right kind.
pub(super) fn sort_error(path: String, doing: &str, error: Error, secrets: &Secrets) -> StoreError {
    let text = error.to_string();
    let why = || {
        let mut told = shown(&text);
        let cause = root_cause(&error);
        if !told.contains(&cause) {
            told = format!("{told}: {cause}");
        }
        // Secrets are hidden before the text is cut: a part of a secret would not be recognised.
        cut(secrets.hide(&told))
    };
    if text.contains("<Code>NoSuchBucket<") || text.contains("<Code>ContainerNotFound<") {
        // A listing reports a missing bucket as a generic error.
        let message = format!("cannot {doing}: there is no such bucket; create it first");
        return StoreError::NotFound { path, message };
    }
    match &error {
        Error::NotFound { .. } => StoreError::not_found(path),
        Error::InvalidPath { source } => StoreError::invalid_argument(path, source.to_string()),
        Error::NotSupported { .. } => StoreError::unsupported(path, format!("cannot {doing}: {}", why())),
        Error::NotImplemented { operation, .. } if operation.contains("conditional put is disabled") => {
            let message = format!(
                "cannot {doing}: the store is said to have no conditional put, so nothing would keep two writers apart; leave \
                 aws_conditional_put out, or give a commit_lock"
            );
            StoreError::unsupported(path, message)
        }
        Error::NotImplemented { operation, implementer } => {
            StoreError::unsupported(path, format!("cannot {doing}: {implementer} has no {operation}"))
        }
        _ if matches!(error, Error::Unauthenticated { .. }) || is_of_ended_session(&text) => {
            let message = format!("cannot {doing}: not signed in; check the credentials ({})", why());
            denied(path, message, &text)
        }
        // A listing reports a lack of permission as a generic error.
        _ if matches!(error, Error::PermissionDenied { .. }) || text.contains("status code: 403") => {
            let message = format!(
                "cannot {doing}: permission denied; check the credentials and their rights ({})",
                why()
            );
            denied(path, message, &text)
        }
        _ if doing == "create" && text.contains("status code: 501") => {
            let message = format!(
                "cannot {doing}: the store has no conditional put, so nothing would keep two writers apart; set \
                 aws_conditional_put to \"disabled\" and give a commit_lock, or an external manifest store ({})",
                why()
            );
            StoreError::unsupported(path, message)
        }
        // The source is not kept: printing it would show what is cut out here.
        _ => StoreError::io(path, format!("cannot {doing}: {}", why())),
    }
}

/// Whether a reply says that the session of the credentials has ended.
fn is_of_ended_session(text: &str) -> bool {
    ENDED_SESSIONS.iter().any(|code| text.contains(code))
}

/// The error of a request that the store did not allow. It has had no effect, unless an earlier try had one whose reply was an error.
fn denied(path: String, message: String, text: &str) -> StoreError {
    let is_first_try = !was_sent_again(text);
    StoreError::Io {
        path,
        message,
        os_code: is_first_try.then_some(DENIED),
        source: None,
    }
}

/// The innermost error's text, if it may be shown: where a connection failed, it says how.
fn root_cause(error: &Error) -> String {
    let mut cause: &dyn std::error::Error = error;
    while let Some(inner) = cause.source() {
        cause = inner;
    }
    shown(&cause.to_string())
}

/// The part of an error that may be shown: a reply's status, code and message, or its text without the queries of URLs.
fn shown(text: &str) -> String {
    let status = text
        .split("status code: ")
        .nth(1)
        .and_then(|rest| rest.get(..3))
        .unwrap_or_default();
    let told: Vec<&str> = ["Code", "Message"]
        .iter()
        .filter_map(|tag| element(text, tag))
        .collect();
    if told.is_empty() {
        let body = text
            .find("<?xml")
            .or_else(|| text.find("<html"))
            .or_else(|| text.find("<!DOCTYPE"));
        without_queries(text.get(..body.unwrap_or(text.len())).unwrap_or(text))
    } else {
        without_queries(&format!("{status} {}", told.join(": ")))
    }
}

/// The text, cut to at most [`LONGEST`] bytes.
fn cut(mut text: String) -> String {
    if text.len() > LONGEST {
        let end = (0..=LONGEST).rev().find(|at| text.is_char_boundary(*at)).unwrap_or(0);
        text.truncate(end);
        text.push_str("...");
    }
    text
}

/// The text of the first XML element of that name.
fn element<'a>(text: &'a str, tag: &str) -> Option<&'a str> {
    let inner = text.split(&format!("<{tag}>")).nth(1)?;
    let inner = inner.split(&format!("</{tag}>")).next()?;
    // Azure adds the request's id and time on lines of their own.
    inner.lines().next()
}

/// The text without URL queries: what follows a `?` up to the next blank.
fn without_queries(text: &str) -> String {
    let words: Vec<&str> = text.split_whitespace().collect();
    let words: Vec<String> = words
        .iter()
        .map(|word| match word.split_once('?') {
            Some((head, tail)) if head.contains("://") && !tail.is_empty() => format!("{head}?..."),
            _ => (*word).to_owned(),
        })
        .collect();
    words.join(" ")
}

/// Whether the request may have had its effect although an error came back.
pub(super) fn is_ambiguous(error: &Error) -> bool {
    !matches!(
        error,
        Error::NotFound { .. }
            | Error::InvalidPath { .. }
            | Error::NotSupported { .. }
            | Error::NotImplemented { .. }
            | Error::PermissionDenied { .. }
            | Error::Unauthenticated { .. }
            | Error::UnknownConfigurationKey { .. }
    )
}

/// Whether an idempotent request should be retried: `object_store` does not retry all of them. What it has sent again until it gave up is
/// not: a store that is down would be waited for several times as long as the options say.
pub(super) fn is_worth_another_try(error: &Error) -> bool {
    let text = error.to_string();
    matches!(error, Error::Generic { .. }) && !is_of_ended_session(&text) && !has_given_up(&text)
}

/// Whether a store may have answered so to a range that it does not serve.
pub(super) fn may_be_of_range(error: &Error) -> bool {
    matches!(error, Error::NotSupported { .. } | Error::Generic { .. }) && !has_given_up(&error.to_string())
}

/// Whether `object_store` has sent a request again before it ended in this error.
fn was_sent_again(text: &str) -> bool {
    text.contains(" retries, max_retries: ")
}

/// Whether it has done so until it gave up. A refusal, whose status is 4xx, ends its tries early.
fn has_given_up(text: &str) -> bool {
    let is_refused = text.contains("status code: 4") && !text.contains("status code: 429");
    was_sent_again(text) && !is_refused
}

/// Whether the reply to a listing broke off: `object_store` does not send such a request again.
pub(super) fn is_broken_listing(error: &Error) -> bool {
    let text = error.to_string();
    text.contains("getting list response body") || text.contains("invalid list response")
}

#[cfg(test)]
mod tests {
    use super::*;

    fn message(text: &'static str, secrets: &[(&str, &str)]) -> String {
        let error = Error::Generic {
            store: "S3",
            source: text.into(),
        };
        let secrets = Secrets::of(secrets.iter().copied());
        format!("{:?}", sort_error("s3://b/x".into(), "read", error, &secrets))
    }

    #[test]
    fn test_of_a_reply_only_its_code_and_message_are_shown() {
        let text = "Error performing GET http://h/b/x?sig=abc in 1ms - Server returned non-2xx status code: 403 Forbidden: \
                    <?xml version=\"1.0\"?><Error><Code>SignatureDoesNotMatch</Code><Message>not the same\nRequestId:7</Message>\
                    <AWSAccessKeyId>AKIA</AWSAccessKeyId><StringToSign>AWS4</StringToSign></Error>";
        let shown = message(text, &[]);
        assert!(shown.contains("403 SignatureDoesNotMatch: not the same"), "{shown}");
        for hidden in ["AKIA", "AWS4", "sig=abc", "RequestId"] {
            assert!(!shown.contains(hidden), "{shown}");
        }
    }

    #[test]
    fn test_no_message_shows_a_secret_or_a_query() {
        let shown = message(
            "connect to https://h/c/b?sv=1&sig=tops%2Fecret failed with tops/ecret",
            &[("azure_storage_sas_key", "tops/ecret")],
        );
        assert!(shown.contains("https://h/c/b?... failed with ***"), "{shown}");
        assert!(!shown.contains("ecret"), "{shown}");
    }

    #[test]
    fn test_what_is_denied_has_the_systems_code_and_a_conflict_its_own() {
        let sort = |doing: &str, error: Error| sort_error("s3://b/x".into(), doing, error, &Secrets::default());
        let text = |status: &str| format!("status code: {status}: <Error><Code>Why</Code></Error>");
        let denied = Error::PermissionDenied {
            path: "x".into(),
            source: text("403 Forbidden").into(),
        };
        let error = sort("create", denied);
        assert_eq!((error.kind(), error.os_code()), ("io", Some(13)), "{error}");
        let denied_later = Error::PermissionDenied {
            path: "x".into(),
            source: format!(", after 1 retries, max_retries: 10 - {}", text("403 Forbidden")).into(),
        };
        assert_eq!(sort("create", denied_later).os_code(), None);
        let expired = Error::Generic {
            store: "S3",
            source: "status code: 400 Bad Request: <Error><Code>ExpiredToken</Code></Error>".into(),
        };
        assert!(!is_worth_another_try(&expired));
        let down = |after: &str| Error::Generic {
            store: "S3",
            source: format!("Error performing GET http://h/b in 1s{after} - status code: 500").into(),
        };
        assert!(is_worth_another_try(&down("")) && may_be_of_range(&down("")));
        let given_up = down(", after 10 retries, max_retries: 10, retry_timeout: 180s ");
        assert!(!is_worth_another_try(&given_up) && !may_be_of_range(&given_up));
        let refused = Error::Generic {
            store: "S3",
            source: ", after 1 retries, max_retries: 10 - status code: 416".into(),
        };
        assert!(may_be_of_range(&refused));
        let error = sort("create", expired);
        assert_eq!((error.kind(), error.os_code()), ("io", Some(13)), "{error}");
        assert!(
            error.message().contains("check the credentials (400 ExpiredToken)"),
            "{error}"
        );
        let leased = Error::Precondition {
            path: "x".into(),
            source: text("412 Precondition Failed").into(),
        };
        let error = sort("write", leased);
        assert_eq!((error.kind(), error.os_code()), ("io", None), "{error}");
        assert!(error.message().contains("412 Why"), "{error}");
        let unknown = || Error::Generic {
            store: "S3",
            source: text("501 Not Implemented").into(),
        };
        assert_eq!(sort("create", unknown()).kind(), "unsupported");
        assert_eq!(sort("write", unknown()).kind(), "io");
    }

    #[test]
    fn test_a_long_text_is_cut_between_letters() {
        let text: &'static str = Box::leak("ä".repeat(1000).into_boxed_str());
        assert!(message(text, &[]).len() < LONGEST + 200);
    }
}
