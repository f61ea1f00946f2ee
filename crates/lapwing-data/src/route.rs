//! The way from one directory to another.

use std::io;
use std::path::{Component, Path};

use crate::error::DataError;

/// What has to stand before a path within `to` for it to be found from `from`: nothing, or something that ends in a slash.
///
/// Links are followed first: what lies above a link is not what lies above the directory that it leads to.
pub(crate) fn route(from: &Path, to: &Path) -> Result<String, DataError> {
    let from = if from.as_os_str().is_empty() { Path::new(".") } else { from };
    let whole = |path: &Path| {
        path.canonicalize().map_err(|source| DataError::Open { path: path.to_owned(), source })
    };
    let (from, to) = (whole(from)?, whole(to)?);
    let (from, to): (Vec<_>, Vec<_>) = (from.components().collect(), to.components().collect());
    let shared = from.iter().zip(&to).take_while(|(a, b)| a == b).count();
    // Nothing leads from one drive of Windows to another.
    if shared == 0 {
        return written(&to);
    }
    let up = vec![Component::ParentDir; from.len() - shared];
    written(&[up.as_slice(), &to[shared..]].concat())
}

fn written(steps: &[Component<'_>]) -> Result<String, DataError> {
    let mut text = String::new();
    for step in steps {
        match (step, step.as_os_str().to_str()) {
            (Component::RootDir, _) => text.push('/'),
            (Component::Prefix(_), Some(drive)) => text.push_str(drive),
            (_, Some(name)) => text += &format!("{name}/"),
            (_, None) => {
                let source = io::Error::other("its name is no UTF-8, as paths in a table are");
                return Err(DataError::Open { path: steps.iter().collect(), source });
            }
        }
    }
    Ok(text)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_way_leads_up_and_down() {
        let place = tempfile::tempdir().unwrap();
        let at = |name: &str| place.path().join(name);
        std::fs::create_dir_all(at("a/b")).unwrap();
        std::fs::create_dir_all(at("c d/e")).unwrap();
        let way = |from: &str, to: &str| route(&at(from), &at(to)).unwrap();
        assert_eq!(way("a", "a"), "");
        assert_eq!(way("a", "a/b"), "b/");
        assert_eq!(way("a/b", "a"), "../");
        assert_eq!(way("a/b", "c d/e"), "../../c d/e/");
        assert!(matches!(route(&at("a"), &at("nowhere")), Err(DataError::Open { .. })));
    }

    #[cfg(unix)]
    #[test]
    fn a_way_leads_up_from_where_a_link_leads_to() {
        let place = tempfile::tempdir().unwrap();
        let at = |name: &str| place.path().join(name);
        std::fs::create_dir_all(at("a/b")).unwrap();
        std::fs::create_dir_all(at("c")).unwrap();
        std::os::unix::fs::symlink(at("a/b"), at("link")).unwrap();
        let way = route(&at("link"), &at("c")).unwrap();
        assert_eq!(way, "../../c/");
        assert!(at("link").join(way).is_dir());
    }
}
