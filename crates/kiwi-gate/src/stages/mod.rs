//! The stages of a call, in the order they are passed.

mod container;
mod dispatch;
mod process;
mod publish;
mod ready;
mod record;
mod request;
mod sign;
mod tool_lock;
mod turns;
mod upstream;

pub(crate) use container::image_source;
pub(crate) use dispatch::Dispatch;
pub(crate) use process::form;
pub(crate) use ready::Ready;
pub(crate) use record::Record;
pub(crate) use request::client;
pub(crate) use tool_lock::ToolLock;
pub(crate) use turns::Turns;
