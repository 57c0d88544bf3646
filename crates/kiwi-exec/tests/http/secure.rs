//! TLS with certificates of our own.

use kiwi_exec::{ExecError, HttpClient, Payload};
use kiwi_model::{ErrorKind, Explain};
use rustls::pki_types::pem::PemObject;
use rustls::pki_types::{CertificateDer, PrivateKeyDer};
use rustls::{ServerConfig, ServerConnection, StreamOwned};
use std::net::TcpListener;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::Arc;

use crate::server::{Desk, reply, request};
use crate::support::block_on;

/// An authority of our own and a server with a certificate of it.
struct Secure {
    folder: tempfile::TempDir,
    port: u16,
}

impl Secure {
    fn new(names: &str, days: &str) -> Self {
        let folder = tempfile::tempdir().unwrap();
        let at = folder.path();
        // Two authorities of one name would be one that signs badly.
        let authority = format!("/CN=Authority of {}", at.file_name().unwrap().to_string_lossy());
        let key = ["-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:P-256", "-nodes"];
        openssl(
            at,
            &[
                &["req", "-x509"],
                &key[..],
                &["-keyout", "ca.key", "-out", "ca.pem", "-subj", &authority, "-days", "2"],
            ]
            .concat(),
        );
        openssl(
            at,
            &[&["req"], &key[..], &["-keyout", "it.key", "-out", "it.csr", "-subj", "/CN=Test server"]]
                .concat(),
        );
        std::fs::write(at.join("it.ext"), format!("subjectAltName={names}\nbasicConstraints=CA:FALSE\n"))
            .unwrap();
        openssl(
            at,
            &[
                "x509",
                "-req",
                "-in",
                "it.csr",
                "-CA",
                "ca.pem",
                "-CAkey",
                "ca.key",
                "-CAcreateserial",
                "-out",
                "it.pem",
                "-extfile",
                "it.ext",
                "-days",
                days,
            ],
        );
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let port = listener.local_addr().unwrap().port();
        let provider = Arc::new(rustls::crypto::ring::default_provider());
        let config = ServerConfig::builder_with_provider(provider)
            .with_safe_default_protocol_versions()
            .unwrap()
            .with_no_client_auth()
            .with_single_cert(
                vec![CertificateDer::from_pem_file(at.join("it.pem")).unwrap()],
                PrivateKeyDer::from_pem_file(at.join("it.key")).unwrap(),
            )
            .unwrap();
        let config = Arc::new(config);
        let (desk, _asked) = Desk::new(|_, _| reply("200 OK", "", "secure"));
        std::thread::spawn(move || {
            for stream in listener.incoming().flatten() {
                let connection = ServerConnection::new(Arc::clone(&config)).unwrap();
                desk.serve(StreamOwned::new(connection, stream));
            }
        });
        Self { folder, port }
    }

    fn ask(&self, host: &str, trusted: Option<PathBuf>) -> Result<Payload, ExecError> {
        let client = HttpClient::new().trusting(trusted);
        let url = format!("https://{host}:{}/", self.port);
        block_on(client.send(request("GET", &url))).map(|answer| answer.body)
    }

    fn authority(&self) -> PathBuf {
        self.folder.path().join("ca.pem")
    }
}

fn openssl(folder: &Path, args: &[&str]) {
    let output = Command::new("openssl").args(args).current_dir(folder).output().unwrap();
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
}

#[test]
fn certificates_of_a_file_or_a_folder_are_trusted() {
    let server = Secure::new("DNS:localhost,IP:127.0.0.1", "1");
    for host in ["localhost", "127.0.0.1"] {
        assert_eq!(server.ask(host, Some(server.authority())).unwrap(), Payload::Text("secure".into()));
    }
    // The folder holds keys and requests as well.
    server.ask("localhost", Some(server.folder.path().to_owned())).unwrap();
}

#[test]
fn a_certificate_that_nobody_vouches_for_is_refused() {
    let server = Secure::new("DNS:localhost", "1");
    // There may be no certificates on this machine at all, so an unrelated one stands for the system's.
    let other = Secure::new("DNS:localhost", "1");
    let error = server.ask("localhost", Some(other.authority())).unwrap_err();
    assert!(matches!(error, ExecError::Untrusted { .. }), "{error}");
    assert_eq!(error.kind(), ErrorKind::UpstreamUnavailable);
    let expected = format!(
        "the certificate of `https://localhost:{}/` is not valid: nobody whom this machine trusts has issued it",
        server.port
    );
    assert_eq!(error.to_string(), expected);
    assert!(error.hint().unwrap().contains("SSL_CERT_FILE"));
}

#[test]
fn a_certificate_for_another_name_or_another_day_is_refused() {
    let elsewhere = Secure::new("DNS:other.example", "1");
    let error = elsewhere.ask("localhost", Some(elsewhere.authority())).unwrap_err();
    assert!(error.to_string().ends_with(" is not valid: it is for another name"), "{error}");
    let late = Secure::new("DNS:localhost", "0");
    std::thread::sleep(std::time::Duration::from_millis(1100));
    let error = late.ask("localhost", Some(late.authority())).unwrap_err();
    assert!(error.to_string().ends_with(" is not valid: it has expired"), "{error}");
}

#[test]
fn certificates_that_are_not_there_are_told() {
    let server = Secure::new("DNS:localhost", "1");
    let error = server.ask("localhost", Some("/nowhere/ca.pem".into())).unwrap_err();
    assert!(error.to_string().contains("could not read the certificates in `/nowhere/ca.pem`"), "{error}");
}
