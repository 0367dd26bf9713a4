//! Executions: states, limits, results. Pure.

mod arrivals;
mod code_results;
mod counts;
mod envelope;
mod json_text;
mod limits;
mod log_line;
mod omitted;
mod outcome;
mod preview;
mod record;
mod result_form;
mod transcript;
mod workdir;

pub use arrivals::{Arrival, ArrivalCursor, Arrivals, LogPart, LogSource, PartContent};
pub use code_results::{CodeResults, Exception, Raised, RichResult};
pub use counts::{CountedEnd, Durations, ExecutionCounts, OutcomeCounts};
pub use envelope::{Envelope, FileLink, Links, LogTexts, QueuePlace, Summary, media_type};
pub use json_text::{InvalidJson, JsonText, check_depth};
pub use limits::{AskedLimits, ExecutionLimits, GrantedLimits, Maxima, ResourceLimits, size};
pub use log_line::{Level, LogLine};
pub use omitted::{EnvelopePart, Omitted};
pub use outcome::{
    Failure, FileEntry, Logs, Outcome, OutputBlob, Skipped, Status, Timings, Usage, milliseconds,
};
pub use record::{ChosenBackend, Execution, ExecutionKey, NewExecution};
pub use result_form::ResultForm;
pub use transcript::{
    BeyondEnd, Bookmark, InvalidBookmark, Phase, Reader, Reason, Stream, Transcript, TranscriptEvent,
};
pub use workdir::Workdir;
