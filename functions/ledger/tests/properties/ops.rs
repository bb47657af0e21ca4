//! What may happen in a history, and how likely it is.

use proptest::prelude::*;

/// What may happen next.
#[derive(Debug, Clone)]
pub(crate) enum Op {
    Tick { ms: u64 },
    Claim { actor: usize },
    Lease { actor: usize, for_ms: u64 },
    Read { actor: usize },
    Apply { actor: usize },
    Settle { actor: usize },
    Fail { actor: usize },
    Bury { actor: usize, is_permanent: bool },
    Wait { actor: usize },
    Force { actor: usize },
    RedriveByMessage { actor: usize, age_ms: u64 },
    RedriveBySteward { actor: usize, is_stale: bool },
    RedriveByPerson { actor: usize },
    Sweep { actor: usize, is_stale: bool },
    Resolve { actor: usize },
    Repeat { actor: usize, back: usize },
    Rival { version: i128 },
}

pub(crate) fn op() -> impl Strategy<Value = Op> {
    let actor = || 0..3_usize;
    let span =
        || prop_oneof![Just(0_u64), 1..2_000_u64, 1_000..200_000_u64, 3_000_000..8_000_000_u64];
    prop_oneof![
        6 => span().prop_map(|ms| Op::Tick { ms }),
        2 => actor().prop_map(|actor| Op::Claim { actor }),
        8 => (actor(), 1..60_000_u64).prop_map(|(actor, for_ms)| Op::Lease { actor, for_ms }),
        3 => actor().prop_map(|actor| Op::Read { actor }),
        2 => actor().prop_map(|actor| Op::Apply { actor }),
        1 => actor().prop_map(|actor| Op::Settle { actor }),
        4 => actor().prop_map(|actor| Op::Fail { actor }),
        3 => (actor(), any::<bool>())
            .prop_map(|(actor, is_permanent)| Op::Bury { actor, is_permanent }),
        3 => actor().prop_map(|actor| Op::Wait { actor }),
        3 => actor().prop_map(|actor| Op::Force { actor }),
        3 => (actor(), span()).prop_map(|(actor, age_ms)| Op::RedriveByMessage { actor, age_ms }),
        3 => (actor(), any::<bool>())
            .prop_map(|(actor, is_stale)| Op::RedriveBySteward { actor, is_stale }),
        1 => actor().prop_map(|actor| Op::RedriveByPerson { actor }),
        3 => (actor(), any::<bool>()).prop_map(|(actor, is_stale)| Op::Sweep { actor, is_stale }),
        1 => actor().prop_map(|actor| Op::Resolve { actor }),
        8 => (actor(), 0..4_usize).prop_map(|(actor, back)| Op::Repeat { actor, back }),
        2 => (0..9_i128).prop_map(|version| Op::Rival { version }),
    ]
}
