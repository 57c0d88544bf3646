//! The embedder that the configuration names.

use kiwi_exec::{Auth, Body, HttpClient, HttpRequest, Reach, Redirects};
use kiwi_model::{ErrorKind, Fault, Secret};
use kiwi_search::{EmbedError, Embedder, MiniLm, StaticEmbedder};
use kiwi_space::{EmbedderChoice, SearchSettings};
use serde::Deserialize;
use serde_json::json;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;
use tokio::runtime::Runtime;

use crate::host::Host;
use crate::stages::client;

/// Texts that a remote embedder gets at a time.
const BATCH: usize = 64;
const PATIENCE: Duration = Duration::from_mins(1);
const MOST_BYTES: u64 = 64 << 20;

/// Makes it.
pub(super) fn embedder(settings: &SearchSettings, host: &Host) -> Result<Arc<dyn Embedder>, Fault> {
    let missing = |what: &str| {
        let message = format!("the embedder needs `search.{what}`, and it is not set");
        Fault::new(ErrorKind::MissingRequirement, message).with_hint("set it in the user's config/kiwi.toml")
    };
    Ok(match settings.embedder {
        EmbedderChoice::Static => Arc::new(StaticEmbedder::new()),
        EmbedderChoice::Minilm => {
            let folder = settings.model.as_ref().ok_or_else(|| missing("model"))?;
            let model = MiniLm::open(folder).map_err(|error| {
                Fault::new(ErrorKind::MissingRequirement, error.to_string())
                    .with_hint("`search.model` names a folder with config.json, weights and vocabulary")
            })?;
            Arc::new(model)
        }
        EmbedderChoice::Http => {
            let url = settings.url.clone().ok_or_else(|| missing("url"))?;
            let name = settings.name.clone().ok_or_else(|| missing("name"))?;
            let dimensions = settings.dimensions.ok_or_else(|| missing("dimensions"))?;
            let key = settings.key_env.as_ref().and_then(|name| host.environment.get(name));
            let runtime =
                tokio::runtime::Builder::new_current_thread().enable_all().build().map_err(|error| {
                    Fault::new(ErrorKind::Internal, format!("no room for connections: {error}"))
                })?;
            Arc::new(Remote {
                id: format!("http {url} {name} {dimensions}"),
                http: client(host),
                runtime: Mutex::new(runtime),
                url,
                name,
                dimensions,
                key: key.map(|key| Secret::new(key.clone())),
            })
        }
    })
}

/// An embedder behind an address that speaks as OpenAI's does.
struct Remote {
    id: String,
    http: HttpClient,
    /// Its own, so that connections outlive the call that opened them.
    runtime: Mutex<Runtime>,
    url: String,
    name: String,
    dimensions: usize,
    key: Option<Secret>,
}

/// An answer.
#[derive(Deserialize)]
struct Answer {
    data: Vec<Row>,
}

#[derive(Deserialize)]
struct Row {
    index: usize,
    embedding: Vec<f32>,
}

impl Remote {
    async fn ask(&self, texts: &[&str]) -> Result<Vec<Vec<f32>>, String> {
        let request = HttpRequest {
            method: "POST".into(),
            url: self.url.clone(),
            headers: Vec::new(),
            query: Vec::new(),
            body: Body::Json(json!({"model": self.name, "input": texts, "encoding_format": "float"})),
            auth: self.key.clone().map(|token| Auth::Bearer { token }),
            // The user names it in their own configuration, and may run it on this machine.
            reach: Reach { is_named: true, allow_hosts: None },
            timeout: PATIENCE,
            max_response: MOST_BYTES,
            redirects: Redirects::Keep,
            retries: 2,
        };
        let answer = self.http.send(request).await.map_err(|error| error.to_string())?;
        let answer: Answer =
            serde_json::from_value(answer.body.into_value()).map_err(|error| error.to_string())?;
        let mut vectors = vec![Vec::new(); texts.len()];
        for Row { index, mut embedding } in answer.data {
            if embedding.len() != self.dimensions {
                return Err(format!("a vector has {} numbers, and not {}", embedding.len(), self.dimensions));
            }
            let length = embedding.iter().map(|number| number * number).sum::<f32>().sqrt();
            if length > 0.0 {
                for number in &mut embedding {
                    *number /= length;
                }
            }
            *vectors.get_mut(index).ok_or("a vector belongs to no text")? = embedding;
        }
        if vectors.iter().any(Vec::is_empty) {
            return Err("a text got no vector".to_owned());
        }
        Ok(vectors)
    }
}

impl Embedder for Remote {
    fn id(&self) -> &str {
        &self.id
    }

    fn dimensions(&self) -> usize {
        self.dimensions
    }

    fn embed(&self, texts: &[&str]) -> Result<Vec<Vec<f32>>, EmbedError> {
        let no_answer = |why: String| EmbedError::NoAnswer { id: self.name.clone(), why };
        let runtime = self.runtime.lock().unwrap_or_else(PoisonError::into_inner);
        let mut vectors = Vec::with_capacity(texts.len());
        for batch in texts.chunks(BATCH) {
            vectors.extend(runtime.block_on(self.ask(batch)).map_err(no_answer)?);
        }
        Ok(vectors)
    }
}
