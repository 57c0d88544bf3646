//! The network of a sandbox, as its first process finds it.

use alloc::vec::Vec;
use rustix::fd::{AsFd, OwnedFd};
use rustix::io::{Errno, Result};
use rustix::net::{AddressFamily, SendFlags, SocketFlags, SocketType};
use rustix::thread::{LinkNameSpaceType, move_into_link_name_space};

use crate::plan::PROXY;
use crate::wire;

/// Waits for the namespaces that are being made meanwhile, and moves into them. The loopback is up where there are sockets
/// that could use it.
pub fn move_on(others: &OwnedFd, sockets: bool) -> Result<()> {
    let Some((refused, made)) = wire::receive::<Option<i32>>(others)? else { return Err(Errno::PIPE) };
    if let Some(errno) = refused {
        return Err(Errno::from_raw_os_error(errno));
    }
    let kinds = [LinkNameSpaceType::Network, LinkNameSpaceType::InterProcessCommunication];
    if made.len() != kinds.len() {
        return Err(Errno::INVAL);
    }
    for (namespace, kind) in made.iter().zip(kinds) {
        move_into_link_name_space(namespace.as_fd(), Some(kind))?;
    }
    if sockets { raise_loopback() } else { Ok(()) }
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
