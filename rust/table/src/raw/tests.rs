use super::*;

fn sample() -> Bytes {
    let mut bytes = Vec::new();
    push_varint(&mut bytes, 3 << 3);
    push_varint(&mut bytes, u64::MAX);
    push_length_delimited(&mut bytes, 2, b"one");
    push_length_delimited(&mut bytes, 2, b"two");
    bytes.extend_from_slice(&[0xc1, 2, 1, 2, 3, 4, 5, 6, 7, 8]);
    bytes.extend_from_slice(&[0x2d, 1, 2, 3, 4]);
    Bytes::from(bytes)
}

#[test]
fn test_a_message_comes_back_byte_for_byte() {
    let message = RawMessage::decode(&sample()).unwrap();
    let numbers: Vec<_> = message.fields().iter().map(|f| (f.number(), f.wire_type())).collect();
    let expected = [
        (3, WireType::Varint),
        (2, WireType::Length),
        (2, WireType::Length),
        (40, WireType::Fixed64),
        (5, WireType::Fixed32),
    ];
    assert_eq!(numbers, expected);
    assert_eq!(message.encode(), sample());
    assert_eq!(message.get(3).unwrap().varint(), u64::MAX);
    assert_eq!(message.get(2).unwrap().payload().as_ref(), b"two");
}

#[test]
fn test_a_varint_that_is_longer_than_it_needs_to_be_is_kept() {
    let bytes = Bytes::from_static(&[0x08, 0x81, 0x80, 0x00]);
    let message = RawMessage::decode(&bytes).unwrap();
    assert_eq!(message.get(1).unwrap().varint(), 1);
    assert_eq!(message.encode(), bytes);
}

#[test]
fn test_a_replaced_field_stays_in_its_place_and_a_new_one_is_sorted_in() {
    let mut message = RawMessage::decode(&sample()).unwrap();
    message.set_all_bytes(2, [b"a".as_slice(), b"b", b"c"]);
    message.append_bytes(2, b"d");
    message.set_varint(3, 0);
    message.set_optional_varint(4, Some(0));
    message.set_bytes(39, b"x");
    let numbers: Vec<_> = message.fields().iter().map(RawField::number).collect();
    assert_eq!(numbers, [2, 2, 2, 2, 4, 39, 40, 5]);
    let again = RawMessage::decode(&Bytes::from(message.encode())).unwrap();
    assert_eq!(again, message);
    assert_eq!(
        again.all(2).map(|f| f.payload().clone()).collect::<Vec<_>>(),
        ["a", "b", "c", "d"]
    );
    assert_eq!(again.encoded_len(), again.encode().len());
}

#[test]
fn test_every_prefix_is_a_shorter_message_or_an_error() {
    let sample = sample();
    let ends: Vec<_> = walk(&sample).map(|record| record.unwrap().record.end).collect();
    for length in 0..sample.len() {
        let decoded = RawMessage::decode(&sample.slice(..length));
        assert_eq!(
            decoded.is_ok(),
            length == 0 || ends.contains(&length),
            "prefix of {length} bytes"
        );
    }
}

#[test]
fn test_what_protobuf_does_not_allow_is_malformed() {
    let cases: [&[u8]; 6] = [
        &[0x00, 0x01],                                                       // field number 0
        &[0x0b],                                                             // wire type 3, a group
        &[0x0f],                                                             // wire type 7
        &[0x08, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0x02], // 65 bits
        &[0x0a, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0x01], // a length of 2^64 - 1
        &[0x80, 0x80, 0x80, 0x80, 0x80, 0x80, 0x01, 0x01],                   // a field number of 39 bits
    ];
    for case in cases {
        assert!(RawMessage::decode(&Bytes::from_static(case)).is_err(), "{case:?}");
    }
}
