//! Projections that meet in one entity: what they must agree on, and what each event may do.
#![expect(clippy::panic, reason = "a panic is a failed test")]

use config::Config;

fn parse(text: &str) -> Result<Config, Vec<String>> {
    Config::parse("sources.toml", text, &|_| None)
        .map_err(|errors| errors.iter().map(ToString::to_string).collect())
}

fn errors(text: &str) -> Vec<String> {
    match parse(text) {
        Ok(_) => panic!("accepted:\n{text}"),
        Err(errors) => errors,
    }
}

/// Sources with one projection each, eight lines a source, all of one namespace and entity type.
fn shared(projections: &[(&str, &str)]) -> String {
    let source = |(index, (order, fields)): (usize, &(&str, &str))| {
        format!(
            "[sources.s{index}]\npreset = \"stripe\"\nsecret = \"s\"\n\
             [[sources.s{index}.projections]]\non = [\"a\"]\n\
             entity = {{ namespace = \"n\", type = \"t\", id = \"/id\" }}\n\
             order = {{ {order} }}\n{fields}\n"
        )
    };
    projections.iter().enumerate().map(source).collect()
}

const BY_COUNTER: &str = "strategy = \"version\", by = \"/v\"";
const BY_SECONDS: &str = "strategy = \"version\", by = \"/v\", unit = \"s\"";
const BY_ISO: &str = "strategy = \"version\", by = \"/v\", unit = \"iso\"";

#[test]
fn changes_of_one_entity_type_set_the_same_fields_across_sources() {
    let text = shared(&[
        (BY_COUNTER, "set = { plan = \"/p\", status = \"/s\" }"),
        (BY_COUNTER, "set = { status = \"/s\" }"),
    ]);
    assert_eq!(
        errors(&text),
        ["sources.toml:16: sources.s1.projections[0].set: found { status }, allowed \
          { plan, status }, as sources.s0.projections[0] (line 4) has it: \
          the same fields in every change of n#t"]
    );
}

#[test]
fn an_entity_type_has_one_strategy_since_deltas_know_no_version() {
    let text = shared(&[
        (BY_COUNTER, "set = { total = \"/t\" }"),
        ("strategy = \"none\"", "add = { total = \"/t\" }"),
    ]);
    assert_eq!(
        errors(&text),
        [
            "sources.toml:15: sources.s1.projections[0].order.strategy: found none, allowed version, \
          as sources.s0.projections[0] (line 4) has it: one strategy for every change of n#t"
        ]
    );
}

#[test]
fn counters_and_times_do_not_order_one_entity_but_times_of_any_unit_do() {
    let set = "set = { x = \"/x\" }";
    assert_eq!(
        errors(&shared(&[(BY_COUNTER, set), (BY_SECONDS, set)])),
        ["sources.toml:15: sources.s1.projections[0].order.unit: found a unit of time, allowed \
          integer, as sources.s0.projections[0] (line 4) has it: \
          one kind of version for every change of n#t"]
    );
    assert!(parse(&shared(&[(BY_ISO, set), (BY_SECONDS, set)])).is_ok());
}

#[test]
fn an_entity_type_has_one_rule_among_equals() {
    let set = "set = { x = \"/x\" }";
    let skip = "strategy = \"version\", by = \"/v\", tie = \"skip\"";
    assert_eq!(
        errors(&shared(&[(BY_COUNTER, set), (skip, set)])),
        ["sources.toml:15: sources.s1.projections[0].order.tie: found skip, allowed rank, \
          as sources.s0.projections[0] (line 4) has it: one rule among equals for every change of n#t"]
    );
}

/// One source with one projection for each `(on, id pointer)`.
fn projections(list: &[(&str, &str)]) -> String {
    let projection = |(on, id): &(&str, &str)| {
        format!(
            "[[sources.s.projections]]\non = {on}\nentity = {{ type = \"t\", id = \"{id}\" }}\n\
             order = {{ {BY_COUNTER} }}\nset = {{ x = \"/x\" }}\n"
        )
    };
    let tables: String = list.iter().map(projection).collect();
    format!("[sources.s]\npreset = \"stripe\"\nsecret = \"s\"\n{tables}")
}

#[test]
fn two_projections_cannot_take_one_event_type_for_one_entity() {
    assert_eq!(
        errors(&projections(&[("[\"a\", \"b\"]", "/id"), ("[\"c\", \"b\"]", "/id")])),
        ["sources.toml:10: sources.s.projections[1].on: found `b`, which \
          sources.s.projections[0] (line 4) takes for the same entity, allowed each event type \
          once per namespace, entity type and id pointer"]
    );
}

#[test]
fn an_event_may_change_two_entities_of_one_type() {
    let text = projections(&[("[\"transfer\"]", "/from"), ("[\"transfer\"]", "/to")]);
    assert!(parse(&text).is_ok());
}

#[test]
fn mistakes_between_projections_are_told_beside_those_within_them() {
    let text = projections(&[("[\"a\"]", "/id"), ("[\"a\"]", "/id"), ("[]", "/id")]);
    assert_eq!(errors(&text).len(), 2);
}

/// The rank of each event type, in the order of the file.
fn ranks(text: &str) -> Vec<(String, u32)> {
    let config = parse(text).unwrap_or_else(|errors| panic!("{errors:#?}"));
    let source = config.source("s").unwrap_or_else(|| panic!("no source"));
    let ranked = source.projections.iter().flat_map(|projection| {
        projection.on.iter().filter_map(|on| Some((on.clone(), projection.rank_of(on)?)))
    });
    ranked.collect()
}

#[test]
fn a_rank_is_the_list_among_those_of_its_entity_type_and_the_place_in_it() {
    let text = projections(&[("[\"a\", \"b\"]", "/id"), ("[\"c\", \"d\"]", "/id")]);
    let expected = [("a", 0), ("b", 1), ("c", 1 << 16), ("d", (1 << 16) + 1)];
    assert_eq!(ranks(&text), expected.map(|(name, rank)| (name.to_owned(), rank)));
}

#[test]
fn a_list_that_grows_at_its_end_wherever_it_stands_keeps_every_rank() {
    let before = ranks(&projections(&[("[\"a\", \"b\"]", "/id"), ("[\"c\"]", "/id")]));
    let own = projections(&[("[\"a\", \"b\", \"new\"]", "/id"), ("[\"c\"]", "/id")]);
    let behind = projections(&[
        ("[\"a\", \"b\"]", "/id"),
        ("[\"c\", \"new\"]", "/id"),
        ("[\"last\"]", "/id"),
    ]);
    // Another entity's list, before them all.
    let other =
        projections(&[("[\"x\", \"y\", \"z\"]", "/id")]).replace("type = \"", "type = \"other-");
    let tables = projections(&[("[\"a\", \"b\"]", "/id"), ("[\"c\"]", "/id")]);
    let (_, tables) = tables.split_once("secret = \"s\"\n").unwrap_or_default();
    for after in [own, behind, format!("{other}{tables}")] {
        let after = ranks(&after);
        assert!(before.iter().all(|rank| after.contains(rank)), "{before:?} became {after:?}");
        assert!(after.len() > before.len());
    }
}

#[test]
fn an_event_type_has_one_rank_per_entity_type_wherever_its_id_stands() {
    let text = projections(&[("[\"a\", \"b\"]", "/from"), ("[\"b\", \"a\"]", "/to")]);
    let config = parse(&text).unwrap_or_else(|errors| panic!("{errors:#?}"));
    for source in config.sources() {
        for projection in &source.projections {
            assert_eq!(projection.rank_of("a"), Some(0));
            assert_eq!(projection.rank_of("b"), Some(1));
            assert_eq!(projection.rank_of("c"), None);
        }
    }
}
