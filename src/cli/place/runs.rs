//! Executions as they are asked for, now or later, and waited for.

use std::time::Duration;

use ureq::http::Method;

use super::asked;
use super::remote::{Call, Sent, read_json};
use super::watch::EVENTS;
use super::{Local, Ran, Remote};
use crate::cli::exit::Exit;
use crate::cli::failure::{Failure, Result};
use crate::cli::progress::Spinner;
use crate::cli::watched::{Hear, Told};
use crate::engine::Ask;
use crate::execution::{Envelope, Stream};
use crate::ids::ExecutionId;
use crate::limits;

impl Remote {
    pub(crate) fn run(
        &self,
        (name, mut what): (String, serde_json::Value),
        ask: &Ask,
        hear: Option<&mut Hear<'_>>,
    ) -> Result<Ran> {
        what["blobs"] = self.kept(&ask.blobs)?;
        // Ctrl-C ends this process, and with it the connection.
        what["on_disconnect"] = "cancel".into();
        let sent = Sent::json(asked::body(what, ask)?.into_bytes());
        let mut spinner = Some(Spinner::start(format!("running {name} on {}", self.base)));
        let call = Call {
            answer_max: limits::CLIENT_RUN_MAX,
            ..Call::new(Method::POST, "/v1/executions")
        };
        let envelope = match hear {
            None => read_json(self.send(&call, sent)?)?,
            Some(hear) => {
                let mut envelope = None;
                self.run_told(
                    &Call {
                        accept: EVENTS,
                        ..call
                    },
                    sent,
                    &mut |told| {
                        if !matches!(told, Told::Status(..) | Told::Printed(Stream::Stdout, _)) {
                            spinner = None;
                        }
                        if let Told::Result(result) = &told {
                            envelope = Some((**result).clone());
                        }
                        hear(told)
                    },
                )?;
                envelope.ok_or_else(|| Failure::new(Exit::Unavailable, "the server told no result"))?
            }
        };
        Ok(Ran {
            envelope,
            interrupted: false,
        })
    }

    pub(super) fn submit(&self, mut what: serde_json::Value, ask: &Ask) -> Result<Envelope> {
        what["blobs"] = self.kept(&ask.blobs)?;
        what["mode"] = "async".into();
        let sent = Sent::json(asked::body(what, ask)?.into_bytes());
        read_json(self.send(&Call::new(Method::POST, "/v1/executions"), sent)?)
    }

    pub(super) fn ended_within(&self, id: ExecutionId, within: Duration) -> Result<Envelope> {
        let query = [("wait", within.as_secs_f64().to_string())];
        self.json(&Call {
            query: &query,
            answer_max: limits::CLIENT_RUN_MAX,
            ..Call::new(Method::GET, &format!("/v1/executions/{id}"))
        })
    }
}

impl Local {
    pub(super) fn ended_within(&self, id: ExecutionId, within: Duration) -> Result<Envelope> {
        let ended = self.engine().execution_within(self.caller(), id, within);
        Ok(Envelope::from_execution(&self.wait(ended)?, None))
    }
}
