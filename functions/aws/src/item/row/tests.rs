//! Rows survive their items, and items that are no rows are named.
#![expect(clippy::unwrap_used, reason = "a failed unwrap is a failed test")]

use super::*;
use proptest::{option, prelude::*, sample::select};

fn any_time() -> impl Strategy<Value = Option<Millis>> {
    option::of(any::<u64>().prop_map(Millis))
}

fn any_text() -> impl Strategy<Value = String> {
    ".{0,12}"
}

prop_compose! {
    fn any_evidence()(
        id in ".{1,20}",
        event_type in any_text(),
        received_at in 0..4_102_444_800_000_u64,
        codec in select(Codec::ALL),
        inline in option::of(prop::collection::vec(any::<u8>(), 0..40)),
        chunks in 1..20_u32,
        sha256 in any::<[u8; 32]>(),
        len in any::<u64>(),
        identity_hash in any::<Option<[u8; 32]>>(),
        headers in prop::collection::btree_map("[a-z-]{1,9}", any_text(), 0..4),
        kid in any_text(),
        origin in select(Origin::ALL),
        origin_note in option::of(any_text()),
    ) -> Evidence {
        let source = SourceName::new("stripe-live").unwrap();
        Evidence {
            key: EventKey::new(&source, &id).unwrap(),
            source,
            event_type,
            received_at: Millis(received_at),
            body: Body {
                codec,
                chunks: if inline.is_some() { 0 } else { chunks },
                inline,
                sha256,
                len,
            },
            identity_hash,
            headers,
            kid,
            origin,
            origin_note,
        }
    }
}

prop_compose! {
    fn any_failure()(
        error in any_text(),
        class in select(FailureClass::ALL),
        at in any::<u64>(),
    ) -> Failure {
        Failure { error, class, at: Millis(at) }
    }
}

fn any_open() -> impl Strategy<Value = Open> {
    let bucket = prop_oneof![
        (0..10_u8).prop_map(Bucket::Pending),
        (0..10_u8).prop_map(Bucket::Dead),
        (0..10_u8).prop_map(Bucket::Parked),
    ];
    (bucket, any::<u64>()).prop_map(|(bucket, at)| Open { bucket, due_at: Millis(at) })
}

prop_compose! {
    fn any_life()(
        (status, outcome) in (select(Status::ALL), option::of(select(Outcome::ALL))),
        (nonce, epoch, attempts) in any::<(u128, u64, u32)>(),
        lease in option::of(any::<(u128, u64)>()),
        failure in option::of(any_failure()),
        (retry_at, redriven_at, waiting_since, settled_at) in
            (any_time(), any_time(), any_time(), any_time()),
        (release, budget_release) in (option::of(any_text()), option::of(any_text())),
        (redrives, sweeps) in any::<(u32, u32)>(),
        open in option::of(any_open()),
        expires_at in option::of(any::<u64>().prop_map(Seconds)),
        by_hand in option::of((any_text(), any_text(), any::<u64>())),
        (resolved_by, note) in (option::of(any_text()), option::of(any_text())),
    ) -> Life {
        Life {
            format: ROW_FORMAT,
            status,
            outcome,
            claim_nonce: Token(nonce),
            epoch,
            attempts,
            lease: lease.map(|(owner, until)| Lease { owner: Token(owner), until: Millis(until) }),
            failure,
            retry_at,
            release,
            redrives,
            redriven_at,
            by_hand: by_hand.map(|(by, reason, at)| ByHand { by, reason, at: Millis(at) }),
            budget_release,
            waiting_since,
            sweeps,
            open,
            settled_at,
            expires_at,
            resolved_by,
            note,
        }
    }
}

prop_compose! {
    fn any_effect()(
        entity in ".{1,12}",
        outcome in select(EffectOutcome::ALL),
        version in option::of(any::<i64>()),
    ) -> Effect {
        let version = version.map(|number| Version::new(number.into()).unwrap());
        Effect { entity, outcome, version }
    }
}

prop_compose! {
    fn any_row()(
        evidence in any_evidence(),
        life in any_life(),
        effects in prop::collection::vec(any_effect(), 0..4),
    ) -> Row {
        Row { evidence, life, effects }
    }
}

proptest! {
    #[test]
    fn a_row_comes_back_as_it_was(row in any_row()) {
        let item = encode(&row);
        prop_assert_eq!(decode(&item).unwrap(), row);
    }

    #[test]
    fn a_row_is_in_the_index_exactly_while_it_is_open(row in any_row()) {
        let item = encode(&row);
        let is_open = row.life.open.is_some();
        prop_assert_eq!(item.contains_key("bucket"), is_open);
        prop_assert_eq!(item.contains_key("due_at"), is_open);
        prop_assert_eq!(&item["day"], &text(row.evidence.day()));
        prop_assert!(item.contains_key("received_at"));
    }

    #[test]
    fn a_row_without_one_of_its_attributes_or_with_a_garbled_one_never_panics(
        row in any_row(),
        victim in any::<prop::sample::Index>(),
    ) {
        let mut item = encode(&row);
        let name = victim.get(&item.keys().cloned().collect::<Vec<_>>()).clone();
        item.insert(name.clone(), AttributeValue::Bool(true));
        let _garbled = decode(&item);
        item.remove(&name);
        let _without = decode(&item);
    }

    #[test]
    fn a_row_of_another_format_is_recognised_whatever_else_it_holds(
        row in any_row(),
        format in 2_u32..,
        victim in any::<prop::sample::Index>(),
    ) {
        let mut item = encode(&row);
        let name = victim.get(&item.keys().cloned().collect::<Vec<_>>()).clone();
        if name != "pk" {
            item.insert(name, AttributeValue::Null(true));
        }
        item.insert("format".to_owned(), number(format));
        let found = decode(&item).unwrap();
        prop_assert_eq!(found.life.format, format);
        prop_assert_eq!(found.evidence.key, row.evidence.key);
    }
}

#[test]
fn a_row_without_a_readable_format_is_of_another_one() {
    let bare = Item::from([("pk".to_owned(), text("_s#steward"))]);
    assert_eq!(decode(&bare).unwrap().life.format, 0);
    let mut odd = Item::from([("pk".to_owned(), text("github#1"))]);
    odd.insert("format".to_owned(), text("one"));
    assert_eq!(decode(&odd).unwrap().life.format, 0);
}

#[test]
fn an_unreadable_attribute_is_named_and_its_value_is_not() {
    let mut item = Item::from([("pk".to_owned(), text("github#1"))]);
    item.insert("format".to_owned(), number(ROW_FORMAT));
    item.insert("source".to_owned(), text("SECRET VALUE"));
    let error = decode(&item).unwrap_err().to_string();
    assert_eq!(error, "attribute `source` is unreadable, expected a source name");
}
