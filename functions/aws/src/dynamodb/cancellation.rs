//! Why a transaction was cancelled.
//!
//! DynamoDB gives one reason for each item, in the order of the request, and only one of its
//! codes says that a condition did not hold. Taking the others for it would call a busy row
//! superseded and lose an event.

use super::transaction::Verdict;
use crate::trouble::{Failed, trouble_of};
use aws_sdk_dynamodb::types::CancellationReason;
use workflow::ports::Trouble;

const PASSED: &str = "None";
const REFUSED: &str = "ConditionalCheckFailed";

/// What the reasons amount to.
#[derive(Debug, Clone, PartialEq)]
pub(super) enum Reading {
    /// Conditions decided; one verdict for each item.
    Refused(Vec<Verdict>),
    /// Something else did.
    Failed(Failed),
}

/// Reads the reasons of a transaction whose first item is the row.
///
/// A lost fence ends everything, whatever else happened. Beside a conflict or a throttle any other
/// refused condition is not believed yet: the item was judged while somebody was writing to its
/// neighbour, and the next try will tell.
pub(super) fn read(reasons: &[CancellationReason]) -> Reading {
    let code = |reason: &CancellationReason| reason.code().unwrap_or(PASSED).to_owned();
    let codes: Vec<String> = reasons.iter().map(code).collect();
    let is_fence_refused = codes.first().is_some_and(|code| code == REFUSED);
    let others = codes.iter().filter(|code| *code != PASSED && *code != REFUSED);
    let worst = others.map(|code| trouble_of(code)).max_by_key(|trouble| weight(*trouble));
    let said = || format!("transaction cancelled: [{}]", codes.join(", "));
    match worst {
        Some(trouble) if !is_fence_refused => Reading::Failed(Failed::new(trouble, said())),
        None if !codes.iter().any(|code| code == REFUSED) => {
            Reading::Failed(Failed::new(Trouble::Unavailable, said()))
        }
        Some(_) | None => Reading::Refused(reasons.iter().map(verdict).collect()),
    }
}

fn verdict(reason: &CancellationReason) -> Verdict {
    match reason.code() {
        Some(REFUSED) => Verdict::Refused(reason.item.clone()),
        Some(_) | None => Verdict::Passed,
    }
}

/// The trouble that matters most: what no further try can cure, then what one may.
const fn weight(trouble: Trouble) -> u8 {
    match trouble {
        Trouble::Invalid => 3,
        Trouble::Unavailable => 2,
        Trouble::Throttled => 1,
        Trouble::Conflict => 0,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::item::{Item, text};

    fn reasons(codes: &[&str]) -> Vec<CancellationReason> {
        codes.iter().map(|code| CancellationReason::builder().code(*code).build()).collect()
    }

    fn trouble(codes: &[&str]) -> Option<Trouble> {
        match read(&reasons(codes)) {
            Reading::Refused(_) => None,
            Reading::Failed(failed) => Some(failed.trouble),
        }
    }

    #[test]
    fn only_a_condition_is_a_refusal_and_the_rest_keeps_its_meaning() {
        assert_eq!(trouble(&["None", "TransactionConflict"]), Some(Trouble::Conflict));
        assert_eq!(trouble(&["ThrottlingError", "None"]), Some(Trouble::Throttled));
        let exceeded = ["None", "ProvisionedThroughputExceeded"];
        assert_eq!(trouble(&exceeded), Some(Trouble::Throttled));
        assert_eq!(trouble(&["ConditionalCheckFailed", "None"]), None);
        assert_eq!(trouble(&["None", "ConditionalCheckFailed"]), None);
        let too_large = ["None", "ItemCollectionSizeLimitExceeded"];
        assert_eq!(trouble(&too_large), Some(Trouble::Invalid));
        assert_eq!(trouble(&["None", "ValidationError"]), Some(Trouble::Invalid));
        assert_eq!(trouble(&["None", "AccessDenied"]), Some(Trouble::Unavailable));
    }

    #[test]
    fn beside_a_conflict_or_a_throttle_only_a_lost_fence_counts() {
        assert_eq!(trouble(&["ConditionalCheckFailed", "TransactionConflict"]), None);
        assert_eq!(trouble(&["ConditionalCheckFailed", "ValidationError"]), None);
        let entity = ["None", "ConditionalCheckFailed", "TransactionConflict"];
        assert_eq!(trouble(&entity), Some(Trouble::Conflict));
        let entity = ["None", "ConditionalCheckFailed", "ThrottlingError"];
        assert_eq!(trouble(&entity), Some(Trouble::Throttled));
    }

    #[test]
    fn a_request_that_can_never_be_is_not_retried_for_a_conflict_beside_it() {
        let codes = ["None", "TransactionConflict", "ValidationError"];
        assert_eq!(trouble(&codes), Some(Trouble::Invalid));
    }

    #[test]
    fn a_cancellation_without_a_reason_is_no_refusal() {
        assert_eq!(trouble(&[]), Some(Trouble::Unavailable));
        assert_eq!(trouble(&["None", "None"]), Some(Trouble::Unavailable));
    }

    #[test]
    fn a_refused_item_comes_with_what_was_found() {
        let item = Item::from([("pk".to_owned(), text("s#thing#1"))]);
        let found = CancellationReason::builder().code(REFUSED).set_item(Some(item.clone()));
        let gone = CancellationReason::builder().code(REFUSED);
        let passed = CancellationReason::builder().code(PASSED);
        let reasons = [passed.build(), found.build(), gone.build()];
        let expected = vec![Verdict::Passed, Verdict::Refused(Some(item)), Verdict::Refused(None)];
        assert_eq!(read(&reasons), Reading::Refused(expected));
    }
}
