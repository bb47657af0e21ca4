//! The key of a provider's API, shown as the API wants it.

use super::{
    Stop,
    pager::origin,
    patience::{self, Watch},
};
use crate::{
    http::{HttpAsk, Method},
    outbound::ApiKey,
    ports::{Clock, Entropy, Http},
};
use base64::{Engine as _, prelude::BASE64_STANDARD};
use futures::lock::Mutex;
use ledger::Millis;
use serde::Deserialize;
use verifier::ApiAuth;

/// A bought token is not used in its last minute.
const TOKEN_MARGIN_MS: u64 = 60_000;

/// How a run shows its key.
pub struct Access {
    auth: ApiAuth,
    key: ApiKey,
    /// The bought token, and when to buy another.
    bought: Mutex<Option<(String, Millis)>>,
}

/// RFC 6749, section 5.1.
#[derive(Deserialize)]
struct Token {
    access_token: String,
    #[serde(default)]
    expires_in: u64,
}

impl Access {
    /// With this key.
    #[must_use]
    pub fn new(auth: ApiAuth, key: ApiKey) -> Self {
        Self { auth, key, bought: Mutex::new(None) }
    }

    /// The request with the key.
    pub(super) async fn with_key(
        &self,
        ports: &(impl Http + Clock + Entropy),
        watch: &impl Watch,
        whom: &str,
        ask: HttpAsk,
    ) -> Result<HttpAsk, Stop> {
        let value = match &self.auth {
            ApiAuth::Bearer => format!("Bearer {}", self.key.text()),
            ApiAuth::Basic => self.basic(),
            ApiAuth::ClientCredentials { token_path } => {
                let url = format!("{}{token_path}", origin(&ask.url));
                format!("Bearer {}", self.token(ports, watch, whom, url).await?)
            }
        };
        Ok(ask.header("authorization", value))
    }

    fn basic(&self) -> String {
        let text = self.key.text();
        // A user alone has no password.
        let pair = if text.contains(':') { text.to_owned() } else { format!("{text}:") };
        format!("Basic {}", BASE64_STANDARD.encode(pair))
    }

    async fn token(
        &self,
        ports: &(impl Http + Clock + Entropy),
        watch: &impl Watch,
        whom: &str,
        url: String,
    ) -> Result<String, Stop> {
        let mut bought = self.bought.lock().await;
        if let Some((token, until)) = &*bought
            && ports.now() < *until
        {
            return Ok(token.clone());
        }
        let ask = HttpAsk {
            method: Method::Post,
            body: b"grant_type=client_credentials".to_vec(),
            ..HttpAsk::get(url)
        };
        let ask = ask
            .header("authorization", self.basic())
            .header("content-type", "application/x-www-form-urlencoded");
        let answer = patience::call(ports, watch, whom, &ask).await.map_err(Stop::Unreachable)?;
        if answer.status != 200 {
            return Err(Stop::Refused(format!("{whom} gives no token ({})", answer.status)));
        }
        let token: Token = serde_json::from_slice(&answer.body)
            .map_err(|_| Stop::Refused(format!("{whom} gives no token that can be read")))?;
        let kept_ms = token.expires_in.saturating_mul(1_000).saturating_sub(TOKEN_MARGIN_MS);
        *bought = Some((token.access_token.clone(), ports.now().plus(kept_ms)));
        Ok(token.access_token)
    }
}
