//! An emulated DynamoDB: a process on a free port, ended with the value.

use std::{
    fs::File,
    net::TcpListener,
    process::{Child, Command, Stdio},
    time::{Duration, Instant},
};
use support::{python, root};
use tempfile::TempDir;

const START: Duration = Duration::from_secs(30);

/// Which program.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Program {
    Ministack,
    Moto,
}

/// A running emulator with the two tables.
pub(crate) struct Emulator {
    child: Child,
    port: u16,
    /// Its home: it leaves nothing behind.
    _dir: TempDir,
}

impl Emulator {
    pub(crate) fn start(program: Program) -> Result<Self, String> {
        let dir = tempfile::tempdir().map_err(|error| error.to_string())?;
        let port = free_port().map_err(|error| error.to_string())?;
        let log = File::create(dir.path().join("log")).map_err(|error| error.to_string())?;
        let errors = log.try_clone().map_err(|error| error.to_string())?;
        let mut command = Command::new(python());
        match program {
            Program::Ministack => command.args(["-m", "ministack"]),
            Program::Moto => {
                command.args(["-m", "moto.server", "-H", "127.0.0.1", "-p", &port.to_string()])
            }
        };
        // Built from nothing: no profile and no proxy of a developer's shell reaches it.
        command.env_clear().envs([
            ("PATH", "/usr/bin:/bin"),
            ("LANG", "C.UTF-8"),
            ("PYTHONDONTWRITEBYTECODE", "1"),
            ("BIND_HOST", "127.0.0.1"),
            ("LOG_LEVEL", "WARNING"),
            ("AWS_ACCESS_KEY_ID", "test"),
            ("AWS_SECRET_ACCESS_KEY", "test"),
            ("AWS_DEFAULT_REGION", "us-east-1"),
        ]);
        command
            .env("HOME", dir.path())
            .env("TMPDIR", dir.path())
            .env("GATEWAY_PORT", port.to_string());
        command.current_dir(dir.path()).stdin(Stdio::null()).stdout(log).stderr(errors);
        let child = command.spawn().map_err(|error| {
            format!("{} does not run ({error}); `make` sets it up", python().display())
        })?;
        let emulator = Self { child, port, _dir: dir };
        emulator.wait()?;
        emulator.make_tables()?;
        Ok(emulator)
    }

    pub(crate) fn url(&self) -> String {
        format!("http://127.0.0.1:{}", self.port)
    }

    fn wait(&self) -> Result<(), String> {
        let begun = Instant::now();
        while begun.elapsed() < START {
            if std::net::TcpStream::connect(("127.0.0.1", self.port)).is_ok() {
                return Ok(());
            }
            std::thread::sleep(Duration::from_millis(50));
        }
        Err(format!("the emulator does not listen on port {}", self.port))
    }

    fn make_tables(&self) -> Result<(), String> {
        let made = Command::new(python())
            .arg(root().join("tests/contract/tables.py"))
            .arg(root().join("template.yaml"))
            .arg(self.url())
            .output()
            .map_err(|error| error.to_string())?;
        if made.status.success() {
            Ok(())
        } else {
            Err(String::from_utf8_lossy(&made.stderr).into_owned())
        }
    }
}

impl Drop for Emulator {
    fn drop(&mut self) {
        _ = self.child.kill();
        _ = self.child.wait();
    }
}

fn free_port() -> std::io::Result<u16> {
    Ok(TcpListener::bind("127.0.0.1:0")?.local_addr()?.port())
}
