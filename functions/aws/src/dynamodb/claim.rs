//! Claim: the row is put unless its key is taken.

use super::{read_row, refused};
use crate::{Aws, Resource, item::encode_row};
use ledger::{
    Row,
    verbs::{Claim, ClaimRefusal, claim_refusal},
};
use workflow::ports::Conditional;

const CONDITION: &str = "attribute_not_exists(#pk)";

impl Aws {
    pub(super) async fn put_claim(&self, row: &Row, ask: &Claim) -> Conditional<(), ClaimRefusal> {
        let step = "claim";
        let table = self.resource(step, Resource::LedgerTable)?;
        let item = encode_row(row);
        let Err(found) = self.put(step, table, item, CONDITION).await? else {
            return Ok(Ok(()));
        };
        let found = read_row(step, found)?;
        let identity = row.evidence.identity_hash.as_ref();
        // The store refuses only a key that is taken. Should it not show the row, the row is
        // durable all the same, and sending once more does no harm.
        let why = found.as_ref().map_or(ClaimRefusal::UnknownFormat, |found| {
            claim_refusal(found, identity, ask, &self.settings().policy)
        });
        Ok(Err(refused(why, found)))
    }
}
