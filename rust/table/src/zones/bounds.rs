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

    fn widen(&mut self, values: impl Iterator<Item = T::Native>) {
        let mut nans = 0;
        // A number, or NaN, which compares with nothing.
        let mut numbers = values.filter(|value| {
            let is_number = value.partial_cmp(value).is_some();
            nans += usize::from(!is_number);
            is_number
        });
        if let Some((mut low, mut high)) = self.open.or_else(|| numbers.next().map(|first| (first, first))) {
            for value in numbers {
                low = if value.is_lt(low) { value } else { low };
                high = if value.is_gt(high) { value } else { high };
            }
            self.open = Some((low, high));
        }
        self.open_nans += nans;
    }
}

impl<T: ArrowPrimitiveType> Bounds for Numbers<T> {
    fn see(&mut self, values: &dyn Array) {
        let Some(values) = values.as_primitive_opt::<T>() else {
            return;
        };
        if values.null_count() == 0 {
            self.widen(values.values().iter().copied());
        } else {
            self.widen(values.iter().flatten());
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
