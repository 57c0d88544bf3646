//! The only room that acts on the world: it starts processes and opens connections.
//!
//! **Owns** the two primitives (`subprocess` as [`Launcher::run`], `http_client` as [`HttpClient::send`]), processes
//! that stay ([`Launcher::serve`]), the supervisor that outlives Kiwi itself ([`launcher_main`]), finding programs,
//! prepared environments of language packages ([`Environments`]), containers ([`Containers`]), and the way to the
//! desktop's keyring ([`Keyring`]).
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
//! Kiwi ──posix_spawn──▶ launcher (`kiwi-launcher`) ──posix_spawn──▶ tool ──▶ whatever it starts
//!   ▲  control socket      │ new session, subreaper, deadline         │
//!   └── stdout, stderr ────┴───────────── inherited pipes ────────────┘
//! ```
//!
//! The launcher is a program of its own, which Kiwi carries along, or Kiwi itself (`kiwi __launch`); both are
//! [`kiwi_launcher`]. It is resident: it holds the other end of a socket whose closing means "Kiwi is gone or has changed
//! its mind". Everything the tool ever starts stays below the launcher, because orphans are handed to the nearest
//! subreaper, and the launcher does not leave before its last descendant has.
//!
//! In a sandbox the launcher is the first process of a process namespace. It finishes the walls around itself before it
//! starts the tool, and when it goes, the kernel ends everything inside. Where somebody else builds the walls, or has to
//! stay outside with the group that limits everything inside, there is one more in between:
//!
//! ```text
//! launcher ──▶ (bwrap ──▶) launcher, inside ──▶ tool ──▶ whatever it starts
//! ```
//!
//! A Kiwi that stays has the launcher waiting already, with its walls around it ([`Launcher::keep_spares`]).

mod account;
mod begin;
mod capture;
mod command;
mod confinement;
mod container;
mod environment;
mod error;
mod farewell;
mod hosts;
mod http;
mod keyring;
mod launcher;
mod leftover;
mod memfd;
mod mentions;
mod order;
mod orphans;
mod place;
mod process;
mod refused;
mod rest;
mod run;
mod running;
mod sandbox;
mod serve;
mod snapshot;
mod spare;
mod way;
mod which;

pub use account::account;
pub use command::{Ended, run_to_end};
pub use confinement::{Backend, Confinement, Network};
pub use container::{
    ContainerEnd, ContainerError, ContainerWalls, Containers, Engine, ImageSource, KeptImage, Leftover,
    container_main, telling,
};
pub use environment::{
    Environment, Environments, KeptEnvironment, KeptInterpreter, PinDifference, Progress, Wanted, Wish,
};
pub use error::ExecError;
pub use hosts::HostPattern;
pub use http::{
    Auth, Body, HttpClient, HttpRequest, HttpResponse, KeyPlace, OAuth2Client, Payload, Permit, Reach,
    Redirects,
};
pub use keyring::{Asking, Keyring, KeyringError};
pub use kiwi_launcher::memory::keep_memory_private;
pub use kiwi_launcher::plan::EngineKind;
pub use kiwi_launcher::wire::{Exit, Limits};
pub use launcher::launcher_main;
pub use leftover::KeptSnapshot;
pub use process::{Finished, Launcher, Package, PackageForm, Process, Stream, Unwatched, Watch};
pub use rest::{give_memory_back, share_memory};
pub use serve::{Serving, ServingEnd};
pub use which::ProgramSearch;
