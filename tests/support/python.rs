//! Python, for what only Python has: the providers' own packages, and an operator's boto3.

use crate::root;
use std::{
    io::Write,
    path::{Path, PathBuf},
    process::{Command, Stdio},
};

/// The interpreter with the pinned packages: what `make` says it is, else that of `.venv`.
#[must_use]
pub fn python() -> PathBuf {
    let named = std::env::var_os("ONCEHOOK_PYTHON").map(PathBuf::from);
    named.unwrap_or_else(|| root().join(".venv/bin/python"))
}

/// Runs a script with `input` on its standard input; what it printed.
pub fn run_python(
    script: &Path,
    input: &str,
    variables: &[(&str, &str)],
) -> Result<String, String> {
    let failed = |error: std::io::Error| {
        format!("{} does not run ({error}); `make` sets it up", python().display())
    };
    let mut child = Command::new(python())
        .arg(script)
        .env("PYTHONDONTWRITEBYTECODE", "1")
        .envs(variables.iter().copied())
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .map_err(failed)?;
    if let Some(mut stdin) = child.stdin.take() {
        stdin.write_all(input.as_bytes()).map_err(failed)?;
    }
    let output = child.wait_with_output().map_err(failed)?;
    if output.status.success() {
        Ok(String::from_utf8_lossy(&output.stdout).into_owned())
    } else {
        Err(format!("{}: {}", script.display(), String::from_utf8_lossy(&output.stderr)))
    }
}
