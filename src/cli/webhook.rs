//! `skillbox webhook`: inspect deliveries and the signing secret.

use clap::Subcommand;

use crate::api::webhooks::{DeliveryInfo, SigningSecretInfo};
use crate::cli::client::Client;
use crate::cli::console::{Console, Format, Rows};
use crate::cli::exec::{self, rows};
use crate::cli::exit::Exit;
use crate::cli::failure::Result;
use crate::cli::id_argument::IdArgument;
use crate::cli::moment;
use crate::ids::{DeliveryId, ExecutionId};
use crate::limits;

#[derive(Debug, Subcommand)]
pub(crate) enum WebhookCommand {
    /// Print the signing secret, with which receivers verify webhooks
    #[command(after_help = "Example:\n  skillbox webhook secret > receiver/secret")]
    Secret,
    /// Replace the signing secret; the old one signs too for a day
    #[command(after_help = "Example:\n  skillbox webhook rotate")]
    Rotate,
    /// List deliveries, newest execution first
    #[command(after_help = "Example:\n  skillbox webhook deliveries --limit 20")]
    Deliveries {
        /// Only the delivery of this execution
        ///
        /// Its id, or the first or last digits of it
        #[arg(value_name = "EXECUTION")]
        execution: Option<IdArgument<ExecutionId>>,
        /// Maximum number of rows
        #[arg(long, default_value_t = limits::PAGE_ROWS as usize, value_parser = rows)]
        limit: usize,
    },
    /// Send a webhook again; needs a server
    #[command(after_help = "Example:\n  skillbox webhook redeliver 5e1f09ab")]
    Redeliver {
        /// ID of the delivery, as shown by `webhook deliveries`, or its first or last digits
        id: IdArgument<DeliveryId>,
    },
}

pub(crate) fn webhook(command: WebhookCommand, client: &Client, console: &Console) -> Result<Exit> {
    match command {
        WebhookCommand::Secret => secret(&client.signing_secret()?, console)?,
        WebhookCommand::Rotate => {
            let fresh = client.rotate_signing_secret()?;
            secret(&fresh, console)?;
            if let Some(until) = fresh.previous_until {
                console.say(format!(
                    "the previous secret also signs until {}",
                    moment::exact(until)
                ));
            }
        }
        WebhookCommand::Deliveries { execution, limit } => {
            let execution = execution.map(|id| exec::find_by_id(id, client)).transpose()?;
            let listed = client.deliveries(execution, limit)?;
            console.data(Format::Table, &listed.items, |items| Rows {
                heading: &[
                    "webhook",
                    "execution",
                    "status",
                    "attempts",
                    "next",
                    "last",
                    "url",
                ],
                rows: items.iter().map(|item| row(item, console)).collect(),
                optional: &["url", "last", "attempts", "next"],
            })?;
            if listed.more {
                console.say("more rows exist; raise --limit");
            }
        }
        WebhookCommand::Redeliver { id } => {
            let id = id.find("delivery", || {
                let listed = client.deliveries(None, limits::ID_SEARCH_ROWS)?;
                Ok(listed.items.iter().map(|item| item.delivery_id).collect())
            })?;
            let delivery = client.redeliver(id)?;
            console.success(format!("webhook {} is {}", delivery.delivery_id, delivery.status));
        }
    }
    Ok(Exit::Success)
}

/// Prints only the secret to a pipe; all details to a terminal.
fn secret(signing: &SigningSecretInfo, console: &Console) -> Result<()> {
    if console.format_or(Format::Table) == Format::Table {
        return console.text(&format!("{}\n", signing.secret));
    }
    console.data(Format::Json, signing, |_| Rows::default())
}

fn row(delivery: &DeliveryInfo, console: &Console) -> Vec<String> {
    let optional = |text: Option<String>| text.unwrap_or_else(|| "-".to_owned());
    let last = delivery
        .last_error
        .clone()
        .or_else(|| delivery.last_status.map(|status| status.to_string()));
    vec![
        console.id(delivery.delivery_id),
        console.id(delivery.execution_id),
        delivery.status.clone(),
        delivery.attempts.to_string(),
        optional(delivery.next_try_at.map(|at| console.moment(at))),
        optional(last),
        delivery.url.clone(),
    ]
}
