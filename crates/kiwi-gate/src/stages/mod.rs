//! The stages of a call, in the order they are passed.

mod dispatch;
mod process;
mod ready;
mod record;
mod request;

pub(crate) use dispatch::Dispatch;
pub(crate) use ready::Ready;
pub(crate) use record::Record;
