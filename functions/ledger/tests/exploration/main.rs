//! Exploration.
mod bounds;
#[cfg(test)]
mod broken;
mod change;
mod model;
mod others;
mod pool;
mod process;
mod properties;
mod receiver;
mod rescue;
mod search;
mod times;
mod verbs;
mod worker;
mod world;

use bounds::{Bounds, Design, Projection};

#[test]
fn try_it() {
    let projection = match std::env::var("PROJ").as_deref() {
        Ok("d") => Projection::Delta,
        Ok("q") => Projection::Sequence,
        Ok("b") => Projection::Both,
        _ => Projection::Snapshot,
    };
    let has = |c: char| std::env::var("OPT").unwrap_or_default().contains(c);
    let num = |n: &str, d: usize| std::env::var(n).ok().and_then(|s| s.parse().ok()).unwrap_or(d);
    let deliveries: &'static [u8] = match std::env::var("DEL").as_deref() {
        Ok("0") => &[0],
        Ok("01") => &[0, 1],
        Ok("00") => &[0, 0],
        _ => &[0, 0, 1],
    };
    let b = Bounds {
        deliveries,
        workers: num("W", 2),
        stewards: num("S", 1),
        operator: has('o'),
        deploy: has('d'),
        transient: has('t'),
        permanent: has('p'),
        throttle: has('w'),
        oddities: has('x'),
        coarse: has('c'),
        due_detail: has('u'),
        attempts_max: num("A", 2) as u32,
        redrives_max: num("R", 0) as u32,
        states_max: num("MAX", 1_000_000),
        ..Bounds::new("x", projection)
    };
    let report = search::explore(b, Design::Whole);
    println!("{report}");
    println!("{:?}", report.heard);
    if let Some(c) = report.counterexample {
        println!("{c}");
    }
}
