//! The conversation with a Secret Service, in as few words as it takes.
//!
//! The session is `plain`: whoever can listen on a user's own bus can ask the keyring just as well, so encrypting
//! between the two ends would hide nothing from anybody.

use futures_core::Stream as _;
use kiwi_model::Secret;
use serde::Serialize;
use std::collections::HashMap;
use std::future::poll_fn;
use std::pin::Pin;
use tokio::time::timeout;
use zbus::message::Type;
use zbus::wire::{DynamicDeserialize, DynamicType};
use zbus::{Connection, MatchRule, MessageStream, OwnedObjectPath, Variant, fdo};

use super::{Asking, KeyringError, PATIENCE, PERSON, silent};

const NAME: &str = "org.freedesktop.secrets";
const ROOT: &str = "/org/freedesktop/secrets";
const SERVICE: &str = "org.freedesktop.Secret.Service";
const COLLECTION: &str = "org.freedesktop.Secret.Collection";
const ITEM: &str = "org.freedesktop.Secret.Item";
const PROMPT: &str = "org.freedesktop.Secret.Prompt";
/// The path by which the service says "none".
const NONE: &str = "/";

/// Session, parameters of its cipher (a plain one has none), the bytes, and what they are.
type Sealed = (OwnedObjectPath, Vec<u8>, Vec<u8>, String);

/// A session with the service.
pub struct Service {
    connection: Connection,
    session: OwnedObjectPath,
    asking: Asking,
}

impl Service {
    pub async fn connect(address: &str, asking: Asking) -> Result<Self, KeyringError> {
        let connect = zbus::connection::Builder::address(address).method_timeout(PATIENCE).build();
        // Whatever is wrong with a bus that cannot be spoken to, there is no keyring behind it.
        let connected = timeout(PATIENCE, connect).await.map_err(silent)?;
        let connection = connected.map_err(|_| KeyringError::Absent)?;
        let open = ("plain", Variant::from(""));
        let (_, session): (zbus::OwnedVariant, OwnedObjectPath) =
            call(&connection, ROOT, SERVICE, "OpenSession", &open).await?;
        Ok(Self { connection, session, asking })
    }

    pub async fn read(&self, name: &str) -> Result<Option<Secret>, KeyringError> {
        let Some(item) = self.find(name).await? else { return Ok(None) };
        let (_, _, bytes, _): Sealed =
            call(&self.connection, item.as_str(), ITEM, "GetSecret", &(&self.session,)).await?;
        let text = String::from_utf8(bytes);
        let text = text.map_err(|_| KeyringError::Refused { why: "what it keeps is not text".to_owned() })?;
        Ok(Some(Secret::new(text)))
    }

    pub async fn write(&self, name: &str, label: &str, secret: &Secret) -> Result<(), KeyringError> {
        let collection = self.default_collection().await?.ok_or(KeyringError::Absent)?;
        self.unlock(&collection).await?;
        let properties = HashMap::from([
            ("org.freedesktop.Secret.Item.Label", Variant::from(label)),
            ("org.freedesktop.Secret.Item.Attributes", Variant::from(attributes(name))),
        ]);
        let sealed: Sealed = (
            self.session.clone(),
            Vec::new(),
            secret.expose().as_bytes().to_vec(),
            "text/plain; charset=utf8".to_owned(),
        );
        let (_, prompt): (OwnedObjectPath, OwnedObjectPath) = call(
            &self.connection,
            collection.as_str(),
            COLLECTION,
            "CreateItem",
            &(properties, sealed, true),
        )
        .await?;
        self.answer(&prompt).await
    }

    pub async fn erase(&self, name: &str) -> Result<(), KeyringError> {
        let Some(item) = self.find(name).await? else { return Ok(()) };
        let prompt: OwnedObjectPath = call(&self.connection, item.as_str(), ITEM, "Delete", &()).await?;
        self.answer(&prompt).await
    }

    /// The item of this name, unlocked.
    async fn find(&self, name: &str) -> Result<Option<OwnedObjectPath>, KeyringError> {
        let (open, locked) = self.search(name).await?;
        if let Some(item) = open.into_iter().next() {
            return Ok(Some(item));
        }
        if let Some(item) = locked.into_iter().next() {
            self.unlock(&item).await?;
            return Ok(Some(item));
        }
        // A locked collection need not say what is in it: only an open one that has nothing has nothing.
        let Some(collection) = self.default_collection().await? else { return Ok(None) };
        self.unlock(&collection).await?;
        Ok(self.search(name).await?.0.into_iter().next())
    }

    async fn search(&self, name: &str) -> Result<(Vec<OwnedObjectPath>, Vec<OwnedObjectPath>), KeyringError> {
        call(&self.connection, ROOT, SERVICE, "SearchItems", &(attributes(name),)).await
    }

    async fn default_collection(&self) -> Result<Option<OwnedObjectPath>, KeyringError> {
        let path: OwnedObjectPath = call(&self.connection, ROOT, SERVICE, "ReadAlias", &("default",)).await?;
        Ok((path.as_str() != NONE).then_some(path))
    }

    async fn unlock(&self, object: &OwnedObjectPath) -> Result<(), KeyringError> {
        let (_, prompt): (Vec<OwnedObjectPath>, OwnedObjectPath) =
            call(&self.connection, ROOT, SERVICE, "Unlock", &(vec![object],)).await?;
        self.answer(&prompt).await
    }

    /// Lets the keyring ask what it wants to ask, where somebody is there to answer.
    async fn answer(&self, prompt: &OwnedObjectPath) -> Result<(), KeyringError> {
        if prompt.as_str() == NONE {
            return Ok(());
        }
        if self.asking == Asking::Never {
            return Err(KeyringError::Locked);
        }
        let rule = MatchRule::builder().msg_type(Type::Signal).interface(PROMPT).member("Completed");
        let rule = rule.path(prompt.as_str()).build().map_err(|error| explain(&error))?;
        let completed = MessageStream::for_match_rule(rule, &self.connection, None).await;
        let mut completed = completed.map_err(|error| explain(&error))?;
        let () = call(&self.connection, prompt.as_str(), PROMPT, "Prompt", &("",)).await?;
        let next = poll_fn(|context| Pin::new(&mut completed).poll_next(context));
        let Ok(Some(Ok(answer))) = timeout(PERSON, next).await else { return Err(KeyringError::Locked) };
        let body = answer.body();
        let (is_dismissed, _): (bool, zbus::OwnedVariant) =
            body.deserialize().map_err(|error| explain(&error))?;
        if is_dismissed { Err(KeyringError::Locked) } else { Ok(()) }
    }
}

async fn call<B, R>(
    connection: &Connection,
    path: &str,
    interface: &str,
    method: &str,
    body: &B,
) -> Result<R, KeyringError>
where
    B: Serialize + DynamicType,
    R: for<'d> DynamicDeserialize<'d>,
{
    let reply = connection.call_method(Some(NAME), path, Some(interface), method, body).await;
    let reply = reply.map_err(|error| explain(&error))?;
    let body = reply.body();
    body.deserialize().map_err(|error| explain(&error))
}

/// What an item is found by.
fn attributes(name: &str) -> HashMap<&str, &str> {
    HashMap::from([("application", "kiwi"), ("store", name)])
}

fn explain(error: &zbus::Error) -> KeyringError {
    match error {
        zbus::Error::InputOutput(error) if error.kind() == std::io::ErrorKind::TimedOut => silent(()),
        zbus::Error::FDO(error) => match &**error {
            // Nobody has the name, and nobody could be started who would take it.
            fdo::Error::ServiceUnknown(_)
            | fdo::Error::NameHasNoOwner(_)
            | fdo::Error::SpawnExecFailed(_)
            | fdo::Error::SpawnForkFailed(_)
            | fdo::Error::SpawnChildExited(_)
            | fdo::Error::SpawnChildSignaled(_)
            | fdo::Error::SpawnFailed(_)
            | fdo::Error::SpawnServiceNotFound(_) => KeyringError::Absent,
            fdo::Error::Timeout(_) | fdo::Error::TimedOut(_) => silent(()),
            // The bus says so when the keyring leaves it in the middle of a conversation.
            fdo::Error::NoReply(_) => KeyringError::Refused { why: "it ended before it answered".to_owned() },
            other => KeyringError::Refused { why: other.to_string() },
        },
        zbus::Error::MethodError(name, ..) if name.as_str().ends_with(".IsLocked") => KeyringError::Locked,
        other => KeyringError::Refused { why: other.to_string() },
    }
}
