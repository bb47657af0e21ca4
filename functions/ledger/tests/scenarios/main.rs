//! Scenarios: short stories over the pure ledger, one per file, told in a line language.
//!
//! A file whose name begins with a number tells one of the 25 cases of "what must happen when";
//! a letter and a number is a failure that was reported from the field; the rest are rules.
//!
//! A line is `at TIME ACTION -> OUTCOME`. `at TIME` may be left out, the clock then stands;
//! `-> OUTCOME` may be left out where the outcome is `ok`. `#` begins a comment. Times are
//! counted from the beginning of the story: `0s`, `1500ms`, `2m`, `1h`, or sums such as `1h5s`.
//!
//! Before the first `at` a story names its events and may change the policy:
//!
//! ```text
//! event e1 of sub_1 version 3             applies if newer; more words: rank 1, final, skip
//! event e2 of balance adds 5              a delta
//! event e3 of order_1 number 2            second in a sequence that begins with 1
//! event e4 of sub_1 version 4, of sum adds 1      two changes in one transaction
//! event ping                              changes nothing
//! event github:e1 of run version 1        of another source; without one it is `s:`
//! policy attempts_max 2                   any number of the policy, by its name
//! sequence timeout 1h                     how long a sequence waits
//! ```
//!
//! What actors do, each with one request to one verb:
//!
//! ```text
//! claim e1 by D1 [body B]                 the first durable write, without the send
//! deliver e1 by D1 [body B] -> sent       claim, send if the answer says so, answer 2xx
//! lease e1 by A [for 40s] [build b2]      -> held until T, not before T, settled, dead, ...
//! read e1 by A                            what a later apply stands on; else it reads itself
//! apply e1 by A [waking nobody]           -> superseded, moved, lost, ...
//! settle e1 superseded by A
//! fail e1 by A [permanent | rate_limited] [after 30s]     -> retry at T, or buried
//! wait e1 by A [in sequence]              gives the attempt back
//! redrive e1 by ada                       a person
//! redrive e1 by A message T               a worker, with a message sent at T
//! force e1 by A                           the forced burial
//! resolve e1 by ada
//! work e1 by A                            lease, project, apply and settle -> applied,
//!                                         superseded, ignored, waits, ...
//! repeat A -> mine                        sends A's last request again, as it was: its answer
//!                                         was lost, or the request itself was slow
//! kill A                                  A forgets everything
//! rewrite e1                              a newer build writes the row in its own format
//! save                                    the tables are backed up ...
//! restore both                            ... and brought back: `ledger`, `state` or `both`
//! ```
//!
//! The steward looks at everything that is due, as it does every minute; `build b2` says which
//! build it is of, and lets it cure rows that died under another:
//!
//! ```text
//! look -> sweeps e1, buries e2, redrives e3
//! look backlog 2000 -> nothing            with that many messages visible in the queue
//! ```
//!
//! And what must be so, in any number of words:
//!
//! ```text
//! expect e1 settled applied attempts 1 epoch 1
//! expect e1 dead parked permanent redrives 5     `awaiting` where a redrive is still to come
//! expect e1 failed pending due 2m
//! expect e1 messages 2                    how often it was sent
//! expect sub_1 version 3 by e1 final      a state row
//! expect balance total 5
//! expect order_1 waiting 2                members in the set of waiters
//! expect e1 absent
//! ```

#![expect(clippy::expect_used, reason = "a failed expectation is a failed test")]

mod run;
mod stage;
mod steward;
mod story;
mod telling;
mod words;

use std::{fs, path::Path};

#[test]
#[expect(clippy::disallowed_methods, reason = "the stories lie in files")]
fn every_story_ends_as_it_is_told() {
    let home = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/scenarios");
    let mut stories: Vec<_> = fs::read_dir(&home)
        .expect("the scenarios")
        .map(|entry| entry.expect("an entry").path())
        .filter(|path| path.extension().is_some_and(|end| end == "txt"))
        .collect();
    stories.sort();
    assert!(stories.len() >= 70, "only {} stories were found", stories.len());
    let failures: Vec<String> = stories
        .iter()
        .filter_map(|path| {
            let bytes = fs::read(path).expect("a story");
            let text = String::from_utf8(bytes).expect("a story in UTF-8");
            let name = path.file_name()?.to_str()?;
            story::tell(&text).err().map(|error| format!("{name}:{error}"))
        })
        .collect();
    assert!(failures.is_empty(), "\n{}", failures.join("\n"));
}

#[test]
fn a_story_that_goes_otherwise_says_where_and_how() {
    let told = |text: &str| story::tell(text).expect_err("this story is wrong");
    assert_eq!(
        told("event e1 of x version 1\nat 0s claim e1 by D\nlease e1 by A -> settled"),
        "3: expected settled, and it was ok"
    );
    assert_eq!(
        told("event e1 of x version 1\nat 0s claim e1 by D\nexpect e1 dead"),
        "3: expected dead in: claimed pending due 1m attempts 0 epoch 0 redrives 0 messages 0"
    );
    assert_eq!(told("at 5s expect e1 absent\nat 4s expect e1 absent"), "2: time goes forward");
    assert_eq!(told("frobnicate e1"), "1: no such action: frobnicate e1");
    assert_eq!(told("lease e9 by A"), "1: no such event: e9");
}
