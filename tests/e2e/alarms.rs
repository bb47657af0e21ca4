//! Alarms: each of those on dead events goes off by the figure it watches, and is quiet below it.
//!
//! The emulator evaluates an alarm when a figure is put, so figures are put as AWS's and the
//! functions' would be.

use crate::suite::Suite;
use serde_json::json;

/// The alarm's state after a figure.
fn state(suite: &Suite, alarm: &str, figure: f64) -> String {
    let stack = suite.stack.env.get("ONCEHOOK_STACK").unwrap();
    let name = format!("{stack}-{alarm}");
    let said = suite.operator(&json!({"do": "figure", "alarm": name, "value": figure}));
    said.as_str().unwrap_or_else(|| panic!("{alarm}: {said}")).to_owned()
}

pub(crate) async fn k06_the_dead_ring_by_depth_by_rate_and_by_age(suite: &Suite) {
    for (alarm, quiet, loud) in [
        ("dead-letters", 0.0, 1.0),
        ("dead-letters-rate", 24.0, 500.0),
        ("dead-letters-age", 3_599.0, 3_601.0),
        ("oldest-pending", 299.0, 301.0),
    ] {
        let before = state(suite, alarm, quiet);
        assert_ne!(before, "ALARM", "{alarm} at {quiet}");
        // Where two figures of three must be loud, the second is.
        state(suite, alarm, loud);
        assert_eq!(state(suite, alarm, loud), "ALARM", "{alarm} at {loud}");
    }
}
