//! Moving the dead letters back to the queue, as the SQS console does.
//!
//! SQS has a task for it, which goes on without this machine. Where there is none, as on the local
//! emulator, the messages are moved one by one: received, sent, deleted, in this order, so that a
//! message may be doubled, which the ledger stands, and is never lost.

use crate::{Aws, Resource, trouble::Failed};
use aws_sdk_sqs::{
    error::ProvideErrorMetadata,
    types::{Message as Letter, QueueAttributeName},
};
use ledger::Message;
use std::time::Duration;
use workflow::ports::PortError;

const STEP: &str = "move dead letters";
/// How long a letter in hand is hidden from others.
const HOLD_SECONDS: i32 = 60;
/// The most that SQS moves in a second.
const PER_SECOND_MAX: u32 = 500;
/// Looks that find nothing before the queue is taken to be empty.
const EMPTY_LOOKS_MAX: u32 = 2;

/// How the dead letters go back.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Moved {
    /// A task of SQS moves them from now on; about so many.
    Task(u64),
    /// They were moved from here; so many.
    OneByOne(u64),
}

impl Moved {
    /// How many; about, where a task of SQS is at it.
    #[must_use]
    pub const fn count(self) -> u64 {
        match self {
            Self::Task(count) | Self::OneByOne(count) => count,
        }
    }
}

impl Aws {
    /// How many messages the dead-letter queue holds, hidden ones too; approximately.
    pub async fn dead_letter_count(&self) -> Result<u64, PortError> {
        let url = self.resource(STEP, Resource::DeadLetterQueue)?;
        let names = [
            QueueAttributeName::ApproximateNumberOfMessages,
            QueueAttributeName::ApproximateNumberOfMessagesNotVisible,
        ];
        let mut count: u64 = 0;
        for name in names {
            let found = self.queue_attribute(url, name).await.map_err(|failed| failed.at(STEP))?;
            let number = found.and_then(|digits| digits.parse().ok()).unwrap_or(0);
            count = count.saturating_add(number);
        }
        Ok(count)
    }

    /// Moves them, at most `per_second`.
    pub async fn move_dead_letters(&self, per_second: u32) -> Result<Moved, PortError> {
        let count = self.dead_letter_count().await?;
        if count == 0 {
            return Ok(Moved::OneByOne(0));
        }
        let url = self.resource(STEP, Resource::DeadLetterQueue)?;
        let arn = self.queue_attribute(url, QueueAttributeName::QueueArn).await;
        let arn = arn.map_err(|failed| failed.at(STEP))?;
        let speed = i32::try_from(per_second.clamp(1, PER_SECOND_MAX)).unwrap_or(1);
        let call = self.clients.sqs.start_message_move_task().set_source_arn(arn);
        match call.max_number_of_messages_per_second(speed).send().await {
            Ok(_) => Ok(Moved::Task(count)),
            Err(error) if is_unknown(error.code()) => {
                self.move_one_by_one(url, count, per_second).await.map(Moved::OneByOne)
            }
            Err(error) => Err(Failed::from_sdk(&error).at(STEP)),
        }
    }

    /// Up to `most`, so that what dies again meanwhile is not moved for ever.
    async fn move_one_by_one(
        &self,
        url: &str,
        most: u64,
        per_second: u32,
    ) -> Result<u64, PortError> {
        let (mut moved, mut empty_looks) = (0, 0);
        let pause = Duration::from_secs(1) / per_second.max(1);
        while moved < most && empty_looks < EMPTY_LOOKS_MAX {
            let call = self.clients.sqs.receive_message().queue_url(url);
            let call = call.max_number_of_messages(10).wait_time_seconds(1);
            let answer = call.visibility_timeout(HOLD_SECONDS).send().await;
            let answer = answer.map_err(|error| Failed::from_sdk(&error).at(STEP))?;
            let letters = answer.messages.unwrap_or_default();
            empty_looks = if letters.is_empty() { empty_looks + 1 } else { 0 };
            for letter in letters {
                self.move_one(url, &letter).await?;
                moved += 1;
                tokio::time::sleep(pause).await;
            }
        }
        Ok(moved)
    }

    async fn move_one(&self, url: &str, letter: &Letter) -> Result<(), PortError> {
        let body = letter.body.clone().unwrap_or_default();
        // A message that is not ours is moved as well: the console would.
        let source = Message::parse(&body).map(|message| message.key.as_str().to_owned());
        let group = source.ok().and_then(|key| key.split('#').next().map(str::to_owned));
        let queue = self.resource(STEP, Resource::Queue)?;
        let call = self.clients.sqs.send_message().queue_url(queue).message_body(body);
        let call = call.message_group_id(group.unwrap_or_else(|| "redrive".to_owned()));
        call.send().await.map_err(|error| Failed::from_sdk(&error).at(STEP))?;
        let call = self.clients.sqs.delete_message().queue_url(url);
        let done = call.set_receipt_handle(letter.receipt_handle.clone()).send().await;
        done.map_err(|error| Failed::from_sdk(&error).at(STEP))?;
        Ok(())
    }
}

/// Whether an error code says that the service does not know the call at all.
fn is_unknown(code: Option<&str>) -> bool {
    matches!(code, Some("InvalidAction" | "UnknownOperationException" | "NotImplemented"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_a_service_without_the_task_makes_it_work_by_hand() {
        assert!(is_unknown(Some("InvalidAction")));
        for real in ["ResourceNotFoundException", "AWS.SimpleQueueService.UnsupportedOperation"] {
            assert!(!is_unknown(Some(real)), "{real}: a task that runs already, or no rights");
        }
        assert!(!is_unknown(None), "no answer is no answer");
    }
}
