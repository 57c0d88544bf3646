//! Making an HTTP request.

use kiwi_chain::{AuthCall, AuthScheme, HttpBody, HttpCall};
use kiwi_exec::{
    Auth, Body, ExecError, HttpClient, HttpRequest, KeyPlace, OAuth2Client, Permit, Reach, Redirects,
};
use kiwi_model::{ErrorKind, Explain, Fault, Isolation};
use serde_json::json;
use std::path::PathBuf;
use std::sync::Arc;

use super::dispatch::{Dispatch, failed, refused};
use crate::admission::denied_by;
use crate::host::Host;
use crate::permission::Need;
use crate::stage::{Call, Reply};
use crate::vault::{Secrets, missing};

/// As many as browsers follow before they call it a circle.
const MAX_REDIRECTS: usize = 10;

/// A client that trusts what the machine's environment says it trusts.
pub(crate) fn client(host: &Host) -> HttpClient {
    let value = |name: &str| host.environment.get(name).map(String::as_str).unwrap_or_default();
    let file = Some(value("SSL_CERT_FILE")).filter(|path| !path.is_empty()).map(PathBuf::from);
    // Lists of folders name some that only other machines have.
    let folders = value("SSL_CERT_DIR").split(':').map(PathBuf::from).filter(|path| path.is_dir());
    HttpClient::new().trusting(file.into_iter().chain(folders))
}

impl Dispatch {
    /// Makes a request. Secrets are looked up before anything is sent.
    pub(super) async fn request(&self, call: &Call<'_>, wanted: HttpCall, secrets: &Secrets) -> Reply {
        let pointer = wanted.response.clone();
        let request = match self.prepared(call.isolation(), wanted, secrets) {
            Ok(request) => request,
            Err(fault) => return refused(fault),
        };
        let answer = match self.http.send_permitted(request, permit(call)).await {
            Ok(answer) => answer.body.into_value(),
            Err(error) => return failed(&error),
        };
        match pointer {
            None => Reply { result: answer, ..Reply::default() },
            Some(pointer) => match answer.pointer(&pointer) {
                Some(part) => Reply { result: part.clone(), ..Reply::default() },
                None => refused(
                    Fault::new(ErrorKind::ToolFailed, format!("the answer has nothing at `{pointer}`"))
                        .with_hint("`config.response` is a JSON pointer into the answer's body")
                        .with_details(json!({"answer": answer})),
                ),
            },
        }
    }

    fn prepared(&self, level: Isolation, call: HttpCall, secrets: &Secrets) -> Result<HttpRequest, Fault> {
        let reach = reach(level, &call)?;
        Ok(HttpRequest {
            method: call.method,
            url: call.url,
            headers: call.headers.into_iter().collect(),
            query: call.query,
            body: match call.body {
                HttpBody::Empty => Body::None,
                HttpBody::Json(value) => Body::Json(value),
                HttpBody::Text(text) => Body::Text(text),
                HttpBody::Form(fields) => Body::Form(fields),
            },
            auth: call.auth.map(|auth| known(auth, secrets)).transpose()?,
            reach,
            timeout: self.timeout(call.timeout),
            max_response: self.output_cap(call.max_response),
            redirects: if call.follow_redirects { Redirects::Follow(MAX_REDIRECTS) } else { Redirects::Keep },
            retries: call.retries,
        })
    }
}

/// Asks for each host that is about to be contacted whether the caller may: a redirect leads where no plan could tell.
fn permit(call: &Call<'_>) -> Option<Permit> {
    let context = call.context();
    let judge = move |host: &str| match context.judge(&[Need::host(host)]).into_iter().next() {
        Some(objection) => Err(objection.fault()),
        None => Ok(()),
    };
    (!call.context().is_everything()).then(|| Arc::new(judge) as Permit)
}

/// Whom the request may contact. Levels with walls let a tool out to declared hosts only, or not at all.
fn reach(level: Isolation, call: &HttpCall) -> Result<Reach, Fault> {
    let hosts: Option<Vec<&String>> = match level {
        Isolation::Trusted | Isolation::Standard => {
            call.allow_hosts.as_ref().map(|hosts| hosts.iter().collect())
        }
        Isolation::Sandboxed => Some(call.allow_hosts.iter().flatten().chain(&call.declared_hosts).collect()),
        Isolation::Restricted => {
            let message = "isolation level `restricted` has no network, and the tool is a request";
            return Err(denied_by("isolation", message)
                .with_hint("a request can be made at `sandboxed`, to the hosts its manifest names"));
        }
    };
    let listed = |hosts: Vec<&String>| hosts.into_iter().map(|host| host.parse()).collect();
    let allow_hosts = hosts.map(listed).transpose().map_err(|error: ExecError| error.fault())?;
    Ok(Reach { is_named: call.host_is_named, allow_hosts })
}

/// The same with the secret in place of its name.
fn known(AuthCall { secret, scheme }: AuthCall, secrets: &Secrets) -> Result<Auth, Fault> {
    let secret = secrets.get(&secret).cloned().ok_or_else(|| missing(&secret))?;
    let key = |place, name, key| Auth::ApiKey { place, name, key };
    Ok(match scheme {
        AuthScheme::Bearer => Auth::Bearer { token: secret },
        AuthScheme::Basic { username } => Auth::Basic { username, password: secret },
        AuthScheme::KeyInHeader { name } => key(KeyPlace::Header, name, secret),
        AuthScheme::KeyInQuery { name } => key(KeyPlace::Query, name, secret),
        AuthScheme::OAuth2 { token_url, client_id, scopes } => {
            Auth::OAuth2(OAuth2Client { token_url, client_id, client_secret: secret, scopes })
        }
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_secret_that_nobody_has_is_refused_by_its_name() {
        let call = AuthCall { secret: "weather_key".into(), scheme: AuthScheme::Bearer };
        let fault = known(call.clone(), &Secrets::default()).unwrap_err();
        assert_eq!(fault.kind, ErrorKind::MissingRequirement);
        assert_eq!(fault.message, "no secret named `weather_key` is stored");
        assert!(fault.hint.unwrap().contains("`kiwi auth set weather_key` stores one"));
        let auth = known(call, &Secrets::of(&[("weather_key", "value of it")])).unwrap();
        assert_eq!(auth, Auth::Bearer { token: kiwi_model::Secret::new("value of it") });
        assert!(!format!("{auth:?}").contains("value of"));
    }
}
