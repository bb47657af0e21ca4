//! What a right configuration means: the shipped file, parameters, overrides, sources of a
//! team's own.
#![expect(clippy::panic, reason = "a panic is a failed test")]

use config::{Config, Expr, Mode, Order, Pointer, Source, Tie};
use ledger::Unit;
use serde_json::{Value, json};

const SHIPPED: &str = include_str!("../../../infra/sources.toml");

fn parse(text: &str, param: &dyn Fn(&str) -> Option<String>) -> Config {
    match Config::parse("sources.toml", text, param) {
        Ok(config) => config,
        Err(errors) => {
            let lines: Vec<String> = errors.iter().map(ToString::to_string).collect();
            panic!("{}", lines.join("\n"))
        }
    }
}

fn source<'c>(config: &'c Config, name: &str) -> &'c Source {
    config.source(name).unwrap_or_else(|| panic!("no source {name}"))
}

fn pointer(text: &str) -> Pointer {
    Pointer::parse(text).unwrap_or_else(|defect| panic!("{text}: {defect}"))
}

fn at(text: &str) -> Expr {
    Expr::At(pointer(text))
}

/// What the template passes.
fn template(name: &str) -> Option<String> {
    (name == "MODE").then(|| "enforce".to_owned())
}

#[test]
fn the_shipped_file_is_right_and_has_a_source_for_nearly_every_preset() {
    let config = parse(SHIPPED, &template);
    let used: Vec<&str> = config.sources().map(|source| source.preset.name()).collect();
    let unused: Vec<&str> =
        verifier::preset_names().filter(|preset| !used.contains(preset)).collect();
    // The first believes anybody, which no example should; the second is `shopify` under other
    // headers.
    assert_eq!(unused, ["mollie-classic", "shopify-events"]);
    for source in config.sources() {
        assert_eq!(source.mode, Mode::Enforce);
        assert_eq!(source.secret, source.name.as_str(), "each source has a secret of its own");
        assert!(!source.projections.is_empty());
    }
    assert_eq!(source(&config, "stripe-live").live, Some(true));
    assert_eq!(source(&config, "stripe-test").live, Some(false));
    assert_eq!(source(&config, "github").live, None);
    assert_eq!(source(&config, "github").preset.name(), "github");
}

#[test]
fn the_shipped_stripe_projections_are_ordered_by_the_event_and_end_in_a_tombstone() {
    let config = parse(SHIPPED, &template);
    for name in ["stripe-live", "stripe-test"] {
        let [change, tombstone] = source(&config, name).projections.as_slice() else {
            panic!("{name} has two projections");
        };
        let order = Order::Version { by: pointer("/created"), unit: Unit::S, tie: Tie::Rank };
        assert_eq!((&change.order, &tombstone.order), (&order, &order));
        assert_eq!((change.is_final, tombstone.is_final), (false, true));
        assert_eq!(change.namespace, name);
        assert_eq!(change.entity_type, "subscription");
        assert_eq!(change.set.get("status"), Some(&at("/data/object/status")));
        assert_eq!(tombstone.set.get("plan"), Some(&Expr::Constant(Value::Null)));
        assert_eq!(tombstone.set.get("status"), Some(&Expr::Constant(json!("canceled"))));
        assert_eq!(change.rank_of("customer.subscription.created"), Some(0));
        assert_eq!(change.rank_of("customer.subscription.updated"), Some(1));
        assert_eq!(tombstone.rank_of("customer.subscription.deleted"), Some(1 << 16));
    }
}

#[test]
fn the_shipped_file_needs_the_parameter_that_the_template_sets() {
    let Err(errors) = Config::parse("sources.toml", SHIPPED, &|_| None) else {
        panic!("accepted without ONCEHOOK_PARAM_MODE");
    };
    assert!(errors.iter().all(|error| error.found.contains("ONCEHOOK_PARAM_MODE is not set")));
}

#[test]
fn what_the_template_sets_is_all_that_the_shipped_file_asks_for() {
    let set = config::parameters_set_by(include_str!("../../../template.yaml"));
    let answered = |name: &str| set.contains(name).then(|| "enforce".to_owned());
    assert!(Config::parse("sources.toml", SHIPPED, &answered).is_ok(), "{set:?}");
    let text = "Variables:\n  ONCEHOOK_PARAM_LIVE: !Ref Live\n  # ONCEHOOK_PARAM_NO: x\n  ONCEHOOK_STAGE: y\n";
    let names: Vec<String> = config::parameters_set_by(text).into_iter().collect();
    assert_eq!(names, ["LIVE"]);
}

#[test]
fn mode_and_live_may_come_from_the_stack() {
    let text = "[sources.s]\npreset = \"stripe\"\nsecret = \"s\"\n\
                live = \"${stripe_live}\"\nmode = \"${mode}\"\n";
    let config = parse(text, &|name| match name {
        "STRIPE_LIVE" => Some("false".to_owned()),
        "MODE" => Some("enforce".to_owned()),
        _ => None,
    });
    let stripe = source(&config, "s");
    assert_eq!((stripe.live, stripe.live_from.as_deref()), (Some(false), Some("STRIPE_LIVE")));
    let fixed = parse("[sources.s]\npreset = \"stripe\"\nsecret = \"s\"\nlive = true\n", &|_| None);
    let fixed = source(&fixed, "s");
    assert_eq!((fixed.live, fixed.live_from.as_deref()), (Some(true), None));
}

#[test]
fn a_version_is_an_integer_and_its_ties_go_by_rank_unless_the_file_says_otherwise() {
    let text = "[sources.s]\npreset = \"stripe\"\nsecret = \"s\"\n\
                [[sources.s.projections]]\non = [\"a\"]\n\
                entity = { type = \"thing\", id = \"/id\", namespace = \"shared\" }\n\
                order = { strategy = \"version\", by = \"/v\" }\n\
                set = { whole = \"\", n = 3, yes = true, no = false, sign = \"==\", text = \"=1\" }\n";
    let config = parse(text, &|_| None);
    let [projection] = source(&config, "s").projections.as_slice() else {
        panic!("one projection");
    };
    assert_eq!(
        projection.order,
        Order::Version { by: pointer("/v"), unit: Unit::Integer, tie: Tie::Rank }
    );
    assert_eq!(projection.namespace, "shared");
    let constant = |json| Expr::Constant(json);
    let expected = [
        ("n", constant(json!(3))),
        ("no", constant(json!(false))),
        ("sign", constant(json!("="))),
        ("text", constant(json!("1"))),
        ("whole", at("")),
        ("yes", constant(json!(true))),
    ];
    let set: Vec<(&str, Expr)> =
        projection.set.iter().map(|(name, expr)| (name.as_str(), expr.clone())).collect();
    assert_eq!(set, expected);
}

#[test]
fn a_source_may_override_any_field_of_its_preset() {
    let text = "[sources.s]\npreset = \"stripe\"\nsecret = \"s\"\nretries = false\n\
                [sources.s.answer]\nstatus = 204\n";
    let config = parse(text, &|_| None);
    let source = source(&config, "s");
    assert_eq!(source.preset.answer().status, 204);
    assert!(!source.preset.retries());
    assert_eq!(source.preset.name(), "stripe", "what is not overridden stays");
    assert_eq!(source.preset_name, "stripe");
}

#[test]
fn a_source_that_names_a_scheme_describes_verification_itself() {
    let text = "[sources.s]\npreset = \"stripe\"\nsecret = \"s\"\n\
                [sources.s.verify]\nscheme = \"signature\"\nheader = \"x-relay-signature\"\n\
                layout = \"plain\"\nalgorithm = \"hmac-sha256\"\nencoding = \"hex\"\nkey = \"text\"\n";
    let config = parse(text, &|_| None);
    assert_eq!(source(&config, "s").preset.name(), "stripe");
}

#[test]
fn a_provider_without_a_preset_needs_no_code() {
    let text = "[sources.acme]\nsecret = \"acme\"\n\
                [sources.acme.verify]\nscheme = \"signature\"\nheader = \"x-acme-signature\"\n\
                layout = \"plain\"\nalgorithm = \"hmac-sha256\"\nencoding = \"hex\"\nkey = \"text\"\n\
                [sources.acme.event]\nid = \"/id\"\ntype = \"/type\"\nidentity = \"body\"\n\
                [[sources.acme.projections]]\non = [\"thing.changed\"]\n\
                entity = { type = \"thing\", id = \"/thing\" }\n\
                order = { strategy = \"none\" }\nadd = { total = \"/amount\" }\n";
    let config = parse(text, &|_| None);
    let source = source(&config, "acme");
    assert_eq!((source.preset_name.as_str(), source.preset.name()), ("acme", "acme"));
    let mut projections = source.projections_on("thing.changed");
    assert_eq!(projections.next().and_then(|p| p.add.get("total")), Some(&pointer("/amount")));
    assert_eq!(source.projections_on("thing").count(), 0, "types are compared whole");
}

#[test]
fn every_preset_is_a_whole_description() {
    for name in verifier::preset_names() {
        let text = format!("[sources.s]\npreset = \"{name}\"\nsecret = \"s\"\n");
        assert_eq!(source(&parse(&text, &|_| None), "s").preset_name, name);
    }
}

#[test]
fn the_shipped_file_without_any_one_line_is_read_or_refused_and_never_panics() {
    let lines: Vec<&str> = SHIPPED.lines().collect();
    for without in 0..lines.len() {
        let kept = lines.iter().enumerate().filter(|(index, _)| *index != without);
        let text: Vec<&str> = kept.map(|(_, line)| *line).collect();
        if let Err(errors) = Config::parse("sources.toml", &text.join("\n"), &template) {
            assert!(errors.iter().all(|error| (1..=lines.len()).contains(&error.line)));
        }
    }
}

#[test]
fn the_sources_that_the_readme_shows_are_right() {
    let readme = include_str!("../../../README.md");
    let blocks: Vec<&str> = readme
        .split("```toml\n")
        .skip(1)
        .filter_map(|rest| rest.split_once("\n```").map(|(block, _)| block))
        .collect();
    let config = parse(&blocks.join("\n"), &template);
    let acme = source(&config, "acme");
    assert_eq!((acme.preset.title(), acme.projections.len()), ("Acme", 1));
    assert_eq!(source(&config, "stripe-live").projections.len(), 1);
}

#[test]
fn the_local_stack_has_a_key_for_every_source() {
    let secrets = include_str!("../../../infra/local-secrets.json");
    let secrets: Value = serde_json::from_str(secrets).unwrap_or_else(|error| panic!("{error}"));
    let config = parse(SHIPPED, &template);
    for source in config.sources() {
        let keys = secrets.get(&source.secret).and_then(Value::as_array);
        let keys = keys.unwrap_or_else(|| panic!("no key for {}", source.name));
        assert!((1..=3).contains(&keys.len()), "{}", source.name);
        for key in keys {
            let text = |field: &str| key.get(field).and_then(Value::as_str).unwrap_or_default();
            let read = source.preset.key(text("kid"), text("key"));
            assert!(read.is_ok(), "{}: {:?}", source.name, read.err());
        }
    }
}
