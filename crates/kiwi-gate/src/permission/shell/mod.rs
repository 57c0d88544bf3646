//! Shell commands, judged by what they really run.
//!
//! A list of words is a program with arguments. A string is read by a strict parser of the POSIX shell; every command
//! in it is judged, whichever branch it stands in, and wherever shells disagree about a construct, or what it does is
//! only known when it runs, it cannot be judged and no list of programs allows it.

mod judge;
mod options;
mod parse;
mod program;
mod programs;
mod scan;
mod syntax;
mod variables;
mod wrapper;
mod wrappers;

#[cfg(test)]
mod tests;

use std::path::Path;

use super::need::Thing;

pub(crate) use judge::{needs_of_text, needs_of_words};
pub(crate) use program::{Command, Entry, Setting};

/// The programs that a command line runs, with their arguments and with wrappers looked through, in the order they are
/// found. `None` where that cannot be told, or where it is never allowed.
///
/// Programs are told by the names they are called by: where a machine has them is not asked.
pub fn programs_of_line(line: &str) -> Option<Vec<String>> {
    let nowhere = Path::new("/nonexistent");
    let setting = Setting { search_path: "/nonexistent", cwd: nowhere, project: nowhere };
    let mut programs = Vec::new();
    for need in needs_of_text(line, &setting) {
        match need.thing {
            Thing::Opaque(_) | Thing::Forbidden(_) => return None,
            Thing::Program(_) => programs.push(need.shown),
            _ => {}
        }
    }
    Some(programs)
}
