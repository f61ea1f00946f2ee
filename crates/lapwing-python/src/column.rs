//! Columns of Arrow tables, whatever they hold, as numbers and texts.
//!
//! Arrow's own casts would do it, at the price of two minutes of compiling casts that nobody needs here.

use std::borrow::Cow;

use arrow_array::cast::AsArray;
use arrow_array::types::{
    Decimal32Type, Decimal64Type, Decimal128Type, Float16Type, Float32Type, Float64Type,
};
use arrow_array::{Array, downcast_integer_array};
use arrow_schema::DataType;

/// Whole numbers, where that is what a column holds; those that do not fit are missing.
pub(crate) fn whole_numbers(array: &dyn Array) -> Option<Vec<Option<i64>>> {
    fn each<T: TryInto<i64>>(values: impl Iterator<Item = Option<T>>) -> Vec<Option<i64>> {
        values.map(|value| value?.try_into().ok()).collect()
    }
    Some(downcast_integer_array!(array => each(array.iter()), _ => return None))
}

/// Numbers, where that is what a column holds.
pub(crate) fn numbers(array: &dyn Array) -> Option<Vec<Option<f64>>> {
    fn each<T>(
        values: impl Iterator<Item = Option<T>>,
        number: impl Fn(T) -> f64,
    ) -> Vec<Option<f64>> {
        values.map(|value| value.map(&number)).collect()
    }
    let unit = |scale: i8| 10f64.powi(i32::from(scale));
    Some(match *array.data_type() {
        DataType::Float16 => each(array.as_primitive::<Float16Type>().iter(), f64::from),
        DataType::Float32 => each(array.as_primitive::<Float32Type>().iter(), f64::from),
        DataType::Float64 => each(array.as_primitive::<Float64Type>().iter(), |number| number),
        DataType::Decimal32(_, scale) => {
            each(array.as_primitive::<Decimal32Type>().iter(), |n| f64::from(n) / unit(scale))
        }
        DataType::Decimal64(_, scale) => {
            each(array.as_primitive::<Decimal64Type>().iter(), |n| n as f64 / unit(scale))
        }
        DataType::Decimal128(_, scale) => {
            each(array.as_primitive::<Decimal128Type>().iter(), |n| n as f64 / unit(scale))
        }
        _ => downcast_integer_array!(
            array => each(array.iter(), |number| number as f64),
            _ => return None,
        ),
    })
}

/// What a text file would have in its place: 5.0 is written 5.
pub(crate) fn texts<'a>(
    array: &'a dyn Array,
) -> Option<Box<dyn Iterator<Item = Option<Cow<'a, str>>> + 'a>> {
    fn borrowed<'a>(
        texts: impl Iterator<Item = Option<&'a str>> + 'a,
    ) -> Box<dyn Iterator<Item = Option<Cow<'a, str>>> + 'a> {
        Box::new(texts.map(|text| text.map(Cow::Borrowed)))
    }
    fn written<'a, T: ToString>(
        values: impl Iterator<Item = Option<T>> + 'a,
    ) -> Box<dyn Iterator<Item = Option<Cow<'a, str>>> + 'a> {
        Box::new(values.map(|value| value.map(|value| Cow::Owned(value.to_string()))))
    }
    Some(match array.data_type() {
        DataType::Utf8 => borrowed(array.as_string::<i32>().iter()),
        DataType::LargeUtf8 => borrowed(array.as_string::<i64>().iter()),
        DataType::Utf8View => borrowed(array.as_string_view().iter()),
        DataType::Dictionary(..) => {
            let dictionary = array.as_any_dictionary_opt()?;
            let values: Vec<Option<Cow<'a, str>>> = texts(dictionary.values())?.collect();
            let keys = whole_numbers(dictionary.keys())?.into_iter();
            Box::new(keys.map(move |key| values.get(usize::try_from(key?).ok()?)?.clone()))
        }
        DataType::Boolean => written(array.as_boolean().iter()),
        DataType::Float32 => written(array.as_primitive::<Float32Type>().iter()),
        DataType::Float64 => written(array.as_primitive::<Float64Type>().iter()),
        _ => downcast_integer_array!(array => written(array.iter()), _ => return None),
    })
}
