//! Standard error's terminal, a little narrower than it is.
//!
//! A bar leaves the cursor behind its line, and the line is as wide as the terminal says. There the
//! terminal writes `^C` when it is typed: at the edge it would stand on the next line, and what is
//! cleared then is that line and not the bar. The margin keeps it beside the bar, with which it goes.

use console::Term;
use indicatif::{ProgressDrawTarget, TermLike};
use std::io;

/// What Ctrl-C leaves, and a column between.
const MARGIN: u16 = 3;
/// Draws in a second at most.
const RATE: u8 = 20;

/// Where bars are drawn.
pub(super) fn stderr() -> ProgressDrawTarget {
    ProgressDrawTarget::term_like_with_hz(Box::new(Narrow(Term::buffered_stderr())), RATE)
}

#[derive(Debug)]
struct Narrow(Term);

impl TermLike for Narrow {
    fn width(&self) -> u16 {
        TermLike::width(&self.0).saturating_sub(MARGIN)
    }

    fn height(&self) -> u16 {
        TermLike::height(&self.0)
    }

    fn move_cursor_up(&self, n: usize) -> io::Result<()> {
        self.0.move_cursor_up(n)
    }

    fn move_cursor_down(&self, n: usize) -> io::Result<()> {
        self.0.move_cursor_down(n)
    }

    fn move_cursor_right(&self, n: usize) -> io::Result<()> {
        self.0.move_cursor_right(n)
    }

    fn move_cursor_left(&self, n: usize) -> io::Result<()> {
        self.0.move_cursor_left(n)
    }

    fn write_line(&self, text: &str) -> io::Result<()> {
        self.0.write_line(text)
    }

    fn write_str(&self, text: &str) -> io::Result<()> {
        self.0.write_str(text)
    }

    fn clear_line(&self) -> io::Result<()> {
        self.0.clear_line()
    }

    fn flush(&self) -> io::Result<()> {
        self.0.flush()
    }
}
