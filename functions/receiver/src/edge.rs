//! The edge: an API Gateway event (payload format 2.0, which function URLs share) becomes a
//! delivery, and an answer becomes a response.
//!
//! Strangers shape the event, so nothing in it may end the function. It arrives as raw JSON and is
//! read under a guard: what cannot be read is answered with a 4xx and a sentence. The path and the
//! query are the raw ones, since some providers sign them; the body is decoded here, since
//! `lambda_http` panics on bad base64. A header that came twice arrives as one value joined by
//! `, ` and stays so: what to make of it is the verifier's to say.

use base64::{Engine, prelude::BASE64_STANDARD};
use lambda_http::{
    Body,
    aws_lambda_events::apigw::{ApiGatewayV2httpRequest, ApiGatewayV2httpResponse},
    http::{HeaderName, HeaderValue},
};
use ledger::Millis;
use serde_json::value::RawValue;
use std::{fmt, panic};
use verifier::{Answer, Headers};
use workflow::{
    receive::{Delivery, sentence},
    telemetry::{Level, Line, Telemetry},
};

/// Why an event is no request.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Unreadable {
    /// Not the event of an HTTP API, or with a method or header that HTTP does not allow.
    Request,
    /// The body is marked as base64 and is none.
    Base64,
}

impl fmt::Display for Unreadable {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Request => "the request's method or headers cannot be read",
            Self::Base64 => "the request's body cannot be decoded",
        })
    }
}

/// Reads an event.
pub(crate) fn read(event: &RawValue, deadline: Millis) -> Result<Delivery, Unreadable> {
    let guarded = panic::catch_unwind(|| {
        let request = serde_json::from_str(event.get()).map_err(|_| Unreadable::Request)?;
        delivery(request, deadline)
    });
    guarded.unwrap_or(Err(Unreadable::Request))
}

fn delivery(request: ApiGatewayV2httpRequest, deadline: Millis) -> Result<Delivery, Unreadable> {
    let mut headers = Headers::new();
    for (name, value) in &request.headers {
        let value = str::from_utf8(value.as_bytes()).map_err(|_| Unreadable::Request)?;
        headers.push(name.as_str(), value);
    }
    let body = request.body.unwrap_or_default();
    Ok(Delivery {
        method: request.request_context.http.method.as_str().to_owned(),
        path: request.raw_path.unwrap_or_default(),
        query: request.raw_query_string.unwrap_or_default(),
        headers,
        body: if request.is_base64_encoded {
            BASE64_STANDARD.decode(body).map_err(|_| Unreadable::Base64)?
        } else {
            body.into_bytes()
        },
        deadline,
    })
}

/// Answers an event that is no request, and reports it.
pub(crate) fn refuse(unreadable: Unreadable, telemetry: &impl Telemetry) -> Answer {
    let line = Line::new(Level::Warn, unreadable.to_string());
    let line = line.with("rejection.cause", "unreadable").with("answer.status", 400);
    telemetry.emit(&line.count("Rejected"));
    sentence(400, &unreadable.to_string())
}

/// Writes an answer. A header that HTTP does not allow is left out rather than sent garbled.
pub(crate) fn write(answer: Answer) -> ApiGatewayV2httpResponse {
    let mut response = ApiGatewayV2httpResponse::default();
    response.status_code = answer.status.into();
    let content_type = answer.content_type.map(|kind| ("content-type".to_owned(), kind));
    for (name, value) in answer.headers.into_iter().chain(content_type) {
        if let (Ok(name), Ok(value)) = (HeaderName::try_from(name), HeaderValue::try_from(value)) {
            response.headers.insert(name, value);
        }
    }
    let body = match String::from_utf8(answer.body) {
        Ok(text) => Body::Text(text),
        Err(bytes) => Body::Binary(bytes.into_bytes()),
    };
    response.is_base64_encoded = matches!(body, Body::Binary(_));
    response.body = Some(body);
    response
}

#[cfg(test)]
mod tests;
