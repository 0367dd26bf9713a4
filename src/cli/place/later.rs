//! Executions that nobody waits for, asked for and waited for.

use std::time::Duration;

use ureq::http::Method;

use super::asked;
use super::remote::{Call, Sent, read_json};
use super::{Local, Remote};
use crate::cli::failure::Result;
use crate::engine::Ask;
use crate::execution::Envelope;
use crate::ids::ExecutionId;
use crate::limits;

impl Remote {
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
