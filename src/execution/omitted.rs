//! Parts of an execution that a caller does not want: together they can have 28 MiB.

use serde::{Deserialize, Serialize};

use crate::execution::{Envelope, LogTexts};

/// A part that can be omitted, named after the member of the envelope.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, utoipa::ToSchema)]
#[serde(rename_all = "lowercase")]
pub enum EnvelopePart {
    /// `logs` and `logs_preview`; of events also `stdout`, `stderr` and `log`.
    Logs,
    /// `results`.
    Results,
    /// `output` and `output_preview`.
    Output,
}

/// Which parts are omitted.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Omitted {
    pub logs: bool,
    pub results: bool,
    pub output: bool,
}

impl Omitted {
    fn parts(self) -> Vec<EnvelopePart> {
        let all = [
            (self.logs, EnvelopePart::Logs),
            (self.results, EnvelopePart::Results),
            (self.output, EnvelopePart::Output),
        ];
        let omitted = all.into_iter().filter(|(is_omitted, _)| *is_omitted);
        omitted.map(|(_, part)| part).collect()
    }
}

impl FromIterator<EnvelopePart> for Omitted {
    fn from_iter<I: IntoIterator<Item = EnvelopePart>>(parts: I) -> Self {
        let mut omitted = Self::default();
        for part in parts {
            match part {
                EnvelopePart::Logs => omitted.logs = true,
                EnvelopePart::Results => omitted.results = true,
                EnvelopePart::Output => omitted.output = true,
            }
        }
        omitted
    }
}

impl Envelope {
    /// Empties the members of these parts and names the parts in `omitted`.
    #[must_use]
    pub fn without(mut self, omitted: Omitted) -> Self {
        if omitted.logs {
            self.logs = LogTexts::default();
            self.logs_preview.clear();
        }
        if omitted.results {
            self.results.clear();
        }
        if omitted.output {
            self.output = None;
            self.output_preview = None;
        }
        self.omitted = omitted.parts();
        self
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::execution::envelope::tests::finished;

    #[test]
    fn omits_exactly_the_named_parts() {
        let full = Envelope::from_execution(&finished(), None);
        assert_eq!(full.clone().without(Omitted::default()), full);
        let part = full.clone().without([EnvelopePart::Logs].into_iter().collect());
        assert_eq!((part.logs, part.logs_preview.as_str()), (LogTexts::default(), ""));
        assert_eq!(
            (part.output, part.omitted),
            (full.output.clone(), vec![EnvelopePart::Logs])
        );
        let both = [EnvelopePart::Output, EnvelopePart::Results];
        let rest = full.clone().without(both.into_iter().collect());
        assert_eq!((rest.output, rest.output_preview), (None, None));
        assert_eq!(rest.logs, full.logs);
        assert_eq!(rest.omitted, [EnvelopePart::Results, EnvelopePart::Output]);
    }
}
