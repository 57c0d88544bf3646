//! Where a lockfile lies: its category is its folder, its name is its file.

use kiwi_model::lockfile::{LockName, SUFFIX};

use crate::error::{PathProblem, SpaceError};
use crate::root::is_inside;

/// The folder of lockfiles, from the space's root.
pub(super) const FOLDER: &str = "lockfiles";
/// Files on their way in.
pub(super) const TEMPORARY: &str = ".new-";
const MAX_DEPTH: usize = 32;

/// Refuses a category that is not a folder inside the store.
pub(super) fn check_category(category: &str) -> Result<(), SpaceError> {
    let good = category.is_empty()
        || (is_inside(category) && category.split('/').all(is_part) && depth(category) <= MAX_DEPTH);
    if good { Ok(()) } else { Err(SpaceError::bad_path(category, PathProblem::NotACategory)) }
}

/// Whether a folder of this name can be part of a category.
pub(super) fn is_part(name: &str) -> bool {
    !name.is_empty() && !name.starts_with('.') && !name.chars().any(char::is_control)
}

/// Whether a category may have further ones in it.
pub(super) fn may_nest(category: &str) -> bool {
    category.is_empty() || depth(category) < MAX_DEPTH
}

fn depth(category: &str) -> usize {
    category.split('/').count()
}

/// Whether `inner` is `category` or lies below it; everything lies below none.
pub fn is_within(inner: &str, category: &str) -> bool {
    category.is_empty()
        || inner.strip_prefix(category).is_some_and(|rest| rest.is_empty() || rest.starts_with('/'))
}

/// Something in a category: a file, or a further category.
pub(super) fn join(category: &str, name: &str) -> String {
    if category.is_empty() { name.to_owned() } else { format!("{category}/{name}") }
}

/// The key of a lockfile: its path without what all their names end with.
pub(super) fn key_of(category: &str, name: &LockName) -> String {
    let file = name.file_name();
    join(category, file.strip_suffix(SUFFIX).unwrap_or(&file))
}

/// The path of a lockfile in the store.
pub(super) fn path_of(key: &str) -> String {
    format!("{key}{SUFFIX}")
}

/// Category and file name of a path or key in the store.
pub(super) fn split(path: &str) -> (&str, &str) {
    path.rsplit_once('/').unwrap_or(("", path))
}

/// A path in the store, from the space's root.
pub(super) fn inside(path: &str) -> String {
    if path.is_empty() { FOLDER.to_owned() } else { format!("{FOLDER}/{path}") }
}
