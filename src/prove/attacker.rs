//! Runs an attack through the engine and records the outcome as one JSON document.

use std::collections::{BTreeMap, BTreeSet};
use std::io::{self, Seek as _};
use std::path::Path;
use std::time::Duration;

use serde_json::{Map, Value, json};
use tokio::io::AsyncReadExt as _;

use super::probe::Attack;
use super::programs;
use super::surroundings::Surroundings;
use super::verdict::Observation;
use crate::auth::Caller;
use crate::bundle;
use crate::engine::{Engine, RunRequest, RunSpec, UnpublishedArchive};
use crate::error::{Code, Error};
use crate::execution::{Execution, JsonText, Outcome, Status};
use crate::limits;
use crate::sandbox::InputFile;
use crate::skill::{Language, Selector, SkillRef};

/// Beyond its deadline an execution may queue, start and be collected for this long.
const PATIENCE: Duration = Duration::from_secs(150);
/// Recorded characters of a stream, and bytes of a collected file.
const HEAD_MAX: usize = 4096;
const FILES_READ_MAX: usize = 16;

#[derive(Debug)]
pub(super) struct Attacker<'a> {
    pub(super) engine: &'a Engine,
    pub(super) caller: &'a Caller,
    pub(super) surroundings: &'a Surroundings,
    pub(super) origin: Origin,
    /// How many times slower than usual this host is.
    pub(super) slowness: f64,
}

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Origin {
    /// A cold sandbox.
    #[default]
    Cold,
    /// A warm sandbox.
    Warm,
}

/// Attempts to get a warm sandbox for an attack, and the pause between them.
const TRIES: usize = 20;
const TRY_AGAIN_AFTER: Duration = Duration::from_millis(100);

impl Attacker<'_> {
    pub(super) async fn attack(&self, attack: &Attack) -> Observation {
        let Some((language, program)) = attack.program.as_deref().and_then(programs::find) else {
            return Observation::Unavailable("this build does not have its program".to_owned());
        };
        let skill = ProbeSkill {
            language,
            program: &program,
            front_matter: &attack.front_matter,
            beside: &attack.beside,
        };
        if let Some(before) = &attack.before
            && let refused @ (Observation::Unavailable(_) | Observation::Failed(_)) =
                self.observation(attack, &skill, before).await
        {
            return refused;
        }
        self.observation(attack, &skill, &attack.input).await
    }

    /// A slow host needs longer until the program begins.
    fn time_limit(&self, attack: &Attack) -> Duration {
        Duration::from_secs_f64(attack.seconds * self.slowness).min(limits::TIMEOUT_MAX)
    }

    async fn observation(
        &self,
        attack: &Attack,
        skill: &ProbeSkill<'_>,
        input: &Map<String, Value>,
    ) -> Observation {
        let received_before = self.surroundings.received();
        let patience = PATIENCE.mul_f64(self.slowness);
        let run =
            tokio::time::timeout(self.time_limit(attack) + patience, self.run(attack, skill, input)).await;
        let execution = match run {
            Err(_) => {
                return Observation::Failed(format!("it did not end within {patience:?} of its deadline"));
            }
            Ok(Err(error)) => return refused(&error),
            Ok(Ok(execution)) => execution,
        };
        let Some(outcome) = &execution.outcome else {
            return Observation::Failed("its execution has no end".to_owned());
        };
        if let Some(error) = outcome
            .error
            .as_ref()
            .filter(|error| error.code == "start_failed")
        {
            return Observation::Unavailable(error.message.clone());
        }
        let mut seen = described(&execution, outcome);
        seen["contents"] = self.contents(&execution, outcome).await;
        seen["arrived"] = json!(self.surroundings.received() - received_before);
        self.surroundings.check_for_token(&seen, outcome);
        Observation::Outcome(seen)
    }

    async fn run(
        &self,
        attack: &Attack,
        skill: &ProbeSkill<'_>,
        input: &Map<String, Value>,
    ) -> Result<Execution, Error> {
        let archive = skill.archive(self.surroundings.folder())?;
        let mut input_values = self.surroundings.input();
        input_values.extend(input.clone());
        let input = JsonText::parse(Value::Object(input_values).to_string().as_bytes())
            .map_err(|error| Error::internal(error.to_string()))?;
        let files = attack.files.iter().map(|(path, content)| InputFile {
            path: path.clone(),
            content: content.clone().into(),
        });
        let spec = RunSpec {
            input: Some(input),
            files: files.collect(),
            timeout: Some(self.time_limit(attack)),
            ..RunSpec::default()
        };
        if self.origin == Origin::Cold {
            let archive = UnpublishedArchive {
                zip: archive,
                fallback_name: None,
            };
            let request = RunRequest {
                archive: Some(archive),
                ..spec.into()
            };
            return self.engine.runs().run(self.caller.tenant(), request).await;
        }
        let (record, _) = self
            .engine
            .skills()
            .publish(self.caller.tenant(), archive, None)
            .await?;
        let skill = SkillRef {
            name: record.manifest.name,
            selector: Selector::Digest(record.digest),
        };
        let mut left = TRIES;
        loop {
            let spec = RunSpec {
                skill: Some(skill.clone()),
                ..spec.clone()
            };
            let execution = self.engine.runs().run(self.caller.tenant(), spec).await?;
            left -= 1;
            let waited = execution
                .outcome
                .as_ref()
                .is_some_and(|outcome| outcome.timings.warm);
            if waited || left == 0 {
                return Ok(execution);
            }
            tokio::time::sleep(TRY_AGAIN_AFTER).await;
        }
    }

    /// Contents of the first small files, by path.
    async fn contents(&self, execution: &Execution, outcome: &Outcome) -> Value {
        let mut contents = Map::new();
        let small = outcome.files.iter().filter(|file| file.size <= HEAD_MAX as u64);
        for file in small.take(FILES_READ_MAX) {
            let id = execution.new.id;
            let Ok(found) = self
                .engine
                .executions()
                .artifact_file(self.caller.tenant(), id, &file.path)
                .await
            else {
                continue;
            };
            let range = found.range();
            let mut text = Vec::new();
            if let Ok(mut reader) = found.object.into_reader(range).await
                && reader.read_to_end(&mut text).await.is_ok()
            {
                contents.insert(file.path.clone(), String::from_utf8_lossy(&text).into());
            }
        }
        contents.into()
    }
}

/// A program that becomes a skill.
#[derive(Debug)]
pub(super) struct ProbeSkill<'a> {
    pub(super) language: Language,
    pub(super) program: &'a str,
    /// Further lines of the front matter.
    pub(super) front_matter: &'a [String],
    /// Files next to the program.
    pub(super) beside: &'a BTreeMap<String, String>,
}

impl ProbeSkill<'_> {
    /// The skill's archive, created in `folder`.
    pub(super) fn archive(&self, folder: &Path) -> Result<std::fs::File, Error> {
        let skill = tempfile::tempdir_in(folder).map_err(Error::internal)?;
        self.write(skill.path()).map_err(Error::internal)?;
        let mut archive = tempfile::tempfile_in(folder).map_err(Error::internal)?;
        bundle::pack(skill.path(), &mut archive)?;
        archive.rewind().map_err(Error::internal)?;
        Ok(archive)
    }

    fn write(&self, skill: &Path) -> io::Result<()> {
        let mut text = format!(
            "---\nname: probe\ndescription: Attacks its sandbox\nlang: {}\n",
            self.language
        );
        for line in self.front_matter {
            text.extend([line, "\n"]);
        }
        text.push_str("---\n\nProbe.\n");
        std::fs::write(skill.join("SKILL.md"), text)?;
        let main = skill.join(self.language.default_entrypoint());
        let scripts = main.parent().unwrap_or(skill);
        std::fs::create_dir_all(scripts)?;
        std::fs::write(&main, self.program)?;
        for (name, content) in self.beside {
            std::fs::write(scripts.join(name), content)?;
        }
        Ok(())
    }
}

/// A rejection is an outcome; an unavailable sandbox is skipped; every other error is a failure.
fn refused(error: &Error) -> Observation {
    let message = error.to_string();
    match error.code() {
        Code::SandboxUnavailable if std::error::Error::source(error).is_none() => {
            Observation::Unavailable(message)
        }
        Code::SandboxUnavailable | Code::Internal | Code::Busy | Code::StorageFull => {
            let cause = crate::error::causes(error).unwrap_or_default();
            Observation::Failed(format!("{message} {cause}").trim_end().to_owned())
        }
        code => Observation::Outcome(json!({ "refused": code.as_str(), "message": message })),
    }
}

/// The report of an execution, with derived figures.
fn described(execution: &Execution, outcome: &Outcome) -> Value {
    let granted = &execution.new.limits;
    let (timings, usage, logs) = (&outcome.timings, &outcome.usage, &outcome.logs);
    let output = outcome
        .output
        .as_ref()
        .and_then(|text| serde_json::from_str::<Value>(text.as_str()).ok());
    let reasons: BTreeSet<_> = outcome.skipped.iter().map(|skipped| &skipped.reason).collect();
    let granted_ms = timings.run_ms * f64::from(granted.cpu_millis) / 1000.0;
    json!({
        "status": outcome.status.as_str(),
        "code": outcome.error.as_ref().map(|error| &error.code),
        "message": outcome.error.as_ref().map(|error| &error.message),
        "exit_code": outcome.exit_code,
        "output": output,
        "output_bytes": outcome.output.as_ref().map_or(0, |text| text.as_str().len()),
        "stdout": head(&logs.stdout),
        "stderr": head(&logs.stderr),
        "logs": {
            "stdout_kept": logs.stdout.len(), "stdout_total": logs.stdout_total,
            "stderr_kept": logs.stderr.len(), "stderr_total": logs.stderr_total,
            "truncated": logs.truncated(),
        },
        "files": outcome.files.len(),
        "files_bytes": outcome.files.iter().map(|file| file.size).sum::<u64>(),
        "skipped": reasons,
        "skipped_named": outcome.skipped.len(),
        "skipped_paths": outcome.skipped.iter().map(|skipped| &skipped.path).collect::<BTreeSet<_>>(),
        "skipped_total": outcome.skipped_total,
        "run_ms": timings.run_ms,
        "collect_ms": timings.collect_ms,
        "warm": timings.warm,
        "past_deadline_ms": timings.run_ms - granted.timeout.as_secs_f64() * 1000.0,
        "usage": usage,
        // If PID 1 was counted, too, no count is possible.
        "memory_ended": outcome.status == Status::Oom || usage.oom_kills > 0,
        // At least the number that the host can report: 0.
        "memory_of_granted": ratio(mebibytes(usage.memory_peak_bytes), mebibytes(granted.memory_bytes)),
        "cpu_of_granted": ratio(Duration::from_millis(usage.cpu_ms).as_secs_f64() * 1000.0, granted_ms),
    })
}

fn ratio(part: f64, whole: f64) -> f64 {
    if whole > 0.0 { part / whole } else { 0.0 }
}

fn mebibytes(bytes: u64) -> f64 {
    u32::try_from(bytes / limits::MIB).map_or(f64::MAX, f64::from)
}

fn head(text: &[u8]) -> String {
    String::from_utf8_lossy(&text[..text.len().min(HEAD_MAX)]).into_owned()
}
