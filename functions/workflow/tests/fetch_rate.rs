//! The rate at which a provider is asked, under a month's renewals at once.
#![allow(
    clippy::unwrap_used,
    clippy::print_stdout,
    reason = "a failed unwrap is a failed test, and what it prints is its figures"
)]

mod rig;

use ledger::Outcome;
use rig::{
    Rig, START,
    fetched::{deliver, rig_of},
    provider::{Asked, object},
};
use std::sync::Arc;
use workflow::{Consumer, Fetcher, projection::Declarative};

/// The most calls in any second.
fn most_a_second(asked: &[Asked]) -> usize {
    let mut most = 0;
    let mut first = 0;
    for (last, at) in asked.iter().enumerate() {
        while at.at.since(asked[first].at) >= 1_000 {
            first += 1;
        }
        most = most.max(last - first + 1);
    }
    most
}

/// Works the queue with several processes until it is empty.
async fn drain(rig: &Rig, processes: &[Consumer<workflow::twin::Twin>]) -> u64 {
    let mut turn = 0;
    loop {
        let batch = rig.twin.receive(10);
        if batch.is_empty() {
            let Some(next) = rig.twin.next_visible() else { break };
            rig.twin.advance(next.since(rig.now()).max(1));
            continue;
        }
        turn += 1;
        let process = &processes[turn % processes.len()];
        let failed = process.consume(batch.clone(), rig.now().plus(30_000)).await;
        rig.twin.finish(&batch, &failed);
    }
    rig.now().since(START)
}

#[tokio::test]
async fn ten_thousand_renewals_at_once_drain_at_the_configured_rate_and_cost_no_attempt() {
    for (renewals, rate, processes) in [(10_000, 100, 1), (2_000, 100, 4)] {
        let (rig, provider) = rig_of(&format!("on_404 = \"tombstone\"\nrate_per_s = {rate}"));
        for n in 0..renewals {
            provider.put(&format!("sub_{n}"), object("gold", "active"));
            deliver(&rig, &format!("evt_{n}"), "updated", &format!("sub_{n}")).await;
        }
        let process = |_| Consumer {
            ports: Arc::clone(&rig.twin),
            config: rig.consumer.config.clone(),
            policy: rig.consumer.policy.clone(),
            release: "build-1".to_owned(),
            projection: Box::new(Declarative),
            fetcher: Fetcher::new(processes),
        };
        let fleet: Vec<_> = (0..processes).map(process).collect();
        let took_s = drain(&rig, &fleet).await / 1_000;
        let asked = provider.asked();
        assert_eq!(asked.len(), renewals, "one call each");
        let most = most_a_second(&asked);
        assert!(most <= rate, "{most} calls in a second, {rate} are allowed");
        let at_best = (renewals / rate) as u64;
        assert!(took_s <= 2 * at_best, "{took_s} s, {at_best} s at best");
        for row in rig.twin.rows() {
            assert_eq!((row.life.outcome, row.life.attempts), (Some(Outcome::Applied), 1));
        }
        assert_eq!(rig.twin.dead_letter_bodies().len(), 0, "no message came too often");
        println!("{rate} a second, {processes} processes: {took_s} s, {most} in the worst second");
    }
}
