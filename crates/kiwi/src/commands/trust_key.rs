use kiwi_model::{ErrorKind, Explain as _, Fault};
use kiwi_space::{KeyPurpose, PublicKey};
use serde_json::json;

use crate::context::Context;
use crate::printer::{self, BOLD, DIM, mark, paint};

/// What can be done about keys whose signatures count.
#[derive(Debug, clap::Subcommand)]
pub enum Command {
    /// Trust a key: what it signed counts as signed.
    Add {
        /// The key: `ed25519:` and 64 digits, as `kiwi publish` shows it.
        key: String,
        /// Whose it is.
        #[arg(long, default_value = "")]
        name: String,
    },
    /// List the keys that are trusted, and your own.
    List {
        /// Print one JSON object.
        #[arg(long)]
        json: bool,
    },
    /// Trust a key no more.
    Remove {
        /// The key, or the name it was given.
        key: String,
    },
}

impl Command {
    /// Whether standard output must hold one JSON object.
    pub fn json(&self) -> bool {
        matches!(self, Self::List { json: true })
    }

    /// Does it.
    pub fn run(self, context: &Context) -> Result<(), Fault> {
        let spaces = context.kernel.spaces();
        let signers = spaces.signers().map_err(|error| error.fault())?;
        match self {
            Self::Add { key, name } => {
                let key = PublicKey::parse(key.trim()).ok_or_else(|| {
                    Fault::new(ErrorKind::Usage, format!("`{key}` is not a key"))
                        .with_hint("write it like `ed25519:` and 64 digits; `kiwi publish` shows its own")
                })?;
                let at = jiff::Timestamp::try_from(Context::now()).unwrap_or(jiff::Timestamp::UNIX_EPOCH);
                let signer = signers.add(&key, &name, at).map_err(|error| error.fault())?;
                printer::note(format!("{} what {} signs counts as signed", mark(true), signer.key));
            }
            Self::List { json } => {
                let all = signers.list().map_err(|error| error.fault())?;
                let own = spaces
                    .keys()
                    .and_then(|keys| keys.get(KeyPurpose::User))
                    .map_err(|error| error.fault())?;
                let own = own.map(|own| own.public().to_string());
                if json {
                    printer::json(&json!({"status": "success", "keys": all, "own": own}));
                    return Ok(());
                }
                let mut rows: Vec<Vec<String>> =
                    own.iter().map(|own| vec![own.clone(), paint(BOLD, "your own"), String::new()]).collect();
                rows.extend(all.into_iter().map(|signer| {
                    vec![signer.key, signer.name, paint(DIM, format!("since {:.0}", signer.at))]
                }));
                printer::table(&rows);
            }
            Self::Remove { key } => {
                let all = signers.list().map_err(|error| error.fault())?;
                let is_meant = |signer: &&kiwi_space::Signer| signer.key == key || signer.name == key;
                let meant: Vec<_> = all.iter().filter(is_meant).collect();
                if meant.is_empty() {
                    printer::note(format!("`{key}` was not trusted"));
                }
                for signer in meant {
                    signers.remove(&signer.key).map_err(|error| error.fault())?;
                    printer::note(format!("{} {} is not trusted any more", mark(true), signer.key));
                }
            }
        }
        Ok(())
    }
}
