//! Every verb on one row: the lives it tells apart, and what is asked of them. Files as in the
//! adapter: a verb, or a pair that are each other's mirror.

mod bury;
mod claim;
mod finish;
mod give_back;
mod lease;
mod revive;

pub(crate) use bury::{bury, forced_bury};
pub(crate) use claim::claim;
pub(crate) use finish::{resolve, settle};
pub(crate) use give_back::{fail, wait};
pub(crate) use lease::lease;
pub(crate) use revive::{redrive, sweep};

use crate::lives::{EPOCH, FORMATS, MINE, NOW, lease as lease_of, row, statuses};
use ledger::{EventKey, FailureClass, Life, Row, Status};

const CLASSES: [Option<FailureClass>; 4] = [
    None,
    Some(FailureClass::Permanent),
    Some(FailureClass::Transient),
    Some(FailureClass::RateLimited),
];

/// A life for a key.
type Make = Box<dyn Fn(&EventKey) -> Row>;

fn life(change: impl Fn(&EventKey, Life) -> Life + 'static) -> Make {
    Box::new(move |key| row(key, |life| change(key, life)))
}

/// Statuses, formats and epochs on each side of the holder's, under what a case adds.
fn fenced<T: Clone + 'static>(
    values: &[T],
    change: impl Fn(&T, Life) -> Life + Clone + 'static,
) -> Vec<Make> {
    let mut lives = Vec::new();
    for &status in statuses() {
        for format in FORMATS {
            for epoch in [EPOCH - 1, EPOCH, EPOCH + 1] {
                for value in values {
                    let (value, change) = (value.clone(), change.clone());
                    lives.push(life(move |_, life| {
                        let attempts = 2;
                        let held = Some(lease_of(MINE, NOW.plus(1)));
                        let held = held.filter(|_| status == Status::Processing);
                        change(
                            &value,
                            Life { status, format, epoch, attempts, lease: held, ..life },
                        )
                    }));
                }
            }
        }
    }
    lives
}
