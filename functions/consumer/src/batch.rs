//! A batch of queue messages becomes records, and the ids that are left become the answer.
//!
//! The answer is exact, because Lambda is: an id that is empty or unknown makes it fail the whole
//! batch, and a misspelt answer too (AWS Lambda Developer Guide, "Implementing partial batch
//! responses"). So a record that has no id fails the invocation on purpose: nothing of the batch
//! is deleted, and settled rows make the second run a short one.

use aws_lambda_events::sqs::{SqsBatchResponse, SqsEvent, SqsMessage};
use lambda_runtime::Error;
use ledger::Millis;
use workflow::consume::Record;

/// The records of a batch.
pub(crate) fn records(event: SqsEvent) -> Result<Vec<Record>, Error> {
    event.records.into_iter().map(record).collect()
}

fn record(message: SqsMessage) -> Result<Record, Error> {
    let (Some(message_id), Some(receipt)) = (
        message.message_id.filter(|id| !id.is_empty()),
        message.receipt_handle.filter(|receipt| !receipt.is_empty()),
    ) else {
        return Err("a queue record has no message id or receipt, so the batch fails whole".into());
    };
    // A message of unknown age counts as old: it grants no dead row a fresh budget.
    let sent_at = message.attributes.get("SentTimestamp").and_then(|ms| ms.parse().ok());
    Ok(Record {
        message_id,
        receipt,
        body: message.body.unwrap_or_default(),
        sent_at: Millis(sent_at.unwrap_or(0)),
    })
}

/// The answer: these messages are not finished, all others are.
pub(crate) fn answer(unfinished: Vec<String>) -> SqsBatchResponse {
    let mut answer = SqsBatchResponse::default();
    for message_id in unfinished {
        answer.add_failure(message_id);
    }
    answer
}

#[cfg(test)]
#[expect(clippy::unwrap_used, reason = "a failed unwrap is a failed test")]
mod tests {
    use super::*;
    use serde_json::json;

    fn event(message_id: &str) -> SqsEvent {
        let event = json!({"Records": [{
            "messageId": message_id,
            "receiptHandle": "AQEB",
            "body": "{\"v\":1,\"key\":\"s#evt\"}",
            "attributes": {
                "ApproximateReceiveCount": "1",
                "SentTimestamp": "1796043600000",
                "SenderId": "AIDA",
                "ApproximateFirstReceiveTimestamp": "1796043600001"
            },
            "messageAttributes": {},
            "md5OfBody": "x",
            "eventSource": "aws:sqs",
            "eventSourceARN": "arn:aws:sqs:us-east-1:123456789012:q",
            "awsRegion": "us-east-1"
        }]});
        serde_json::from_value(event).unwrap()
    }

    #[test]
    fn a_message_is_read_with_its_id_and_the_time_it_was_sent() {
        let records = records(event("m1")).unwrap();
        let expected = Record {
            message_id: "m1".to_owned(),
            receipt: "AQEB".to_owned(),
            body: r#"{"v":1,"key":"s#evt"}"#.to_owned(),
            sent_at: Millis(1_796_043_600_000),
        };
        assert_eq!(records, [expected]);
    }

    #[test]
    fn a_record_without_an_id_fails_the_invocation_on_purpose() {
        assert!(records(event("")).is_err());
        let mut nameless = event("m1");
        nameless.records.iter_mut().for_each(|record| record.message_id = None);
        assert!(records(nameless).is_err());
    }

    #[test]
    fn a_message_of_unknown_age_counts_as_old() {
        let mut ageless = event("m1");
        ageless.records.iter_mut().for_each(|record| record.attributes.clear());
        assert_eq!(records(ageless).unwrap()[0].sent_at, Millis(0));
    }

    #[test]
    fn the_answer_has_exactly_the_shape_that_lambda_reads() {
        let some = answer(vec!["m1".to_owned(), "m2".to_owned()]);
        assert_eq!(
            serde_json::to_string(&some).unwrap(),
            r#"{"batchItemFailures":[{"itemIdentifier":"m1"},{"itemIdentifier":"m2"}]}"#
        );
        let none = serde_json::to_string(&answer(Vec::new())).unwrap();
        assert_eq!(none, r#"{"batchItemFailures":[]}"#);
    }
}
