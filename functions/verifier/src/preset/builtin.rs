//! The presets that are compiled in, one TOML file per provider.

macro_rules! presets {
    ($($name:literal),* $(,)?) => {
        &[$(($name, include_str!(concat!("../../presets/", $name, ".toml")))),*]
    };
}

/// Name and text of each, in alphabetical order.
const PRESETS: &[(&str, &str)] = presets![
    "adyen",
    "adyen-platform",
    "braintree",
    "chargebee",
    "github",
    "gocardless",
    "mollie",
    "mollie-classic",
    "paddle",
    "paypal",
    "razorpay",
    "recurly",
    "shopify",
    "shopify-events",
    "slack",
    "square",
    "standard-webhooks",
    "stripe",
    "svix",
    "twilio",
];

/// Names of the presets that are compiled in.
pub fn preset_names() -> impl Iterator<Item = &'static str> {
    PRESETS.iter().map(|(name, _)| *name)
}

/// The table of a compiled-in preset, to merge a source's overrides over and pass to
/// `Preset::from_table`.
#[must_use]
pub fn preset_table(name: &str) -> Option<toml::Table> {
    let (_, text) = PRESETS.iter().find(|(known, _)| *known == name)?;
    text.parse().ok()
}
