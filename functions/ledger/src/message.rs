//! What travels through the queue: the row's key, and what an operator reading the SQS console
//! wants to see. The row is the truth; the message is a hint to look at it.

use crate::EventKey;
use serde::{Deserialize, Serialize};
use thiserror::Error;

/// The message format this code writes.
const MESSAGE_FORMAT: u32 = 1;

/// `{"v":1,"key":"stripe-live#evt_1","type":"invoice.paid","entity":"..."}`.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Message {
    /// Message format.
    pub v: u32,
    /// The row's key.
    pub key: EventKey,
    /// The event type, for people.
    #[serde(rename = "type", default)]
    pub event_type: String,
    /// The entity it will change, where the receiver could tell: records of one entity are
    /// worked one after another.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub entity: Option<String>,
}

/// Why a queue message cannot be worked.
#[derive(Debug, Error)]
pub enum MessageError {
    /// Not the JSON this code writes.
    #[error("the message is not {{\"v\":1,\"key\":...}}: {0}")]
    Unreadable(#[source] serde_json::Error),
    /// Written by another build.
    #[error("message format {found}, this build reads {MESSAGE_FORMAT}")]
    Format {
        /// The format number found.
        found: u32,
    },
    /// The key is no ledger key.
    #[error(transparent)]
    Key(#[from] crate::KeyError),
}

impl Message {
    /// The message that points at a row.
    #[must_use]
    pub fn new(key: EventKey, event_type: &str, entity: Option<String>) -> Self {
        // An SQS message may hold 1 MiB and an operator reads one line: keep the hints short.
        let event_type = event_type.chars().take(200).collect();
        Self { v: MESSAGE_FORMAT, key, event_type, entity }
    }

    /// Reads a message body.
    pub fn parse(body: &str) -> Result<Self, MessageError> {
        let message: Self = serde_json::from_str(body).map_err(MessageError::Unreadable)?;
        if message.v != MESSAGE_FORMAT {
            return Err(MessageError::Format { found: message.v });
        }
        EventKey::parse(message.key.as_str())?;
        Ok(message)
    }

    /// The message body.
    #[must_use]
    pub fn to_json(&self) -> String {
        // A struct of strings and a number always serialises.
        let json = serde_json::to_string(self).unwrap_or_default();
        // SQS takes the characters of XML 1.0 alone; JSON escapes all others but these two.
        json.replace('\u{fffe}', "\\ufffe").replace('\u{ffff}', "\\uffff")
    }
}

#[cfg(test)]
#[expect(clippy::unwrap_used, reason = "a failed unwrap is a failed test")]
mod tests {
    use super::*;

    #[test]
    fn a_message_survives_its_own_json() {
        let key = EventKey::parse("s#evt_1#x").unwrap();
        let message = Message::new(key, "invoice.paid", Some("s#invoice#in_1".to_owned()));
        assert_eq!(Message::parse(&message.to_json()).unwrap(), message);
        let key = EventKey::parse("s#tr_\u{ffff}\u{fffe}").unwrap();
        let message = Message::new(key, "\u{ffff}\u{10ffff}", None);
        assert_eq!(Message::parse(&message.to_json()).unwrap(), message);
        let is_xml = |c: char| !c.is_control() && !matches!(c, '\u{fffe}' | '\u{ffff}');
        assert!(message.to_json().chars().all(is_xml), "{}", message.to_json());
    }

    #[test]
    fn foreign_messages_are_named_not_guessed_at() {
        assert!(matches!(Message::parse("{not json"), Err(MessageError::Unreadable(_))));
        assert!(matches!(Message::parse(""), Err(MessageError::Unreadable(_))));
        assert!(matches!(
            Message::parse(r#"{"v":2,"key":"s#e"}"#),
            Err(MessageError::Format { found: 2 })
        ));
        assert!(matches!(Message::parse(r#"{"v":1,"key":"nokey"}"#), Err(MessageError::Key(_))));
    }
}
