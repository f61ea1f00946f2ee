//! Buffers that kernels fill, without clearing them first.
#![allow(
    unsafe_code,
    reason = "clearing megabytes that are written next costs as much as some kernels"
)]

use std::mem::MaybeUninit;

/// Memory that has not been written.
pub(crate) type Fresh = [MaybeUninit<f32>];

/// A vector of `len` values, all written by `fill`.
///
/// # Safety
/// `fill` must write every element of the slice it is given.
pub(crate) unsafe fn filled(len: usize, fill: impl FnOnce(&mut Fresh)) -> Vec<f32> {
    let mut values = Vec::with_capacity(len);
    fill(&mut values.spare_capacity_mut()[..len]);
    // SAFETY: the capacity is `len` at least, and the caller promises that all of it has been written.
    unsafe { values.set_len(len) };
    values
}

/// The values of memory that has been written.
///
/// # Safety
/// Every element must have been.
pub(crate) unsafe fn written(values: &mut Fresh) -> &mut [f32] {
    // SAFETY: the layouts are the same, and the caller promises the rest.
    unsafe { &mut *(std::ptr::from_mut(values) as *mut [f32]) }
}
