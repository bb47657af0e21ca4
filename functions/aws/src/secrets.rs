//! Secrets Manager: documents read whole, by name.

use crate::{Aws, Resource, trouble::Failed};
use workflow::ports::{PortError, Secret, SecretStore, Trouble};

const STEP: &str = "read secret";

impl SecretStore for Aws {
    async fn fetch(&self, secret: Secret) -> Result<String, PortError> {
        let id = self.resource(STEP, resource(secret))?;
        let call = self.clients.secrets.get_secret_value().secret_id(id);
        let answer = call.send().await;
        let answer = answer.map_err(|error| Failed::from_sdk(&error).at(STEP))?;
        answer.secret_string.ok_or_else(|| {
            Failed::new(Trouble::Unavailable, "the secret holds bytes, expected text").at(STEP)
        })
    }
}

const fn resource(secret: Secret) -> Resource {
    match secret {
        Secret::Signing => Resource::SigningSecret,
        Secret::Outbound => Resource::OutboundSecret,
        Secret::Replay => Resource::ReplaySecret,
    }
}
