//! What an event costs in write units, by AWS's own rule, from the items as they are written.
//!
//! An item's size is the bytes of its attribute names and values; a write pays for the larger of
//! the item before and after, in whole kilobytes; a transaction pays twice; an index entry that
//! comes or goes pays for itself. (Amazon DynamoDB Developer Guide, "DynamoDB item sizes and
//! formats" and "Read and write operations".) The emulator's own figure for the claim stands
//! beside it.

use crate::store::{Store, Stores};
use aws::item::Item;
use aws_sdk_dynamodb::types::{AttributeValue, ReturnConsumedCapacity};
use ledger::{
    Change, EffectOutcome, EntityKey, Guard, Millis, Row, Stamp, Tie, Token, Version,
    verbs::{Apply, LeaseAsk},
};
use serde_json::{Map, Value, json};
use support::claimed_row;
use workflow::{body, ports::Ledger};

const NOW: Millis = Millis(1_796_000_000_000);
const KILOBYTE: usize = 1_024;

/// Bytes of an item, by AWS's rule.
fn item_bytes(item: &Item) -> usize {
    item.iter().map(|(name, value)| name.len() + value_bytes(value)).sum()
}

fn value_bytes(value: &AttributeValue) -> usize {
    match value {
        AttributeValue::S(text) => text.len(),
        AttributeValue::B(bytes) => bytes.as_ref().len(),
        // Up to 38 significant digits, two to a byte, and one byte more.
        AttributeValue::N(digits) => {
            digits.trim_start_matches(['-', '0', '.']).trim_end_matches('0').len().div_ceil(2) + 1
        }
        AttributeValue::Ss(texts) => texts.iter().map(String::len).sum(),
        AttributeValue::L(items) => {
            3 + items.iter().map(|item| 1 + value_bytes(item)).sum::<usize>()
        }
        AttributeValue::M(members) => {
            3 + members.iter().map(|(name, item)| 1 + name.len() + value_bytes(item)).sum::<usize>()
        }
        _ => 1,
    }
}

const fn units(bytes: usize) -> usize {
    if bytes == 0 { 1 } else { bytes.div_ceil(KILOBYTE) }
}

/// A JSON event of about `bytes` bytes, of words and numbers as a provider's are.
fn event(bytes: usize) -> Vec<u8> {
    let line = |n: usize| {
        let id = format!("il_{:x}", n.wrapping_mul(0x9e37_79b9_7f4a_7c15));
        json!({"id": id, "object": "line_item", "amount": n * 37 % 9_900, "currency": "eur",
               "description": format!("{n} x seat, monthly"), "livemode": true})
    };
    let mut lines = Vec::new();
    while Value::from(lines.clone()).to_string().len() + 150 < bytes {
        lines.push(line(lines.len()));
    }
    json!({"id": "evt_units", "type": "invoice.paid", "created": 1_796_000_000, "lines": lines})
        .to_string()
        .into_bytes()
}

/// The row as the receiver stores it, and the chunks beside it.
async fn store_body(aws: &aws::Aws, mut row: Row, bytes: &[u8], stores: &Stores) -> (Row, usize) {
    let encoded = body::encode(bytes, &stores.policy);
    row.evidence.body = encoded.body.clone();
    let expires_at = Some(NOW.seconds_after(stores.policy.chunk_seconds()));
    body::store(aws, &row.evidence.key, &encoded, &stores.policy, expires_at).await.unwrap();
    let chunks = encoded.chunked.chunks(stores.policy.chunk_bytes_max);
    let overhead = row.evidence.key.chunk(&encoded.body.sha256, 0).len() + 30;
    (row, chunks.map(|chunk| units(chunk.len() + overhead)).sum())
}

pub(crate) async fn write_units_of_an_event(stores: &Stores) {
    println!(
        "\nwrite units   body  chunks  claim (+indexes)  lease  settle (+index)  state  sum   emulator's claim"
    );
    for kilobytes in [1, 5, 20, 100] {
        let store = &stores.emulators[0];
        let aws = store.ports();
        let bytes = event(kilobytes * KILOBYTE);
        let id = format!("evt_units_{kilobytes}");
        let (row, claim) = claimed_row("units", &id, "invoice.paid", &bytes, NOW);
        let (row, chunks) = store_body(aws, row, &bytes, stores).await;

        let said = claimed(aws, &row).await;
        aws.claim(&row, &claim).await.unwrap().unwrap();
        let claimed_bytes = item_bytes(&store.raw(&row.evidence.key).await.unwrap());
        let ask = LeaseAsk {
            owner: Token(7),
            until: NOW.plus(40_000),
            now: NOW.plus(50),
            release: "0123456789ab".to_owned(),
        };
        let leased = aws.lease(&row.evidence.key, &ask).await.unwrap().unwrap();
        let leased_bytes = item_bytes(&store.raw(&row.evidence.key).await.unwrap());

        let entity = EntityKey::new("units", "invoice", &id).unwrap();
        let apply = Apply::new(leased.row.life.epoch, NOW.plus(90), vec![change(&entity)]);
        let effects = [ledger::Effect {
            entity: entity.as_str().to_owned(),
            outcome: EffectOutcome::Applied,
            version: Some(Version::new(1).unwrap()),
        }];
        aws.apply(&row.evidence.key, &apply, &effects).await.unwrap().unwrap();
        let settled_bytes = item_bytes(&store.raw(&row.evidence.key).await.unwrap());
        let state_bytes = item_bytes(&store.raw_entity(&entity).await.unwrap());

        // The entries of `open` and `by_day` hold keys and little else: one unit each.
        let claim_units = units(claimed_bytes);
        let lease_units = units(leased_bytes.max(claimed_bytes));
        let settle_units = 2 * units(settled_bytes.max(leased_bytes));
        let state_units = 2 * units(state_bytes);
        let sum = chunks + claim_units + 2 + lease_units + settle_units + 1 + state_units;
        println!(
            "{kilobytes:>15} KB {chunks:>7} {claim_units:>7} + 2 {lease_units:>13} {settle_units:>8} + 1 \
             {state_units:>11} {sum:>4} {said:>12}"
        );
        assert!(
            settled_bytes < stores.policy.inline_bytes_max + 2 * KILOBYTE,
            "a row stays small whatever its body: {settled_bytes} bytes"
        );
        assert!(claim_units <= 5 && lease_units <= 5, "a large body is paid for once");
    }
}

fn change(entity: &EntityKey) -> Change {
    let mut state = Map::new();
    state.insert("plan".to_owned(), json!("price_gold_monthly"));
    state.insert("status".to_owned(), json!("active"));
    let stamp = Stamp { version: Version::new(1).unwrap(), rank: 0, event_id: "evt".to_owned() };
    Change {
        entity: entity.clone(),
        guard: Guard::Newer { stamp, tie: Tie::Rank },
        state,
        is_final: false,
        leaves: std::collections::BTreeSet::new(),
    }
}

/// What the emulator says that putting the row costs. The row is put under another key.
async fn claimed(aws: &aws::Aws, row: &Row) -> f64 {
    let mut twin = row.clone();
    let text = format!("{}-", row.evidence.key);
    twin.evidence.key = ledger::EventKey::parse(&text).unwrap();
    let put = aws.dynamodb().put_item().table_name("LedgerTable");
    let put = put.set_item(Some(aws::item::encode_row(&twin)));
    let answer = put.return_consumed_capacity(ReturnConsumedCapacity::Total).send().await.unwrap();
    answer.consumed_capacity.and_then(|units| units.capacity_units).unwrap_or(f64::NAN)
}
