//! The steward's minute: everything that is due, by the crate's own rules for it.

use crate::{
    stage::Request,
    story::{Story, Told},
};
use ledger::{
    Bucket, Life, Status, Sweeping,
    verbs::{ForcedBury, Redrive, RedriveBy, Sweep, is_abandoned, is_curable_by},
};

impl Story {
    /// Looks at every row; what was done, or `nothing`.
    pub(crate) fn look(&mut self, build: Option<&str>, visible: u64) -> String {
        let sweeping = Sweeping::for_backlog(visible, &self.stage.policy);
        let mut done = Vec::new();
        let names: Vec<String> = self.stage.rows.keys().cloned().collect();
        for name in names {
            let Some(life) = self.stage.life(&name).cloned() else { continue };
            if let Some(deed) = self.attend(&name, &life, build, sweeping) {
                done.push(format!("{deed} {name}"));
            }
        }
        if done.is_empty() { "nothing".to_owned() } else { done.join(", ") }
    }

    fn attend(
        &mut self,
        name: &str,
        life: &Life,
        build: Option<&str>,
        sweeping: Sweeping,
    ) -> Option<&'static str> {
        let now = self.stage.now;
        let open = life.open?;
        if let Some(build) = build.filter(|build| is_curable_by(life, build)) {
            return self.redrives(name, open.due_at, Some(build));
        }
        if open.due_at > now {
            return None;
        }
        match open.bucket {
            Bucket::Pending(_) if is_abandoned(life, now, &self.stage.policy) => {
                // The message goes first, so that the dead-letter queue shows the burial.
                self.send(name);
                let class = ledger::FailureClass::Transient;
                let ask =
                    ForcedBury { failure: self.failure(class), now, open: self.grave(name, class) };
                self.did(name, Request::Force(ask), "buries")
            }
            Bucket::Pending(_) if open.due_at > sweeping.due_before(now, &self.stage.policy) => {
                None
            }
            Bucket::Pending(shard) => {
                let ask = Sweep { seen_due_at: open.due_at, now, shard, sweeps: life.sweeps };
                let deed = self.did(name, Request::Sweep(ask), "sweeps");
                self.post(name, deed)
            }
            Bucket::Dead(_) if life.status == Status::Dead => {
                self.redrives(name, open.due_at, None)
            }
            Bucket::Dead(_) | Bucket::Parked(_) => None,
        }
    }

    fn redrives(
        &mut self,
        name: &str,
        seen_due_at: ledger::Millis,
        build: Option<&str>,
    ) -> Option<&'static str> {
        let by = RedriveBy::Steward { seen_due_at, release: build.map(str::to_owned) };
        let ask = Redrive { by, now: self.stage.now, shard: self.shard(name) };
        let deed = self.did(name, Request::Redrive(ask), "redrives");
        self.post(name, deed)
    }

    /// The tables as they were saved, or one of them only.
    pub(crate) fn restore(&mut self, what: &str) -> Told<String> {
        let (rows, entities) = self.saved.clone();
        match what {
            "ledger" => self.stage.rows = rows,
            "state" => self.stage.entities = entities,
            "both" => (self.stage.rows, self.stage.entities) = (rows, entities),
            _ => return Err(format!("restore {what}?")),
        }
        Ok("ok".to_owned())
    }

    fn did(&mut self, name: &str, request: Request, deed: &'static str) -> Option<&'static str> {
        (self.request(name, "steward", request) == "ok").then_some(deed)
    }

    fn post(&mut self, name: &str, deed: Option<&'static str>) -> Option<&'static str> {
        if deed.is_some() {
            self.send(name);
        }
        deed
    }
}
