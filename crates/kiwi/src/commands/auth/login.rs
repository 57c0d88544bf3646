use kiwi_gate::Login;
use kiwi_model::{ErrorKind, Fault};
use std::process::ExitCode;

use super::typed::secret;
use crate::context::Context;
use crate::printer::{self, BOLD, paint};

/// Get a token from an authorisation server and store it; it is renewed when it expires.
///
/// With --device-url a person finishes the login in a browser; with --client-secret the client asks in its own name.
#[derive(Debug, clap::Args)]
pub struct Args {
    /// The name that tools ask for.
    name: String,
    /// Where tokens are given. Left out, where the token of this name came from.
    #[arg(long, value_name = "URL")]
    token_url: Option<String>,
    /// Where a person's login begins (RFC 8628).
    #[arg(long, value_name = "URL")]
    device_url: Option<String>,
    /// The client this is a login for.
    #[arg(long, value_name = "ID")]
    client_id: Option<String>,
    /// Ask for the client's own secret, typed unseen or piped in.
    #[arg(long)]
    client_secret: bool,
    /// What the token is for; may be given several times.
    #[arg(long = "scope", value_name = "SCOPE")]
    scopes: Vec<String>,
}

impl Args {
    /// Logs in.
    pub fn run(self, context: &Context) -> Result<ExitCode, Fault> {
        let auth = context.kernel.auth()?;
        let known = auth.all()?.remove(&self.name);
        let refresh = known.as_ref().and_then(|credential| credential.refresh.clone());
        let needed = |given: Option<String>, known: Option<String>, flag: &str| {
            given.or(known).ok_or_else(|| {
                Fault::new(ErrorKind::Usage, format!("{flag} is needed to log in to `{}`", self.name))
                    .with_hint(
                        "the service's documentation names it; `kiwi auth set NAME` stores a token you have",
                    )
            })
        };
        let token_url =
            needed(self.token_url.clone(), refresh.as_ref().map(|it| it.token_url.clone()), "--token-url")?;
        let client_id =
            needed(self.client_id.clone(), refresh.as_ref().map(|it| it.client_id.clone()), "--client-id")?;
        let client_secret = if self.client_secret {
            Some(secret(&format!("secret of the client `{client_id}`: "))?)
        } else {
            refresh.and_then(|refresh| refresh.client_secret)
        };
        if self.device_url.is_none() && client_secret.is_none() {
            return Err(Fault::new(ErrorKind::Usage, "nobody is there to log in as")
                .with_hint("give --device-url for a person, or --client-secret for a client of its own"));
        }
        let scopes =
            if self.scopes.is_empty() { known.map(|it| it.scopes).unwrap_or_default() } else { self.scopes };
        let login = Login { token_url, device_url: self.device_url, client_id, client_secret, scopes };
        let token = Context::wait(auth.login(&self.name, login, &|code| {
            let (at, code) = (paint(BOLD, &code.verification_uri), paint(BOLD, &code.user_code));
            printer::note(format!("open {at} and enter {code}"));
        }))??;
        let until = token.expires_at.map(|at| format!(", good until {at:.0}")).unwrap_or_default();
        printer::note(format!("stored `{}`{until}", self.name));
        Ok(ExitCode::SUCCESS)
    }
}
