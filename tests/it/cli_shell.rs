//! A user at a command line, with a home of their own and nothing else of this machine's settings.

use std::path::{Path, PathBuf};
use std::process::{Child, Command, Output, Stdio};

use serde_json::Value;

const SKILLBOX: &str = env!("CARGO_BIN_EXE_skillbox");

/// Runs `skillbox` in a folder of its own.
pub(crate) struct Shell {
    folder: tempfile::TempDir,
    variables: Vec<(String, String)>,
}

/// What a command left.
#[derive(Debug)]
pub(crate) struct CommandOutput {
    pub(crate) code: i32,
    pub(crate) stdout: String,
    pub(crate) stderr: String,
}

impl Shell {
    pub(crate) fn new() -> Self {
        let shell = Self {
            folder: tempfile::tempdir().unwrap(),
            variables: Vec::new(),
        };
        let data = shell.data().display().to_string();
        shell.with("SKILLBOX_DATA_DIR", &data)
    }

    /// With the container engine and the images of this machine.
    pub(crate) fn with_engine(mut self) -> Self {
        let images = crate::world::images();
        let list = [&images.python, &images.node, &images.bash]
            .map(String::as_str)
            .join(",");
        for (name, value) in [
            ("SKILLBOX_IMAGE_PYTHON", images.python.as_str()),
            ("SKILLBOX_IMAGE_NODE", &images.node),
            ("SKILLBOX_IMAGE_BASH", &images.bash),
            ("SKILLBOX_IMAGE_ALLOWLIST", &list),
        ] {
            self = self.with(name, value);
        }
        match crate::world::docker_settings().host {
            Some(host) => self.with("SKILLBOX_DOCKER_HOST", &host),
            None => self,
        }
    }

    pub(crate) fn with(mut self, name: &str, value: &str) -> Self {
        self.variables.push((name.to_owned(), value.to_owned()));
        self
    }

    /// Where commands are run.
    pub(crate) fn folder(&self) -> &Path {
        self.folder.path()
    }

    /// The data folder.
    pub(crate) fn data(&self) -> PathBuf {
        self.folder.path().join("data")
    }

    pub(crate) fn command(&self, args: &[&str]) -> Command {
        self.command_by(Command::new(SKILLBOX), args)
    }

    fn command_by(&self, mut command: Command, args: &[&str]) -> Command {
        command
            .args(args)
            .current_dir(self.folder.path())
            .env_clear()
            .env("HOME", self.folder.path())
            .env("PATH", "/usr/bin:/bin")
            .envs(self.variables.iter().map(|(name, value)| (name, value)))
            // Where `tests/coverage.sh` wants to know which lines were run.
            .envs(std::env::var_os("LLVM_PROFILE_FILE").map(|file| ("LLVM_PROFILE_FILE", file)))
            .stdin(Stdio::null());
        command
    }

    pub(crate) fn run(&self, args: &[&str]) -> CommandOutput {
        command_output(self.command(args).output().unwrap())
    }

    /// Runs a command that must succeed and print JSON.
    pub(crate) fn json(&self, args: &[&str]) -> Value {
        let mut with_format = vec!["--format", "json"];
        with_format.extend_from_slice(args);
        let said = self.run(&with_format);
        assert_eq!(said.code, 0, "{args:?}: {}", said.stderr);
        serde_json::from_str(&said.stdout)
            .unwrap_or_else(|error| panic!("{args:?}: {error}: {}", said.stdout))
    }

    /// Ctrl-C reaches it, also where a shell that runs the tests in its background lets them, and what they start, ignore it.
    pub(crate) fn spawn(&self, args: &[&str]) -> Child {
        let mut program = Command::new(SKILLBOX);
        if cfg!(target_os = "linux") {
            program = Command::new("/usr/bin/env");
            program.args(["--default-signal=INT", SKILLBOX]);
        }
        self.command_by(program, args)
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .spawn()
            .unwrap()
    }

    /// Makes a skill's folder of this name.
    pub(crate) fn skill(&self, name: &str, front_matter: &str, file: &str, content: &str) {
        let folder = self.folder().join(name);
        std::fs::create_dir_all(folder.join("scripts")).unwrap();
        let skill_md =
            format!("---\nname: {name}\ndescription: Made by a test.\n{front_matter}---\n\nInstructions.\n");
        std::fs::write(folder.join("SKILL.md"), skill_md).unwrap();
        std::fs::write(folder.join(file), content).unwrap();
    }
}

/// Presses Ctrl-C.
#[cfg(unix)]
pub(crate) fn interrupt(child: &Child) {
    let pid = rustix::process::Pid::from_raw(i32::try_from(child.id()).unwrap()).unwrap();
    rustix::process::kill_process(pid, rustix::process::Signal::INT).unwrap();
}

pub(crate) fn command_output(output: Output) -> CommandOutput {
    CommandOutput {
        code: output.status.code().unwrap_or(-1),
        stdout: String::from_utf8(output.stdout).unwrap(),
        stderr: String::from_utf8(output.stderr).unwrap(),
    }
}

/// The examples of this repository.
pub(crate) fn examples() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("examples/skills")
}

/// Whether this machine has an engine; prints why if not.
pub(crate) fn has_docker() -> bool {
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build()
        .unwrap();
    let instance = skillbox::ids::InstanceId::generate();
    let sandbox = skillbox::sandbox::Sandbox::docker(crate::world::docker_settings(), instance);
    match runtime.block_on(sandbox.check()) {
        Ok(_) => true,
        Err(error) => {
            crate::world::missing("docker", &error.to_string());
            false
        }
    }
}
