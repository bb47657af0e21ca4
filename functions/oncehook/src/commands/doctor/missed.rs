//! Whether what never arrived can be made good: of a provider that never sends a failed delivery again,
//! its own list is all there is, and reading that takes an address and a key.
//!
//! The reconciler leaves out a source that lacks either, and says so in a line that nobody waits for.

use super::{Check, Grade};
use crate::context::Context;
use aws::{Aws, Resource};
use config::Source;
use futures::future::join_all;
use verifier::{EventList, History};
use workflow::{
    outbound::{NoKey, api_key},
    ports::Secret,
    replay::{NoList, Opening},
};

/// Each source whose provider never sends again and lists what it sent.
pub(super) async fn checks(aws: &Aws, context: &Context) -> Vec<Check> {
    let settings = &context.settings;
    if settings.get(Resource::OutboundSecret).is_err() {
        return Vec::new();
    }
    let asks = context.config.sources().filter_map(|source| {
        let list = list(source)?;
        Some(async move {
            let elsewhere = settings.list_address(source.name.as_str());
            let address = Opening::of(source, elsewhere).map(|_| ());
            let name = entry(source, list);
            let key = api_key(aws, Secret::Outbound, name, settings.is_local()).await;
            judge(source, list, address, key.map(|_| ()))
        })
    });
    join_all(asks).await
}

/// The list of a source that depends on it.
fn list(source: &Source) -> Option<&EventList> {
    match source.preset.history() {
        History::Listed(list) if !source.preset.retries() => Some(list),
        History::Listed(_) | History::None { .. } => None,
    }
}

/// The outbound secret's entry that opens it.
fn entry<'s>(source: &'s Source, list: &'s EventList) -> &'s str {
    list.secret.as_deref().unwrap_or(&source.secret)
}

fn judge(
    source: &Source,
    list: &EventList,
    address: Result<(), NoList>,
    key: Result<(), NoKey>,
) -> Check {
    let what = format!("missed events of {}", source.name);
    let (mut lacks, mut next) = (Vec::new(), Vec::new());
    if let Err(no_list) = address {
        lacks.push(no_list.to_string());
        let form = list.address_form.as_deref().unwrap_or("https://...");
        next.push(format!(
            "in infra/sources.toml: [sources.{}.replay] address = \"{form}\", then deploy",
            source.name
        ));
    }
    if let Err(no_key) = key {
        lacks.push(format!("no key for it: {no_key}"));
        let name = entry(source, list);
        let shape = format!("{{\"{name}\": [{{\"kid\": \"2026-11\", \"key\": \"...\"}}]}}");
        next.push(format!("store a key that may read it in the outbound secret, as {shape}"));
    }
    if lacks.is_empty() {
        return Check::ok(what, "its list has an address and a key");
    }
    let title = source.preset.title();
    let found = format!("{title} never sends again, and {}", lacks.join("; "));
    let expected = "an address and a key, with which the reconciler claims what never arrived";
    Check::bad(Grade::Warn, what, found, expected, &next.join("; "))
}

#[cfg(test)]
#[expect(clippy::unwrap_used, reason = "a failed unwrap is a failed test")]
mod tests {
    use super::*;
    use crate::testing;

    #[test]
    fn a_source_that_is_never_sent_again_is_told_what_its_list_lacks() {
        let config = testing::config();
        let watched: Vec<&str> = config
            .sources()
            .filter(|source| list(source).is_some())
            .map(|source| source.name.as_str())
            .collect();
        assert_eq!(watched, ["github"], "the others send again by themselves");
        let github = config.source("github").unwrap();
        let list = list(github).unwrap();
        let no_address = || Opening::of(github, None).map(|_| ());
        let no_key = || Err(NoKey::NoEntry("github".to_owned()));

        let neither = judge(github, list, no_address(), no_key());
        assert_eq!(neither.grade, Grade::Warn);
        let found = "GitHub never sends again, and the address of its list is not configured; it \
                     looks like https://api.github.com/repos/OWNER/REPO/hooks/HOOK_ID/deliveries; no \
                     key for it: the secret has no entry \"github\"";
        assert_eq!(neither.found, found);
        let next = neither.next.unwrap();
        assert!(next.contains("[sources.github.replay] address = "), "{next}");
        assert!(next.contains("{\"github\": [{\"kid\": "), "{next}");

        let address = judge(github, list, no_address(), Ok(()));
        assert_eq!(address.grade, Grade::Warn);
        assert!(!address.found.contains("key") && !address.next.unwrap().contains("key"));
        let key = judge(github, list, Ok(()), no_key());
        assert_eq!(key.grade, Grade::Warn);
        assert!(!key.found.contains("address") && !key.next.unwrap().contains("address"));
        assert_eq!(judge(github, list, Ok(()), Ok(())).grade, Grade::Ok);
    }
}
