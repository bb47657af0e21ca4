//! Moving the dead letters back: by SQS's own task where it has one, and never by hand because the
//! task was refused.

use aws::{Aws, Moved, Settings, Timeouts};
use aws_config::{BehaviorVersion, Region};
use aws_sdk_dynamodb::config::Credentials;
use serde_json::json;
use std::sync::{
    Arc,
    atomic::{AtomicU32, Ordering},
};
use support::{AwsStub, StubAnswer};

/// What comes of a move where the task answers so, and how many letters were received by hand.
async fn moved(task: StubAnswer) -> (Result<Moved, String>, u32) {
    let received = Arc::new(AtomicU32::new(0));
    let seen = Arc::clone(&received);
    let stub = AwsStub::start(move |operation| match operation {
        "AmazonSQS.GetQueueAttributes" => {
            let arn = "arn:aws:sqs:us-east-1:000000000000:dlq";
            StubAnswer::Json(
                200,
                json!({"Attributes": {
                    "QueueArn": arn, "ApproximateNumberOfMessages": "5",
                    "ApproximateNumberOfMessagesNotVisible": "2",
                }}),
            )
        }
        "AmazonSQS.StartMessageMoveTask" => task.clone(),
        "AmazonSQS.ReceiveMessage" => {
            seen.fetch_add(1, Ordering::Relaxed);
            StubAnswer::Json(200, json!({}))
        }
        other => panic!("{other} was called"),
    })
    .await;
    let variables = [
        ("ONCEHOOK_QUEUE_URL", "http://127.0.0.1/queue"),
        ("ONCEHOOK_DLQ_URL", "http://127.0.0.1/dlq"),
    ];
    let own = |(name, value): (&str, &str)| (name.to_owned(), value.to_owned());
    let settings = Settings::from_variables(variables.map(own)).unwrap();
    let sdk = aws_config::defaults(BehaviorVersion::latest())
        .endpoint_url(stub.url())
        .region(Region::new("us-east-1"))
        .credentials_provider(Credentials::new("test", "test", None, None, "stub"))
        .load()
        .await;
    let aws = Aws::new(&sdk, settings, Timeouts::worker());
    let moved = aws.move_dead_letters(500).await.map_err(|error| error.to_string());
    (moved, received.load(Ordering::Relaxed))
}

fn refusal(code: &str) -> StubAnswer {
    let kind = format!("com.amazonaws.sqs#{code}");
    StubAnswer::Json(400, json!({"__type": kind, "message": "no"}))
}

#[tokio::test]
async fn dead_letters_are_moved_by_the_queues_own_task_where_there_is_one() {
    let started = StubAnswer::Json(200, json!({"TaskHandle": "t1"}));
    assert_eq!(moved(started).await, (Ok(Moved::Task(7)), 0));
}

#[tokio::test]
async fn a_service_without_the_task_has_them_moved_from_here() {
    let (done, received) = moved(refusal("InvalidAction")).await;
    assert_eq!(done, Ok(Moved::OneByOne(0)), "the stub hands none out");
    assert_eq!(received, 2, "one empty answer is no empty queue");
}

#[tokio::test]
async fn a_task_that_is_refused_is_named_and_nothing_is_moved_behind_its_back() {
    for code in ["AccessDeniedException", "UnsupportedOperation", "ResourceNotFoundException"] {
        let (done, received) = moved(refusal(code)).await;
        assert!(done.clone().is_err_and(|said| said.contains(code)), "{code}: {done:?}");
        assert_eq!(received, 0);
    }
}
