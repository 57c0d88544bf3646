//! The only way out of a sandbox: a proxy that connects to declared hosts and to nobody else.
//!
//! The listening socket is made inside, in the sandbox's own network, and handed out; connections made inside are
//! accepted here, and go on from here. Nothing of the tool ever runs in the host's network.
#![expect(clippy::disallowed_types, reason = "opens the connections a tool asks for")]

use std::io;
use std::net::SocketAddr;
use std::os::fd::{AsFd, OwnedFd};
use std::sync::Arc;
use tokio::io::{AsyncReadExt, AsyncWriteExt, Interest};
use tokio::net::{TcpListener, TcpStream, UnixStream};
use tokio::sync::Semaphore;
use tokio::task::JoinSet;

use super::hosts::{Hosts, Reach, split_port};
use crate::error::ExecError;
use crate::hosts::internal;
use kiwi_launcher::wire;

/// As many connections at a time as any tool needs: they cost Kiwi descriptors.
const MOST_CONNECTIONS: usize = 128;
const LARGEST_HEAD: usize = 64 << 10;

/// A proxy at work. Dropping it closes every connection.
#[derive(Debug)]
pub struct Proxy {
    _serving: JoinSet<()>,
}

impl Proxy {
    /// Starts serving. The descriptor is for the sandbox, which sends its listener through it.
    pub fn start(hosts: Hosts) -> Result<(Self, OwnedFd), ExecError> {
        let refused = || ExecError::io("start the proxy of the sandbox");
        let (ours, theirs) = std::os::unix::net::UnixStream::pair().map_err(refused())?;
        ours.set_nonblocking(true).map_err(refused())?;
        let channel = UnixStream::from_std(ours).map_err(refused())?;
        let mut serving = JoinSet::new();
        serving.spawn(async move {
            if let Ok(listener) = listener(&channel).await {
                serve(listener, hosts).await;
            }
        });
        Ok((Self { _serving: serving }, theirs.into()))
    }
}

async fn listener(channel: &UnixStream) -> io::Result<TcpListener> {
    let received = channel.async_io(Interest::READABLE, || Ok(wire::receive::<()>(channel.as_fd())?)).await?;
    let descriptor = received.and_then(|((), descriptors)| descriptors.into_iter().next());
    let listener = std::net::TcpListener::from(descriptor.ok_or(io::ErrorKind::UnexpectedEof)?);
    listener.set_nonblocking(true)?;
    TcpListener::from_std(listener)
}

async fn serve(listener: TcpListener, hosts: Hosts) {
    let hosts = Arc::new(hosts);
    let room = Arc::new(Semaphore::new(MOST_CONNECTIONS));
    let mut connections = JoinSet::new();
    while let Ok(place) = Arc::clone(&room).acquire_owned().await {
        while connections.try_join_next().is_some() {}
        let Ok((client, _)) = listener.accept().await else {
            // Out of descriptors, for now.
            tokio::time::sleep(std::time::Duration::from_millis(20)).await;
            continue;
        };
        let hosts = Arc::clone(&hosts);
        connections.spawn(async move {
            // Whatever goes wrong ends this connection and nothing else.
            let _ = attend(client, &hosts).await;
            drop(place);
        });
    }
}

async fn attend(mut client: TcpStream, hosts: &Hosts) -> io::Result<()> {
    let Some((head, rest)) = read_head(&mut client).await? else { return Ok(()) };
    let Some(asked) = Asked::parse(&head) else {
        return answer(&mut client, "400 Bad Request", "This is not a request to a proxy.").await;
    };
    let mut server = match connect(&asked, hosts).await {
        Ok(server) => server,
        Err(Refusal::Forbidden(why)) => return answer(&mut client, "403 Forbidden", &why).await,
        Err(Refusal::Unreachable(error)) => {
            let why = format!("`{}` cannot be reached: {error}.", asked.host);
            return answer(&mut client, "502 Bad Gateway", &why).await;
        }
    };
    match &asked.forward {
        Some(head) => server.write_all(head.as_bytes()).await?,
        None => client.write_all(b"HTTP/1.1 200 Connection established\r\n\r\n").await?,
    }
    server.write_all(&rest).await?;
    tokio::io::copy_bidirectional(&mut client, &mut server).await?;
    Ok(())
}

/// The head of a request, and what came with it.
async fn read_head(client: &mut TcpStream) -> io::Result<Option<(String, Vec<u8>)>> {
    let mut bytes = Vec::new();
    loop {
        if let Some(end) = bytes.windows(4).position(|window| window == b"\r\n\r\n") {
            let rest = bytes.split_off(end + 4);
            return Ok(String::from_utf8(bytes).ok().map(|head| (head, rest)));
        }
        if bytes.len() > LARGEST_HEAD || client.read_buf(&mut bytes).await? == 0 {
            return Ok(None);
        }
    }
}

async fn answer(client: &mut TcpStream, status: &str, why: &str) -> io::Result<()> {
    let length = why.len() + 1;
    let text = format!(
        "HTTP/1.1 {status}\r\nContent-Type: text/plain; charset=utf-8\r\nContent-Length: {length}\r\nConnection: close\r\n\r\n{why}\n"
    );
    client.write_all(text.as_bytes()).await?;
    client.shutdown().await
}

/// What a client asked the proxy for.
#[derive(Debug, PartialEq, Eq)]
struct Asked {
    host: String,
    port: u16,
    /// The head to send on; none when the client wants a tunnel.
    forward: Option<String>,
}

impl Asked {
    fn parse(head: &str) -> Option<Self> {
        let mut lines = head.trim_end().split("\r\n");
        let mut words = lines.next()?.split(' ');
        let (method, target, version) = (words.next()?, words.next()?, words.next()?);
        if method == "CONNECT" {
            let (host, port) = split_port(target)?;
            return Some(Self { host: host.to_owned(), port: port?, forward: None });
        }
        let rest = target.strip_prefix("http://")?;
        let end = rest.find(['/', '?']).unwrap_or(rest.len());
        let (authority, path) = rest.split_at_checked(end)?;
        let (host, port) = split_port(authority)?;
        let slash = if path.starts_with('/') { "" } else { "/" };
        let mut forward = format!("{method} {slash}{path} {version}\r\nHost: {authority}\r\n");
        for line in lines {
            let name = line.split(':').next().unwrap_or_default().trim().to_ascii_lowercase();
            let is_for_us = ["host", "connection", "keep-alive"].contains(&name.as_str());
            if !is_for_us && !name.starts_with("proxy-") {
                forward.push_str(line);
                forward.push_str("\r\n");
            }
        }
        forward.push_str("Connection: close\r\n\r\n");
        Some(Self { host: host.to_owned(), port: port.unwrap_or(80), forward: Some(forward) })
    }
}

enum Refusal {
    Forbidden(String),
    Unreachable(io::Error),
}

/// Names are resolved here, once, and what they were resolved to is what is connected to.
async fn connect(asked: &Asked, hosts: &Hosts) -> Result<TcpStream, Refusal> {
    let Asked { host, port, .. } = asked;
    let Some(reach) = hosts.reach(host, *port) else {
        return Err(Refusal::Forbidden(format!(
            "The tool did not declare `{host}:{port}`; its `network` names the hosts it may reach."
        )));
    };
    let found = tokio::net::lookup_host((host.as_str(), *port)).await.map_err(Refusal::Unreachable)?;
    let found: Vec<SocketAddr> =
        found.filter(|address| reach == Reach::Anywhere || internal(address.ip()).is_none()).collect();
    if found.is_empty() {
        return Err(Refusal::Forbidden(format!(
            "`{host}` has no public address; declare the address itself to reach it."
        )));
    }
    let mut last = io::Error::from(io::ErrorKind::NotFound);
    for address in found {
        match TcpStream::connect(address).await {
            Ok(server) => return Ok(server),
            Err(error) => last = error,
        }
    }
    Err(Refusal::Unreachable(last))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn requests_are_taken_apart() {
        let asked = |head: &str| Asked::parse(head);
        let tunnel = asked("CONNECT example.org:443 HTTP/1.1\r\nHost: x\r\n\r\n").unwrap();
        assert_eq!(tunnel, Asked { host: "example.org".into(), port: 443, forward: None });
        let plain =
            asked("GET http://h:81/a?b HTTP/1.1\r\nHost: other\r\nProxy-Authorization: s\r\nA: b\r\n\r\n");
        let plain = plain.unwrap();
        assert_eq!((plain.host.as_str(), plain.port), ("h", 81));
        assert_eq!(
            plain.forward.unwrap(),
            "GET /a?b HTTP/1.1\r\nHost: h:81\r\nA: b\r\nConnection: close\r\n\r\n"
        );
        for bad in [
            "GET / HTTP/1.1\r\n\r\n",
            "CONNECT x HTTP/1.1\r\n\r\n",
            "GET https://x/ HTTP/1.1\r\n\r\n",
            "\r\n",
        ] {
            assert!(asked(bad).is_none(), "{bad}");
        }
    }
}
