//! `make run LOCALSTRIPE=1`: a Stripe beside the stack, whose own webhooks say that something
//! changed and whose API says what. Nothing here signs or sends an event.

use serde_json::{Value, json};
use std::time::Duration;
use support::{LocalStripe, Stack, until};

const SOURCE: &str = "stripe-fetched";

/// Starts it on `port`, has it make and end subscriptions, and compares what became of them with
/// what its API says. It runs as long as the value lives.
pub(crate) async fn show(stack: &Stack, port: u16) -> Result<LocalStripe, String> {
    let stripe = LocalStripe::start(port)?;
    let url = format!("{}/webhooks/{SOURCE}", stack.http.base());
    stripe.send_webhooks_to(&url, stack.signer.key_text(SOURCE)).await?;
    stripe.create_plan("gold").await?;
    println!("\nlocalstripe at {} sends its webhooks to {url}", stripe.url());
    for n in 0..4 {
        let id = stripe.subscribe(&format!("customer{n}@example.com"), "gold").await?;
        if n % 2 == 1 {
            stripe.cancel(&id).await?;
        }
        let key = format!("{SOURCE}#subscription#{id}");
        let state = until("the state is what the API says", Duration::from_mins(1), async || {
            let says = stripe.subscription(&id).await?;
            let says =
                json!({"plan": says["items"]["data"][0]["plan"]["id"], "status": says["status"]});
            let state =
                stack.find_entity(&key).await?.map_or(Value::Null, |found| json!(found.state));
            if state == says { Ok(state) } else { Err(format!("{state}, the API says {says}")) }
        })
        .await;
        println!("  {key}  {state}  as its API says");
    }
    Ok(stripe)
}
