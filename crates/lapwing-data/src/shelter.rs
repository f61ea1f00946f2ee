//! Panics of a library as errors.
//!
//! The reader of Parquet takes some things for granted that a damaged file does not grant it, and panics: a dictionary
//! that is missing, a page of a kind that it does not know. Decoders of pictures may do likewise. That is the file's
//! fault, and must not end the program.

use std::any::Any;
use std::cell::Cell;
use std::panic::{AssertUnwindSafe, catch_unwind, set_hook, take_hook};
use std::sync::Once;

thread_local! {
    /// Whether this thread does something whose panics are expected, so that nothing is printed about them.
    static SHELTERED: Cell<bool> = const { Cell::new(false) };
}

/// Does something with a library; a panic in it is an error with its message. Whatever it worked on must not be used
/// again then.
pub(crate) fn sheltered<T>(work: impl FnOnce() -> T) -> Result<T, String> {
    static HOOK: Once = Once::new();
    HOOK.call_once(|| {
        let usual = take_hook();
        set_hook(Box::new(move |panic| {
            if !SHELTERED.get() {
                usual(panic);
            }
        }));
    });
    let outside = SHELTERED.replace(true);
    let done = catch_unwind(AssertUnwindSafe(work));
    SHELTERED.set(outside);
    done.map_err(|panic| message(&*panic))
}

fn message(panic: &(dyn Any + Send)) -> String {
    let text = panic.downcast_ref::<String>().map(String::as_str);
    text.or_else(|| panic.downcast_ref::<&str>().copied()).unwrap_or("it is damaged").to_owned()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_panic_is_an_error_and_the_next_one_is_a_panic_again() {
        assert_eq!(sheltered(|| 1).unwrap(), 1);
        let said = sheltered::<()>(|| panic!("page {}", 7)).unwrap_err();
        assert!(said.contains("page 7"), "{said}");
        assert!(!SHELTERED.get());
    }
}
