//! Kiwi as a server of other clients: its entry put into their settings, and taken out again.
//!
//! Before a file is changed it is copied beside itself, and what it was is noted in the user space. Undoing gives back
//! exactly that file; where somebody has changed it since, only Kiwi's entry goes.

mod record;
#[cfg(test)]
mod tests;

use kiwi_model::Digest;
use kiwi_space::{Spaces, replace_file};
use serde_json::Value;
use std::path::{Path, PathBuf};

use crate::client::{Client, Places, Scope};
use crate::edit::{self, Problem, unified};
use crate::error::McpError;
use record::{Record, Records};

/// The name of Kiwi's entry.
const NAME: &str = "kiwi";
/// What a copy's name ends with.
const BACKUP: &str = ".kiwi-backup";
/// More is nobody's settings.
const MOST_BYTES: usize = 64 << 20;

/// One file of a client, and what is to become of it.
#[derive(Debug)]
pub struct Installation {
    client: Client,
    scope: Scope,
    file: PathBuf,
    /// `None`: there is no file.
    before: Option<String>,
    /// `None`: there will be no file.
    after: Option<String>,
    records: Records,
    is_undo: bool,
}

/// What starts Kiwi.
#[derive(Debug, Clone, Copy)]
pub struct Program<'a> {
    /// The program.
    pub path: &'a Path,
    /// The project it is to serve; the one it is started in otherwise.
    pub project: Option<&'a Path>,
}

/// What was done.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Done {
    /// Where the file as it was is kept; none where there was none.
    pub backup: Option<PathBuf>,
}

/// What is left of a file as it was before Kiwi.
enum Kept {
    /// There was none.
    NoFile,
    /// This.
    Text(String),
    /// Nobody knows any more.
    Lost,
}

impl Installation {
    /// Works out what a client's file will be with Kiwi in it. Nothing is written.
    pub fn of(
        client: Client,
        scope: Scope,
        places: &Places,
        program: Program<'_>,
        spaces: &Spaces,
    ) -> Result<Self, McpError> {
        let mut plan = Self::open(client, scope, places, spaces)?;
        let text = plan.before.clone().unwrap_or_default();
        let value = client.format().read(&text).map_err(|problem| plan.bad(&problem))?;
        let not_text = |path: &Path| McpError::BadEntry {
            problem: format!("the path `{}` is not UTF-8 text", path.display()),
            hint: "move it to a folder whose name is".to_owned(),
        };
        let path = program.path.to_str().ok_or_else(|| not_text(program.path))?;
        let mut args = vec!["mcp".to_owned()];
        if let Some(project) = program.project {
            let project = project.to_str().ok_or_else(|| not_text(project))?;
            args.extend(["--project".to_owned(), project.to_owned()]);
        }
        let entry = client.entry(path, &args, &value);
        let after = client.format().insert(&text, client.path(&value), NAME, &entry);
        plan.after = Some(after.map_err(|problem| plan.bad(&problem))?);
        Ok(plan)
    }

    /// Works out what a client's file will be without Kiwi. Nothing is written.
    pub fn undo(client: Client, scope: Scope, places: &Places, spaces: &Spaces) -> Result<Self, McpError> {
        let mut plan = Self::open(client, scope, places, spaces)?;
        plan.is_undo = true;
        let record = plan.records.read(&plan.file)?;
        let Some(before) = plan.before.clone() else { return Ok(plan) };
        plan.after = match &record {
            Some(record) if record.after == Digest::of(before.as_bytes()) => match plan.kept(record)? {
                Kept::NoFile => None,
                Kept::Text(text) => Some(text),
                Kept::Lost => Some(plan.without_entry(&before, Some(record))?),
            },
            record => Some(plan.without_entry(&before, record.as_ref())?),
        };
        Ok(plan)
    }

    /// The file.
    pub fn file(&self) -> &Path {
        &self.file
    }

    /// Whether nothing is to be changed.
    pub fn is_done(&self) -> bool {
        self.before == self.after
    }

    /// Whether the file will not be there any more.
    pub fn removes_file(&self) -> bool {
        self.before.is_some() && self.after.is_none()
    }

    /// The difference, for people.
    pub fn diff(&self) -> String {
        let text = |text: &Option<String>| text.clone().unwrap_or_default();
        unified(&self.file.display().to_string(), &text(&self.before), &text(&self.after))
    }

    /// Does it. A file that has changed since it was looked at is left alone.
    pub fn write(&self) -> Result<Done, McpError> {
        if self.is_undo { self.write_undo() } else { self.write_entry() }
    }

    fn write_entry(&self) -> Result<Done, McpError> {
        let backup = self.backup();
        if self.is_done() {
            return Ok(Done { backup: backup.exists().then_some(backup) });
        }
        let after = self.after.as_deref().unwrap_or_default();
        let known = self.records.read(&self.file)?;
        let kept = match &known {
            Some(record)
                if self.before.as_ref().is_some_and(|text| record.after == Digest::of(text.as_bytes())) =>
            {
                self.kept(record)?
            }
            _ => Kept::Lost,
        };
        let (baseline, replaced) = match (&known, kept) {
            // Ours, as we left it: what was there before us stays what is given back.
            (Some(record), Kept::NoFile) => (None, record.replaced.clone()),
            (Some(record), Kept::Text(text)) => (Some(text), record.replaced.clone()),
            // Ours, changed since: what is given back is that, without us.
            (Some(record), Kept::Lost) => match &self.before {
                Some(before) => (Some(self.without_entry(before, Some(record))?), record.replaced.clone()),
                None => (None, None),
            },
            (None, _) => (self.before.clone(), self.entry_now()?),
        };
        if known.is_none() && backup.symlink_metadata().is_ok() {
            return Err(McpError::BadEntry {
                problem: format!("there is a copy `{}` that nobody knows about", backup.display()),
                hint: "move it away, or remove it if it is of no use".to_owned(),
            });
        }
        let record = Record {
            client: self.client.as_str().to_owned(),
            file: self.file.clone(),
            before: baseline.as_ref().map(|text| Digest::of(text.as_bytes())),
            after: Digest::of(after.as_bytes()),
            replaced,
            folders: match known {
                Some(known) => known.folders,
                None => missing_folders(&self.file),
            },
        };
        self.still_as_seen()?;
        let mode = self.mode();
        if let Some(baseline) = &baseline {
            replace_file(&backup, baseline.as_bytes(), mode)?;
        }
        self.records.write(&record)?;
        replace_file(&self.file, after.as_bytes(), mode)?;
        Ok(Done { backup: baseline.map(|_| backup) })
    }

    fn write_undo(&self) -> Result<Done, McpError> {
        let record = self.records.read(&self.file)?;
        self.still_as_seen()?;
        match &self.after {
            Some(after) if !self.is_done() => replace_file(&self.file, after.as_bytes(), self.mode())?,
            None if self.before.is_some() => remove(&self.file)?,
            _ => {}
        }
        if let Some(record) = record {
            remove(&self.backup())?;
            // Folders that were made for the file go with it, unless something else is in them by now.
            for folder in record.folders.iter().filter(|_| self.after.is_none()) {
                let _ = std::fs::remove_dir(folder);
            }
            self.records.remove(&self.file)?;
        }
        Ok(Done { backup: None })
    }

    fn open(client: Client, scope: Scope, places: &Places, spaces: &Spaces) -> Result<Self, McpError> {
        let file = client.file(scope, places).ok_or_else(|| McpError::BadEntry {
            problem: match scope {
                Scope::Project if places.project.is_none() => "there is no project here".to_owned(),
                Scope::Project => format!("{client} has no settings of a project"),
                Scope::User => "nobody knows where your own folder is".to_owned(),
            },
            hint: match scope {
                Scope::Project if places.project.is_none() => {
                    "`kiwi init` makes one, or use --scope user".to_owned()
                }
                Scope::Project => "use --scope user".to_owned(),
                Scope::User => "set HOME".to_owned(),
            },
        })?;
        let before = read(&file)?;
        let records = Records::new(spaces)?;
        Ok(Self { client, scope, file, before, after: None, records, is_undo: false })
    }

    /// What was there before Kiwi, if it is still known.
    fn kept(&self, record: &Record) -> Result<Kept, McpError> {
        let Some(digest) = record.before else { return Ok(Kept::NoFile) };
        let kept = read(&self.backup())?.filter(|text| Digest::of(text.as_bytes()) == digest);
        Ok(kept.map_or(Kept::Lost, Kept::Text))
    }

    /// A text without Kiwi's entry, or with the one that stood there before.
    fn without_entry(&self, text: &str, record: Option<&Record>) -> Result<String, McpError> {
        let format = self.client.format();
        let value = format.read(text).map_err(|problem| self.bad(&problem))?;
        let path = self.client.path(&value);
        let is_there = edit::at(&value, path).is_some_and(|map| map.contains_key(NAME));
        let edited = match record.and_then(|record| record.replaced.as_ref()) {
            Some(replaced) if is_there => format.insert(text, path, NAME, replaced),
            _ => format.remove(text, path, NAME),
        };
        edited.map_err(|problem| self.bad(&problem))
    }

    /// The entry that stands there now.
    fn entry_now(&self) -> Result<Option<Value>, McpError> {
        let text = self.before.as_deref().unwrap_or_default();
        let value = self.client.format().read(text).map_err(|problem| self.bad(&problem))?;
        Ok(edit::at(&value, self.client.path(&value)).and_then(|map| map.get(NAME)).cloned())
    }

    fn still_as_seen(&self) -> Result<(), McpError> {
        if read(&self.file)? == self.before {
            return Ok(());
        }
        Err(McpError::BadEntry {
            problem: format!("`{}` has changed since it was looked at", self.file.display()),
            hint: "run the command again".to_owned(),
        })
    }

    fn backup(&self) -> PathBuf {
        let mut name = self.file.clone().into_os_string();
        name.push(BACKUP);
        name.into()
    }

    /// Permissions of a file that is made: settings of a user may hold secrets.
    fn mode(&self) -> u32 {
        use std::os::unix::fs::PermissionsExt as _;
        let there = std::fs::metadata(&self.file).ok().map(|metadata| metadata.permissions().mode() & 0o777);
        there.unwrap_or(match self.scope {
            Scope::User => 0o600,
            Scope::Project => 0o644,
        })
    }

    fn bad(&self, problem: &Problem) -> McpError {
        McpError::BadRegistry { file: self.file.clone(), problem: problem.to_string() }
    }
}

/// The text of a file; nothing where there is none.
fn read(path: &Path) -> Result<Option<String>, McpError> {
    let bad = |problem: String| McpError::BadRegistry { file: path.to_owned(), problem };
    let bytes = match std::fs::read(path) {
        Ok(bytes) => bytes,
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => {
            return if path.is_symlink() {
                Err(bad("it is a link that leads nowhere".to_owned()))
            } else {
                Ok(None)
            };
        }
        Err(error) => return Err(bad(format!("it cannot be read: {error}"))),
    };
    if bytes.len() > MOST_BYTES {
        return Err(bad(format!("it has more than {MOST_BYTES} bytes")));
    }
    String::from_utf8(bytes).map(Some).map_err(|_| bad("it is not UTF-8 text".to_owned()))
}

fn remove(path: &Path) -> Result<(), McpError> {
    match std::fs::remove_file(path) {
        Err(error) if error.kind() != std::io::ErrorKind::NotFound => {
            Err(McpError::Store { problem: format!("`{}` cannot be removed: {error}", path.display()) })
        }
        _ => Ok(()),
    }
}

/// The folders that have to be made for a file, innermost first.
fn missing_folders(file: &Path) -> Vec<PathBuf> {
    let folders = file.ancestors().skip(1).take_while(|folder| !folder.exists());
    folders.map(Path::to_owned).collect()
}
