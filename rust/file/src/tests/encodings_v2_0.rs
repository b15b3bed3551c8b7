//! Encodings of 2.0 that esker's writer does not choose: hand-made pages, read whole, in part and corrupted.

use std::ops::Range;
use std::sync::Arc;

use arrow_array::cast::AsArray;
use arrow_array::*;
use arrow_schema::{DataType, Field as ArrowField, Schema as ArrowSchema};
use bytes::Bytes;
use esker_codec::bitpack::pack_block;
use esker_codec::general;
use esker_proto::lance::encodings as pb;
use esker_proto::lance::encodings::array_encoding::ArrayEncoding as Kind;
use prost::Message;

use super::hostile::read_all;
use super::round_trip::memory;
use super::samples::Numbers;
use crate::container::{ContainerWriter, WrittenPage};
use crate::schema::Schema;
use crate::{FileReader, FileVersion};

/// One page: its encoding and buffers.
struct Page {
    column: usize,
    num_values: u64,
    encoding: Kind,
    buffers: Vec<Vec<u8>>,
}

/// A file of one field, made of pages.
async fn craft(name: &str, data_type: &DataType, num_rows: u64, pages: Vec<Page>) -> Vec<u8> {
    let schema = Schema::from_arrow(&ArrowSchema::new(vec![ArrowField::new("x", data_type.clone(), true)])).unwrap();
    let store = memory(&format!("craft-{name}"));
    let columns = pages.iter().map(|p| p.column).max().unwrap() + 1;
    let mut out = ContainerWriter::new(store.writer("x.lance").await.unwrap(), FileVersion::V2_0, columns);
    for page in pages {
        out.write_page(WrittenPage {
            column: page.column,
            buffers: page.buffers.into_iter().map(|b| vec![Bytes::from(b)]).collect(),
            num_values: page.num_values,
            priority: 0,
            encoding_type: "/lance.encodings.ArrayEncoding",
            encoding: array(page.encoding).encode_to_vec(),
        })
        .await
        .unwrap();
    }
    out.finish(&schema, num_rows).await.unwrap();
    store.get("x.lance").await.unwrap().to_vec()
}

fn array(kind: Kind) -> pb::ArrayEncoding {
    pb::ArrayEncoding {
        array_encoding: Some(kind),
    }
}

fn buffer(index: u32) -> Option<pb::Buffer> {
    Some(pb::Buffer {
        buffer_index: index,
        buffer_type: 0,
    })
}

fn boxed(kind: Kind) -> Option<Box<pb::ArrayEncoding>> {
    Some(Box::new(array(kind)))
}

fn flat(bits: u64, index: u32, scheme: &str) -> Kind {
    Kind::Flat(pb::Flat {
        bits_per_value: bits,
        buffer: buffer(index),
        compression: (!scheme.is_empty()).then(|| pb::Compression {
            scheme: scheme.into(),
            level: None,
        }),
    })
}

fn nullable(validity: Option<Kind>, values: Kind) -> Kind {
    use pb::nullable::{NoNull, Nullability, SomeNull};
    let values = boxed(values);
    let nullability = Some(match validity {
        None => Nullability::NoNulls(Box::new(NoNull { values })),
        Some(validity) => Nullability::SomeNulls(Box::new(SomeNull {
            validity: boxed(validity),
            values,
        })),
    });
    Kind::Nullable(Box::new(pb::Nullable { nullability }))
}

fn compressed(scheme: &str, bytes: &[u8]) -> Vec<u8> {
    let mut out = Vec::new();
    general::compress(scheme, None, bytes, &mut out).unwrap();
    out
}

fn bit_stream(bits: u32, values: &[u64]) -> Vec<u8> {
    let mut out = vec![0_u8; (values.len() * bits as usize).div_ceil(8)];
    for (index, value) in values.iter().enumerate() {
        for bit in 0..bits as usize {
            let at = index * bits as usize + bit;
            out[at / 8] |= (((value >> bit) & 1) as u8) << (at % 8);
        }
    }
    out
}

fn bitpacked(bits: u32, of: u64, signed: bool, index: u32) -> Kind {
    Kind::Bitpacked(pb::Bitpacked {
        compressed_bits_per_value: u64::from(bits),
        uncompressed_bits_per_value: of,
        buffer: buffer(index),
        signed,
    })
}

fn non_neg(bits: usize, of: u64, index: u32) -> Kind {
    Kind::BitpackedForNonNeg(pb::BitpackedForNonNeg {
        compressed_bits_per_value: bits as u64,
        uncompressed_bits_per_value: of,
        buffer: buffer(index),
    })
}

fn blocks(bits: usize, values: &[u64]) -> Vec<u8> {
    let mut out = Vec::new();
    for chunk in values.chunks(1024) {
        let mut block = chunk.to_vec();
        block.resize(1024, 0);
        pack_block(bits, &block, &mut out);
    }
    out
}

fn ends(lengths: &[usize]) -> Vec<u64> {
    lengths
        .iter()
        .scan(0, |end, length| {
            *end += *length as u64;
            Some(*end)
        })
        .collect()
}

fn le(values: &[u64]) -> Vec<u8> {
    values.iter().flat_map(|v| v.to_le_bytes()).collect()
}

/// Reads the file whole and in parts, and damaged in many ways.
async fn check(name: &str, bytes: Vec<u8>, expected: ArrayRef) {
    let store = memory(&format!("check-{name}"));
    store.put("x.lance", Bytes::from(bytes.clone())).await.unwrap();
    let reader = FileReader::open(store, "x.lance").await.unwrap();
    let projection = reader.project(&reader.schema().fields, None).unwrap();
    let rows = expected.len() as u64;
    let parts: [&[Range<u64>]; 5] = [
        &[0..rows],
        &[rows / 2..rows / 2 + 1],
        &[0..1, 2..3, rows - 1..rows],
        &[rows / 3..rows],
        &[0..rows - 1],
    ];
    for part in parts {
        let places = UInt64Array::from_iter_values(part.iter().cloned().flatten());
        let wanted = arrow_select::take::take(&expected, &places, None).unwrap();
        let found = reader.read(&projection, part).await.unwrap();
        assert_eq!(found.column(0), &wanted, "{name}: rows {part:?}");
    }
    let mut numbers = Numbers(5);
    for _ in 0..300 {
        let mut bytes = bytes.clone();
        let at = (numbers.next() % bytes.len() as u64) as usize;
        bytes[at] ^= 1 << (numbers.next() % 8);
        read_all(name, bytes).await;
    }
}

fn run(test: impl std::future::Future<Output = ()>) {
    esker_store::runtime().unwrap().block_on(test);
}

#[test]
fn test_bit_streams_with_and_without_signs_are_read() {
    run(async {
        let mut n = Numbers(1);
        for (bits, signed) in [(1, false), (3, true), (7, false), (13, true), (31, false), (32, true)] {
            let values: Vec<u64> = (0..700).map(|_| n.next() & ((1 << bits) - 1)).collect();
            let expected: Vec<i32> = values
                .iter()
                .map(|v| {
                    if signed {
                        ((*v as i64) << (64 - bits) >> (64 - bits)) as i32
                    } else {
                        *v as i32
                    }
                })
                .collect();
            let page = Page {
                column: 0,
                num_values: 700,
                encoding: nullable(None, bitpacked(bits, 32, signed, 0)),
                buffers: vec![bit_stream(bits, &values)],
            };
            let name = format!("bits-{bits}");
            let bytes = craft(&name, &DataType::Int32, 700, vec![page]).await;
            check(&name, bytes, Arc::new(Int32Array::from(expected))).await;
        }
    });
}

#[test]
fn test_blocks_of_packed_values_are_read() {
    run(async {
        let mut n = Numbers(2);
        for bits in [1_usize, 9, 17, 40, 64] {
            let values: Vec<u64> = (0..2500).map(|_| n.next() >> (64 - bits)).collect();
            let page = Page {
                column: 0,
                num_values: 2500,
                encoding: nullable(None, non_neg(bits, 64, 0)),
                buffers: vec![blocks(bits, &values)],
            };
            let name = format!("blocks-{bits}");
            let bytes = craft(&name, &DataType::UInt64, 2500, vec![page]).await;
            check(&name, bytes, Arc::new(UInt64Array::from(values))).await;
        }
    });
}

#[test]
fn test_compressed_values_and_validity_are_read() {
    run(async {
        for scheme in ["zstd", "lz4"] {
            let values: Vec<u64> = (0..300).map(|i| i / 7).collect();
            let valid: Vec<u64> = (0..300).map(|i| u64::from(i % 5 > 0)).collect();
            let bitmap = compressed(scheme, &bit_stream(1, &valid));
            let page = |encoding, values: Vec<u8>| Page {
                column: 0,
                num_values: 300,
                encoding,
                buffers: vec![bitmap.clone(), values],
            };
            let ints = nullable(Some(flat(1, 0, scheme)), flat(64, 1, scheme));
            let bytes = craft(
                "compressed",
                &DataType::UInt64,
                300,
                vec![page(ints, compressed(scheme, &le(&values)))],
            )
            .await;
            let there = |i: u64| !i.is_multiple_of(5);
            let expected = UInt64Array::from_iter((0..300).map(|i| there(i).then_some(i / 7)));
            check(&format!("ints-{scheme}"), bytes, Arc::new(expected)).await;

            let flags: Vec<u64> = (0..300).map(|i| (i % 3) & 1).collect();
            let bools = nullable(Some(flat(1, 0, scheme)), flat(1, 1, scheme));
            let bytes = craft(
                "compressed",
                &DataType::Boolean,
                300,
                vec![page(bools, compressed(scheme, &bit_stream(1, &flags)))],
            )
            .await;
            let expected = BooleanArray::from_iter((0..300).map(|i| there(i).then_some(i % 3 == 1)));
            check(&format!("bools-{scheme}"), bytes, Arc::new(expected)).await;
        }
    });
}

#[test]
fn test_strings_with_packed_ends_and_compressed_bytes_are_read() {
    run(async {
        let words: Vec<String> = (0..400_u32)
            .map(|i| "w".repeat((i % 7) as usize) + &i.to_string())
            .collect();
        let text = words.concat();
        let stored = ends(&words.iter().map(String::len).collect::<Vec<_>>());
        let binary = |indices, bytes| {
            Kind::Binary(Box::new(pb::Binary {
                indices: boxed(nullable(None, indices)),
                bytes: boxed(bytes),
                null_adjustment: text.len() as u64 + 1,
            }))
        };
        let cases = [
            ("plain", flat(64, 0, ""), le(&stored)),
            ("zstd", flat(64, 0, "zstd"), compressed("zstd", &le(&stored))),
            ("stream", bitpacked(14, 64, false, 0), bit_stream(14, &stored)),
            ("blocks", non_neg(14, 64, 0), blocks(14, &stored)),
        ];
        for (name, indices, raw) in cases {
            for scheme in ["", "none", "zstd", "lz4"] {
                let bytes = match scheme {
                    "" | "none" => text.clone().into_bytes(),
                    scheme => compressed(scheme, text.as_bytes()),
                };
                let page = Page {
                    column: 0,
                    num_values: 400,
                    encoding: binary(indices.clone(), flat(8, 1, scheme)),
                    buffers: vec![raw.clone(), bytes],
                };
                let name = format!("strings-{name}-{scheme}");
                let file = craft(&name, &DataType::Utf8, 400, vec![page]).await;
                check(&name, file, Arc::new(StringArray::from(words.clone()))).await;
            }
        }
    });
}

#[test]
fn test_strings_of_one_length_are_read() {
    run(async {
        let words: Vec<String> = (0..200).map(|i| format!("{i:05}")).collect();
        // Other writers count the string as the value, or the byte.
        for bits in [8, 40] {
            let fixed = Kind::FixedSizeBinary(Box::new(pb::FixedSizeBinary {
                bytes: boxed(nullable(None, flat(bits, 0, ""))),
                byte_width: 5,
            }));
            let page = Page {
                column: 0,
                num_values: 200,
                encoding: nullable(None, fixed),
                buffers: vec![words.concat().into_bytes()],
            };
            let name = format!("fixed-{bits}");
            let file = craft(&name, &DataType::LargeUtf8, 200, vec![page]).await;
            check(&name, file, Arc::new(LargeStringArray::from(words.clone()))).await;
        }
    });
}

#[test]
fn test_dictionaries_with_packed_keys_are_read() {
    run(async {
        let keys: Vec<u64> = (0..600).map(|i| i * 31 % 5).collect();
        let items = Kind::Binary(Box::new(pb::Binary {
            indices: boxed(nullable(None, flat(64, 1, ""))),
            bytes: boxed(flat(8, 2, "")),
            null_adjustment: 100,
        }));
        let dictionary = Kind::Dictionary(Box::new(pb::Dictionary {
            indices: boxed(nullable(None, bitpacked(3, 8, false, 0))),
            items: boxed(items),
            num_dictionary_items: 4,
        }));
        let page = Page {
            column: 0,
            num_values: 600,
            encoding: dictionary,
            buffers: vec![bit_stream(3, &keys), le(&[1, 3, 6, 10]), b"abbcccdddd".to_vec()],
        };
        let file = craft("packed-keys", &DataType::Utf8, 600, vec![page]).await;
        let names = ["a", "bb", "ccc", "dddd"];
        let expected = keys.iter().map(|key| key.checked_sub(1).map(|key| names[key as usize]));
        check("packed-keys", file, Arc::new(StringArray::from_iter(expected))).await;
    });
}

#[test]
fn test_strings_kept_as_lists_of_bytes_are_read() {
    run(async {
        let words: Vec<Option<String>> = (0..300_u32)
            .map(|i| (i % 6 != 2).then(|| "é".repeat((i % 4) as usize) + &i.to_string()))
            .collect();
        let mut pages = Vec::new();
        for half in words.chunks(150) {
            let lengths: Vec<usize> = half.iter().map(|w| w.as_ref().map_or(0, String::len)).collect();
            let num_items = lengths.iter().sum::<usize>() as u64;
            let stored: Vec<u64> = ends(&lengths)
                .into_iter()
                .zip(half)
                .map(|(end, word)| end + if word.is_none() { num_items + 1 } else { 0 })
                .collect();
            pages.push(Page {
                column: 0,
                num_values: 150,
                encoding: Kind::List(Box::new(pb::List {
                    offsets: boxed(nullable(None, flat(64, 0, ""))),
                    null_offset_adjustment: num_items + 1,
                    num_items,
                })),
                buffers: vec![le(&stored)],
            });
        }
        let bytes: Vec<u8> = words.iter().flatten().flat_map(|w| w.bytes()).collect();
        pages.push(Page {
            column: 1,
            num_values: bytes.len() as u64,
            encoding: nullable(None, flat(8, 0, "")),
            buffers: vec![bytes],
        });
        let file = craft("byte-lists", &DataType::Utf8, 300, pages).await;
        check("byte-lists", file, Arc::new(StringArray::from(words))).await;
    });
}

#[test]
fn test_a_column_after_one_of_byte_lists_is_found() {
    run(async {
        let schema = ArrowSchema::new(vec![
            ArrowField::new("text", DataType::Binary, true),
            ArrowField::new("number", DataType::UInt64, true),
        ]);
        let store = memory("after-byte-lists");
        let mut out = ContainerWriter::new(store.writer("x.lance").await.unwrap(), FileVersion::V2_0, 3);
        let list = Kind::List(Box::new(pb::List {
            offsets: boxed(flat(64, 0, "")),
            null_offset_adjustment: 4,
            num_items: 3,
        }));
        let pages = [
            (2, list, le(&[1, 3])),
            (3, flat(8, 0, ""), b"xyz".to_vec()),
            (2, flat(64, 0, ""), le(&[7, 8])),
        ];
        for (column, (num_values, encoding, bytes)) in pages.into_iter().enumerate() {
            out.write_page(WrittenPage {
                column,
                buffers: vec![vec![Bytes::from(bytes)]],
                num_values,
                priority: 0,
                encoding_type: "/lance.encodings.ArrayEncoding",
                encoding: array(encoding).encode_to_vec(),
            })
            .await
            .unwrap();
        }
        out.finish(&Schema::from_arrow(&schema).unwrap(), 2).await.unwrap();
        let reader = FileReader::open(store, "x.lance").await.unwrap();
        let projection = reader.project(&reader.schema().fields, None).unwrap();
        let found = reader.read(&projection, std::slice::from_ref(&(0..2))).await.unwrap();
        assert_eq!(
            found.column(0).as_binary::<i32>(),
            &BinaryArray::from(vec![b"x".as_slice(), b"yz"])
        );
        assert_eq!(found.column(1).as_primitive::<types::UInt64Type>().values(), &[7, 8]);
    });
}

#[test]
fn test_constants_are_refused_by_name() {
    run(async {
        let page = Page {
            column: 0,
            num_values: 3,
            encoding: nullable(
                None,
                Kind::Constant(pb::Constant {
                    value: Bytes::from_static(&[1; 8]),
                }),
            ),
            buffers: vec![],
        };
        let file = craft("constant", &DataType::UInt64, 3, vec![page]).await;
        let store = memory("constant-read");
        store.put("x.lance", Bytes::from(file)).await.unwrap();
        let reader = FileReader::open(store, "x.lance").await.unwrap();
        let projection = reader.project(&reader.schema().fields, None).unwrap();
        let error = reader
            .read(&projection, std::slice::from_ref(&(0..3)))
            .await
            .unwrap_err();
        assert!(
            error.to_string().contains("encoding constant of file version 2.0"),
            "{error}"
        );
    });
}
