//! The faces: what a client that speaks MCP sees of Kiwi, over standard streams and over HTTP.
//!
//! **Owns** the four tools in front of everything (`search`, `load`, `execute`, `help`), the direct face with every tool
//! under its own name, what a client is told and asked while its call runs, and the endpoints.
//!
//! **Deliberately absent**: decisions. A face turns what a client says into a [`kiwi_gate::Request`] and what the kernel
//! says into an answer; it starts no process and opens no connection, and no type of the protocol library leaves it.
//!
//! Read first: [`Server`] (what all clients share), `calls` (a call and its client, from its start to its answer),
//! [`serve_stdio`] and [`Http`] (the endpoints).

#![expect(deprecated, reason = "clients of older revisions still hear logs and answer questions this way")]

mod answer;
mod calls;
mod catalogue;
mod client;
mod course;
mod direct;
mod error;
mod face;
mod http;
mod meta;
mod outputs;
mod params;
mod parked;
mod people;
mod random;
mod server;
mod sessions;
mod stdio;
mod unread;
mod voice;
mod wire;

pub use error::ServerError;
pub use face::Shape;
pub use http::{Bearer, Http, HttpOptions};
pub use server::Server;
pub use stdio::serve_stdio;
