//! Containers whose Kiwi is dead.

use super::life::Life;

/// The words that list all containers of this user, one name to a line.
pub fn list_words(owner: &str) -> Vec<String> {
    let filter = format!("label=kiwi.owner={owner}");
    ["ps", "--all", "--no-trunc", "--filter", &filter, "--format", "{{.Names}}"].map(str::to_owned).to_vec()
}

/// The words that remove a container, running or not.
pub const REMOVE: [&str; 3] = ["rm", "--force", "--volumes"];

/// Of the listed names those that nobody looks after any more.
pub fn leftovers(listed: &[u8], own: &Life) -> Vec<String> {
    String::from_utf8_lossy(listed)
        .lines()
        .map(str::trim)
        .filter(|name| Life::of_container(name).is_some_and(|life| life.is_over(own)))
        .map(str::to_owned)
        .collect()
}

/// The label's value that says whose containers are.
pub fn owner() -> String {
    rustix::process::getuid().as_raw().to_string()
}
