//! JSONB: the peer's bytes, truncations, limits, paths.

use crate::json::{decode, encode, Path, View};

/// Texts, the bytes that pylance 14.0.2 stores for them, and the text that comes back.
const STORED: [(&str, &str, &str); 15] = [
    ("0", "200000002000000100", "0"),
    ("-0.0", "2000000020000009608000000000000000", "-0.0"),
    ("-129", "200000002000000340ff7f", "-129"),
    ("65536", "20000000200000055000010000", "65536"),
    (
        "18446744073709551615",
        "200000002000000950ffffffffffffffff",
        "18446744073709551615",
    ),
    (
        "18446744073709551616",
        "20000000200000096043f0000000000000",
        "1.8446744073709552e+19",
    ),
    ("1e16", "2000000020000009604341c37937e08000", "1e+16"),
    ("0.00001", "2000000020000009603ee4f8b588e368f1", "0.00001"),
    ("1e400", "200000002000000120", "null"),
    ("NaN", "200000002000000110", "null"),
    ("", "2000000000000000", "null"),
    (
        "[[[[1]]]]",
        "800000015000001a8000000150000012800000015000000a80000001200000025001",
        "[[[[1]]]]",
    ),
    (
        "{\"b\":1,\"a\":2,\"aa\":{}}",
        "4000000310000001100000021000000120000002500000042000000261616162\
         5002400000005001",
        "{\"a\":2,\"aa\":{},\"b\":1}",
    ),
    (
        "\"\\ud83d\\ude00\\u0001\"",
        "2000000010000005f09f988001",
        "\"😀\\u0001\"",
    ),
    ("\"\\ud800\"", "20000000100000065c7564383030", "\"\\\\ud800\""),
];

fn bytes(hex: &str) -> Vec<u8> {
    let pairs = hex.as_bytes().chunks(2);
    pairs
        .map(|pair| u8::from_str_radix(std::str::from_utf8(pair).unwrap(), 16).unwrap())
        .collect()
}

#[test]
fn text_becomes_the_bytes_that_the_peer_stores() {
    for (text, hex, shown) in STORED {
        let stored = bytes(hex);
        assert_eq!(encode(text), Ok(stored.clone()), "{text}");
        assert_eq!(decode(&stored), Ok(shown.to_owned()), "{text}");
    }
}

#[test]
fn every_truncation_is_an_error() {
    let whole = encode("{\"a\":[1,\"x\",{\"b\":2.5}]}").unwrap();
    for length in 0..whole.len() {
        assert!(decode(&whole[..length]).is_err(), "{length}");
    }
}

#[test]
fn nesting_is_bounded() {
    let nested = |depth| format!("{}{}", "[".repeat(depth), "]".repeat(depth));
    let deepest = encode(&nested(500)).unwrap();
    assert_eq!(decode(&deepest), Ok(nested(500)));
    assert!(encode(&nested(502)).unwrap_err().contains("levels of nesting"));
    let mut deeper = deepest;
    for _ in 0..100 {
        let length = u32::try_from(deeper.len()).unwrap();
        let mut outer = 0x8000_0001_u32.to_be_bytes().to_vec();
        outer.extend((0x5000_0000 | length).to_be_bytes());
        outer.extend(deeper);
        deeper = outer;
    }
    assert!(decode(&deeper).unwrap_err().contains("levels of nesting"));
}

#[test]
fn what_is_no_json_is_refused_with_its_place() {
    for (text, told) in [
        ("{\"a\":1,}", "expected a key at byte 7"),
        ("{1: 2}", "expected a key at byte 1"),
        ("{'a\\'b': 1}", "expected an escape of JSON at byte 3"),
        ("'a", "found the end of the text"),
        ("0x", "expected the end of the text at byte 1"),
        ("{\"a\":1,\"a\":2}", "duplicate object attribute \"a\""),
        ("tru", "expected a value at byte 0"),
        ("1 2", "expected the end of the text at byte 2"),
        ("\"abc", "the end of the text"),
        ("\"\\x41\"", "expected an escape of JSON at byte 1"),
        ("--1", "expected a number"),
    ] {
        let found = encode(text).unwrap_err();
        assert!(found.contains(told), "{text}: {found}");
    }
}

#[test]
fn paths_lead_to_values() {
    let stored = encode("{\"a b\":1,\"c\":[10,20,[30]],\"d\":{\"e\":{\"f\":2}}}").unwrap();
    for (path, expected) in [
        ("$.\"a b\"", vec!["1"]),
        ("$[\"a b\"]", vec!["1"]),
        ("c[0]", vec!["10"]),
        ("$.c[last]", vec!["[30]"]),
        ("$.c[last - 1]", vec!["20"]),
        ("$.c[0, 2]", vec!["10", "[30]"]),
        ("$.c[1 to last]", vec!["20", "[30]"]),
        ("$.c[*]", vec!["10", "20", "[30]"]),
        ("$.c[-1]", vec![]),
        ("$.d.*.f", vec!["2"]),
        ("$.d[*].e.f", vec!["2"]),
        ("$.nope.f", vec![]),
    ] {
        let found = Path::parse(path).unwrap().select(View::root(&stored).unwrap()).unwrap();
        let found: Vec<String> = found
            .iter()
            .map(|view| decode(&view.to_jsonb().unwrap()).unwrap())
            .collect();
        assert_eq!(found, expected, "{path}");
    }
    for path in ["$.", "$..a", "$.a[", "$.c ? (@ == 1)", "@.a", "$.a[x]"] {
        assert!(Path::parse(path).unwrap_err().contains("InvalidJsonPath"), "{path}");
    }
}

#[test]
fn any_bytes_give_a_value_or_an_error() {
    let mut state = 1_u64;
    let mut next = move || {
        state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1);
        usize::try_from(state >> 33).unwrap()
    };
    let seed = encode("{\"a\":1,\"b\":[1,2.5,\"x\",null,true,{\"k\":[[]]}]}").unwrap();
    for _ in 0..20_000 {
        let mut changed = seed.clone();
        for _ in 0..=next() % 3 {
            let place = next() % changed.len();
            changed[place] = u8::try_from(next() % 256).unwrap();
        }
        crate::fuzz::run("json", &changed);
    }
}
