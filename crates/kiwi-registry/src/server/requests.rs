//! What each request comes to.

use axum::body::Body;
use axum::http::header::CONTENT_LENGTH;
use axum::http::request::Parts;
use axum::http::{HeaderMap, Method, Request, StatusCode};
use kiwi_model::{Digest, ToolId, Version, VersionReq};
use kiwi_space::{NewFile, package_of};
use std::sync::Arc;
use url::form_urlencoded;

use super::App;
use super::answer::{Answer, Keep, has, json, keep, nothing, set, tagged, text, unchanged};
use super::body;
use super::connections::Pulse;
use super::judge::judge;
use super::route::Route;
use crate::error::RegistryError;
use crate::protocol::{
    ATTEMPT, Blobs, Found, LockfileChange, LockfileSet, MOST_BLOB, MOST_FILES, NewToken, PROTOCOL,
    Publication, Scope, Status, Tokens, ToolChange, Whoami, Yank,
};
use crate::store::{Caller, NewVersion, Published, compare};

/// A body that is short by nature.
const SHORT: u64 = 64 << 10;
/// A lockfile, and what is around it.
const LOCKFILE: u64 = 2 << 20;
/// Twenty thousand files with long names.
const PUBLICATION: u64 = 32 << 20;
/// Digests of as many blobs.
const DIGESTS: u64 = 4 << 20;
/// A file that is looked into when its package is read; a larger one is data.
const READABLE_FILE: u64 = 1 << 20;
/// Files that are looked into have at most this together.
const READABLE: u64 = 32 << 20;
const LONGEST_QUERY: usize = 1000;
const LONGEST_REASON: usize = 500;
const USUAL_HITS: usize = 50;
const MOST_HITS: usize = 200;

impl App {
    pub(super) async fn respond(
        &self,
        caller: &Caller,
        route: Route,
        request: Request<Body>,
    ) -> Result<Answer, RegistryError> {
        let method = route.method(request.method())?;
        if method == Method::GET {
            let (parts, _) = request.into_parts();
            return self.get(caller, route, &parts).await;
        }
        caller.require(Scope::Publish)?;
        match (route, method) {
            (Route::Tool(id), _) => {
                let change: ToolChange = self.body(request, SHORT).await?;
                json(StatusCode::OK, &self.store.change_tool(caller, &id, change.visibility).await?)
            }
            (Route::Version(id, version), _) => self.publish(caller, &id, &version, request).await,
            (Route::Yanked(id, version), _) => {
                let yank: Yank = self.body(request, SHORT).await?;
                check_reason(yank.reason.as_deref())?;
                json(StatusCode::OK, &self.store.yank(caller, &id, &version, yank.reason).await?)
            }
            (Route::MissingBlobs, _) => {
                let Blobs { mut digests } = self.body(request, DIGESTS).await?;
                if digests.len() > MOST_FILES {
                    return Err(RegistryError::unfit(format!("a question may be about {MOST_FILES} blobs")));
                }
                let there = self.store.sizes(caller, &digests).await?;
                digests.retain(|digest| !there.contains_key(digest));
                json(StatusCode::OK, &Blobs { digests })
            }
            (Route::Blob(digest), _) => {
                let mut spool = self.store.spool();
                body::bytes(request, MOST_BLOB, self.limits.patience, &mut spool).await?;
                self.store.keep_blob(caller, digest, spool).await?;
                Ok(nothing())
            }
            (Route::Lockfile(set, key), Method::PUT) => {
                let change: LockfileChange = self.body(request, LOCKFILE).await?;
                json(StatusCode::OK, &self.store.share_lockfile(caller, &set, &key, change).await?)
            }
            (Route::Lockfile(set, key), _) => self.store.drop_lockfile(&set, &key).await.map(|()| nothing()),
            (Route::Tokens, _) => {
                caller.require(Scope::Admin)?;
                let wanted: NewToken = self.body(request, SHORT).await?;
                json(StatusCode::CREATED, &self.store.make_token(&wanted).await?)
            }
            (Route::Token(id), _) => {
                caller.require(Scope::Admin)?;
                self.store.end_token(&id).await.map(|()| nothing())
            }
            (Route::Namespace(name), _) => {
                json(StatusCode::OK, &self.store.claim_namespace(caller, &name).await?)
            }
            (Route::Owner(name, user), Method::PUT) => {
                json(StatusCode::OK, &self.store.add_owner(caller, &name, &user).await?)
            }
            (Route::Owner(name, user), _) => {
                json(StatusCode::OK, &self.store.remove_owner(caller, &name, &user).await?)
            }
            _ => Err(RegistryError::NoRoute),
        }
    }

    async fn get(&self, caller: &Caller, route: Route, request: &Parts) -> Result<Answer, RegistryError> {
        let (headers, is_private) = (&request.headers, caller.is_known());
        match route {
            Route::Status => {
                self.store.check().await?;
                let version = env!("CARGO_PKG_VERSION").to_owned();
                json(StatusCode::OK, &Status { name: "kiwi".to_owned(), version, protocol: PROTOCOL })
            }
            Route::Whoami => {
                caller.require(Scope::Read)?;
                let namespaces = self.store.namespaces_of(&caller.user).await?;
                let (user, scopes) = (caller.user.clone(), caller.scopes.clone());
                json(StatusCode::OK, &Whoami { user, scopes, namespaces })
            }
            Route::Search => {
                let (query, limit) = search_query(request.uri.query())?;
                json(StatusCode::OK, &Found { hits: self.store.search(caller, &query, limit).await? })
            }
            Route::Resolve(id) => {
                let requirement = requirement(request.uri.query())?;
                let chain = self.store.resolve(caller, &id, requirement.as_ref()).await?;
                tagged(headers, is_private, &chain)
            }
            Route::Tool(id) => tagged(headers, is_private, &self.store.tool(caller, &id).await?),
            Route::Version(id, version) => {
                tagged(headers, is_private, &self.store.release(caller, &id, &version).await?)
            }
            Route::Blob(digest) => self.blob(caller, digest, request).await,
            Route::Lockfiles(set) => {
                caller.require(Scope::Read)?;
                tagged(headers, true, &LockfileSet { lockfiles: self.store.lockfiles(&set).await? })
            }
            Route::Tokens => {
                caller.require(Scope::Admin)?;
                json(StatusCode::OK, &Tokens { tokens: self.store.tokens().await? })
            }
            Route::Namespace(name) => json(StatusCode::OK, &self.store.namespace(&name).await?),
            Route::OpenApi => Ok(text(StatusCode::OK, "application/json", self.openapi.clone())),
            Route::Metrics => {
                let metrics = self.metrics.text(self.store.engine());
                Ok(text(StatusCode::OK, "text/plain; version=0.0.4; charset=utf-8", metrics))
            }
            _ => Err(RegistryError::NoRoute),
        }
    }

    async fn body<T: serde::de::DeserializeOwned>(
        &self,
        request: Request<Body>,
        most: u64,
    ) -> Result<T, RegistryError> {
        body::json(request, most, self.limits.patience).await
    }

    async fn blob(&self, caller: &Caller, digest: Digest, request: &Parts) -> Result<Answer, RegistryError> {
        let found = self.store.blob(caller, digest).await?;
        let tag = format!("\"{digest}\"");
        let mut answer = if has(&request.headers, &tag) {
            unchanged()
        } else {
            let size = found.size;
            let mut answer = text(StatusCode::OK, "application/octet-stream", "");
            set(&mut answer, CONTENT_LENGTH, &size.to_string());
            // What is never interpreted as anything else.
            set(&mut answer, axum::http::header::X_CONTENT_TYPE_OPTIONS, "nosniff");
            if request.method != Method::HEAD {
                let pulse = request.extensions.get::<Arc<Pulse>>().cloned();
                *answer.body_mut() = body::stream(self.store.bytes(found).await?, size, pulse);
            }
            answer
        };
        keep(&mut answer, &tag, caller.is_known(), Keep::Forever);
        Ok(answer)
    }

    async fn publish(
        &self,
        caller: &Caller,
        tool_id: &ToolId,
        version: &Version,
        request: Request<Body>,
    ) -> Result<Answer, RegistryError> {
        let attempt = attempt(request.headers())?;
        let publication: Publication = self.body(request, PUBLICATION).await?;
        let judged = judge(tool_id, version, &publication)?;
        // Whoever comes second need not wait until all is read.
        if !self.store.is_taken(caller, tool_id, version).await? {
            self.look_into(caller, tool_id, version, &publication).await?;
        }
        let new = NewVersion {
            tool_id,
            version,
            manifest: &publication.manifest,
            integrity: publication.integrity,
            tool_type: &judged.manifest.tool_type,
            description: &judged.description,
            executor: judged.manifest.executor.as_ref(),
            files: &publication.files,
            signature: publication.signature.as_ref(),
            visibility: publication.visibility,
            attempt: attempt.as_deref(),
        };
        match self.store.publish(caller, &new).await? {
            Published::New(release) => {
                self.metrics.published();
                json(StatusCode::CREATED, &release)
            }
            Published::Again(release) => json(StatusCode::OK, &release),
        }
    }

    /// Reads the package as a client will, and holds the manifest against what the files say.
    async fn look_into(
        &self,
        caller: &Caller,
        tool_id: &ToolId,
        version: &Version,
        publication: &Publication,
    ) -> Result<(), RegistryError> {
        let files = &publication.files;
        let digests: Vec<Digest> = files.iter().map(|file| file.sha256).collect();
        compare(&self.store.sizes(caller, &digests).await?, files)?;
        let mut contents = Vec::with_capacity(files.len());
        let (mut left, mut is_whole) = (READABLE, true);
        for file in files {
            if file.size > READABLE_FILE.min(left) {
                // Data, which says nothing about the tool.
                is_whole = false;
                contents.push(Vec::new());
            } else {
                left -= file.size;
                contents.push(self.store.read_blob(file.sha256).await?);
            }
        }
        let (id, version) = (tool_id.clone(), version.clone());
        let (files, manifest, said) = (files.clone(), publication.manifest.clone(), publication.integrity);
        let judged = tokio::task::spawn_blocking(move || {
            let files: Vec<NewFile<'_>> = files
                .iter()
                .zip(&contents)
                .map(|(file, bytes)| NewFile { path: &file.path, bytes, is_executable: file.is_executable })
                .collect();
            let tool = package_of(&id, &version, &files)
                .map_err(|error| RegistryError::BadManifest { problem: error.to_string() })?;
            if tool.document != manifest {
                let problem = "it is not the one that is in the files".to_owned();
                return Err(RegistryError::BadManifest { problem });
            }
            if is_whole && tool.integrity != said {
                let what = format!("{id}@{version}");
                return Err(RegistryError::Mismatch { what, computed: tool.integrity, said });
            }
            Ok(())
        });
        judged.await.map_err(RegistryError::broken)?
    }
}

/// What names a try.
fn attempt(headers: &HeaderMap) -> Result<Option<String>, RegistryError> {
    let Some(value) = headers.get(ATTEMPT) else { return Ok(None) };
    let value = value.to_str().ok().filter(|text| (1..=200).contains(&text.len()));
    let bad = || RegistryError::bad(format!("`{ATTEMPT}` must be 1 to 200 letters, digits or signs"));
    value.map(|text| Some(text.to_owned())).ok_or_else(bad)
}

fn check_reason(reason: Option<&str>) -> Result<(), RegistryError> {
    let is_one = |reason: &str| {
        !reason.is_empty()
            && reason.chars().count() <= LONGEST_REASON
            && !reason.chars().any(char::is_control)
    };
    if reason.is_none_or(is_one) {
        return Ok(());
    }
    Err(RegistryError::unfit(format!("a reason has 1 to {LONGEST_REASON} characters, on one line")))
}

/// The values of a query; each name once, and no others than these.
fn query<const N: usize>(text: Option<&str>, names: [&str; N]) -> Result<[Option<String>; N], RegistryError> {
    let mut values = [const { None }; N];
    for (name, value) in form_urlencoded::parse(text.unwrap_or_default().as_bytes()) {
        let at = names.iter().position(|known| *known == name);
        let Some(place) = at.and_then(|at| values.get_mut(at)) else {
            return Err(RegistryError::bad(format!(
                "this address takes no such value; it takes {}",
                names.join(", ")
            )));
        };
        if place.replace(value.into_owned()).is_some() {
            return Err(RegistryError::bad(format!("`{name}` is given twice")));
        }
    }
    Ok(values)
}

fn search_query(text: Option<&str>) -> Result<(String, usize), RegistryError> {
    let [words, limit] = query(text, ["q", "limit"])?;
    let words = words.ok_or_else(|| RegistryError::bad("`q` says what is searched for"))?;
    if words.chars().count() > LONGEST_QUERY {
        return Err(RegistryError::bad(format!("`q` may have {LONGEST_QUERY} characters")));
    }
    let limit = match limit {
        None => USUAL_HITS,
        Some(limit) => limit
            .parse()
            .ok()
            .filter(|limit| (1..=MOST_HITS).contains(limit))
            .ok_or_else(|| RegistryError::bad(format!("`limit` is a number from 1 to {MOST_HITS}")))?,
    };
    Ok((words, limit))
}

fn requirement(text: Option<&str>) -> Result<Option<VersionReq>, RegistryError> {
    let [requirement] = query(text, ["requirement"])?;
    let Some(requirement) = requirement else { return Ok(None) };
    let bad = |why: String| RegistryError::bad(format!("`requirement` is no version requirement: {why}"));
    if requirement.len() > 256 {
        return Err(bad("it is too long".to_owned()));
    }
    VersionReq::parse(&requirement).map(Some).map_err(|error| bad(error.to_string()))
}
