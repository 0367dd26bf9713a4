//! Log lines as flat JSON objects. Fields of enclosing spans, such as the execution, are included.

use std::fmt;

use serde_json::{Map, Value};
use tracing::{Event, Subscriber};
use tracing_serde::fields::AsMap as _;
use tracing_subscriber::fmt::format::{JsonFields, Writer};
use tracing_subscriber::fmt::time::{FormatTime, SystemTime};
use tracing_subscriber::fmt::{FmtContext, FormatEvent, FormattedFields};
use tracing_subscriber::registry::LookupSpan;

#[derive(Debug)]
pub(super) struct FlatJson;

impl<S> FormatEvent<S, JsonFields> for FlatJson
where
    S: Subscriber + for<'a> LookupSpan<'a>,
{
    fn format_event(
        &self,
        context: &FmtContext<'_, S, JsonFields>,
        mut writer: Writer<'_>,
        event: &Event<'_>,
    ) -> fmt::Result {
        let mut time = String::new();
        SystemTime.format_time(&mut Writer::new(&mut time))?;
        let metadata = event.metadata();
        let mut line = Map::new();
        line.insert("timestamp".to_owned(), time.into());
        line.insert("level".to_owned(), metadata.level().as_str().into());
        line.insert("target".to_owned(), metadata.target().into());
        line.extend(fields_of(context, event));
        let line = serde_json::to_string(&line).map_err(|_| fmt::Error)?;
        writeln!(writer, "{line}")
    }
}

/// The fields of an event and of its spans. Those of the event take precedence.
pub(super) fn fields_of<S>(context: &FmtContext<'_, S, JsonFields>, event: &Event<'_>) -> Map<String, Value>
where
    S: Subscriber + for<'a> LookupSpan<'a>,
{
    let mut all = Map::new();
    for span in context
        .event_scope()
        .into_iter()
        .flat_map(|scope| scope.from_root())
    {
        let extensions = span.extensions();
        let fields = extensions.get::<FormattedFields<JsonFields>>();
        let fields =
            fields.and_then(|fields| serde_json::from_str::<Map<String, Value>>(&fields.fields).ok());
        all.extend(fields.into_iter().flatten());
    }
    if let Ok(Value::Object(fields)) = serde_json::to_value(event.field_map()) {
        all.extend(fields);
    }
    all
}
