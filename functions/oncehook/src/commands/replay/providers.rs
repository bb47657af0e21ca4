//! `replay --providers`: who lists past events, how far back, and with which key.

use crate::{
    failure::Failure,
    output::{Page, Report, Table, Tone},
};
use serde::Serialize;
use verifier::{ApiAuth, History, Preset};

/// Every preset.
#[derive(Debug, Serialize)]
pub(crate) struct Providers {
    providers: Vec<Provider>,
}

#[derive(Debug, Serialize)]
struct Provider {
    preset: &'static str,
    title: String,
    /// Whether past events can be read from it.
    lists: bool,
    /// How far back; `None` where it lists nothing, or publishes no limit.
    days: Option<u32>,
    key: Option<&'static str>,
    /// Where the list is, or what there is instead.
    note: String,
    /// Whether it sends a failed delivery again by itself.
    retries: bool,
}

/// Reads the presets.
pub(crate) fn run() -> Result<Providers, Failure> {
    let providers = verifier::preset_names().map(|name| {
        let table = verifier::preset_table(name).unwrap_or_default();
        let preset = Preset::from_table(&table)
            .map_err(|defect| Failure::usage(format!("preset {name}: {defect}")))?;
        Ok(Provider::of(name, &preset))
    });
    Ok(Providers { providers: providers.collect::<Result<_, Failure>>()? })
}

impl Provider {
    fn of(name: &'static str, preset: &Preset) -> Self {
        let title = preset.title().to_owned();
        let retries = preset.retries();
        match preset.history() {
            History::None { why } => Self {
                preset: name,
                title,
                lists: false,
                days: None,
                key: None,
                note: why.clone(),
                retries,
            },
            History::Listed(list) => {
                let own = || list.address_form.as_ref().map(|form| format!("yours: {form}"));
                Self {
                    preset: name,
                    title,
                    lists: true,
                    days: list.days,
                    key: Some(match list.auth {
                        ApiAuth::Bearer => "API key",
                        ApiAuth::Basic => "user:password",
                        ApiAuth::ClientCredentials { .. } => "id:secret",
                    }),
                    note: list.address.clone().or_else(own).unwrap_or_default(),
                    retries,
                }
            }
        }
    }
}

impl Report for Providers {
    fn needs_attention(&self) -> bool {
        false
    }

    fn write(&self, page: &mut Page) {
        let mut table = Table::new(&["PRESET", "REACHES BACK", "RETRIES", "KEY", "LIST"]);
        for one in &self.providers {
            let back = match (one.lists, one.days) {
                (false, _) => "not at all".to_owned(),
                (true, Some(days)) => format!("{days} days"),
                (true, None) => "no published limit".to_owned(),
            };
            let tone = if one.lists { Tone::Good } else { Tone::Dim };
            let retries = if one.retries { "yes" } else { "never" };
            let key = one.key.unwrap_or("-").to_owned();
            table.row(
                tone,
                [one.preset.to_owned(), back, retries.to_owned(), key, one.note.clone()],
            );
        }
        page.table(&table);
    }
}
