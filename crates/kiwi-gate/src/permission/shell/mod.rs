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

#[cfg(test)]
mod tests;

pub(crate) use judge::{needs_of_text, needs_of_words};
pub(crate) use program::{Command, Entry, Setting};

/// The files that a command line opens by redirections, for reading and for writing.
pub(crate) fn opened_by_text(text: &str) -> (Vec<String>, Vec<String>) {
    parse::parse(text).map(|script| (script.reads, script.writes)).unwrap_or_default()
}
