//! A server on loopback that speaks HTTPS with a certificate of its own, and answers whoever knows its token.

use std::io::{BufRead as _, BufReader};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};

const SERVER: &str = r#"
import http.server, json, ssl, sys
folder, token = sys.argv[1:]
class Handler(http.server.BaseHTTPRequestHandler):
    def do_GET(self):
        known = self.headers.get("authorization") == "Bearer " + token
        body = json.dumps({"data": {"asked": self.path}} if known else {"error": "who are you"}).encode()
        self.send_response(200 if known else 401)
        self.send_header("content-type", "application/json")
        self.send_header("content-length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)
    def log_message(self, *words):
        pass
server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Handler)
context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
context.load_cert_chain(folder + "/it.pem", folder + "/it.key")
server.socket = context.wrap_socket(server.socket, server_side=True)
print(server.server_port, flush=True)
server.serve_forever()
"#;

/// A running server; it ends when it is dropped.
pub struct Secure {
    child: Child,
    pub port: u16,
    /// What a client must trust.
    pub certificate: PathBuf,
}

impl Secure {
    pub fn start(folder: &Path, token: &str) -> Self {
        let made = Command::new("openssl")
            .current_dir(folder)
            .args([
                "req",
                "-x509",
                "-newkey",
                "ec",
                "-pkeyopt",
                "ec_paramgen_curve:P-256",
                "-nodes",
                "-days",
                "2",
            ])
            .args(["-keyout", "it.key", "-out", "it.pem", "-subj", "/CN=Test server"])
            // What signs others is not accepted as a server.
            .args(["-addext", "subjectAltName=IP:127.0.0.1", "-addext", "basicConstraints=critical,CA:FALSE"])
            .output()
            .expect("`openssl` is needed; `cargo xtask test` installs it");
        assert!(made.status.success(), "{}", String::from_utf8_lossy(&made.stderr));
        let mut child = Command::new("python3")
            .args(["-c", SERVER])
            .arg(folder)
            .arg(token)
            .stdout(Stdio::piped())
            .spawn()
            .unwrap();
        let mut port = String::new();
        BufReader::new(child.stdout.as_mut().unwrap()).read_line(&mut port).unwrap();
        Self { child, port: port.trim().parse().unwrap(), certificate: folder.join("it.pem") }
    }
}

impl Drop for Secure {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}
