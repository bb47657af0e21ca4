//! A stack of one's own: the real `template.yaml`, deployed to a local AWS on a free port, and
//! taken down when the value is dropped.

use crate::{EnvFile, python, root};
use std::{
    fs,
    path::{Path, PathBuf},
    process::Command,
};
use tempfile::TempDir;

/// How the stack differs from the one `make up` starts.
#[derive(Debug, Clone, Default)]
pub struct StackOptions {
    /// JSON for the template's parameter `PolicyOverrides`.
    pub policy_overrides: String,
    /// Variables for every function.
    pub function_env: Vec<(String, String)>,
    /// Parameters of the template.
    pub parameters: Vec<(String, String)>,
    /// The port; a free one where there is none.
    pub port: Option<u16>,
    /// The template's parameter `Release`; the build's own id where it is empty.
    pub release: String,
    /// Whether the functions' IAM roles are not enforced: behind a proxy that rewrites `Host` they cannot be.
    pub without_auth: bool,
}

/// A deployed stack.
pub struct LocalStack {
    dir: TempDir,
    env: EnvFile,
    emulator_pid: u32,
}

impl LocalStack {
    /// Starts the emulator and deploys.
    pub fn up(options: &StackOptions) -> Result<Self, String> {
        let dir = tempfile::Builder::new()
            .prefix("oncehook-")
            .tempdir()
            .map_err(|error| error.to_string())?;
        let env = deploy(dir.path(), options)?;
        let emulator_pid = emulator_pid(dir.path())?;
        Ok(Self { dir, env, emulator_pid })
    }

    /// Deploys again, with other options.
    pub fn deploy_again(&mut self, options: &StackOptions) -> Result<(), String> {
        self.env = deploy(self.dir.path(), options)?;
        Ok(())
    }

    /// The variables that lead to it.
    #[must_use]
    pub const fn env(&self) -> &EnvFile {
        &self.env
    }

    /// The folder of the binaries it runs, where the command line is as well.
    pub fn binaries(&self) -> Result<PathBuf, String> {
        binaries()
    }

    /// Where its files lie.
    #[must_use]
    pub fn dir(&self) -> &Path {
        self.dir.path()
    }

    /// Takes down the stack whose files lie in `dir`: for whoever is interrupted.
    pub fn take_down(dir: &Path) -> Result<(), String> {
        run(local_py("down", dir))
    }

    /// Takes the stack down and checks that nothing of it is left running.
    pub fn down(self) -> Result<(), String> {
        self.stop()
    }

    fn stop(&self) -> Result<(), String> {
        if !self.dir.path().join("state.json").exists() {
            return Ok(());
        }
        Self::take_down(self.dir.path())?;
        match members(self.emulator_pid).as_slice() {
            [] => Ok(()),
            left => Err(format!("processes {left:?} of the stack are still running")),
        }
    }
}

impl Drop for LocalStack {
    /// A case that panicked must not leave an emulator behind either.
    fn drop(&mut self) {
        if let Err(error) = self.stop() {
            eprintln!("the stack did not stop: {error}");
        }
    }
}

fn local_py(verb: &str, dir: &Path) -> Command {
    let mut command = Command::new(python());
    command.arg(root().join("infra/local.py")).arg(verb).arg("--dir").arg(dir);
    command
}

/// Deploys to the emulator whose files lie in `dir`, which is started where there is none; the variables
/// that lead to the stack.
fn deploy(dir: &Path, options: &StackOptions) -> Result<EnvFile, String> {
    let mut command = local_py("up", dir);
    command.args(["--port", &options.port.unwrap_or(0).to_string()]);
    command.arg("--binaries").arg(binaries()?);
    if !options.release.is_empty() {
        command.args(["--release", &options.release]);
    }
    if !options.policy_overrides.is_empty() {
        command.args(["--overrides", &options.policy_overrides]);
    }
    for (name, value) in &options.function_env {
        command.arg("--function-env").arg(format!("{name}={value}"));
    }
    for (name, value) in &options.parameters {
        command.arg("--parameter").arg(format!("{name}={value}"));
    }
    if options.without_auth {
        command.arg("--no-auth");
    }
    run(command)?;
    EnvFile::read(&dir.join("env"))
}

fn run(mut command: Command) -> Result<(), String> {
    let output = command.output().map_err(|error| {
        format!("{} does not run ({error}); `make` sets it up", python().display())
    })?;
    if output.status.success() {
        return Ok(());
    }
    let said = [output.stdout, output.stderr].concat();
    Err(format!("infra/local.py failed:\n{}", String::from_utf8_lossy(&said)))
}

/// Where a built program is.
pub fn binary(name: &str) -> Result<PathBuf, String> {
    Ok(binaries()?.join(name))
}

/// The folder of the functions' binaries: what `make` says it is, else the one above this test's
/// own, which is `target/<profile>/deps`.
pub fn binaries() -> Result<PathBuf, String> {
    if let Some(named) = std::env::var_os("ONCEHOOK_BINARIES") {
        return Ok(named.into());
    }
    let own = std::env::current_exe().map_err(|error| error.to_string())?;
    let mut folders = own.ancestors().skip(1);
    let folder = folders.find(|folder| folder.join("receiver").exists());
    folder.map(Path::to_path_buf).ok_or_else(|| {
        "the functions are not built: cargo build -p receiver -p consumer -p steward".to_owned()
    })
}

fn emulator_pid(dir: &Path) -> Result<u32, String> {
    let bad = |error: &dyn std::fmt::Display| format!("state.json: {error}");
    let text = fs::read_to_string(dir.join("state.json")).map_err(|error| bad(&error))?;
    let state: serde_json::Value = serde_json::from_str(&text).map_err(|error| bad(&error))?;
    let pid = state.get("pid").and_then(serde_json::Value::as_u64);
    pid.and_then(|pid| u32::try_from(pid).ok()).ok_or_else(|| bad(&"no pid"))
}

/// Live processes of a process group, where `/proc` tells.
fn members(group: u32) -> Vec<u32> {
    let Ok(entries) = fs::read_dir("/proc") else { return Vec::new() };
    let in_group = |pid: &u32| {
        let stat = fs::read_to_string(format!("/proc/{pid}/stat")).unwrap_or_default();
        // The command's name, in brackets, may hold spaces; what follows it does not.
        let mut fields = stat.rsplit(") ").next().unwrap_or_default().split(' ');
        let (state, group_of) = (fields.next(), fields.nth(1));
        !matches!(state, None | Some("" | "Z" | "X"))
            && group_of == Some(group.to_string().as_str())
    };
    entries
        .filter_map(|entry| entry.ok()?.file_name().to_str()?.parse().ok())
        .filter(in_group)
        .collect()
}
