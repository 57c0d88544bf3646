//! One file per command: its arguments, whose doc comments are the help text, and one function.

pub mod approve;
pub mod audit;
pub mod auth;
pub mod cache;
mod call;
pub mod chain;
pub mod completions;
pub mod demo;
pub mod doctor;
pub mod gate;
pub mod grants;
pub mod index;
pub mod init;
pub mod lockfile;
pub mod mcp;
pub mod reject;
pub mod reviews;
pub mod rules;
pub mod run;
pub mod schema;
pub mod search;
pub mod serve;
pub mod sessions;
pub mod tool;
pub mod trust;
pub mod verify;
