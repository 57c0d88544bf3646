//! The library's clients: one for each route, because each keeps its connections open for the next request.
#![expect(clippy::disallowed_types, reason = "this is the one place that opens connections")]

use reqwest::{Certificate, Client};
use rustls::RootCertStore;
use rustls::pki_types::CertificateDer;
use rustls::pki_types::pem::PemObject;
use std::collections::HashMap;
use std::path::{Path, PathBuf};
use std::sync::{Mutex, Once, PoisonError};
use std::time::Duration;

use super::failure::innermost;
use super::guard::{Judged, Route};
use super::lookup::Lookup;
use crate::error::ExecError;

/// How many are kept; lists of hosts come from manifests, so there are few.
const MOST_KEPT: usize = 64;

/// How long a connection may take to come about.
const CONNECT: Duration = Duration::from_secs(30);
/// How often a connection that says nothing is looked after: a stream may be silent for hours, and its server gone.
const KEEPALIVE: Duration = Duration::from_mins(1);

#[derive(Debug, Default)]
pub(super) struct Clients {
    pub lookup: Lookup,
    /// More certificates to trust: files, or folders of them.
    pub trusted: Vec<PathBuf>,
    kept: Mutex<HashMap<(Route, bool), Client>>,
}

impl Clients {
    /// The client of a route, made when it is first needed: reading the system's certificates takes time, and there
    /// may be none.
    pub fn get(&self, route: Route, is_secure: bool) -> Result<Client, ExecError> {
        let key = (route, is_secure);
        if let Some(client) = self.kept.lock().unwrap_or_else(PoisonError::into_inner).get(&key) {
            return Ok(client.clone());
        }
        let client = self.build(&key.0, is_secure)?;
        let mut kept = self.kept.lock().unwrap_or_else(PoisonError::into_inner);
        if kept.len() >= MOST_KEPT {
            kept.clear();
        }
        Ok(kept.entry(key).or_insert(client).clone())
    }

    fn build(&self, route: &Route, is_secure: bool) -> Result<Client, ExecError> {
        choose_cryptography();
        let builder = Client::builder()
            .user_agent(concat!("kiwi/", env!("CARGO_PKG_VERSION")))
            .redirect(reqwest::redirect::Policy::none())
            .retry(reqwest::retry::never())
            .connect_timeout(CONNECT)
            .tcp_keepalive(KEEPALIVE)
            .no_proxy();
        let builder = match route {
            Route::Socket(path) => builder.unix_socket(path.as_ref()),
            route => builder.dns_resolver(Judged { lookup: self.lookup.clone(), route: route.clone() }),
        };
        let builder = if is_secure {
            builder.tls_certs_merge(self.certificates()?)
        } else {
            builder.tls_certs_only([])
        };
        builder.build().map_err(|error| {
            ExecError::io("prepare for HTTP requests")(std::io::Error::other(innermost(&error)))
        })
    }

    fn certificates(&self) -> Result<Vec<Certificate>, ExecError> {
        let mut all = Vec::new();
        for path in &self.trusted {
            let doing = || ExecError::io(format!("read the certificates in `{}`", path.display()));
            if !path.is_dir() {
                all.extend(bundle(path).map_err(doing())?);
                continue;
            }
            for entry in path.read_dir().map_err(doing())? {
                // A folder holds other things as well.
                all.extend(
                    entry.map(|entry| entry.path()).and_then(|path| bundle(&path)).unwrap_or_default(),
                );
            }
        }
        Ok(all)
    }
}

fn bundle(path: &Path) -> std::io::Result<Vec<Certificate>> {
    let bytes = std::fs::read(path)?;
    let mut all = Vec::new();
    for certificate in CertificateDer::pem_slice_iter(&bytes) {
        let certificate = certificate.map_err(std::io::Error::other)?;
        // Collections hold old certificates that nobody can use; the others are good all the same.
        if RootCertStore::empty().add(certificate.clone()).is_ok() {
            all.push(Certificate::from_der(&certificate).map_err(std::io::Error::other)?);
        }
    }
    Ok(all)
}

fn choose_cryptography() {
    static ONCE: Once = Once::new();
    ONCE.call_once(|| {
        // An error only says that somebody else chose already.
        let _ = rustls::crypto::ring::default_provider().install_default();
    });
}
