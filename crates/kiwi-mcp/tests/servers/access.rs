//! Access by OAuth: a person agrees once, tokens lie where only their owner reads, and are refreshed.

use crate::support::web::{initialized, result, start, status};
use crate::support::{Bench, Visitor, block_on, call, endpoint, web};
use axum::http::Method;
use kiwi_mcp::{HttpAuth, McpError, Reach, Server};
use serde_json::json;
use std::os::unix::fs::PermissionsExt as _;
use std::path::Path;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, OnceLock};

/// An endpoint with its authorization server: what it was asked, and which token is good.
#[derive(Default)]
struct World {
    good: Mutex<String>,
    log: Mutex<Vec<String>>,
    issued: AtomicUsize,
}

impl World {
    fn issue(&self) -> serde_json::Value {
        let number = self.issued.fetch_add(1, Ordering::SeqCst);
        let token = format!("token-{number}");
        self.good.lock().unwrap().clone_from(&token);
        json!({"access_token": token, "token_type": "Bearer", "expires_in": 3600, "refresh_token": format!("again-{number}"), "scope": "use"})
    }

    fn count(&self, what: &str) -> usize {
        self.log.lock().unwrap().iter().filter(|line| *line == what).count()
    }
}

async fn world() -> (Arc<World>, String) {
    let world = Arc::new(World::default());
    let base: Arc<OnceLock<String>> = Arc::default();
    let (state, place) = (Arc::clone(&world), Arc::clone(&base));
    let url = start(move |asked| {
        let (world, base) = (Arc::clone(&state), place.get().cloned().unwrap_or_default());
        async move { answer(&world, &base, &asked) }
    })
    .await;
    base.set(url.clone()).unwrap();
    (world, url)
}

fn answer(world: &World, base: &str, asked: &web::Asked) -> axum::http::Response<axum::body::Body> {
    match asked.path.as_str() {
        "/mcp" => {
            let token = world.good.lock().unwrap().clone();
            if token.is_empty() || asked.header("authorization") != format!("Bearer {token}") {
                world.log.lock().unwrap().push("401".into());
                let mut refused = status(401);
                let challenge = format!(
                    "Bearer scope=\"use\", resource_metadata=\"{base}/.well-known/oauth-protected-resource/mcp\""
                );
                refused.headers_mut().insert("www-authenticate", challenge.parse().unwrap());
                return refused;
            }
            match (asked.method.clone(), asked.what()) {
                (Method::GET, _) => status(405),
                (Method::DELETE, _) => status(200),
                (_, "server/discover") => status(400),
                (_, "initialize") => initialized(asked, "s"),
                (_, what) if what.starts_with("notifications/") => status(202),
                _ => web::json(200, &result(asked, &json!({"content": [{"type": "text", "text": token}]}))),
            }
        }
        "/.well-known/oauth-protected-resource/mcp" => {
            web::json(200, &json!({"resource": format!("{base}/mcp"), "authorization_servers": [base]}))
        }
        "/.well-known/oauth-authorization-server" => web::json(
            200,
            &json!({
                "issuer": base, "authorization_endpoint": format!("{base}/authorize"), "token_endpoint": format!("{base}/token"),
                "registration_endpoint": format!("{base}/register"), "response_types_supported": ["code"],
                "code_challenge_methods_supported": ["S256"], "token_endpoint_auth_methods_supported": ["client_secret_post"],
            }),
        ),
        "/register" => {
            world.log.lock().unwrap().push("register".into());
            web::json(
                201,
                &json!({"client_id": "kiwi-1", "client_secret": "s3cret", "redirect_uris": asked.message["redirect_uris"]}),
            )
        }
        "/token" => {
            let form = asked.form();
            world.log.lock().unwrap().push(form["grant_type"].clone());
            if form.get("client_secret").map(String::as_str) != Some("s3cret") {
                return web::json(401, &json!({"error": "invalid_client"}));
            }
            web::json(200, &world.issue())
        }
        _ => status(404),
    }
}

fn oauth(url: &str) -> Server {
    let mut server = endpoint("guarded", &format!("{url}/mcp"));
    if let Reach::Http { auth, .. } = &mut server.reach {
        *auth = HttpAuth::Oauth;
    }
    server
}

/// A pool whose tokens lie in a folder; `visits` counts how often a person was asked.
fn bench(tokens: &Path, visits: Option<&Arc<AtomicUsize>>) -> Bench {
    Bench::with(|around| {
        tokens.clone_into(&mut around.tokens);
        around.authorize = visits.map(|visits| {
            let visits = Arc::clone(visits);
            let visit = move |url: String| {
                visits.fetch_add(1, Ordering::SeqCst);
                let state = url
                    .split('&')
                    .find_map(|pair| pair.split_once("state=").map(|(_, state)| state.to_owned()));
                assert!(url.contains("code_challenge_method=S256") && url.contains("scope=use"), "{url}");
                Ok(format!("http://127.0.0.1:9/callback?code=yes&state={}", state.unwrap()))
            };
            Arc::new(Visitor(visit)) as Arc<dyn kiwi_mcp::Authorize>
        });
    })
}

#[test]
fn a_person_is_asked_once_and_the_tokens_are_kept() {
    block_on(async {
        let (world, url) = world().await;
        let folder = tempfile::tempdir().unwrap();
        let (tokens, visits) = (folder.path().join("tokens"), Arc::new(AtomicUsize::new(0)));
        let server = oauth(&url);
        // Nobody to ask.
        let alone = bench(&tokens, None);
        let error = alone.pool.connect(&server).await.unwrap_err();
        let McpError::Unauthorized { problem, .. } = error else { panic!("{error:?}") };
        assert!(problem.contains("nobody is here who could agree"), "{problem}");
        assert_eq!(world.count("register"), 0);

        let first = bench(&tokens, Some(&visits));
        assert_eq!(first.call(&server, "whoami", json!({})).await.unwrap().text(), "token-0");
        assert_eq!(
            (visits.load(Ordering::SeqCst), world.count("register"), world.count("authorization_code")),
            (1, 1, 1)
        );
        let file = std::fs::read_dir(&tokens).unwrap().next().unwrap().unwrap();
        assert_eq!(file.metadata().unwrap().permissions().mode() & 0o777, 0o600);
        assert_eq!(std::fs::metadata(&tokens).unwrap().permissions().mode() & 0o777, 0o700);
        first.pool.close().await;

        // Another start of Kiwi, with nobody to ask, has what is needed; also to refresh it as who it was registered.
        let second = bench(&tokens, None);
        assert_eq!(second.call(&server, "whoami", json!({})).await.unwrap().text(), "token-0");
        *world.good.lock().unwrap() = "another".into();
        assert_eq!(second.call(&server, "whoami", json!({})).await.unwrap().text(), "token-1");
        assert_eq!((world.count("refresh_token"), visits.load(Ordering::SeqCst)), (1, 1));
        assert!(second.pool.log_out(&server).await.unwrap());
        assert!(!second.pool.log_out(&server).await.unwrap());
        assert!(matches!(second.pool.connect(&server).await, Err(McpError::Unauthorized { .. })));
        second.pool.close().await;
        alone.pool.close().await;
    });
}

#[test]
fn what_cannot_be_read_is_refused() {
    block_on(async {
        let (_, url) = world().await;
        let folder = tempfile::tempdir().unwrap();
        let (tokens, visits) = (folder.path().join("tokens"), Arc::new(AtomicUsize::new(0)));
        let server = oauth(&url);
        let first = bench(&tokens, Some(&visits));
        let connection = first.pool.connect(&server).await.unwrap();
        call(&connection, "whoami", json!({})).await.unwrap();
        first.pool.close().await;
        let file = std::fs::read_dir(&tokens).unwrap().next().unwrap().unwrap().path();
        std::fs::write(&file, "{").unwrap();
        let second = bench(&tokens, Some(&visits));
        let error = second.pool.connect(&server).await.unwrap_err();
        assert!(
            matches!(&error, McpError::Store { problem } if problem.contains("cannot be read")),
            "{error:?}"
        );
        std::fs::set_permissions(&file, std::fs::Permissions::from_mode(0o644)).unwrap();
        second.pool.reset(&server.name);
        assert!(matches!(second.pool.connect(&server).await, Err(McpError::Store { .. })));
        second.pool.close().await;
    });
}
