//! The bounds of a column's values, zone by zone, while they are written.

use std::sync::Arc;

use arrow_array::builder::GenericByteBuilder;
use arrow_array::cast::AsArray;
use arrow_array::types::{
    BinaryType, ByteArrayType, Float32Type, Float64Type, LargeBinaryType, LargeUtf8Type, Utf8Type,
};
use arrow_array::{downcast_primitive, Array, ArrayRef, ArrowNativeTypeOp, ArrowPrimitiveType, PrimitiveArray};
use arrow_schema::DataType;

use super::seed::is_zoned;

/// Bytes of a bound of texts and binaries; longer ones are cut.
const TEXT_BYTES: usize = 64;

/// Gathers the bounds of one column.
pub(super) trait Bounds: Send + Sync {
    /// Values of the zone that is open, as many as there may be.
    fn see(&mut self, values: &dyn Array);

    /// Ends the zone that is open.
    fn end_zone(&mut self);

    /// How many of the other zones so far may hold the lower bound of one of them.
    fn overlapping(&self, zone: usize) -> usize;

    /// The number of NaN in each zone.
    fn take_nans(&mut self) -> Vec<u32>;

    /// The bounds, a value for each zone.
    fn finish(&mut self) -> (ArrayRef, ArrayRef);
}

/// A gatherer for a type; `None` where seeds are not worth it.
pub(super) fn bounds_of(data_type: &DataType) -> Option<Box<dyn Bounds>> {
    macro_rules! numbers {
        ($t:ty) => {
            Some(Box::new(Numbers::<$t>::new(data_type)))
        };
    }
    match data_type {
        other if !is_zoned(other) => None,
        DataType::Boolean | DataType::FixedSizeBinary(_) | DataType::Decimal256(_, _) => None,
        other => downcast_primitive! {
            other => (numbers),
            DataType::Utf8 => Some(Box::new(Texts::<Utf8Type>::default())),
            DataType::LargeUtf8 => Some(Box::new(Texts::<LargeUtf8Type>::default())),
            DataType::Binary => Some(Box::new(Texts::<BinaryType>::default())),
            DataType::LargeBinary => Some(Box::new(Texts::<LargeBinaryType>::default())),
            _ => None
        },
    }
}

/// Adds up to u32, as far as it goes: a zone has fewer rows.
pub(super) fn short(count: usize) -> u32 {
    u32::try_from(count).unwrap_or(u32::MAX)
}

struct Numbers<T: ArrowPrimitiveType> {
    data_type: DataType,
    open: Option<(T::Native, T::Native)>,
    open_nans: usize,
    zones: Vec<Option<(T::Native, T::Native)>>,
    nans: Vec<u32>,
}

impl<T: ArrowPrimitiveType> Numbers<T> {
    fn new(data_type: &DataType) -> Self {
        Numbers {
            data_type: data_type.clone(),
            open: None,
            open_nans: 0,
            zones: Vec::new(),
            nans: Vec::new(),
        }
    }

    fn widen(&mut self, values: &[T::Native]) {
        let first = || {
            values
                .iter()
                .find(|value| is_number(**value))
                .map(|first| (*first, *first))
        };
        if let Some(open) = self.open.or_else(first) {
            let mut found = bounds_within(open, values);
            if T::DATA_TYPE.is_floating() && (found.0.is_zero() || found.1.is_zero()) {
                // Operators take both zeros for the same.
                found = ordered_bounds(open, values);
            }
            self.open = Some(found);
        }
        if T::DATA_TYPE.is_floating() {
            self.open_nans += values.iter().filter(|value| !is_number(**value)).count();
        }
    }
}

/// Whether it is a number, or NaN, which compares with nothing.
fn is_number<N: ArrowNativeTypeOp>(value: N) -> bool {
    value.partial_cmp(&value).is_some()
}

/// Bounds of numbers and of others between `low` and `high`, by the operators `<` and `>`: several at a time, which wait for nothing.
fn bounds_within<N: ArrowNativeTypeOp>((low, high): (N, N), values: &[N]) -> (N, N) {
    const LANES: usize = 8;
    let (mut lows, mut highs) = ([low; LANES], [high; LANES]);
    let (chunks, rest) = values.as_chunks::<LANES>();
    for chunk in chunks {
        for ((low, high), value) in lows.iter_mut().zip(&mut highs).zip(chunk) {
            *low = if *value < *low { *value } else { *low };
            *high = if *value > *high { *value } else { *high };
        }
    }
    let others = lows.into_iter().chain(highs).chain(rest.iter().copied());
    others.fold((low, high), |(low, high), value| {
        (
            if value < low { value } else { low },
            if value > high { value } else { high },
        )
    })
}

/// The same one by one, and -0.0 below 0.0.
fn ordered_bounds<N: ArrowNativeTypeOp>(open: (N, N), values: &[N]) -> (N, N) {
    let numbers = values.iter().copied().filter(|value| is_number(*value));
    numbers.fold(open, |(low, high), value| {
        (
            if value.is_lt(low) { value } else { low },
            if value.is_gt(high) { value } else { high },
        )
    })
}

impl<T: ArrowPrimitiveType> Bounds for Numbers<T> {
    fn see(&mut self, values: &dyn Array) {
        let Some(values) = values.as_primitive_opt::<T>() else {
            return;
        };
        match values.nulls().filter(|nulls| nulls.null_count() > 0) {
            None => self.widen(values.values()),
            Some(nulls) => {
                for (start, end) in nulls.valid_slices() {
                    self.widen(values.values().get(start..end).unwrap_or_default());
                }
            }
        }
    }

    fn end_zone(&mut self) {
        self.zones.push(self.open.take());
        self.nans.push(short(std::mem::take(&mut self.open_nans)));
    }

    fn overlapping(&self, zone: usize) -> usize {
        let Some((of, _)) = self.zones.get(zone).copied().flatten() else {
            // Nothing is known of a zone without values.
            return self.zones.len();
        };
        let others = self.zones.iter().enumerate().filter(|(other, _)| *other != zone);
        let holds =
            |bounds: &Option<(T::Native, T::Native)>| bounds.is_some_and(|(low, high)| low.is_le(of) && high.is_ge(of));
        others.filter(|(_, bounds)| holds(bounds)).count()
    }

    fn take_nans(&mut self) -> Vec<u32> {
        std::mem::take(&mut self.nans)
    }

    fn finish(&mut self) -> (ArrayRef, ArrayRef) {
        let array = |bound: fn((T::Native, T::Native)) -> T::Native| {
            let bounds = self.zones.iter().map(|zone| zone.map(bound));
            let array: PrimitiveArray<T> = bounds.collect();
            Arc::new(array.with_data_type(self.data_type.clone())) as ArrayRef
        };
        let high = array(|(_, high)| high);
        let high = with_nan::<Float32Type>(&high, &self.nans, f32::NAN)
            .or_else(|| with_nan::<Float64Type>(&high, &self.nans, f64::NAN))
            .unwrap_or(high);
        (array(|(low, _)| low), high)
    }
}

/// The upper bounds as pylance has them: NaN where a zone has one.
fn with_nan<T: ArrowPrimitiveType>(bounds: &ArrayRef, nans: &[u32], nan: T::Native) -> Option<ArrayRef> {
    let bounds = bounds.as_primitive_opt::<T>()?;
    let bounds = bounds.iter().zip(nans);
    let bounds: PrimitiveArray<T> = bounds
        .map(|(bound, nans)| if *nans > 0 { Some(nan) } else { bound })
        .collect();
    Some(Arc::new(bounds))
}

/// A lower and an upper bound of texts; no upper one if it would be too long.
type TextZone = (Vec<u8>, Option<Vec<u8>>);

struct Texts<T: ByteArrayType> {
    open: Option<(Vec<u8>, Vec<u8>)>,
    zones: Vec<Option<TextZone>>,
    of: std::marker::PhantomData<fn() -> T>,
}

impl<T: ByteArrayType> Default for Texts<T> {
    fn default() -> Self {
        Texts {
            open: None,
            zones: Vec::new(),
            of: std::marker::PhantomData,
        }
    }
}

impl<T: ByteArrayType> Bounds for Texts<T> {
    fn see(&mut self, values: &dyn Array) {
        let Some(values) = values.as_bytes_opt::<T>() else {
            return;
        };
        let mut found = values.iter().flatten().map(AsRef::<[u8]>::as_ref);
        let Some(first) = found.next() else { return };
        let (mut low, mut high) = (first, first);
        for value in found {
            if value < low {
                low = value;
            } else if value > high {
                high = value;
            }
        }
        match &mut self.open {
            Some((lowest, highest)) => {
                if low < lowest.as_slice() {
                    *lowest = low.to_vec();
                }
                if high > highest.as_slice() {
                    *highest = high.to_vec();
                }
            }
            None => self.open = Some((low.to_vec(), high.to_vec())),
        }
    }

    fn end_zone(&mut self) {
        let cut = |(low, high): (Vec<u8>, Vec<u8>)| match T::DATA_TYPE {
            DataType::Utf8 | DataType::LargeUtf8 => (text_below(low), text_above(high)),
            _ => (bytes_below(low), bytes_above(high)),
        };
        self.zones.push(self.open.take().map(cut));
    }

    fn overlapping(&self, zone: usize) -> usize {
        let Some(Some((of, _))) = self.zones.get(zone) else {
            return self.zones.len();
        };
        let others = self.zones.iter().enumerate().filter(|(other, _)| *other != zone);
        let holds = |(low, high): &TextZone| low <= of && high.as_ref().is_none_or(|high| high >= of);
        others.filter(|(_, bounds)| bounds.as_ref().is_some_and(holds)).count()
    }

    fn take_nans(&mut self) -> Vec<u32> {
        vec![0; self.zones.len()]
    }

    fn finish(&mut self) -> (ArrayRef, ArrayRef) {
        let lows = self
            .zones
            .iter()
            .map(|zone| zone.as_ref().map(|(low, _)| low.as_slice()));
        let highs = self
            .zones
            .iter()
            .map(|zone| zone.as_ref().and_then(|(_, high)| high.as_deref()));
        (array_of::<T>(lows), array_of::<T>(highs))
    }
}

/// The values as an array. Texts were cut between characters.
fn array_of<'a, T: ByteArrayType>(values: impl Iterator<Item = Option<&'a [u8]>>) -> ArrayRef {
    let values: Vec<Option<&[u8]>> = values.collect();
    match T::DATA_TYPE {
        DataType::Utf8 => texts::<Utf8Type>(&values),
        DataType::LargeUtf8 => texts::<LargeUtf8Type>(&values),
        DataType::LargeBinary => binaries::<LargeBinaryType>(&values),
        _ => binaries::<BinaryType>(&values),
    }
}

fn texts<T: ByteArrayType<Native = str>>(values: &[Option<&[u8]>]) -> ArrayRef {
    let mut out = GenericByteBuilder::<T>::new();
    for value in values {
        out.append_option(value.and_then(|value| std::str::from_utf8(value).ok()));
    }
    Arc::new(out.finish())
}

fn binaries<T: ByteArrayType<Native = [u8]>>(values: &[Option<&[u8]>]) -> ArrayRef {
    let mut out = GenericByteBuilder::<T>::new();
    for value in values {
        out.append_option(*value);
    }
    Arc::new(out.finish())
}

/// The first characters of a text: a lower bound of it.
fn text_below(mut text: Vec<u8>) -> Vec<u8> {
    if text.len() > TEXT_BYTES {
        // A byte that goes on with a character has the bits 10 first.
        let ends = |at: &usize| text.get(*at).is_none_or(|byte| byte & 0xc0 != 0x80);
        let end = (0..=TEXT_BYTES).rev().find(ends).unwrap_or(0);
        text.truncate(end);
    }
    text
}

/// A short text that is not less than a text; `None` if there is none.
fn text_above(text: Vec<u8>) -> Option<Vec<u8>> {
    if text.len() <= TEXT_BYTES {
        return Some(text);
    }
    let mut characters: Vec<char> = String::from_utf8(text_below(text)).ok()?.chars().collect();
    while let Some(last) = characters.pop() {
        // The next character; there are none between the two halves of the planes.
        let next = match last {
            '\u{d7ff}' => Some('\u{e000}'),
            other => char::from_u32(u32::from(other) + 1),
        };
        if let Some(next) = next {
            characters.push(next);
            return Some(characters.into_iter().collect::<String>().into_bytes());
        }
    }
    None
}

fn bytes_below(mut bytes: Vec<u8>) -> Vec<u8> {
    bytes.truncate(TEXT_BYTES);
    bytes
}

fn bytes_above(mut bytes: Vec<u8>) -> Option<Vec<u8>> {
    if bytes.len() <= TEXT_BYTES {
        return Some(bytes);
    }
    bytes.truncate(TEXT_BYTES);
    while let Some(last) = bytes.pop() {
        if let Some(next) = last.checked_add(1) {
            bytes.push(next);
            return Some(bytes);
        }
    }
    None
}

#[cfg(test)]
mod tests {
    use arrow_array::types::Int64Type;
    use arrow_array::{Float64Array, Int64Array};

    use super::*;

    fn seen<T: ArrowPrimitiveType>(arrays: &[PrimitiveArray<T>]) -> (Option<(T::Native, T::Native)>, usize) {
        let mut bounds = Numbers::<T>::new(&T::DATA_TYPE);
        arrays.iter().for_each(|array| bounds.see(array));
        (bounds.open, bounds.open_nans)
    }

    #[test]
    fn test_bounds_are_those_of_the_numbers_in_their_order() {
        for len in [0, 1, 7, 8, 9, 100] {
            for nulls in [2, 5, usize::MAX] {
                let number = |i: usize| (i * 7919 % 101) as i64 - 50;
                let ints: Int64Array = (0..len).map(|i| (i % nulls != 1).then(|| number(i))).collect();
                let values = || ints.iter().flatten();
                let expected = values().min().zip(values().max());
                assert_eq!(
                    seen::<Int64Type>(std::slice::from_ref(&ints)),
                    (expected, 0),
                    "{len} {nulls}"
                );

                let float = |i: i64| if i % 3 == 0 { f64::NAN } else { i as f64 };
                let floats: Float64Array = ints.iter().map(|value| value.map(float)).collect();
                let numbers = || floats.iter().flatten().filter(|value| !value.is_nan());
                let (low, high) = (numbers().min_by(f64::total_cmp), numbers().max_by(f64::total_cmp));
                let nans = floats.iter().flatten().filter(|value| value.is_nan()).count();
                assert_eq!(seen::<Float64Type>(&[floats]), (low.zip(high), nans), "{len} {nulls}");
            }
        }
    }

    #[test]
    fn test_zeros_are_told_apart() {
        let zeros = [
            vec![0.0, -0.0],
            vec![-0.0, 0.0],
            [0.0; 9].into_iter().chain([-0.0]).collect(),
        ];
        for values in zeros {
            let (low, high) = seen(&[Float64Array::from(values.clone())]).0.unwrap();
            let bits = (low.to_bits(), high.to_bits());
            assert_eq!(bits, ((-0.0_f64).to_bits(), 0.0_f64.to_bits()), "{values:?}");
            let one_by_one: Vec<Float64Array> = values.iter().map(|value| Float64Array::from(vec![*value])).collect();
            let (low, high) = seen(&one_by_one).0.unwrap();
            assert_eq!((low.to_bits(), high.to_bits()), bits);
        }
        let none = [Float64Array::from(vec![f64::NAN, f64::NAN])];
        assert_eq!(seen(&none), (None, 2));
    }
}
