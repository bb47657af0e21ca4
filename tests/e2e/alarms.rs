//! Alarms: every one of the template goes off by the figure it watches, and is quiet below it.
//!
//! The emulator evaluates an alarm when a figure is put, so figures are put as AWS's and the
//! functions' would be. It adds up what was put in the alarm's whole time, whatever the dimensions,
//! and knows nothing of missing data: how many periods of how many must be bad is not tried here, and
//! of two alarms on one metric only the first is seen to be quiet.

use crate::suite::Suite;
use serde_json::json;
use std::collections::BTreeSet;

/// The alarm, figures one after the other, and whether it rings then.
type Figures = (&'static str, &'static [(f64, bool)]);

/// Those on dead events.
const OF_THE_DEAD: &[Figures] = &[
    ("dead-letters", &[(0.0, false), (1.0, true)]),
    ("dead-letters-rate", &[(24.0, false), (500.0, true)]),
    ("dead-letters-age", &[(3_599.0, false), (3_601.0, true)]),
    ("oldest-pending", &[(299.0, false), (301.0, true)]),
];

/// All others.
const OTHERS: &[Figures] = &[
    // Its figure is a count of runs: the less, the worse.
    ("steward-silent", &[(0.0, true), (1.0, false)]),
    ("reconciler-silent", &[(7_800.0, false), (7_801.0, true)]),
    ("gap", &[(0.0, false), (1.0, true)]),
    ("reconciler-trouble", &[(0.0, false), (1.0, true)]),
    ("signatures-refused", &[(0.0, false), (1.0, true)]),
    ("5xx-answers", &[(0.0, false), (1.0, true)]),
    ("receiver-errors", &[(0.0, false), (1.0, true)]),
    ("consumer-errors", &[(1.0, true)]),
    ("receiver-throttles", &[(0.0, false), (1.0, true)]),
    ("consumer-throttles", &[(1.0, true)]),
];

fn named(suite: &Suite, alarm: &str) -> String {
    format!("{}-{alarm}", suite.stack.env.get("ONCEHOOK_STACK").unwrap())
}

fn ring(suite: &Suite, alarms: &[Figures]) {
    for (alarm, figures) in alarms {
        for (figure, rings) in *figures {
            let name = named(suite, alarm);
            let said = suite.operator(&json!({"do": "figure", "alarm": name, "value": figure}));
            let state = said.as_str().unwrap_or_else(|| panic!("{alarm}: {said}"));
            assert_eq!(state == "ALARM", *rings, "{alarm} at {figure} is {state}");
        }
    }
}

pub(crate) async fn k06_the_dead_ring_by_depth_by_rate_and_by_age(suite: &Suite) {
    ring(suite, OF_THE_DEAD);
}

pub(crate) async fn every_other_alarm_rings_at_its_figure_and_not_before(suite: &Suite) {
    ring(suite, OTHERS);
    let tried = OF_THE_DEAD.iter().chain(OTHERS).map(|(alarm, _)| named(suite, alarm));
    let said = suite.operator(&json!({"do": "alarms"}));
    let names = said.as_array().unwrap().iter().map(|name| name.as_str().unwrap().to_owned());
    let left_out: BTreeSet<String> =
        names.collect::<BTreeSet<_>>().symmetric_difference(&tried.collect()).cloned().collect();
    assert!(left_out.is_empty(), "not tried, or not there: {left_out:?}");
}
