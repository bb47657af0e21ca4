//! Time and randomness of the process.

use crate::Aws;
use ledger::{Jitter, Millis, Token};
use sha2::{Digest, Sha256};
use std::{
    sync::atomic::{AtomicU64, Ordering},
    time::{Duration, SystemTime, UNIX_EPOCH},
};
use workflow::ports::{Clock, Entropy};

impl Clock for Aws {
    fn now(&self) -> Millis {
        now()
    }

    async fn sleep(&self, ms: u64) {
        tokio::time::sleep(Duration::from_millis(ms)).await;
    }
}

impl Entropy for Aws {
    fn token(&self) -> Token {
        Token(u128::from_le_bytes(random()))
    }

    fn jitter(&self) -> Jitter {
        jitter()
    }
}

pub(crate) fn now() -> Millis {
    let since_epoch = SystemTime::now().duration_since(UNIX_EPOCH);
    let ms = since_epoch.map_or(0, |elapsed| elapsed.as_millis());
    Millis(u64::try_from(ms).unwrap_or(u64::MAX))
}

pub(crate) fn jitter() -> Jitter {
    let [a, b, c, d] = random();
    Jitter { spread: u16::from_le_bytes([a, b]), round: u16::from_le_bytes([c, d]) }
}

/// Random bytes. Tokens have to be unique, not secret: should the operating system refuse, a hash
/// of this process, the time and a counter is unique too, and work goes on.
fn random<const N: usize>() -> [u8; N] {
    static CALLS: AtomicU64 = AtomicU64::new(0);
    let mut bytes = [0; N];
    if getrandom::fill(&mut bytes).is_err() {
        let hash = Sha256::new()
            .chain_update(std::process::id().to_le_bytes())
            .chain_update(std::env::var("AWS_LAMBDA_LOG_STREAM_NAME").unwrap_or_default())
            .chain_update(now().0.to_le_bytes())
            .chain_update(CALLS.fetch_add(1, Ordering::Relaxed).to_le_bytes())
            .finalize();
        for (byte, hashed) in bytes.iter_mut().zip(hash) {
            *byte = hashed;
        }
    }
    bytes
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn tokens_do_not_repeat() {
        let tokens: std::collections::BTreeSet<[u8; 16]> = (0..1_000).map(|_| random()).collect();
        assert_eq!(tokens.len(), 1_000);
    }
}
