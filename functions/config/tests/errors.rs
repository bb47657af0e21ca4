//! What a wrong configuration is told. Texts are compared whole: they are what a person reads.
#![expect(clippy::panic, clippy::unwrap_used, reason = "a panic is a failed test")]

use config::Config;

/// The mistakes in `text`, as they are printed.
fn errors(text: &str) -> Vec<String> {
    let param = |name: &str| (name == "MODE").then(|| "observe".to_owned());
    match Config::parse("sources.toml", text, &param) {
        Ok(_) => panic!("accepted:\n{text}"),
        Err(errors) => errors.iter().map(ToString::to_string).collect(),
    }
}

/// A source whose projection tables begin in line 4.
fn with_projections(tables: &str) -> String {
    format!("[sources.s]\npreset = \"stripe\"\nsecret = \"s\"\n{tables}")
}

/// A projection of entity type `thing`, of which one line is replaced.
fn projection(replaced: &str, by: &str) -> String {
    let whole = "[[sources.s.projections]]\n\
                 on = [\"a\"]\n\
                 entity = { type = \"thing\", id = \"/id\" }\n\
                 order = { strategy = \"version\", by = \"/v\" }\n\
                 set = { x = \"/x\" }\n";
    let lines: Vec<&str> =
        whole.lines().map(|line| if line.starts_with(replaced) { by } else { line }).collect();
    with_projections(&lines.join("\n"))
}

fn error_in(replaced: &str, by: &str) -> String {
    let mut found = errors(&projection(replaced, by));
    assert_eq!(found.len(), 1, "{found:#?}");
    found.pop().unwrap()
}

#[test]
fn every_mistake_is_told_at_once_in_the_order_of_lines() {
    let text = "[sources.Shop]\n\
                preset = \"shopfy\"\n\
                secret = \"whsec_c2VjcmV0\"\n\
                live = \"yes\"\n\
                [[sources.Shop.projections]]\n\
                on = []\n\
                [other]\n";
    let lines: Vec<String> = errors(text)
        .iter()
        .filter_map(|error| error.split(": ").next().map(str::to_owned))
        .collect();
    let expected = [1, 2, 3, 4, 5, 5, 6, 7].map(|line| format!("sources.toml:{line}"));
    assert_eq!(lines, expected);
}

#[test]
fn text_that_is_no_toml_is_quoted_with_the_reason() {
    assert_eq!(
        errors("[sources.a]\npreset = stripe\nsecret =\n"),
        [
            "sources.toml:2: syntax: found `preset = stripe` \
             (string values must be quoted, expected literal string), allowed TOML 1.1",
            "sources.toml:3: syntax: found `secret =` \
             (string values must be quoted, expected literal string), allowed TOML 1.1",
        ]
    );
}

#[test]
fn a_key_written_twice_is_refused() {
    assert_eq!(
        errors(&with_projections("live = true\nlive = false\n")),
        ["sources.toml:5: syntax: found `live = false` (duplicate key), allowed TOML 1.1"]
    );
}

#[test]
fn a_file_without_sources_is_refused() {
    assert_eq!(
        errors("# nothing\n"),
        ["sources.toml:1: sources: found nothing, allowed at least one table [sources.<name>]"]
    );
    assert_eq!(
        errors("\n[sources]\n"),
        ["sources.toml:2: sources: found no source, allowed at least one table [sources.<name>]"]
    );
}

#[test]
fn an_unknown_preset_is_answered_with_the_nearest() {
    assert_eq!(
        errors("[sources.s]\npreset = \"strype\"\nsecret = \"s\"\n").first().unwrap(),
        &format!(
            "sources.toml:2: sources.s.preset: found `strype`, allowed {}; did you mean `stripe`?",
            verifier::preset_names().collect::<Vec<_>>().join(", ")
        )
    );
}

#[test]
fn a_source_without_preset_and_verify_is_told_both_ways() {
    let names: Vec<&str> = verifier::preset_names().collect();
    assert_eq!(
        errors("[sources.github]\nsecret = \"s\"\n"),
        [format!(
            "sources.toml:1: sources.github.preset: found nothing, allowed one of {}, or a table \
             [sources.github.verify] and what else describes the provider; \
             did you mean `github`?",
            names.join(", ")
        )]
    );
}

#[test]
fn a_pasted_key_is_refused_as_a_secrets_name_and_not_repeated() {
    assert_eq!(
        errors("[sources.s]\npreset = \"stripe\"\nsecret = \"whsec_c2VjcmV0\"\n"),
        [
            "sources.toml:3: sources.s.secret: found a text of 14 bytes that is no name, allowed the \
          name of an entry of the signing secret (never a key): 1 to 64 of a-z, 0-9 and `-`"
        ]
    );
}

#[test]
fn source_names_are_those_of_ledger_keys() {
    assert_eq!(
        errors("[sources._b]\npreset = \"stripe\"\nsecret = \"s\"\n"),
        ["sources.toml:1: sources: found the source name `_b`, allowed 1 to 64 of a-z, 0-9 and \
          `-`, beginning with a letter or digit"]
    );
}

#[test]
fn an_unknown_key_is_answered_with_the_nearest_wherever_it_stands() {
    assert_eq!(
        errors(&with_projections("projektions = 1\n")),
        ["sources.toml:4: sources.s.projektions: found an unknown key, allowed preset, secret, \
          live, mode, projections, fetch; did you mean `projections`?"]
    );
    assert_eq!(
        errors("[source.s]\n[sources.s]\npreset = \"stripe\"\nsecret = \"s\"\n"),
        [
            "sources.toml:1: source: found an unknown key, allowed fetch, sources; did you mean `sources`?"
        ]
    );
    assert_eq!(
        error_in("set", "set = { x = \"/x\" }\nfianl = true"),
        "sources.toml:9: sources.s.projections[0].fianl: found an unknown key, \
         allowed add, append, entity, final, on, order, set; did you mean `final`?"
    );
    assert_eq!(
        error_in("order", "order = { strategy = \"version\", by = \"/v\", ty = \"rank\" }"),
        "sources.toml:7: sources.s.projections[0].order.ty: found an unknown key, \
         allowed by, on_gap, start, strategy, tie, timeout, unit; did you mean `by`?"
    );
}

#[test]
fn keys_that_the_preset_refuses_name_the_sources_own_keys_too() {
    let found = errors(&with_projections("banana = 1\n"));
    assert!(
        found.first().unwrap().starts_with(
            "sources.toml:4: sources.s.banana: found an unknown key, \
             allowed preset, secret, live, mode, projections, fetch, "
        ),
        "{found:?}"
    );
}

#[test]
fn mistakes_in_overrides_are_named_with_their_own_line() {
    let text =
        with_projections("[sources.s.verify]\n\n[sources.s.verify.time]\npast_s = \"ten\"\n");
    let found = errors(&text);
    assert_eq!(found.len(), 1, "{found:?}");
    assert!(
        found.first().unwrap().starts_with(
            "sources.toml:7: sources.s.verify.time.past_s: found `ten`, allowed a whole number"
        ),
        "{found:?}"
    );
}

#[test]
fn what_an_override_makes_wrong_in_the_preset_is_said_to_be_the_presets() {
    // The separator stands in the preset and means nothing beside this layout.
    let found = errors(&with_projections(
        "[sources.s.verify]\nlayout = \"plain\"\nalgorithm = \"hmac-sha256\"\n",
    ));
    let first = found.first().unwrap();
    assert!(
        first.starts_with("sources.toml:4: sources.s.verify.")
            && first.contains(" (as the preset has it), allowed "),
        "{found:?}"
    );
}

#[test]
fn what_is_missing_from_a_sources_own_description_is_not_said_to_be_the_presets() {
    let found = errors("[sources.s]\nsecret = \"s\"\n[sources.s.verify]\nscheme = \"signature\"\n");
    assert!(found.iter().any(|error| error.contains(".verify.")), "{found:?}");
    assert!(found.iter().all(|error| !error.contains("as the preset has it")), "{found:?}");
    // A known key's wrong value is no unknown key: the source's other keys are no answer to it.
    let found = errors(&with_projections("retries = 3\n"));
    assert_eq!(found, ["sources.toml:4: sources.s.retries: found 3, allowed true or false"]);
}

#[test]
fn parameters_are_read_for_mode_and_live_only() {
    assert_eq!(
        errors(&with_projections("mode = \"${mode}\"\nlive = \"${live}\"\n")),
        [
            "sources.toml:4: sources.s.mode: found `observe` (from ONCEHOOK_PARAM_MODE), \
             allowed enforce, or ${x} where ONCEHOOK_PARAM_X is one of them",
            "sources.toml:5: sources.s.live: found `${live}`, but ONCEHOOK_PARAM_LIVE is not set, \
             allowed true or false, or ${x} where ONCEHOOK_PARAM_X is one of them",
        ]
    );
    assert_eq!(
        errors("[sources.s]\npreset = \"stripe\"\nsecret = \"${mode}\"\n"),
        ["sources.toml:3: sources.s.secret: found the parameter `${mode}`, \
          allowed parameters for `mode` and `live` only"]
    );
    assert_eq!(
        errors(&with_projections("title = \"${mode}\"\n")),
        ["sources.toml:4: sources.s.title: found the parameter `${mode}`, \
          allowed parameters for `mode` and `live` only"]
    );
    assert_eq!(
        error_in("set", "set = { x = \"=${mode}\" }"),
        "sources.toml:8: sources.s.projections[0].set.x: found `=${mode}`, \
         allowed parameters for `mode` and `live` only"
    );
    assert_eq!(
        errors(&with_projections("mode = \"${Mode}\"\n")),
        ["sources.toml:4: sources.s.mode: found `${Mode}` (a name has a-z, 0-9 and `_` only), \
          allowed enforce, or ${x} where ONCEHOOK_PARAM_X is one of them"]
    );
}

#[test]
fn a_mode_that_does_not_work_is_refused_with_the_nearest() {
    assert_eq!(
        errors(&with_projections("mode = \"enforced\"\n")),
        ["sources.toml:4: sources.s.mode: found `enforced`, allowed enforce, or ${x} where \
          ONCEHOOK_PARAM_X is one of them; did you mean `enforce`?"]
    );
}

#[test]
fn projections_that_are_no_array_of_tables_are_shown_the_header() {
    assert_eq!(
        errors(&with_projections("[sources.s.projections]\non = [\"a\"]\n")),
        ["sources.toml:4: sources.s.projections: found a table, \
          allowed tables, each under its own header [[sources.s.projections]]"]
    );
}

#[test]
fn event_types_are_exact_and_named_once() {
    let allowed = "allowed exact event types, each once, without wildcards";
    for (on, found) in [
        ("on = [\"invoice.*\"]", "the wildcard `invoice.*`"),
        ("on = [\"a\", \"a\"]", "`a` a second time"),
        ("on = [\" a\"]", "` a` with blanks around it"),
        ("on = [\"\"]", "an empty text"),
        ("on = [7]", "`7`"),
    ] {
        assert_eq!(
            error_in("on", on),
            format!("sources.toml:5: sources.s.projections[0].on: found {found}, {allowed}")
        );
    }
    let list = "allowed a list of event types, each exactly as the provider writes it";
    for (on, found) in [("on = []", "an empty list"), ("on = \"a\"", "`a`"), ("", "nothing")] {
        let line = if on.is_empty() { 4 } else { 5 };
        assert_eq!(
            error_in("on", on),
            format!("sources.toml:{line}: sources.s.projections[0].on: found {found}, {list}")
        );
    }
}

#[test]
fn entity_types_and_namespaces_cannot_hold_the_separator_of_keys() {
    let at = "sources.toml:6: sources.s.projections[0].entity";
    assert_eq!(
        error_in("entity", "entity = { type = \"a#b\", id = \"/id\" }"),
        format!("{at}.type: found `a#b`, allowed 1 to 64 of a-z, 0-9, `_` and `-`")
    );
    assert_eq!(
        error_in("entity", "entity = { type = \"a\", id = \"/id\", namespace = \"B\" }"),
        format!("{at}.namespace: found `B`, allowed 1 to 64 of a-z, 0-9, `_` and `-`")
    );
}

#[test]
fn pointers_are_those_of_rfc_6901() {
    let pointer = "allowed a JSON Pointer (RFC 6901) such as /data/object/id";
    let id = |id: &str| error_in("entity", &format!("entity = {{ type = \"a\", id = \"{id}\" }}"));
    let at = "sources.toml:6: sources.s.projections[0].entity.id: found";
    assert_eq!(
        id("data.object.id"),
        format!(
            "{at} `data.object.id` (a JSON Pointer begins with `/`), {pointer}; \
             did you mean `/data/object/id`?"
        )
    );
    assert_eq!(id(""), format!("{at} an empty text, {pointer}"));
    assert_eq!(
        id("/a~b"),
        format!(
            "{at} `/a~b` (in a JSON Pointer `~` is written `~0`, and `/` inside a name `~1`), \
             {pointer}"
        )
    );
}

#[test]
fn each_key_belongs_to_its_strategy() {
    let at = "sources.toml:8: sources.s.projections[0]";
    assert_eq!(
        error_in("set", "add = { x = \"/x\" }\nset = { x = \"/x\" }"),
        format!(
            "{at}.add: found `add` with strategy = \"version\", \
             allowed `add` with strategy = \"none\" only"
        )
    );
    let found = errors(&with_projections(
        "[[sources.s.projections]]\n\
         on = [\"a\"]\n\
         entity = { type = \"thing\", id = \"/id\" }\n\
         order = { strategy = \"none\", by = \"/v\" }\n\
         add = { x = \"/x\" }\n\
         set = { x = \"/x\" }\n\
         final = true\n",
    ));
    let expected: Vec<String> = [(7, "order.by", "by"), (9, "set", "set"), (10, "final", "final")]
        .iter()
        .map(|(line, path, key)| {
            format!(
                "sources.toml:{line}: sources.s.projections[0].{path}: found `{key}` with \
                 strategy = \"none\", allowed `{key}` with strategy = \"version\" or \"sequence\" only"
            )
        })
        .collect();
    assert_eq!(found, expected);
}

#[test]
fn a_field_is_a_pointer_or_a_constant() {
    let set = |value: &str| error_in("set", &format!("set = {{ x = {value} }}"));
    let at = "sources.toml:8: sources.s.projections[0].set.x: found";
    let allowed = "allowed a JSON Pointer such as /data/object/id, a constant text such as \
                   =canceled, =null, a whole number, true or false";
    assert_eq!(
        set("\"canceled\""),
        format!("{at} `canceled`, {allowed}; did you mean `=canceled`?")
    );
    assert_eq!(
        set("\"data.status\""),
        format!(
            "{at} `data.status` (a JSON Pointer begins with `/`), {allowed}; \
             did you mean `/data/status`?"
        )
    );
    assert_eq!(set("1.5"), format!("{at} `1.5`, {allowed}"));
    assert_eq!(set("[]"), format!("{at} a list, {allowed}"));
    assert_eq!(
        set("9223372036854775808"),
        format!("{at} `9223372036854775808`, allowed a 64-bit whole number")
    );
}

#[test]
fn a_state_without_fields_is_refused() {
    let allowed = "allowed a table { field = \"/...\" }, the state after the change";
    assert_eq!(
        error_in("set", "set = {}"),
        format!("sources.toml:8: sources.s.projections[0].set: found an empty table, {allowed}")
    );
    assert_eq!(
        error_in("set", ""),
        format!("sources.toml:4: sources.s.projections[0].set: found nothing, {allowed}")
    );
    let [longest, too_long] = [255, 256].map(|len| "x".repeat(len));
    let cut = format!("`{}...`", "x".repeat(60));
    for (name, shown) in [(" ", "` `"), ("a\\u0007", "`a\u{fffd}`"), (&too_long, &cut)] {
        assert_eq!(
            error_in("set", &format!("set = {{ \"{name}\" = \"/x\" }}")),
            format!(
                "sources.toml:8: sources.s.projections[0].set: found the field name {shown}, \
                 allowed names of 1 to 255 bytes without control characters"
            )
        );
    }
    let whole = projection("set", &format!("set = {{ {longest} = \"/x\" }}"));
    assert!(Config::parse("sources.toml", &whole, &|_| None).is_ok());
}
