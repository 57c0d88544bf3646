//! The only way out of a sandbox leads to declared hosts.
#![expect(clippy::unwrap_used, reason = "a test may stop at the first surprise")]

mod support;

use kiwi_model::Isolation;
use std::io::{Read, Write};
use std::net::TcpListener;
use support::Bench;
use support::sandbox::{Wall, all_walls, python, walled};

/// A server that answers every request with its own first line.
fn server() -> u16 {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let port = listener.local_addr().unwrap().port();
    std::thread::spawn(move || {
        for mut stream in listener.incoming().flatten() {
            let mut bytes = Vec::new();
            let mut buffer = [0; 1024];
            while !bytes.windows(4).any(|window| window == b"\r\n\r\n") {
                match stream.read(&mut buffer) {
                    Ok(0) | Err(_) => break,
                    Ok(count) => bytes.extend_from_slice(buffer.get(..count).unwrap()),
                }
            }
            let head = String::from_utf8_lossy(&bytes);
            let line = head.lines().next().unwrap_or_default();
            let _ = write!(
                stream,
                "HTTP/1.1 200 OK\r\nContent-Length: {}\r\nConnection: close\r\n\r\n{line}",
                line.len()
            );
        }
    });
    port
}

const ASK: &str = "
import sys, urllib.request, urllib.error
for url in sys.stdin.read().split():
    try: print(urllib.request.urlopen(url, timeout=5).read().decode().strip())
    except urllib.error.HTTPError as e: print(e.code, e.read().decode().strip())
    except Exception as e: print('failed', type(e).__name__)
";

const TUNNEL: &str = "
import os, socket, sys
host = sys.stdin.read()
s = socket.create_connection(('127.0.0.1', 3128))
s.sendall(f'CONNECT {host} HTTP/1.1\\r\\nHost: {host}\\r\\n\\r\\n'.encode())
f = s.makefile('rwb')
print(f.readline().decode().split()[1])
f.readline()
s.sendall(b'GET /through HTTP/1.1\\r\\n\\r\\n')
print(f.read().decode().splitlines()[-1])
";

fn asked(wall: &Wall, script: &str, hosts: &[String], input: &str) -> kiwi_exec::Process {
    let mut asked = walled(python(script), wall);
    // `-I` would hide the variables from nobody; Python reads proxies from the environment either way.
    asked.confinement.network.hosts = hosts.to_vec();
    asked.stdin = input.into();
    asked
}

#[test]
fn declared_hosts_are_reached_and_no_others() {
    let bench = Bench::new();
    let (port, other) = (server(), server());
    // The variables that spare this machine the proxy must not spare the test its question.
    let script = format!("import os\nfor n in ('NO_PROXY', 'no_proxy'): os.environ.pop(n)\n{ASK}");
    for wall in all_walls().iter().filter(|(level, _)| *level == Isolation::Sandboxed) {
        let hosts = [format!("127.0.0.1:{port}")];
        let urls = format!(
            "http://127.0.0.1:{port}/a http://127.0.0.1:{other}/b http://localhost:{port}/c http://169.254.169.254/d http://example.org/e"
        );
        let output = bench.output(asked(wall, &script, &hosts, &urls));
        let lines: Vec<&str> = output.lines().collect();
        assert_eq!(lines.first().copied(), Some("GET /a HTTP/1.1"), "{wall:?} {output}");
        for line in lines.get(1..).unwrap() {
            assert!(line.starts_with("403 The tool did not declare"), "{wall:?} {line}");
        }
        assert_eq!(lines.len(), 5);

        let output = bench.output(asked(wall, TUNNEL, &hosts, &format!("127.0.0.1:{port}")));
        assert_eq!(output, "200\nGET /through HTTP/1.1\n", "{wall:?}");

        // A name that stands for an address near home is not reached by its name, unless the name says so.
        let hosts = [format!("localhost:{port}"), "ip6-localhost".into()];
        let urls = format!("http://localhost:{port}/x http://ip6-localhost:{port}/y");
        let output = bench.output(asked(wall, &script, &hosts, &urls));
        let lines: Vec<&str> = output.lines().collect();
        assert_eq!(lines.first().copied(), Some("GET /x HTTP/1.1"), "{wall:?} {output}");
        let second = lines.get(1).unwrap();
        assert!(
            second.starts_with("403 `ip6-localhost` has no public") || second.starts_with("502"),
            "{output}"
        );
    }
}

#[test]
fn without_a_declaration_there_is_no_way_out() {
    let bench = Bench::new();
    let port = server();
    for wall in &all_walls() {
        let hosts =
            if wall.0 == Isolation::Restricted { vec![format!("127.0.0.1:{port}")] } else { Vec::new() };
        let script = "
import os, socket
print([n for n in os.environ if 'proxy' in n.lower()])
try: socket.create_connection(('127.0.0.1', 3128), 2); print('open')
except OSError as e: print('closed')
";
        assert_eq!(bench.output(asked(wall, script, &hosts, "")), "[]\nclosed\n", "{wall:?}");
    }
}
