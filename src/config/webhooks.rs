//! Webhook settings.

use std::time::Duration;

use super::error::Error;
use super::read::{SettingsReader, boolean};
use super::values;
use crate::egress::{PrivateDestination, WebhookPolicy};
use crate::engine::WebhookSettings;
use crate::limits;

pub(super) fn read(reader: &SettingsReader<'_>) -> Result<WebhookSettings, Error> {
    let each = |key| reader.list(key).unwrap_or_default();
    let private = each("webhooks.allow_private");
    let private = private
        .iter()
        .map(|text| reader.check("webhooks.allow_private", text.parse::<PrivateDestination>()));
    let ports = each("webhooks.ports");
    let ports = ports
        .iter()
        .map(|text| reader.check("webhooks.ports", values::number(text, 1, u16::MAX)));
    let defaults = WebhookSettings::default();
    let retries = match reader.list("webhooks.retries") {
        None => defaults.retries.clone(),
        Some(pauses) => reader.check("webhooks.retries", retries(&pauses))?,
    };
    Ok(WebhookSettings {
        policy: WebhookPolicy {
            allow_http: reader.required("webhooks.allow_http", boolean)?,
            allow_private: private.collect::<Result<_, _>>()?,
            ports: ports.collect::<Result<_, _>>()?,
        },
        ca_bundle: reader.optional("webhooks.ca_bundle", values::existing_file)?,
        retries,
        server_url: reader.optional("server_url", values::server_url)?,
        ..defaults
    })
}

fn retries(pauses: &[String]) -> Result<Vec<Duration>, String> {
    if pauses.len() > limits::DELIVERY_RETRIES_MAX {
        return Err(format!("has more than {} pauses", limits::DELIVERY_RETRIES_MAX));
    }
    let pause = |text: &String| {
        values::span_with_unit(text)?;
        values::span_within(text, Duration::from_secs(1), limits::DELIVERY_RETRY_MAX)
    };
    pauses.iter().map(pause).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn parses_retry_pauses_within_limits() {
        let read = |text: &str| retries(&text.split(',').map(str::to_owned).collect::<Vec<_>>());
        let expected = [Duration::from_secs(1), Duration::from_mins(2)];
        assert_eq!(read("1s,2m").unwrap(), expected);
        for wrong in ["5", "8d", "0s", "x", &"1s,".repeat(21)] {
            assert!(read(wrong).is_err(), "{wrong}");
        }
    }
}
