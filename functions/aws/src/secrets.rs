//! Secrets Manager: documents read whole, by name.

use crate::{
    Aws, Resource,
    trouble::{Failed, missing},
};
use workflow::ports::{PortError, SecretStore, Trouble};

const STEP: &str = "read secret";

/// One of the three secrets.
pub struct SecretDocument<'a> {
    pub(crate) aws: &'a Aws,
    pub(crate) resource: Resource,
}

impl SecretStore for SecretDocument<'_> {
    async fn fetch(&self) -> Result<String, PortError> {
        let id = self.aws.settings().get(self.resource);
        let id = id.map_err(|error| missing(STEP, error))?;
        let call = self.aws.clients.secrets.get_secret_value().secret_id(id);
        let answer = call.send().await;
        let answer = answer.map_err(|error| Failed::from_sdk(&error).at(STEP))?;
        answer.secret_string.ok_or_else(|| {
            Failed::new(Trouble::Unavailable, "the secret holds bytes, expected text").at(STEP)
        })
    }
}

/// The signing keys.
impl SecretStore for Aws {
    async fn fetch(&self) -> Result<String, PortError> {
        self.secret(Resource::SigningSecret).fetch().await
    }
}
