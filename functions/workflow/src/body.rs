//! Bodies: how the exact bytes are stored and read back.
//!
//! A body is compressed when that makes it smaller. What is small stays in its row, where a lease
//! returns it without a read; what is large is cut into chunks that are written *before* the
//! claim, so that a row always has its body. A crash in between leaves chunks that expire.

use crate::ports::{Ledger, PortError, Trouble};
use ledger::{Body, Codec, EventKey, Millis, Policy, Row, Seconds};
use sha2::{Digest, Sha256};
use thiserror::Error;

/// More than any list's answer may hold: what a row says of its length is not believed beyond.
const BODY_BYTES_MAX: usize = 64 * 1_024 * 1_024;
/// zstd's default: webhooks shrink to a fifth, at some hundred megabytes a second.
const ZSTD_LEVEL: i32 = 3;

/// A body ready to be stored.
pub struct Encoded {
    /// What the row says of it.
    pub body: Body,
    /// The encoded bytes of a body that does not fit its row; empty otherwise.
    pub chunked: Vec<u8>,
}

/// Why a stored body cannot be read.
#[derive(Debug, Error)]
pub enum BodyError {
    /// The store failed.
    #[error(transparent)]
    Port(#[from] PortError),
    /// A chunk is gone.
    #[error("chunk {n} of {of} is missing")]
    ChunkMissing {
        /// The chunk, from zero.
        n: u32,
        /// How many there should be.
        of: u32,
    },
    /// The bytes do not decompress.
    #[error("the stored body does not decompress")]
    Garbled(#[source] std::io::Error),
    /// The bytes are not those that were stored.
    #[error("the stored body does not have the hash its row names")]
    Altered,
}

/// Encodes a body for storage.
#[must_use]
pub fn encode(bytes: &[u8], policy: &Policy) -> Encoded {
    let compressed =
        zstd::bulk::compress(bytes, ZSTD_LEVEL).ok().filter(|small| small.len() < bytes.len());
    let (codec, encoded) =
        compressed.map_or_else(|| (Codec::Plain, bytes.to_vec()), |small| (Codec::Zstd, small));
    let mut body = Body {
        codec,
        inline: None,
        chunks: 0,
        sha256: Sha256::digest(bytes).into(),
        len: u64::try_from(bytes.len()).unwrap_or(u64::MAX),
    };
    if encoded.len() <= policy.inline_bytes_max {
        body.inline = Some(encoded);
        return Encoded { body, chunked: Vec::new() };
    }
    let chunks = encoded.len().div_ceil(policy.chunk_bytes_max);
    body.chunks = u32::try_from(chunks).unwrap_or(u32::MAX);
    Encoded { body, chunked: encoded }
}

/// Writes the chunks of `encoded` under `key`, to expire at `expires_at` or never.
pub async fn store(
    ledger: &impl Ledger,
    key: &EventKey,
    encoded: &Encoded,
    policy: &Policy,
    expires_at: Option<Seconds>,
) -> Result<(), PortError> {
    let writes = encoded.chunked.chunks(policy.chunk_bytes_max).zip(0_u32..).map(|(bytes, n)| {
        let pk = key.chunk(&encoded.body.sha256, n);
        async move { ledger.put_chunk(&pk, bytes, expires_at).await }
    });
    futures::future::try_join_all(writes).await?;
    Ok(())
}

/// Reads a row's body back, byte for byte, and checks its hash.
pub async fn read(ledger: &impl Ledger, row: &Row) -> Result<Vec<u8>, BodyError> {
    let body = &row.evidence.body;
    let encoded = match &body.inline {
        Some(bytes) => bytes.clone(),
        None => gather(ledger, row).await?,
    };
    let bytes = match body.codec {
        Codec::Plain => encoded,
        Codec::Zstd => {
            // Not the receiver's limit: what a list hands over may be larger.
            let most = usize::try_from(body.len).unwrap_or(usize::MAX).min(BODY_BYTES_MAX);
            zstd::bulk::decompress(&encoded, most).map_err(BodyError::Garbled)?
        }
    };
    if <[u8; 32]>::from(Sha256::digest(&bytes)) == body.sha256 {
        Ok(bytes)
    } else {
        Err(BodyError::Altered)
    }
}

async fn gather(ledger: &impl Ledger, row: &Row) -> Result<Vec<u8>, BodyError> {
    let body = &row.evidence.body;
    let reads = (0..body.chunks).map(|n| async move {
        let pk = row.evidence.key.chunk(&body.sha256, n);
        let chunk = ledger.chunk(&pk).await?;
        chunk.ok_or(BodyError::ChunkMissing { n, of: body.chunks })
    });
    Ok(futures::future::try_join_all(reads).await?.concat())
}

/// Takes the time to live from every chunk of a row that is about to be buried.
pub async fn keep(ledger: &impl Ledger, row: &Row) -> Result<(), PortError> {
    let body = &row.evidence.body;
    for n in 0..body.chunks {
        ledger.keep_chunk(&row.evidence.key.chunk(&body.sha256, n)).await?;
    }
    Ok(())
}

/// Gives the chunks of a row that was buried once, and is settled or closed now, a time to live again.
pub async fn release(
    ledger: &impl Ledger,
    row: &Row,
    policy: &Policy,
    settled_at: Millis,
) -> Result<(), PortError> {
    let body = &row.evidence.body;
    let expires_at = settled_at.seconds_after(policy.chunk_seconds());
    for n in 0..body.chunks {
        let pk = row.evidence.key.chunk(&body.sha256, n);
        ledger.expire_chunk(&pk, expires_at).await?;
    }
    Ok(())
}

impl BodyError {
    /// What the error means for a retry: a store's trouble is its own, the rest cannot heal.
    #[must_use]
    pub fn trouble(&self) -> Trouble {
        match self {
            Self::Port(error) => error.trouble,
            Self::ChunkMissing { .. } | Self::Garbled(_) | Self::Altered => Trouble::Invalid,
        }
    }
}
