//! Who answers.

mod answer;
mod body;
mod connections;
mod judge;
mod metrics;
mod openapi;
mod rate;
mod requests;
mod route;

use axum::body::Body;
use axum::http::header::AUTHORIZATION;
use axum::http::{HeaderMap, Method, Request, Response};
use kiwi_model::Secret;
use std::net::IpAddr;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::{Duration, Instant};
use tokio::net::TcpListener;

use self::answer::failed;
use self::metrics::Metrics;
use self::rate::{Rate, Who};
use self::route::Route;
use crate::error::RegistryError;
use crate::protocol::Scope;
use crate::store::{Caller, FIRST_USER, Kept, Store};

/// How much a server takes on.
#[derive(Debug, Clone)]
pub struct Limits {
    /// Connections at once.
    pub connections: usize,
    /// How long headers may take to arrive, and a body to begin; a body that comes steadily has longer.
    pub patience: Duration,
    /// Requests each second, of each token, or each address without one.
    pub requests_per_second: u32,
    /// Requests at once before that counts.
    pub burst: u32,
    /// How long answers may take once the end was asked for.
    pub drain: Duration,
}

impl Default for Limits {
    fn default() -> Self {
        Self {
            connections: 1024,
            patience: Duration::from_secs(20),
            requests_per_second: 200,
            burst: 400,
            drain: Duration::from_secs(10),
        }
    }
}

/// What a server is started with.
#[derive(Debug, Clone)]
pub struct ServerOptions {
    /// A file, or `postgres://…`.
    pub database: String,
    /// A folder for large blobs. Without one they lie beside a file, and in the database at an address.
    pub blobs: Option<PathBuf>,
    /// A token that may do everything, as long as this server runs.
    pub admin_token: Option<Secret>,
    /// How much it takes on.
    pub limits: Limits,
}

impl ServerOptions {
    /// A database, and the rest as usual.
    pub fn new(database: impl Into<String>) -> Self {
        Self { database: database.into(), blobs: None, admin_token: None, limits: Limits::default() }
    }
}

/// A registry that answers.
pub struct Server {
    app: Arc<App>,
    first_token: Option<Secret>,
}

/// What every answer needs.
struct App {
    store: Store,
    admin: Option<Kept>,
    limits: Limits,
    rate: Rate,
    metrics: Metrics,
    openapi: Vec<u8>,
    /// Who hears of failures that callers are not told about.
    told: Option<Told>,
}

/// Hears what went wrong inside a server.
pub type Told = Box<dyn Fn(&str) + Send + Sync>;

impl Server {
    /// Opens the database and brings it up to date. Where it has no token and none is given, one is made.
    pub async fn open(options: ServerOptions) -> Result<Self, RegistryError> {
        let ServerOptions { database, blobs, admin_token, limits } = options;
        let store = Store::open(&database, blobs.as_deref()).await?;
        let first_token = match &admin_token {
            None => store.first_token().await?,
            Some(token) => {
                let is_one =
                    !token.expose().is_empty() && token.expose().bytes().all(|b| b.is_ascii_graphic());
                if !is_one {
                    let problem = "an admin token has letters, digits or signs, and no spaces".to_owned();
                    return Err(RegistryError::Options { problem });
                }
                store.ensure_user(FIRST_USER).await?;
                None
            }
        };
        let app = App {
            store,
            admin: admin_token.map(|token| Kept::of(token.expose())),
            rate: Rate::new(limits.requests_per_second, limits.burst),
            limits,
            metrics: Metrics::default(),
            openapi: serde_json::to_vec(&openapi::document()).map_err(RegistryError::broken)?,
            told: None,
        };
        Ok(Self { app: Arc::new(app), first_token })
    }

    /// Has failures told to somebody: whoever asked learns only that there was one.
    #[must_use]
    pub fn telling(mut self, told: Told) -> Self {
        if let Some(app) = Arc::get_mut(&mut self.app) {
            app.told = Some(told);
        }
        self
    }

    /// The token that was made because there was none; nobody can see it later.
    pub fn first_token(&self) -> Option<&Secret> {
        self.first_token.as_ref()
    }

    /// Answers until `shutdown` resolves, and then what was asked before.
    pub async fn serve(
        self,
        listener: TcpListener,
        shutdown: impl Future<Output = ()>,
    ) -> Result<(), RegistryError> {
        let app = self.app;
        let limits = app.limits.clone();
        let answer = move |request: Request<Body>, remote: IpAddr| {
            let app = Arc::clone(&app);
            async move { app.answer(request, remote).await }
        };
        connections::serve(listener, &limits, shutdown, answer).await;
        Ok(())
    }
}

impl App {
    async fn answer(&self, request: Request<Body>, remote: IpAddr) -> Response<Body> {
        let begun = Instant::now();
        let method = label(request.method());
        let route = Route::parse(request.uri().path());
        let pattern = match &route {
            Ok(route) => route.pattern(),
            Err(RegistryError::NoRoute) => "unknown",
            Err(_) => "unreadable",
        };
        let response = match self.admit(request.headers(), remote).await {
            Ok(caller) => match route {
                Ok(route) => self.respond(&caller, route, request).await,
                Err(error) => Err(error),
            },
            Err(error) => Err(error),
        };
        let response = response.unwrap_or_else(|error| {
            let answer = failed(&error);
            if let Some(told) = self.told.as_ref().filter(|_| answer.status().is_server_error()) {
                told(&format!("{method} {pattern}: {error}"));
            }
            answer
        });
        self.metrics.answered(method, pattern, response.status().as_u16(), begun.elapsed());
        response
    }

    /// Who asks, unless they ask too often.
    async fn admit(&self, headers: &HeaderMap, remote: IpAddr) -> Result<Caller, RegistryError> {
        let Some(token) = token(headers)? else {
            self.rate.take(Who::Address(remote))?;
            return Ok(Caller::default());
        };
        let shown = Kept::of(token);
        let caller = if self.admin.as_ref().is_some_and(|admin| admin.is(&shown)) {
            Some(Caller { user: FIRST_USER.to_owned(), scopes: vec![Scope::Admin] })
        } else {
            self.store.caller(token).await?
        };
        match caller {
            Some(caller) => self.rate.take(Who::Token(shown.id)).map(|()| caller),
            // Whoever guesses is counted by where they are.
            None => self.rate.take(Who::Address(remote)).and(Err(RegistryError::BadToken)),
        }
    }
}

/// The token of a request.
fn token(headers: &HeaderMap) -> Result<Option<&str>, RegistryError> {
    let mut values = headers.get_all(AUTHORIZATION).iter();
    let Some(value) = values.next() else { return Ok(None) };
    let (scheme, token) =
        value.to_str().ok().and_then(|value| value.split_once(' ')).ok_or(RegistryError::BadToken)?;
    let is_one = scheme.eq_ignore_ascii_case("bearer") && token.len() <= 512 && values.next().is_none();
    if is_one { Ok(Some(token.trim())) } else { Err(RegistryError::BadToken) }
}

/// A method as it is counted.
fn label(method: &Method) -> &'static str {
    match method.as_str() {
        "GET" => "GET",
        "HEAD" => "HEAD",
        "PUT" => "PUT",
        "POST" => "POST",
        "PATCH" => "PATCH",
        "DELETE" => "DELETE",
        _ => "other",
    }
}
