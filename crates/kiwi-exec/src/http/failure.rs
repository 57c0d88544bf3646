//! Why one try did not succeed, and whether another may.

use rustls::CertificateError as Problem;
use std::error::Error;
use std::io;

use super::asked::Asked;
use super::guard::Refused;
use super::retry::Wish;
use crate::error::ExecError;

/// A failed try.
pub(super) struct Failure {
    pub error: ExecError,
    /// What it says about trying again.
    pub wish: Wish,
}

impl From<ExecError> for Failure {
    fn from(error: ExecError) -> Self {
        Self { error, wish: Wish::Never }
    }
}

/// The failure behind an error of the library.
pub(super) fn unreachable_because(asked: &Asked, error: &reqwest::Error) -> Failure {
    if let Some(refused) = find::<Refused>(error) {
        return refused.error().into();
    }
    let url = asked.shown();
    if let Some(rustls::Error::InvalidCertificate(why)) = find::<rustls::Error>(error) {
        return ExecError::Untrusted { url, why: in_words(why) }.into();
    }
    let wish = if error.is_connect() { Wish::Soon } else { Wish::Never };
    Failure { error: ExecError::Unreachable { url, why: innermost(error) }, wish }
}

fn in_words(problem: &Problem) -> String {
    match problem {
        Problem::UnknownIssuer => "nobody whom this machine trusts has issued it".into(),
        Problem::Expired | Problem::ExpiredContext { .. } => "it has expired".into(),
        Problem::NotValidYet | Problem::NotValidYetContext { .. } => "it is not valid yet".into(),
        Problem::NotValidForName | Problem::NotValidForNameContext { .. } => "it is for another name".into(),
        Problem::BadSignature => "its signature is wrong".into(),
        Problem::Revoked => "it was revoked".into(),
        other => other.to_string(),
    }
}

/// What was really wrong; the errors around it only say that something was.
pub(super) fn innermost(error: &dyn Error) -> String {
    let mut deepest = error;
    while let Some(source) = deepest.source() {
        deepest = source;
    }
    deepest.to_string()
}

/// An error of one kind among those that caused another.
fn find<'a, E: Error + 'static>(error: &'a (dyn Error + 'static)) -> Option<&'a E> {
    let mut next = Some(error);
    while let Some(error) = next {
        if let Some(found) = error.downcast_ref() {
            return Some(found);
        }
        // What an I/O error wraps is not among its sources; what that wraps is.
        let wrapped = error.downcast_ref::<io::Error>().and_then(io::Error::get_ref);
        if let Some(found) = wrapped.and_then(|wrapped| find(wrapped)) {
            return Some(found);
        }
        next = error.source();
    }
    None
}
