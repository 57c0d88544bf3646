//! The network of a sandbox, and what else of its own it moves into.

use alloc::vec::Vec;
use rustix::fd::{AsFd, OwnedFd};
use rustix::io::Result;
use rustix::net::{AddressFamily, SendFlags, SocketFlags, SocketType};
use rustix::thread::{ThreadNameSpaceType, move_into_thread_name_spaces};

use crate::kernel::namespaces::{Namespaces, enter_new};
use crate::kernel::processes::Helper;
use crate::plan::PROXY;
use crate::wire;

/// A network with nothing but a loopback, and queues and shared memory with nothing in them. They take as long to make as a
/// root, so somebody else makes them meanwhile.
pub struct Network(Helper);

impl Network {
    /// Has it made.
    pub fn begin() -> Result<Self> {
        Helper::begin(|| enter_new(Namespaces::NETWORK.and(Namespaces::QUEUES))).map(Self)
    }

    /// Waits until it is there, and moves into it. The loopback is up where there are sockets that could use it.
    pub fn move_in(&self, sockets: bool) -> Result<()> {
        let Self(maker) = self;
        maker.wait()?;
        let kinds = ThreadNameSpaceType::NETWORK | ThreadNameSpaceType::INTER_PROCESS_COMMUNICATION;
        move_into_thread_name_spaces(maker.handle()?.as_fd(), kinds)?;
        maker.end();
        if sockets { raise_loopback() } else { Ok(()) }
    }
}

/// Listens where the tool will look for the proxy. Who accepts the connections is outside: a socket belongs to the
/// network it was made in, whoever holds it.
pub fn offer_proxy(channel: &OwnedFd) -> Result<()> {
    let listener =
        rustix::net::socket_with(AddressFamily::INET, SocketType::STREAM, SocketFlags::CLOEXEC, None)?;
    rustix::net::bind(&listener, &PROXY)?;
    rustix::net::listen(&listener, 128)?;
    wire::send_all(channel, &wire::frame(&())?, &[listener.as_fd()])
}

/// Sets the flag "up" of the first network device, which in a new namespace is the loopback.
fn raise_loopback() -> Result<()> {
    const RTM_NEWLINK: u16 = 16;
    const NLM_F_REQUEST: u16 = 1;
    const IFF_UP: u32 = 1;
    let route =
        rustix::net::socket_with(AddressFamily::NETLINK, SocketType::RAW, SocketFlags::CLOEXEC, None)?;
    let mut message = Vec::with_capacity(32);
    // Header: length, kind, flags, sequence, sender. Body: family, kind, index, flags, which flags.
    message.extend_from_slice(&32_u32.to_ne_bytes());
    message.extend_from_slice(&RTM_NEWLINK.to_ne_bytes());
    message.extend_from_slice(&NLM_F_REQUEST.to_ne_bytes());
    message.extend_from_slice(&[0; 12]);
    message.extend_from_slice(&1_u32.to_ne_bytes());
    message.extend_from_slice(&IFF_UP.to_ne_bytes());
    message.extend_from_slice(&IFF_UP.to_ne_bytes());
    rustix::net::send(&route, &message, SendFlags::empty())?;
    Ok(())
}
