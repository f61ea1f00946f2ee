//! Names on the command line, which may hold commas.

/// The names that a flag gives. A value that is a known name is one name, commas and all; any other is a list. Given
/// several times, a value whose parts are not all known is one name, too, and will be missed under that name.
pub(crate) fn listed(values: &[String], is_known: impl Fn(&str) -> bool) -> Vec<String> {
    let mut names = Vec::new();
    for value in values {
        let parts = || value.split(',');
        let whole = !value.contains(',')
            || is_known(value)
            || (values.len() > 1 && !parts().all(&is_known));
        if whole {
            names.push(value.clone());
        } else {
            names.extend(parts().map(str::to_owned));
        }
    }
    names
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_name_with_a_comma_can_be_given() {
        let known = |name: &str| ["Smith, John", "a", "b"].contains(&name);
        let listed = |values: &[&str]| {
            listed(&values.iter().map(|v| (*v).to_owned()).collect::<Vec<_>>(), known)
        };
        assert_eq!(listed(&["Smith, John"]), ["Smith, John"]);
        assert_eq!(listed(&["a,b"]), ["a", "b"]);
        assert_eq!(listed(&["a,b", "Smith, John"]), ["a", "b", "Smith, John"]);
        assert_eq!(listed(&["a,c"]), ["a", "c"]);
        assert_eq!(listed(&["a", "Smith, Jon"]), ["a", "Smith, Jon"]);
    }
}
