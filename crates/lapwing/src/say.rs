//! Messages for people, on stderr: the one place that writes there.

use std::io::Write;

/// Says something, in a line of its own: what `say!` does. Names and paths in it may hold anything; what a terminal would act on is spelt
/// out. That nobody listens any more (`2>&1 | head`, a full disk) is no reason to stop working.
pub(crate) fn line(message: &str) {
    let _ = std::io::stderr().write_all(format!("{}\n", printable(message)).as_bytes());
}

/// [`line()`] with the arguments of `format!`.
macro_rules! say {
    ($($argument:tt)*) => { $crate::say::line(&format!($($argument)*)) };
}
pub(crate) use say;

/// A message, line by line, without characters that a terminal would act on.
pub(crate) fn printable(message: &str) -> String {
    let line = |line: &str| {
        let text = line.trim();
        let indent = &line[..line.len() - line.trim_start().len()];
        if text.is_empty() {
            String::new()
        } else {
            format!("{indent}{}", lapwing_report::reveal(text))
        }
    };
    message.lines().map(line).collect::<Vec<_>>().join("\n")
}

/// `1 row`, `2,000 rows`.
pub(crate) fn counted(number: u64, noun: &str) -> String {
    let ending = if number == 1 { "" } else { "s" };
    format!("{} {noun}{ending}", crate::output::count(number))
}

/// A path as a word of a command line that can be typed again.
pub(crate) fn word(path: &std::path::Path) -> String {
    let text = path.display().to_string();
    let plain = |c: char| c.is_alphanumeric() || "/._-+=:@%,".contains(c);
    if !text.is_empty() && text.chars().all(plain) {
        text
    } else {
        format!("'{}'", text.replace('\'', r"'\''"))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn one_is_not_many() {
        assert_eq!([0, 1, 2000].map(|n| counted(n, "row")), ["0 rows", "1 row", "2,000 rows"]);
    }

    #[test]
    fn what_a_terminal_would_act_on_is_spelt_out_and_indents_stay() {
        assert_eq!(printable("a\u{1b}[31mb\n  c \n"), "a⟨U+001B⟩[31mb\n  c");
    }

    #[test]
    fn a_path_can_be_typed_again() {
        assert_eq!(word("runs/a-1".as_ref()), "runs/a-1");
        assert_eq!(word("my runs/it's".as_ref()), r"'my runs/it'\''s'");
    }
}
