//! The comparison of one source in one window, begun by a person and kept in no notebook.

use super::Completeness;
use crate::{
    ports::{Clock, Entropy, Http, Lookup, SecretStore},
    replay::{Access, Checkpoint, Feed, Notebook, Pace, Replay, Stop, Tally, Watch, pager::Pager},
};
use config::Source;

/// Compares one source in one window: what is missing is claimed by `feed`, or only counted where it is
/// a dry run. What happened longer ago than the ledger remembers is left alone.
pub async fn compare<P, F, W>(
    ports: &P,
    source: &Source,
    (pager, access): (Pager, Access),
    feed: F,
    watch: &W,
    (pace, remembered_ms): (Pace, u64),
) -> Result<(Completeness, Tally), Stop>
where
    P: Http + Clock + Entropy + Lookup + SecretStore,
    F: Feed,
    W: Watch,
{
    struct Nowhere;
    impl Notebook for Nowhere {
        async fn save(&self, _checkpoint: &Checkpoint) -> Result<(), String> {
            Ok(())
        }
    }
    let window = pager.window();
    let types = pager.types().to_vec();
    let checkpoint = Checkpoint::new(source.name.as_str(), String::new(), window, types);
    let remembered_ms = Some(remembered_ms);
    let replay = Replay { ports, source, pager, access: &access, feed, watch, pace, remembered_ms };
    match replay.run(checkpoint, &Nowhere, None).await {
        Ok(done) => Ok((Completeness::of(window, &done.tally), done.tally)),
        Err(broken) => Err(broken.stop),
    }
}
