//! One file per command: its arguments, whose doc comments are the help text, and one function.

pub mod auth;
pub mod cache;
pub mod chain;
pub mod completions;
pub mod demo;
pub mod doctor;
pub mod init;
pub mod lockfile;
pub mod run;
pub mod schema;
pub mod tool;
pub mod verify;
