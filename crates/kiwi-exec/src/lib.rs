//! The only room that acts on the world: it starts processes and opens connections.
//!
//! **Owns** the two primitives (`subprocess` as [`Launcher::run`], `http_client` as [`HttpClient::send`]), the
//! supervisor that outlives Kiwi itself ([`launcher_main`]), finding programs, and prepared environments of language
//! packages ([`Environments`]).
//!
//! **Deliberately absent**: policy (whoever calls has already decided), the environment (every variable and path is
//! passed in), printing, and shells (programs get an argv list). What a level of isolation promises is either enforced
//! or refused; nothing here quietly does less.
//!
//! Read first: [`Process`] (what to start), [`Launcher`] (how it is started and ended), [`ExecError`] (what can go
//! wrong).
//!
//! # How a process runs
//!
//! ```text
//! Kiwi ──posix_spawn──▶ launcher (`kiwi __launch`) ──posix_spawn──▶ tool ──▶ whatever it starts
//!   ▲  control socket      │ new session, subreaper, deadline         │
//!   └── stdout, stderr ────┴───────────── inherited pipes ────────────┘
//! ```
//!
//! The launcher is resident: it holds the other end of a socket whose closing means "Kiwi is gone or has changed its
//! mind". Everything the tool ever starts stays below the launcher, because orphans are handed to the nearest
//! subreaper, and the launcher does not leave before its last descendant has.

mod capture;
mod environment;
mod error;
mod http;
mod launcher;
mod memfd;
mod order;
mod orphans;
mod place;
mod process;
mod procfs;
mod run;
mod running;
mod snapshot;
mod which;
mod wire;

pub use environment::{Environment, Environments, PinDifference, Progress, Wanted, Wish};
pub use error::ExecError;
pub use http::{Body, HttpClient, HttpRequest, HttpResponse, Payload, Redirects};
pub use launcher::launcher_main;
pub use process::{Exit, Finished, Launcher, Package, PackageForm, Process, Stream, Unwatched, Watch};
pub use which::ProgramSearch;
