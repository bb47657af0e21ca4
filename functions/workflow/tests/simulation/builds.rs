//! Two builds at work during a deploy.

use crate::{
    rig::subscription,
    system::{MINUTE, SECOND, System},
};
use ledger::Status;
use workflow::ports::Clock;

#[test]
fn a_new_steward_beside_old_consumers_grants_one_budget_and_no_more() {
    let system = System::new();
    let new = system.build("build-2");
    let began = system.rig.now();
    system.downstream.is_down_until(began.plus(24 * 60 * MINUTE));
    let mut engine = system.engine(2);
    let events = 200;
    engine.spawn(system.traffic(events, 100, |n| {
        subscription(&format!("evt_{n}"), "created", n, &format!("sub_{n}"), "gold")
    }));
    // They die, are redriven once by themselves, and die again; the next redrive is an hour away.
    engine.run_for(20 * MINUTE);
    let dead = system.rows("evt_");
    assert!(dead.iter().all(|row| (row.life.status, row.life.redrives) == (Status::Dead, 1)));
    let runs = system.downstream.runs();

    // The new build's steward and one of its consumers beside the old ones, which still win leases.
    system.tends.set(false);
    engine.spawn(async {
        for _ in 0..20 {
            system.twin().sleep(MINUTE).await;
            new.steward.run(system.rig.now().plus(MINUTE)).await;
        }
    });
    engine.spawn(system.consumer(&new));
    engine.run_for(20 * MINUTE);
    let rows = system.rows("evt_");
    let by = |release: &str| {
        rows.iter().filter(|row| row.life.release.as_deref() == Some(release)).count()
    };
    println!(
        "deploy: {} rows had {} runs more, 6 each; they died again under build-1 ({}) and build-2 ({})",
        rows.len(),
        system.downstream.runs() - runs,
        by("build-1"),
        by("build-2")
    );
    assert!(by("build-1") > 0 && by("build-2") > 0, "both builds were at work");
    assert_eq!(system.downstream.runs() - runs, 6 * events, "one fresh budget each");
    assert!(rows.iter().all(|row| row.life.status == Status::Dead));
    assert!(rows.iter().all(|row| row.life.budget_release.as_deref() == Some("build-2")));
    assert!(rows.iter().all(|row| row.life.failure.as_ref().unwrap().at.since(began) > SECOND));
}
