//! Names on the command line, which may hold commas.

use lapwing_data::TableFile;
use lapwing_run::Settings;

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

/// Settles which commas in settings belong to names of columns, by the columns of the table.
pub(crate) fn columns(asked: &mut Settings) -> anyhow::Result<()> {
    let lists = || {
        asked.features.iter().chain(&asked.ignore).chain(&asked.text).chain(&asked.series).flatten()
    };
    if lists().any(|value| value.contains(',')) {
        let file = TableFile::open(asked.data()?)?;
        let known = |name: &str| file.columns().iter().any(|column| column == name);
        let lists = [&mut asked.features, &mut asked.ignore, &mut asked.text, &mut asked.series];
        for list in lists.into_iter().flatten() {
            *list = listed(list, known);
        }
    }
    Ok(())
}

/// Settles which commas belong to names of sources.
pub(crate) fn sources(asked: &mut Settings, known: &[String]) {
    let known = |name: &str| known.iter().any(|known| known == name);
    for list in [&mut asked.trust, &mut asked.block].into_iter().flatten() {
        *list = listed(list, known);
    }
}

/// Settles it by a run that was made with such names.
pub(crate) fn as_in(asked: &mut Settings, done: &Settings) {
    let lists = [
        (&mut asked.features, &done.features),
        (&mut asked.ignore, &done.ignore),
        (&mut asked.text, &done.text),
        (&mut asked.series, &done.series),
        (&mut asked.trust, &done.trust),
        (&mut asked.block, &done.block),
    ];
    for (list, known) in lists {
        let known = |name: &str| known.iter().flatten().any(|known| known == name);
        if let Some(list) = list {
            *list = listed(list, known);
        }
    }
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
