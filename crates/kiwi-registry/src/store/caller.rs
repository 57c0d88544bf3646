//! Whoever asks: their name, and what their token lets them do.

use crate::error::RegistryError;
use crate::protocol::Scope;

use super::database::Value;

/// Who asks.
#[derive(Debug, Clone, Default)]
pub(crate) struct Caller {
    /// Empty for somebody without a token; no user is called that.
    pub user: String,
    pub scopes: Vec<Scope>,
}

impl Caller {
    pub fn is_known(&self) -> bool {
        !self.user.is_empty()
    }

    pub fn is_admin(&self) -> bool {
        self.scopes.contains(&Scope::Admin)
    }

    /// Whether the token may do something: an admin's may do all, and who may publish may read.
    pub fn require(&self, needed: Scope) -> Result<(), RegistryError> {
        if !self.is_known() {
            return Err(RegistryError::NoToken);
        }
        if self.scopes.iter().any(|scope| *scope >= needed) {
            Ok(())
        } else {
            Err(RegistryError::NoScope { needed })
        }
    }

    /// `$1` and `$2` of every statement that looks at who may see what, and what follows them.
    pub fn values<const N: usize>(&self, others: [Value; N]) -> Vec<Value> {
        [Value::from(&self.user), Value::from(self.is_admin())].into_iter().chain(others).collect()
    }
}

/// Whether the caller (`$1`, or any admin by `$2`) owns the tool `t`.
macro_rules! owned {
    () => {
        "($2 = 1 OR t.owner = $1 OR EXISTS (SELECT 1 FROM namespace_owners o WHERE o.namespace = t.namespace AND o.user_name = $1))"
    };
}
/// Whether the caller may see the tool `t`.
macro_rules! visible {
    () => {
        concat!("(t.visibility <> 'private' OR ", $crate::store::caller::owned!(), ")")
    };
}
pub(crate) use {owned, visible};
