//! What a caller may touch, and what a call needs.
//!
//! One declaration drives it: the permissions of a chain's manifests, rendered, become [`Need`]s ([`needs_of`]). A
//! [`PermissionContext`] is a conjunction of [`Layer`]s, each a set of permissions under the same keys, asked anew for
//! each call; [`Protected`] adds what no agent may touch whatever the layers say. Every answer is an objection of the
//! judge `permission`.
//!
//! Paths are judged by their real names (`path.rs`), patterns by containment of the languages they stand for
//! (`glob/`), shell commands by what they really run (`shell/`). What cannot be judged is refused by every layer, and
//! allowed only where there is none: to a person.

mod context;
pub(crate) mod glob;
mod host;
mod kind;
mod layer;
pub(crate) mod need;
pub(crate) mod needs;
pub(crate) mod path;
mod protect;
pub(crate) mod reach;
pub(crate) mod shell;

#[cfg(test)]
mod tests;

pub use context::PermissionContext;
pub use glob::Glob;
pub use kind::Kind;
pub use layer::Layer;
pub use need::Need;
pub use needs::needs_of;
pub use protect::Protected;
pub use shell::programs_of_line;
