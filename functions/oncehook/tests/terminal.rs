//! The binary as a person at a terminal meets it: the bar, what is left of it, and Ctrl-C. The terminal
//! is a real one, and what it shows is read by a terminal in memory.

#![cfg(unix)]
#![expect(clippy::unwrap_used, reason = "a failed unwrap is a failed test")]

use rustix::{
    process::{Pid, Signal, kill_process},
    pty::{OpenptFlags, grantpt, openpt, ptsname, unlockpt},
    termios::{Winsize, tcsetwinsize},
};
use std::{
    ffi::OsStr,
    fs::File,
    io::{BufRead as _, BufReader, Read as _, Write as _},
    net::{TcpListener, TcpStream},
    os::unix::ffi::OsStrExt as _,
    path::Path,
    process::{Child, Command, ExitStatus, Stdio},
    sync::{
        Arc, Condvar, Mutex,
        atomic::{AtomicBool, Ordering},
        mpsc,
    },
    thread,
    time::Duration,
};

const ROOT: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/../..");
const DELIVERIES: usize = 40;
/// The delivery that is not answered before the test says so.
const HELD: usize = 21;
const LIMIT: Duration = Duration::from_mins(1);

/// What was written to a terminal of 24 lines and 80 columns.
#[derive(Default)]
struct Written {
    bytes: Mutex<Vec<u8>>,
    more: Condvar,
    is_closed: AtomicBool,
}

impl Written {
    /// What it shows now.
    fn screen(&self) -> String {
        shown(&self.bytes.lock().unwrap())
    }

    /// Everything, once nobody writes to it any more.
    fn whole(&self) -> String {
        let bytes = self.bytes.lock().unwrap();
        let is_open = |_: &mut Vec<u8>| !self.is_closed.load(Ordering::SeqCst);
        let (bytes, waited) = self.more.wait_timeout_while(bytes, LIMIT, is_open).unwrap();
        assert!(!waited.timed_out(), "somebody holds the terminal");
        String::from_utf8(bytes.clone()).unwrap()
    }

    /// Waits until it shows this.
    fn until(&self, text: &str) {
        let bytes = self.bytes.lock().unwrap();
        let missing = |bytes: &mut Vec<u8>| !shown(bytes).contains(text);
        let (bytes, waited) = self.more.wait_timeout_while(bytes, LIMIT, missing).unwrap();
        assert!(!waited.timed_out(), "no {text:?} on {:?}", shown(&bytes));
    }
}

fn shown(bytes: &[u8]) -> String {
    let mut terminal = vt100::Parser::new(24, 80, 0);
    terminal.process(bytes);
    terminal.screen().contents().trim_end().to_owned()
}

/// A terminal: the end that a program has, what came out at the other, and its keyboard.
fn terminal() -> (File, Arc<Written>, File) {
    let ours = openpt(OpenptFlags::RDWR | OpenptFlags::NOCTTY).unwrap();
    grantpt(&ours).unwrap();
    unlockpt(&ours).unwrap();
    let size = Winsize { ws_row: 24, ws_col: 80, ws_xpixel: 0, ws_ypixel: 0 };
    tcsetwinsize(&ours, size).unwrap();
    let name = ptsname(&ours, Vec::new()).unwrap();
    let path = Path::new(OsStr::from_bytes(name.as_bytes()));
    let theirs = File::options().read(true).write(true).open(path).unwrap();
    let written = Arc::new(Written::default());
    let (mut ours, kept) = (File::from(ours), Arc::clone(&written));
    let keyboard = ours.try_clone().unwrap();
    // Ends once nobody holds the other end.
    thread::spawn(move || {
        let mut buffer = [0; 4_096];
        while let Ok(read @ 1..) = ours.read(&mut buffer) {
            kept.bytes.lock().unwrap().extend_from_slice(&buffer[..read]);
            kept.more.notify_all();
        }
        let _bytes = kept.bytes.lock().unwrap();
        kept.is_closed.store(true, Ordering::SeqCst);
        kept.more.notify_all();
    });
    (theirs, written, keyboard)
}

/// A stack that takes every delivery, and keeps one of them waiting until it is told to go on.
fn stack() -> (String, mpsc::Sender<()>) {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let url = format!("http://{}", listener.local_addr().unwrap());
    let (go_on, told) = mpsc::channel();
    thread::spawn(move || {
        for n in 1.. {
            let Ok((stream, _)) = listener.accept() else { return };
            if n == HELD && told.recv().is_err() {
                return;
            }
            answer(stream);
        }
    });
    (url, go_on)
}

fn answer(mut stream: TcpStream) {
    let mut reader = BufReader::new(stream.try_clone().unwrap());
    let (mut line, mut length) = (String::new(), 0);
    while reader.read_line(&mut line).unwrap() > 2 {
        let header = line.to_ascii_lowercase();
        if let Some(value) = header.strip_prefix("content-length:") {
            length = value.trim().parse().unwrap();
        }
        line.clear();
    }
    reader.take(length).read_to_end(&mut Vec::new()).unwrap();
    let answer = b"HTTP/1.1 200 OK\r\ncontent-length: 0\r\nconnection: close\r\n\r\n";
    stream.write_all(answer).unwrap();
}

/// `oncehook` in an empty environment, its standard output kept.
fn oncehook(words: &[&str], terminal: impl Into<Stdio>) -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_oncehook"));
    command.current_dir(ROOT).env_clear().args(words);
    command.stdin(Stdio::null()).stdout(Stdio::piped()).stderr(terminal);
    command
}

/// Many deliveries of a sample, on this kind of terminal.
fn send(url: &str, options: &[&str], kind: &str, terminal: impl Into<Stdio>) -> Child {
    let times = DELIVERIES.to_string();
    let words = ["send", "events/github_push.json", "--secrets", "infra/local-secrets.json"];
    let words = [&words[..], &["--id", "load-{n}", "--times", &times], options].concat();
    // The command holds an end of the terminal as long as it lives.
    oncehook(&words, terminal).env("TERM", kind).env("ONCEHOOK_URL", url).spawn().unwrap()
}

fn interrupt(child: &Child) {
    let pid = Pid::from_raw(child.id().try_into().unwrap()).unwrap();
    kill_process(pid, Signal::INT).unwrap();
}

/// The child's end and what it printed.
fn end(child: Child) -> (ExitStatus, String) {
    let output = child.wait_with_output().unwrap();
    (output.status, String::from_utf8(output.stdout).unwrap())
}

#[test]
fn a_bar_is_on_the_terminal_while_the_work_lasts_and_gone_before_the_report() {
    let (theirs, written, _) = terminal();
    let (url, go_on) = stack();
    let child = send(&url, &[], "xterm", theirs);
    written.until("]  50 %  20 of 40 delivered");
    let screen = written.screen();
    assert!(screen.starts_with("[████████░░░░░░░░]  50 %"), "{screen}");
    assert_eq!(screen.lines().count(), 1, "{screen}");
    go_on.send(()).unwrap();
    let (status, report) = end(child);
    assert_eq!(status.code(), Some(0));
    assert!(report.contains("40 deliveries to"), "{report}");
    let bytes = written.whole();
    assert_eq!(shown(bytes.as_bytes()), "", "nothing of the bar is left");
    let styles = bytes.split("\x1b[").skip(1).filter(|rest| {
        let end = rest.find(|c: char| c.is_ascii_alphabetic());
        end.is_some_and(|at| rest[at..].starts_with('m'))
    });
    assert_eq!(styles.count(), 0, "a bar has no colours");
}

#[test]
fn ctrl_c_clears_the_bar_says_how_far_it_is_and_ends_with_130() {
    let (theirs, written, mut keyboard) = terminal();
    let (url, _go_on) = stack();
    let child = send(&url, &[], "xterm", theirs);
    written.until("]  50 %  20 of 40 delivered");
    // The terminal shows what is typed; the signal it sends to its session, of which this child is none.
    keyboard.write_all(b"\x03").unwrap();
    written.until("^C");
    interrupt(&child);
    let (status, report) = end(child);
    assert_eq!(status.code(), Some(130), "it ends by itself, not by the signal");
    assert!(report.contains("20 deliveries to"), "{report}");
    let said = "interrupted behind 20 of 40 deliveries; up to 1 more may have arrived";
    assert_eq!(shown(written.whole().as_bytes()), said, "and nothing of the bar is left");
}

#[test]
fn nothing_is_drawn_for_a_program_a_file_or_a_terminal_that_cannot_move_its_cursor() {
    for (options, kind) in [(&["--json"][..], "xterm"), (&[], "dumb")] {
        let (theirs, written, _) = terminal();
        let (url, go_on) = stack();
        go_on.send(()).unwrap();
        let (status, report) = end(send(&url, options, kind, theirs));
        assert_eq!(status.code(), Some(0), "{report}");
        assert_eq!(written.whole(), "", "{options:?} {kind}");
    }
    let (url, go_on) = stack();
    go_on.send(()).unwrap();
    let output = send(&url, &[], "xterm", Stdio::piped()).wait_with_output().unwrap();
    assert_eq!(String::from_utf8(output.stderr).unwrap(), "", "a pipe");
}

/// A backfill reads its file line by line, and a pipe that holds no line keeps the process' one thread:
/// the first Ctrl-C cannot be heard.
#[cfg(target_os = "linux")]
#[test]
fn a_second_ctrl_c_ends_at_once_what_the_first_cannot() {
    let folder = std::env::temp_dir().join(format!("oncehook-pipe-{}", std::process::id()));
    std::fs::create_dir_all(&folder).unwrap();
    let pipe = folder.join("lines.jsonl");
    assert!(Command::new("mkfifo").arg(&pipe).status().unwrap().success());
    let words = ["backfill-versions", pipe.to_str().unwrap()];
    let mut command = oncehook(&words, Stdio::null());
    command.env("ONCEHOOK_STATE_TABLE", "state").env("AWS_REGION", "eu-central-1");
    command.env("ONCEHOOK_QUEUE_URL", "http://127.0.0.1:9/queue");
    let mut child = command.spawn().unwrap();
    // Opens once the child has opened the other end: it hears Ctrl-C by then.
    let writer = File::options().write(true).open(&pipe).unwrap();
    interrupt(&child);
    until("the first is heard", || is_heard(&child));
    assert_eq!(child.try_wait().unwrap(), None, "one does not end it here");
    interrupt(&child);
    until("the second ends it", || child.try_wait().unwrap().is_some());
    drop(writer);
    std::fs::remove_dir_all(&folder).unwrap();
    assert_eq!(child.wait().unwrap().code(), Some(130));
}

#[cfg(target_os = "linux")]
fn until(what: &str, mut is_so: impl FnMut() -> bool) {
    let begun = std::time::Instant::now();
    while !is_so() {
        assert!(begun.elapsed() < LIMIT, "waited in vain until {what}");
        thread::yield_now();
    }
}

/// Whether no Ctrl-C waits for the process: two that wait are one.
#[cfg(target_os = "linux")]
fn is_heard(child: &Child) -> bool {
    let status = std::fs::read_to_string(format!("/proc/{}/status", child.id()));
    let pending = |line: &str| {
        let bits = line.strip_prefix("ShdPnd:").or_else(|| line.strip_prefix("SigPnd:"))?;
        Some(u64::from_str_radix(bits.trim(), 16).unwrap_or(0) & 0b10 != 0)
    };
    !status.unwrap_or_default().lines().filter_map(pending).any(|is_pending| is_pending)
}
