//! Where a run keeps how far it is: one file a stack and source, replaced as a whole.

use crate::{args::Replay as Args, failure::Failure, time::Moment, time::utc};
use config::Source;
use serde::{Deserialize, Serialize};
use std::{
    fs::{self, File},
    io::{self, Write as _},
    path::{Path, PathBuf},
};
use workflow::replay::{Checkpoint, Notebook};

/// What was typed, as far as it decides what is read and what rows say.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct Asked {
    since: Option<Moment>,
    until: Option<Moment>,
    types: Vec<String>,
    by: Option<String>,
    reason: Option<String>,
}

impl From<&Args> for Asked {
    fn from(args: &Args) -> Self {
        Self {
            since: args.since,
            until: args.until,
            types: args.event_type.clone(),
            by: args.by.clone(),
            reason: args.reason.clone(),
        }
    }
}

/// The file's content.
#[derive(Serialize, Deserialize)]
struct Document {
    asked: Asked,
    /// The checkpoint's own document.
    checkpoint: String,
}

/// The file.
pub(super) struct Kept {
    path: PathBuf,
}

impl Kept {
    /// The named one, or the one of this stack and source in the folder for such files.
    pub(super) fn at(args: &Args, url: &str, source: &Source) -> Result<Self, Failure> {
        let path = match &args.checkpoint {
            Some(path) => path.clone(),
            None => folder()?.join(file_name(url, source.name.as_str())),
        };
        Ok(Self { path })
    }

    /// A run that was broken off, if this command is the one that began it.
    pub(super) fn unfinished(&self, asked: &Asked) -> Result<Option<Checkpoint>, Failure> {
        let Some(document) = self.read()? else { return Ok(None) };
        let checkpoint = Checkpoint::parse(&document.checkpoint).filter(|one| one.next.is_some());
        let Some(checkpoint) = checkpoint else { return Ok(None) };
        if document.asked == *asked {
            return Ok(Some(checkpoint));
        }
        let window = checkpoint.window;
        let found = format!(
            "a replay of `{}` from {} until {} was broken off, and this command is another",
            checkpoint.source,
            utc(window.since),
            utc(window.until)
        );
        Err(Failure::usage(found).with_next(format!(
            "give the same --since, --until, --type, --by and --reason to go on with it, or --fresh \
             to forget it ({})",
            self.path.display()
        )))
    }

    /// The run is done.
    pub(super) fn forget(&self) -> Result<(), Failure> {
        match fs::remove_file(&self.path) {
            Err(error) if error.kind() != io::ErrorKind::NotFound => {
                Err(Failure::usage(format!("{} cannot be removed: {error}", self.path.display())))
            }
            Ok(()) | Err(_) => Ok(()),
        }
    }

    pub(super) fn notebook<'k>(&'k self, asked: &'k Asked) -> impl Notebook + Sync + 'k {
        Pages { path: &self.path, asked }
    }

    fn read(&self) -> Result<Option<Document>, Failure> {
        let text = match fs::read_to_string(&self.path) {
            Ok(text) => text,
            Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(None),
            Err(error) => {
                let found = format!("{} cannot be read: {error}", self.path.display());
                return Err(Failure::usage(found));
            }
        };
        serde_json::from_str(&text).map(Some).map_err(|_| {
            Failure::usage(format!("{} is no checkpoint of a replay", self.path.display()))
                .with_next("add --fresh to begin anew in its place, or choose another --checkpoint")
        })
    }
}

struct Pages<'k> {
    path: &'k Path,
    asked: &'k Asked,
}

impl Notebook for Pages<'_> {
    /// Whoever dies at whatever moment leaves the old file or the new one.
    async fn save(&self, checkpoint: &Checkpoint) -> Result<(), String> {
        let document = Document { asked: self.asked.clone(), checkpoint: checkpoint.to_json() };
        let text = serde_json::to_string(&document).map_err(|error| error.to_string())?;
        let write = || -> io::Result<()> {
            if let Some(folder) = self.path.parent() {
                fs::create_dir_all(folder)?;
            }
            let new = self.path.with_extension("new");
            let mut file = File::create(&new)?;
            file.write_all(text.as_bytes())?;
            file.sync_all()?;
            fs::rename(&new, self.path)
        };
        write().map_err(|error| format!("{}: {error}", self.path.display()))
    }
}

fn folder() -> Result<PathBuf, Failure> {
    let set = |name| std::env::var_os(name).filter(|value| !value.is_empty()).map(PathBuf::from);
    let state = set("XDG_STATE_HOME").or_else(|| Some(set("HOME")?.join(".local/state")));
    state.map(|state| state.join("oncehook")).ok_or_else(|| {
        Failure::usage("there is no place for the checkpoint: HOME is not set")
            .with_next("name a file with --checkpoint")
    })
}

/// A stack is told from another by its address.
fn file_name(url: &str, source: &str) -> String {
    let plain = |c: char| if c.is_ascii_alphanumeric() || c == '.' { c } else { '-' };
    let host = url.split_once("://").map_or(url, |(_, rest)| rest);
    let host: String = host.chars().take(120).map(plain).collect();
    format!("replay-{source}-{host}.json")
}

#[cfg(test)]
#[expect(clippy::unwrap_used, reason = "a failed unwrap is a failed test")]
mod tests {
    use super::*;
    use crate::{args::Command, testing};
    use ledger::Millis;
    use workflow::replay::pager::Window;

    fn asked(line: &str) -> (Args, Asked) {
        let Command::Replay(args) = testing::command(line) else { panic!("{line}") };
        let asked = Asked::from(&args);
        (args, asked)
    }

    #[tokio::test]
    async fn the_same_command_goes_on_and_another_is_told_of_the_first() {
        let path = std::env::temp_dir().join(format!("oncehook-kept-{}.json", std::process::id()));
        let kept = Kept { path: path.clone() };
        let line = "oncehook replay --source stripe-live --since 2h --by anna --reason outage";
        let (_, first) = asked(line);
        assert_eq!(kept.unfinished(&first).unwrap(), None, "nothing was begun");
        let window = Window::new(Millis(1_796_040_000_000), Millis(1_796_043_600_000));
        let checkpoint = Checkpoint::new("stripe-live", "r".to_owned(), window, Vec::new());
        kept.notebook(&first).save(&checkpoint).await.unwrap();
        assert_eq!(kept.unfinished(&first).unwrap(), Some(checkpoint.clone()));
        let (_, other) = asked(&line.replace("2h", "3h"));
        let failure = kept.unfinished(&other).unwrap_err();
        assert!(failure.to_string().contains("2026-11-30 12:00:00Z until 2026-11-30 13:00:00Z"));
        assert!(failure.next().unwrap().contains("--fresh"));
        std::fs::write(&path, "{").unwrap();
        assert!(kept.unfinished(&first).unwrap_err().to_string().contains("no checkpoint"));
        kept.forget().unwrap();
        kept.forget().unwrap();
        assert!(!path.exists());
    }

    #[test]
    fn two_stacks_and_two_sources_have_files_of_their_own() {
        let name = file_name("https://abc.execute-api.eu-central-1.amazonaws.com", "stripe-live");
        assert_eq!(name, "replay-stripe-live-abc.execute-api.eu-central-1.amazonaws.com.json");
        assert!(!file_name("http://127.0.0.1:1/_aws/x/$default", "a").contains(['/', '$', ':']));
    }
}
