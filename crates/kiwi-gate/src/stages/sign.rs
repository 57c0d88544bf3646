//! What a tool of the system may have done with the user's key once it has ended well: a signature.

use kiwi_model::{ErrorKind, Explain as _, Fault, Space};
use serde_json::{Value, json};
use std::path::Path;

use super::dispatch::Dispatch;
use crate::stage::{Call, Reply};

impl Dispatch {
    /// Signs what the tool found sound, where its manifest says that this is what it is for. No process ever sees the key.
    /// What the tool replaced is no longer what was signed.
    pub(super) fn signed(&self, call: &Call<'_>, reply: Reply) -> Reply {
        if reply.failure.is_some() {
            return reply;
        }
        if is_for(call, "replaces") {
            return self.unsigned(call, reply);
        }
        if !is_for(call, "signs") {
            return reply;
        }
        match self.sign(call, &reply.result) {
            Ok(signature) => with(reply, &signature),
            Err(fault) => Reply { failure: Some(fault), ..reply },
        }
    }

    fn sign(&self, call: &Call<'_>, found: &Value) -> Result<Value, Fault> {
        let path = call.params.get("path").and_then(Value::as_str);
        let integrity = found.get("integrity").and_then(Value::as_str);
        let (Some(path), Some(integrity)) = (path, integrity) else {
            return Err(Fault::new(ErrorKind::Internal, "there is nothing to sign"));
        };
        let (file, signature) =
            self.spaces.sign(Space::Project, Path::new(path), integrity).map_err(|error| error.fault())?;
        let file = file.strip_prefix(&self.project).unwrap_or(&file);
        Ok(json!({"signed": true, "key": signature.key, "signature_file": file}))
    }

    fn unsigned(&self, call: &Call<'_>, reply: Reply) -> Reply {
        let path = call.params.get("path").and_then(Value::as_str).unwrap_or_default();
        match self.spaces.unsign(Path::new(path)) {
            Ok(()) => reply,
            Err(error) => Reply { failure: Some(error.fault()), ..reply },
        }
    }
}

/// Whether a tool of the system says that this is what it is for.
pub(super) fn is_for(call: &Call<'_>, what: &str) -> bool {
    let is_system = call.plan().tools().first().is_some_and(|leaf| leaf.space == Space::System);
    is_system
        && call.plan().merged().is_ok_and(|merged| merged.config().get(what) == Some(&Value::Bool(true)))
}

/// A reply that says more.
pub(super) fn with(reply: Reply, more: &Value) -> Reply {
    let mut result = reply.result;
    if let Value::Object(result) = &mut result {
        result.extend(more.as_object().cloned().unwrap_or_default());
    }
    Reply { result, ..reply }
}
