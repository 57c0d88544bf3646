//! The real program, driven from outside: one test binary, because each would hold all that the helpers use.
#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    clippy::indexing_slicing,
    clippy::string_slice,
    clippy::print_stderr,
    clippy::disallowed_methods,
    clippy::disallowed_types,
    reason = "a test fails by panicking, and drives the real program"
)]

#[path = "../support/mod.rs"]
mod support;

mod approvals;
mod audit;
mod audit_storm;
mod auth;
mod cache;
mod commands;
mod container_escape;
mod container_walls;
mod documented;
mod gate;
mod head_start;
mod hostile;
mod isolation;
mod keyring;
mod lockfile;
mod lockfile_storm;
mod mcp_agents;
mod mcp_clients;
mod mcp_conformance;
mod mcp_http;
mod mcp_install;
mod mcp_registry;
mod mcp_rest;
mod mcp_review;
mod mcp_server;
mod mcp_upstream;
mod reference;
mod registry;
mod registry_flips;
mod registry_storm;
mod run;
mod run_storm;
mod search;
mod search_storm;
mod secrets;
mod sign;
mod tamper;
mod typescript;
mod validators;
