//! The process behind a connection, found where Linux keeps it: the peer's port in
//! `/proc/net/tcp`, its socket's inode, and the function process that has this socket open.
//!
//! Looked up only to kill: on a busy machine a look costs milliseconds.

use rustix::process::{Pid, Signal, kill_process};
use std::{fs, path::Path};

/// Whether processes can be found here.
pub(crate) fn can_be_found() -> bool {
    Path::new("/proc/net/tcp").exists()
}

/// The function process that holds the other end of a connection to `proxy_port`.
pub(crate) fn of_peer(peer_port: u16, proxy_port: u16) -> Option<u32> {
    let inode = inode(&fs::read_to_string("/proc/net/tcp").ok()?, peer_port, proxy_port)?;
    let socket = format!("socket:[{inode}]");
    let pids = fs::read_dir("/proc").ok()?;
    let mut pids = pids.filter_map(|entry| entry.ok()?.file_name().to_str()?.parse::<u32>().ok());
    pids.find(|pid| is_function(*pid) && has_open(*pid, &socket))
}

/// `sl local_address rem_address st tx:rx tr:when retrnsmt uid timeout inode`, addresses in
/// hexadecimal.
fn inode(table: &str, local: u16, remote: u16) -> Option<u64> {
    let found = table.find(&format!(" 0100007F:{local:04X} 0100007F:{remote:04X} "))?;
    let rest = table.get(found..)?.lines().next()?;
    rest.split_whitespace().nth(8)?.parse().ok()
}

/// The emulator runs a function as `bootstrap`, as Lambda does.
fn is_function(pid: u32) -> bool {
    let name = fs::read_to_string(format!("/proc/{pid}/comm")).unwrap_or_default();
    name.trim() == "bootstrap"
}

fn has_open(pid: u32, socket: &str) -> bool {
    let Ok(files) = fs::read_dir(format!("/proc/{pid}/fd")) else { return false };
    let is_it = |link: std::path::PathBuf| link.as_os_str() == socket;
    files.flatten().any(|file| fs::read_link(file.path()).is_ok_and(is_it))
}

/// Ends a process between two of its instructions.
pub(crate) fn kill(pid: u32) {
    signal(pid, Signal::KILL);
}

/// Stops a process where it stands, as a frozen sandbox does.
pub(crate) fn freeze(pid: u32) {
    signal(pid, Signal::STOP);
}

/// Lets a stopped process go on; it does not know that it stood still.
pub(crate) fn thaw(pid: u32) {
    signal(pid, Signal::CONT);
}

fn signal(pid: u32, signal: Signal) {
    if let Some(pid) = i32::try_from(pid).ok().and_then(Pid::from_raw) {
        // A process that is gone already needs no signal.
        _ = kill_process(pid, signal);
    }
}
