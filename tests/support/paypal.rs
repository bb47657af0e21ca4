//! PayPal's proof of a delivery: a key and a certificate made now, and signatures by them.

use crate::{root, run_python};
use serde_json::{Value, json};

/// Deliveries, signed with one key.
pub struct Proven {
    /// The key's certificate, PEM.
    pub certificate: String,
    /// The headers of each delivery.
    pub headers: Vec<Vec<(String, String)>>,
}

/// Signs deliveries, a transmission id and a body each, for the webhook of this id. `url` is where the
/// certificate will be found.
pub fn prove(
    webhook_id: &str,
    url: &str,
    deliveries: &[(String, String)],
) -> Result<Proven, String> {
    let listed: Vec<Value> = deliveries
        .iter()
        .map(|(transmission, body)| json!({"transmission": transmission, "body": body}))
        .collect();
    let wish = json!({"webhook_id": webhook_id, "url": url, "deliveries": listed});
    let script = root().join("tests/support/paypal.py");
    let said: Value = serde_json::from_str(&run_python(&script, &wish.to_string(), &[])?)
        .map_err(|error| error.to_string())?;
    let pair = |(name, value): (&String, &Value)| Some((name.clone(), value.as_str()?.to_owned()));
    let lines = |headers: &Value| headers.as_object()?.iter().map(pair).collect();
    let headers = said["headers"].as_array().into_iter().flatten().map(lines);
    Ok(Proven {
        certificate: said["certificate"].as_str().unwrap_or_default().to_owned(),
        headers: headers.collect::<Option<_>>().ok_or("a header is no text")?,
    })
}
