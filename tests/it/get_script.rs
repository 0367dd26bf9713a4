//! `get.sh`, against a server of releases that the scripts of `packaging` made.

use std::io::{BufRead as _, BufReader, Write as _};
use std::net::{TcpListener, TcpStream};
use std::os::unix::fs::PermissionsExt as _;
use std::path::{Path, PathBuf};
use std::process::Command;

use crate::cli_shell::{CommandOutput, command_output};

fn source(path: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join(path)
}

/// A folder of releases and its server. The thread ends with the test process.
pub(crate) struct Releases {
    folder: tempfile::TempDir,
    pub(crate) url: String,
}

impl Releases {
    pub(crate) fn open() -> Self {
        let folder = tempfile::tempdir().unwrap();
        std::fs::create_dir(folder.path().join("home")).unwrap();
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let url = format!("http://{}", listener.local_addr().unwrap());
        let served = folder.path().to_owned();
        std::thread::spawn(move || {
            listener
                .incoming()
                .for_each(|stream| serve(stream.unwrap(), &served))
        });
        Self { folder, url }
    }

    pub(crate) fn path(&self, path: &str) -> PathBuf {
        self.folder.path().join(path)
    }

    /// A release, which becomes the latest one: the tested binary, under another version.
    pub(crate) fn publish(&self, version: &str) -> PathBuf {
        let binary = self.path("binary");
        let real = env!("CARGO_BIN_EXE_skillbox");
        let program = format!(
            "#!/bin/sh\n[ \"$1\" != version ] || exec echo skillbox {version}\nexec '{real}' \"$@\"\n"
        );
        std::fs::write(&binary, program).unwrap();
        std::fs::set_permissions(&binary, std::fs::Permissions::from_mode(0o755)).unwrap();
        let release = self.path(&format!("download/v{version}"));
        std::fs::create_dir_all(&release).unwrap();
        let mut archive = Command::new(source("packaging/archive.sh"));
        archive
            .args([platform(), binary.display().to_string()])
            .arg(&release);
        let packed = command_output(archive.output().unwrap());
        assert_eq!(packed.code, 0, "{}", packed.stderr);
        let mut checksums = Command::new(source("packaging/checksums.sh"));
        assert!(checksums.arg(&release).status().unwrap().success());
        std::fs::create_dir_all(self.path("latest")).unwrap();
        drop(std::fs::remove_file(self.path("latest/download")));
        std::os::unix::fs::symlink(&release, self.path("latest/download")).unwrap();
        PathBuf::from(packed.stdout.trim())
    }

    fn get(&self, args: &[&str]) -> CommandOutput {
        self.get_on("/usr/bin:/bin", args)
    }

    /// With the programs of these folders.
    fn get_on(&self, path: &str, args: &[&str]) -> CommandOutput {
        let mut command = Command::new("/bin/sh");
        command.arg(source("get.sh")).args(args);
        command.env_clear().env("PATH", path);
        command
            .env("HOME", self.path("home"))
            .env("SKILLBOX_RELEASES_URL", &self.url);
        command_output(command.current_dir(self.folder.path()).output().unwrap())
    }

    fn installed_version(&self, dir: &str) -> String {
        let mut command = Command::new(self.path(dir).join("skillbox"));
        command_output(command.arg("version").output().unwrap()).stdout
    }
}

fn platform() -> String {
    let system = if cfg!(target_os = "macos") {
        "macos"
    } else {
        "linux"
    };
    format!("{}-{system}", std::env::consts::ARCH)
}

fn serve(mut stream: TcpStream, folder: &Path) {
    let mut lines = BufReader::new(stream.try_clone().unwrap()).lines();
    let first = lines.next().unwrap().unwrap();
    for line in lines {
        if line.unwrap().is_empty() {
            break;
        }
    }
    let path = first.split(' ').nth(1).unwrap().trim_start_matches('/');
    let (status, body) = match std::fs::read(folder.join(path)) {
        Ok(body) => ("200 OK", body),
        Err(_) => ("404 Not Found", Vec::new()),
    };
    let head = format!(
        "HTTP/1.1 {status}\r\nContent-Length: {}\r\nConnection: close\r\n\r\n",
        body.len()
    );
    drop(stream.write_all(&[head.as_bytes(), &body].concat()));
}

fn has_programs() -> bool {
    let found = ["curl", "sha256sum", "bash"]
        .iter()
        .all(|name| Command::new(name).arg("--version").output().is_ok());
    if !found {
        crate::world::missing("linux", "get.sh needs curl, sha256sum and bash");
    }
    found
}

#[test]
fn get_script_installs_upgrades_and_names_what_it_installed() {
    if !has_programs() {
        return;
    }
    let releases = Releases::open();
    releases.publish("0.1.0");
    let here = ["--dir", "prefix/bin"];
    let done = releases.get(&here);
    assert_eq!(done.code, 0, "{}", done.stderr);
    assert_eq!(releases.installed_version("prefix/bin"), "skillbox 0.1.0\n");
    let installed = [
        "bin/skillbox",
        "share/bash-completion/completions/skillbox",
        "share/zsh/site-functions/_skillbox",
        "share/fish/vendor_completions.d/skillbox.fish",
        "share/man/man1/skillbox.1",
        "share/man/man1/skillbox-exec-show.1",
    ];
    for file in installed {
        let file = releases.path("prefix").join(file);
        assert!(file.metadata().is_ok_and(|file| file.len() > 0), "{file:?}");
    }

    releases.publish("0.2.0");
    let upgraded = releases.get(&here);
    let both = "replaced skillbox 0.1.0 by skillbox 0.2.0";
    assert!(upgraded.stdout.contains(both), "{}", upgraded.stdout);
    assert_eq!(releases.installed_version("prefix/bin"), "skillbox 0.2.0\n");
    let back = releases.get(&[&here[..], &["--version", "v0.1.0"]].concat());
    assert_eq!(back.code, 0, "{}", back.stderr);
    assert_eq!(releases.installed_version("prefix/bin"), "skillbox 0.1.0\n");

    let remove = back.stdout.split_once("uninstall with: ").unwrap().1;
    assert!(
        Command::new("sh")
            .args(["-c", remove])
            .status()
            .unwrap()
            .success()
    );
    for file in installed {
        assert!(!releases.path("prefix").join(file).exists(), "{file}");
    }
}

/// Where curl is missing.
#[test]
fn get_script_downloads_with_wget() {
    let has_wget = Command::new("wget").arg("--version").output().is_ok();
    if !has_programs() || !has_wget {
        return;
    }
    let releases = Releases::open();
    releases.publish("0.1.0");
    let without_curl = releases.path("programs");
    std::fs::create_dir(&without_curl).unwrap();
    for folder in ["/bin", "/usr/bin"] {
        for program in std::fs::read_dir(folder).unwrap() {
            let program = program.unwrap();
            if program.file_name() != "curl" {
                drop(std::os::unix::fs::symlink(
                    program.path(),
                    without_curl.join(program.file_name()),
                ));
            }
        }
    }
    let path = without_curl.to_str().unwrap();
    let done = releases.get_on(path, &["--dir", "bin"]);
    assert_eq!(done.code, 0, "{}", done.stderr);
    assert_eq!(releases.installed_version("bin"), "skillbox 0.1.0\n");
    let absent = releases.get_on(path, &["--dir", "bin", "--version", "9.9.9"]);
    assert_eq!(absent.code, 1, "{}", absent.stdout);
    assert_eq!(releases.installed_version("bin"), "skillbox 0.1.0\n");
}

#[test]
fn get_script_installs_nothing_that_does_not_match_its_checksum() {
    if !has_programs() {
        return;
    }
    let releases = Releases::open();
    releases.publish("0.1.0");
    assert_eq!(releases.get(&["--dir", "bin"]).code, 0);
    let archive = releases.publish("0.2.0");
    let mut bytes = std::fs::read(&archive).unwrap();
    *bytes.last_mut().unwrap() ^= 1;
    std::fs::write(&archive, bytes).unwrap();
    let refused = releases.get(&["--dir", "bin"]);
    assert_eq!(refused.code, 1);
    assert!(
        refused.stderr.contains("wrong checksum of skillbox-0.2.0-"),
        "{}",
        refused.stderr
    );
    assert_eq!(releases.installed_version("bin"), "skillbox 0.1.0\n");
    assert!(!releases.path("bin/skillbox.new").exists());
}

#[test]
fn get_script_names_cause_and_remedy_of_failures() {
    if !has_programs() {
        return;
    }
    let releases = Releases::open();
    releases.publish("0.1.0");
    let file = releases.path("download/v0.1.0/SHA256SUMS");
    for (args, code, message) in [
        (&["--nosuch"][..], 2, "Usage: sh get.sh"),
        (&["--dir"], 1, "--dir needs a value"),
        (&["--version", "../1"], 1, "invalid version `../1`"),
        (&["--version", "7.0.0"], 1, "check the version, the network"),
        (&["--dir", "binary"], 1, "choose another folder with --dir"),
    ] {
        let failed = releases.get(args);
        assert_eq!(failed.code, code, "{args:?}: {}", failed.stderr);
        assert!(failed.stderr.contains(message), "{args:?}: {}", failed.stderr);
    }
    std::fs::write(
        file,
        format!("{}  skillbox-0.1.0-vax-vms.tar.gz\n", "0".repeat(64)),
    )
    .unwrap();
    let absent = releases.get(&[]);
    assert!(absent.stderr.contains("no archive for"), "{}", absent.stderr);
    assert!(std::fs::read_dir(releases.path("home")).unwrap().next().is_none());
}

#[test]
fn truncated_get_script_does_nothing() {
    let script = std::fs::read_to_string(source("get.sh")).unwrap();
    let folder = tempfile::tempdir().unwrap();
    let cut = script.trim_end().strip_suffix("main \"$@\"").unwrap();
    let mut command = Command::new("sh");
    command.args(["-c", cut]).env("HOME", folder.path());
    let output = command_output(command.output().unwrap());
    assert_eq!(output.stdout + &output.stderr, "");
    assert!(std::fs::read_dir(folder.path()).unwrap().next().is_none());
}

#[test]
fn same_binary_gives_same_archive() {
    if !has_programs() {
        return;
    }
    let releases = Releases::open();
    let first = std::fs::read(releases.publish("0.1.0")).unwrap();
    assert_eq!(first, std::fs::read(releases.publish("0.1.0")).unwrap());
}
