//! `verify --request`: is a captured request authentic, and if not, why and what to do.
//!
//! The receiver answers every refusal alike, since a forger reads the answer; the operator reads
//! this. Where no key fits, the usual suspects are tried: the keys of other sources, and a body
//! that gained or lost its last line break on the way into the file.

use crate::{
    args::Verify,
    context::{self, Context},
    failure::Failure,
    keys,
    output::{Fact, Page, Report, Tone, quoted, shown},
    sample::Sample,
    time::{rfc3339, when},
};
use config::{Config, Source};
use ledger::{EventKey, Millis};
use serde::Serialize;
use verifier::{Key, Rejection, Request, Verified};

/// The verdict.
#[derive(Debug, Serialize)]
pub(crate) struct Verdict {
    source: String,
    authentic: bool,
    /// What the receiver answers a refused request or a handshake.
    #[serde(skip_serializing_if = "Option::is_none")]
    answer: Option<u16>,
    now: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    kid: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    signed_at: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    cause: Option<&'static str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    why: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    next: Option<String>,
    events: Vec<Carried>,
    /// Why an authentic request cannot be used, and what its scheme leaves open.
    notes: Vec<String>,
    #[serde(skip)]
    signed_at_ms: Option<Millis>,
    #[serde(skip)]
    now_ms: Millis,
}

/// An event the request carries.
#[derive(Debug, Serialize)]
struct Carried {
    key: String,
    #[serde(rename = "type")]
    event_type: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    live: Option<bool>,
}

/// Reads the request and the keys, and judges.
pub(crate) async fn run(context: &Context, args: &Verify) -> Result<Verdict, Failure> {
    let (Some(name), Some(path)) = (&args.source, &args.request) else {
        return Err(Failure::usage("--source and --request belong together"));
    };
    let source = context.source(name)?;
    let sample = Sample::read(path)?;
    let document = context.secret(&args.keys).await?;
    let now = args.now.unwrap_or_else(context::now);
    let url = context.known_url().map(|url| format!("{url}/webhooks/{}", source.name));
    let certificate = args.certificate.as_deref().map(context::read_file).transpose()?;
    let case = Case { sample: &sample, url: url.as_deref(), certificate: certificate.as_deref() };
    judge(&context.config, source, &case, &document, now).await
}

/// What is judged.
#[derive(Clone, Copy)]
pub(crate) struct Case<'a> {
    /// The request.
    pub(crate) sample: &'a Sample,
    /// The address it was posted to, where the file does not say it.
    pub(crate) url: Option<&'a str>,
    /// The certificate it points to, in PEM.
    pub(crate) certificate: Option<&'a str>,
}

/// Judges a request with the keys in `document`.
pub(crate) async fn judge(
    config: &Config,
    source: &Source,
    case: &Case<'_>,
    document: &str,
    now: Millis,
) -> Result<Verdict, Failure> {
    let sample = case.sample;
    let mut keys = keys::of(source, config, document).await?;
    let path = format!("/webhooks/{}", source.name);
    let request = Request {
        method: &sample.method,
        path: &path,
        query: &sample.query,
        public_url: sample.url.as_deref().or(case.url),
        headers: &sample.headers,
        body: &sample.body,
    };
    if let Some(answer) = source.preset.handshake(&request, &keys, now.0) {
        return Ok(handshake(source, answer.status, now));
    }
    let mut verdict = source.preset.verify(&request, &keys, now.0);
    if let (Err(Rejection::NeedsCertificate { url }), Some(pem)) = (&verdict, case.certificate) {
        verdict = source.preset.fetched_certificate(url, pem.as_bytes(), now.0).and_then(|key| {
            keys.push(key);
            source.preset.verify(&request, &keys, now.0)
        });
    }
    match verdict {
        Ok(verified) => Ok(accepted(source, &request, &verified, now)),
        Err(rejection) => {
            let suspect = match &rejection {
                Rejection::NoSignatureMatched => {
                    suspect(config, source, &request, &keys, document, now).await
                }
                _ => None,
            };
            Ok(refused(source, &rejection, suspect, now))
        }
    }
}

/// A request that asks the endpoint to prove itself carries no event.
fn handshake(source: &Source, status: u16, now: Millis) -> Verdict {
    let is_answered = (200..300).contains(&status);
    Verdict {
        authentic: is_answered,
        answer: Some(status),
        cause: (!is_answered).then_some("handshake"),
        why: (!is_answered).then(|| "the handshake does not repeat a stored token".to_owned()),
        notes: vec![format!("a handshake: it is answered {status}, and nothing of it is kept")],
        ..verdict(source, now)
    }
}

fn accepted(source: &Source, request: &Request<'_>, verified: &Verified, now: Millis) -> Verdict {
    let mut notes = Vec::new();
    let events = source.preset.events(request).unwrap_or_else(|unusable| {
        notes.push(format!("authentic but unusable: {unusable}; it would be kept as a dead event"));
        Vec::new()
    });
    let wrong_mode =
        |live: Option<bool>| matches!((source.live, live), (Some(a), Some(b)) if a != b);
    if events.iter().any(|event| wrong_mode(event.live)) {
        notes.push(
            "of the other mode than this source: it would be kept and settled as ignored"
                .to_owned(),
        );
    }
    let open = source.preset.unauthenticated();
    if !open.is_empty() {
        notes.push(format!("{} does not sign: {}", source.preset.title(), open.join("; ")));
    }
    let carried = events.iter().filter_map(|event| {
        let key = EventKey::new(&source.name, &event.id).ok()?;
        Some(Carried {
            key: key.as_str().to_owned(),
            event_type: event.event_type.clone(),
            live: event.live,
        })
    });
    let signed_at_ms = verified.signed_at_ms.map(Millis);
    Verdict {
        authentic: true,
        kid: Some(verified.kid.clone()),
        signed_at: signed_at_ms.map(rfc3339),
        events: carried.collect(),
        notes,
        signed_at_ms,
        ..verdict(source, now)
    }
}

fn refused(
    source: &Source,
    rejection: &Rejection,
    suspect: Option<String>,
    now: Millis,
) -> Verdict {
    Verdict {
        // What is wrong on this side is no refusal: the provider is asked to try again.
        answer: Some(if rejection.is_ours() { 503 } else { 401 }),
        cause: Some(rejection.cause()),
        why: Some(rejection.to_string()),
        next: Some(suspect.unwrap_or_else(|| advice(rejection, source))),
        ..verdict(source, now)
    }
}

fn verdict(source: &Source, now: Millis) -> Verdict {
    Verdict {
        source: source.name.to_string(),
        authentic: false,
        answer: None,
        now: rfc3339(now),
        kid: None,
        signed_at: None,
        cause: None,
        why: None,
        next: None,
        events: Vec::new(),
        notes: Vec::new(),
        signed_at_ms: None,
        now_ms: now,
    }
}

/// Tries what usually is the matter when no key fits.
async fn suspect(
    config: &Config,
    source: &Source,
    request: &Request<'_>,
    keys: &[Key],
    document: &str,
    now: Millis,
) -> Option<String> {
    // A late request is still signed right: the time is another matter.
    let fits = |source: &Source, request: &Request<'_>, keys: &[Key]| match source
        .preset
        .verify(request, keys, now.0)
    {
        Ok(_) | Err(Rejection::TooOld { .. } | Rejection::TooNew { .. }) => true,
        Err(_) => false,
    };
    let longer = [request.body, b"\n"].concat();
    let shorter =
        request.body.strip_suffix(b"\n").map(|body| body.strip_suffix(b"\r").unwrap_or(body));
    for (body, what) in
        [(shorter, "has a line break too many"), (Some(longer.as_slice()), "lacks a line break")]
    {
        if let Some(body) = body
            && fits(source, &Request { body, ..*request }, keys)
        {
            return Some(format!(
                "the signature is right, but the body in the file {what} at its end: capture it byte \
                 for byte, as `body_base64`"
            ));
        }
    }
    for other in config.sources().filter(|other| other.name != source.name) {
        let Ok(keys) = keys::of(other, config, document).await else { continue };
        if other.preset.needs_key() && fits(other, request, &keys) {
            return Some(format!(
                "it is signed with a key of source `{0}`: either the provider posts to the wrong \
                 address (it belongs to /webhooks/{0}), or the secrets are swapped",
                other.name
            ));
        }
    }
    None
}

/// The next step for a cause.
fn advice(rejection: &Rejection, source: &Source) -> String {
    let provider = source.preset.title();
    match rejection {
        Rejection::NoUsableKey => format!("store the key that {provider} shows under {:?} in the signing secret", source.secret),
        Rejection::NoPublicUrl => "add the address it was posted to as `url` to the request file; on the stack set the parameter PublicUrl".to_owned(),
        Rejection::NeedsCertificate { .. } => "fetch it (the address is the provider's own), and add --certificate FILE".to_owned(),
        Rejection::HeaderMissing { header } => format!(
            "was {header} captured? if it did not arrive, is signing switched on at {provider}, and does every proxy let it through?"
        ),
        Rejection::HeaderRepeated { .. } => "a proxy doubled or joined the header: let it through once, untouched".to_owned(),
        Rejection::HeaderMalformed { .. } | Rejection::TooManySignatures { .. } => {
            format!("compare the header with {provider}'s documentation; something on the way rewrote it, or it is no delivery of theirs")
        }
        Rejection::SchemeRefused { .. } => format!("{provider} signs with a version this preset does not accept; is it a test tool's, or an old one?"),
        Rejection::BodyMalformed { .. } | Rejection::FieldMissing { .. } => {
            format!("capture the body byte for byte (`body_base64`); if it is, it is no delivery of {provider}")
        }
        Rejection::KeyUnknown => format!("{provider} signed with a key that is not stored: was it rotated? add the new one beside the old"),
        Rejection::NoSignatureMatched => format!(
            "compare the stored secret with the one {provider} shows for this very endpoint and mode; if they are equal, the body was changed before it was captured (parsed and written anew?)"
        ),
        Rejection::BodyAltered | Rejection::BodyNotCovered => {
            "the signature is right and the body is not the signed one: capture it before anything parses it".to_owned()
        }
        Rejection::ClaimRefused { .. } => "it was signed for another address or receiver: compare the configured public URL".to_owned(),
        Rejection::TooOld { .. } => {
            "the signature is right. If it was in time when it arrived, judge it as of then: --now TIME. If not: a replay, a slow proxy, or a clock that is off".to_owned()
        }
        Rejection::TooNew { .. } => {
            "the signature is right. Judge it as of its arrival: --now TIME; if it is too new then, the sender's clock is ahead".to_owned()
        }
        Rejection::CertificateUrlRefused | Rejection::CertificateRefused { .. } => {
            format!("no delivery of {provider} points to such a certificate: treat it as forged")
        }
    }
}

impl Report for Verdict {
    fn needs_attention(&self) -> bool {
        !self.authentic
    }

    fn write(&self, page: &mut Page) {
        let mut facts = Vec::new();
        if self.authentic {
            page.toned(Tone::Good, format!("authentic: source {} accepts it", self.source));
            facts.push(Fact::new("key", shown(self.kid.as_deref().unwrap_or("none"))));
            if let Some(at) = self.signed_at_ms {
                facts.push(Fact::new("signed", when(at, self.now_ms)));
            }
        } else {
            page.toned(
                Tone::Bad,
                format!(
                    "refused: source {} would answer {}",
                    self.source,
                    self.answer.unwrap_or(401)
                ),
            );
            facts.push(
                Fact::new("why", self.why.as_deref().map(shown).unwrap_or_default())
                    .in_tone(Tone::Bad),
            );
            facts.push(Fact::new("cause", self.cause.unwrap_or_default()));
        }
        for event in &self.events {
            let kind =
                if event.event_type.is_empty() { "without a type" } else { &event.event_type };
            facts.push(Fact::data("event", format!("{}  {}", shown(&event.key), shown(kind))));
        }
        for note in &self.notes {
            facts.push(Fact::new("note", shown(note)).in_tone(Tone::Warn));
        }
        match (&self.next, self.events.first()) {
            (Some(next), _) => facts.push(Fact::new("next", shown(next))),
            (None, Some(event)) => {
                facts.push(Fact::new(
                    "next",
                    format!("  oncehook events show {}", quoted(&event.key)),
                ));
            }
            (None, None) => {}
        }
        page.facts(&facts);
    }
}

#[cfg(test)]
#[expect(clippy::unwrap_used, reason = "a failed unwrap is a failed test")]
mod tests;
