//! SQS: the queue and its dead-letter queue.
//!
//! The queue is a standard one whose message group is the source: not for order, which versions
//! make unnecessary, but for fairness between sources.

use crate::{Aws, Resource, trouble::Failed};
use aws_sdk_sqs::types::QueueAttributeName;
use futures::{StreamExt, stream};
use ledger::Message;
use workflow::ports::{DeadLetter, Inbox, Outbox, PortError, Queues, Trouble};

/// Messages that are sent at the same time.
const SENDS_AT_ONCE: usize = 10;
/// Longest name of a message group.
const GROUP_CHARS_MAX: usize = 128;
/// The longest visibility timeout that always fits into a message's twelve hours.
const POSTPONE_SECONDS_MAX: u32 = 43_170;
/// How long a dead letter that is looked at is hidden from others.
const LOOK_SECONDS: i32 = 5;

impl Outbox for Aws {
    async fn send(&self, message: &Message, source: &str) -> Result<(), PortError> {
        let step = "send";
        let url = self.resource(step, Resource::Queue)?;
        let call = self.clients.sqs.send_message().queue_url(url);
        let call = call.message_body(message.to_json()).message_group_id(group(source));
        let sent = call.send().await;
        sent.map_err(|error| Failed::from_sdk(&error).at(step))?;
        Ok(())
    }

    /// One call a message, several at a time. Batch calls would be a tenth of the cost of what is
    /// nothing, and answer 200 to batches of which they took no message.
    async fn send_all(&self, messages: &[(Message, String)]) -> Vec<usize> {
        let sends: Vec<_> = messages
            .iter()
            .enumerate()
            .map(|(index, (message, source))| async move {
                let error = self.send(message, source).await.err()?;
                tracing::warn!("message not sent: {error}");
                Some(index)
            })
            .collect();
        let failed = stream::iter(sends).buffer_unordered(SENDS_AT_ONCE);
        failed.filter_map(std::future::ready).collect().await
    }
}

impl Aws {
    /// Whether somebody is moving the dead-letter queue's messages just now. Not knowing counts as
    /// no: at worst a message stays hidden from the move for a few seconds.
    async fn is_being_redriven(&self, url: &str) -> bool {
        let attribute = QueueAttributeName::QueueArn;
        let arn = self.queue_attribute(url, attribute).await;
        let Ok(Some(arn)) = arn else { return false };
        let call = self.clients.sqs.list_message_move_tasks();
        match call.source_arn(arn).max_results(1).send().await {
            Ok(tasks) => tasks
                .results()
                .iter()
                .any(|task| matches!(task.status(), Some("RUNNING" | "CANCELLING"))),
            Err(error) => {
                tracing::debug!("move tasks not listed: {}", Failed::from_sdk(&error).said);
                false
            }
        }
    }

    pub(crate) async fn queue_attribute(
        &self,
        url: &str,
        name: QueueAttributeName,
    ) -> Result<Option<String>, Failed> {
        let call = self.clients.sqs.get_queue_attributes().queue_url(url);
        let answer = call.attribute_names(name.clone()).send().await;
        let answer = answer.map_err(|error| Failed::from_sdk(&error))?;
        Ok(answer.attributes.and_then(|mut found| found.remove(&name)))
    }

    pub(crate) async fn touch_queue(&self) {
        if let Ok(url) = self.settings().get(Resource::Queue) {
            let attribute = QueueAttributeName::ApproximateNumberOfMessages;
            if let Err(error) = self.queue_attribute(url, attribute).await {
                tracing::debug!("queue not reached at start: {}", error.said);
            }
        }
    }
}

impl Inbox for Aws {
    async fn postpone(&self, receipt: &str, seconds: u32) -> Result<(), PortError> {
        let step = "postpone";
        let url = self.resource(step, Resource::Queue)?;
        let seconds = i32::try_from(seconds.min(POSTPONE_SECONDS_MAX)).unwrap_or(i32::MAX);
        let call = self.clients.sqs.change_message_visibility().queue_url(url);
        let done = call.receipt_handle(receipt).visibility_timeout(seconds);
        let done = done.send().await;
        done.map_err(|error| Failed::from_sdk(&error).at(step))?;
        Ok(())
    }
}

impl Queues for Aws {
    async fn backlog(&self) -> Result<u64, PortError> {
        let step = "read backlog";
        let url = self.resource(step, Resource::Queue)?;
        let attribute = QueueAttributeName::ApproximateNumberOfMessages;
        let count = self.queue_attribute(url, attribute).await;
        let count = count.map_err(|failed| failed.at(step))?;
        let count = count.and_then(|digits| digits.parse().ok());
        count.ok_or_else(|| {
            Failed::new(Trouble::Unavailable, "the queue did not say how many it holds").at(step)
        })
    }

    async fn dead_letters(&self) -> Result<Vec<DeadLetter>, PortError> {
        let step = "read dead letters";
        let url = self.resource(step, Resource::DeadLetterQueue)?;
        if self.is_being_redriven(url).await {
            return Ok(Vec::new());
        }
        // Waiting a second asks every server of the queue; a short poll may see none of ten.
        let call = self.clients.sqs.receive_message().queue_url(url);
        let call = call.max_number_of_messages(10).wait_time_seconds(1);
        let answer = call.visibility_timeout(LOOK_SECONDS).send().await;
        let answer = answer.map_err(|error| Failed::from_sdk(&error).at(step))?;
        let letters = answer.messages.unwrap_or_default().into_iter();
        Ok(letters
            .filter_map(|message| {
                Some(DeadLetter {
                    body: message.body.unwrap_or_default(),
                    receipt: message.receipt_handle?,
                })
            })
            .collect())
    }

    async fn delete_dead_letter(&self, receipt: &str) -> Result<(), PortError> {
        let step = "delete dead letter";
        let url = self.resource(step, Resource::DeadLetterQueue)?;
        let call = self.clients.sqs.delete_message().queue_url(url);
        let done = call.receipt_handle(receipt).send().await;
        done.map_err(|error| Failed::from_sdk(&error).at(step))?;
        Ok(())
    }
}

fn group(source: &str) -> String {
    source.chars().take(GROUP_CHARS_MAX).collect()
}
