//! What is explored by default, what on request, and what must be met on the way.
//!
//! Where two events meet, deliveries, steward and person take whole turns and only the workers
//! interleave step by step: the rows of two events touch in the workers' transactions and nowhere
//! else. Where one event is alone, everybody interleaves.

use crate::bounds::{Bounds, Projection};

/// Every space here is explored to its end.
pub(crate) fn standard() -> Vec<Bounds> {
    let mut all = two_events();
    all.extend(one_event());
    all
}

fn two_events() -> Vec<Bounds> {
    let two = |name, projection| Bounds {
        coarse: true,
        transient: true,
        throttle: true,
        ..Bounds::new(name, projection)
    };
    let in_sequence = |name| Bounds {
        deliveries: &[0, 1],
        coarse: true,
        ..Bounds::new(name, Projection::Sequence)
    };
    vec![
        Bounds { permanent: true, ..two("two events, sequence", Projection::Sequence) },
        Bounds {
            deliveries: &[0, 1],
            redrives_max: 1,
            ..two("two events, redrives", Projection::Sequence)
        },
        Bounds { redrives_max: 1, permanent: true, ..two("two events, deaths", Projection::Delta) },
        two("two events, snapshot", Projection::Snapshot),
        two("two events, delta", Projection::Delta),
        two("two events, both", Projection::Both),
        Bounds { oddities: true, ..in_sequence("odd rows in sequence") },
        Bounds { gap: true, waiters_max: 1, ..in_sequence("a gap and a full set") },
    ]
}

fn one_event() -> Vec<Bounds> {
    let one = |name| Bounds { deliveries: &[0], ..Bounds::new(name, Projection::Snapshot) };
    let twice = |name| Bounds { deliveries: &[0, 0], ..one(name) };
    vec![
        Bounds {
            deploy: true,
            workers: 1,
            stewards: 2,
            redrives_max: 1,
            transient: true,
            due_detail: true,
            ..one("one event, two stewards")
        },
        Bounds {
            transient: true,
            throttle: true,
            due_detail: true,
            ..twice("one event, twice delivered")
        },
        Bounds {
            coarse: true,
            operator: true,
            deploy: true,
            redrives_max: 1,
            transient: true,
            permanent: true,
            throttle: true,
            ..twice("one event, every death")
        },
        Bounds { coarse: true, workers: 3, transient: true, ..twice("one event, three workers") },
        Bounds { transient: true, throttle: true, oddities: true, ..twice("one event, odd rows") },
        Bounds {
            operator: true,
            permanent: true,
            oddities: true,
            redrives_max: 1,
            workers: 1,
            ..one("one event, odd deaths")
        },
    ]
}

/// The standard suite, and before it larger spaces: some to their end, some with everybody
/// interleaving step by step, nearest behaviours first, up to a number of states.
pub(crate) fn large() -> Vec<Bounds> {
    let everything = |name, projection, states_max| Bounds {
        operator: true,
        deploy: true,
        redrives_max: 1,
        transient: true,
        permanent: true,
        throttle: true,
        states_max,
        ..Bounds::new(name, projection)
    };
    let to_the_end = |name, projection| Bounds {
        deliveries: &[0, 1],
        coarse: true,
        deploy: false,
        ..everything(name, projection, usize::MAX)
    };
    let mut all = vec![
        to_the_end("all but a deploy, sequence", Projection::Sequence),
        Bounds {
            deliveries: &[0, 0, 1],
            permanent: false,
            ..to_the_end("an operator, three arrive", Projection::Snapshot)
        },
        to_the_end("all but a deploy, snapshot", Projection::Snapshot),
        to_the_end("all but a deploy, delta", Projection::Delta),
        everything("step by step, sequence", Projection::Sequence, 2_000_000),
        everything("step by step, snapshot", Projection::Snapshot, 2_000_000),
        Bounds {
            deliveries: &[0, 0],
            ..everything("step by step, one event", Projection::Delta, 2_500_000)
        },
    ];
    all.extend(standard());
    all
}

/// The `sometimes` properties: every status, outcome and bucket, and everything a verb can say.
pub(crate) const MUST_BE_MET: &[&str] = &[
    "claimed, Pending",
    "processing, Pending",
    "failed, Pending",
    "waiting, Pending",
    "dead, Dead",
    "dead, Parked",
    "settled, applied",
    "settled, superseded",
    "settled, resolved",
    "Claim: Done",
    "Claim: Mine",
    "Claim: Conflict",
    "Claim: Settled",
    "Claim: Pending",
    "Claim: Overdue",
    "Claim: Dead",
    "Claim: DeadPermanent",
    "Claim: UnknownFormat",
    "Lease: Done",
    "Lease: Mine",
    "Lease: Settled",
    "Lease: Held",
    "Lease: NotYet",
    "Lease: OutOfBudget",
    "Lease: Dead",
    "Lease: Missing",
    "Lease: UnknownFormat",
    "Redrive: Done",
    "Redrive: Mine",
    "Redrive: MessageTooOld",
    "Redrive: MovedOn",
    "Redrive: NotDead",
    "Redrive: Missing",
    "Redrive: UnknownFormat",
    "Wait: Done",
    "Wait: Mine",
    "Wait: Lost",
    "Wait: Missing",
    "Wait: UnknownFormat",
    "WaitInSequence: Done",
    "WaitInSequence: Mine",
    "WaitInSequence: Lost",
    "WaitInSequence: Missing",
    "WaitInSequence: UnknownFormat",
    "WaitInSequence: PredecessorCame",
    "WaitInSequence: TooManyWaiters",
    "Apply: Done",
    "Apply: Mine",
    "Apply: Lost",
    "Apply: Missing",
    "Apply: UnknownFormat",
    "Apply: Superseded",
    "Apply: RevisionMoved",
    "Apply: NotWaiting",
    "Settle: Done",
    "Settle: Mine",
    "Settle: Lost",
    "Settle: Missing",
    "Settle: UnknownFormat",
    "Fail: Done",
    "Fail: Mine",
    "Fail: Lost",
    "Fail: Missing",
    "Fail: UnknownFormat",
    "Fail: OutOfBudget",
    "Bury: Done",
    "Bury: Mine",
    "Bury: Lost",
    "Bury: Missing",
    "Bury: UnknownFormat",
    "Bury: BudgetLeft",
    "ForcedBury: Done",
    "ForcedBury: Mine",
    "ForcedBury: MovedOn",
    "ForcedBury: Missing",
    "ForcedBury: UnknownFormat",
    "Sweep: Done",
    "Sweep: Mine",
    "Sweep: MovedOn",
    "Sweep: Missing",
    "Sweep: UnknownFormat",
    "Resolve: Done",
    "Resolve: Mine",
    "Resolve: NotDead",
    "Resolve: Missing",
    "Resolve: UnknownFormat",
];
