//! `install.sh`: what it installs for a user and with the service unit, and that it removes just that.

use std::path::{Path, PathBuf};
use std::process::Command;

use crate::cli_shell::{CommandOutput, command_output};

/// Runs `install.sh` in a folder of its own. Without HOME, as provisioning tools do.
struct Installer(tempfile::TempDir);

impl Installer {
    fn new() -> Self {
        Self(tempfile::tempdir().unwrap())
    }

    fn prefix(&self) -> PathBuf {
        self.0.path().join("prefix")
    }

    fn run(&self, args: &[&str]) -> CommandOutput {
        let mut command = Command::new("bash");
        command.arg(script()).args(args).env_remove("HOME");
        command_output(command.current_dir(self.0.path()).output().unwrap())
    }
}

fn script() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("install.sh")
}

fn man_pages(prefix: &Path) -> Vec<String> {
    let folder = prefix.join("share/man/man1").read_dir().unwrap();
    let mut names: Vec<_> = folder
        .map(|entry| entry.unwrap().file_name().into_string().unwrap())
        .collect();
    names.sort();
    names
}

const HERE: [&str; 2] = ["--prefix", "prefix"];

#[test]
fn installer_installs_and_removes_its_files() {
    let installer = Installer::new();
    let prefix = installer.prefix();
    let help = installer.run(&["--help"]);
    assert_eq!(help.code, 0, "{}", help.stderr);
    for option in ["--prefix", "--binary", "--systemd", "--uninstall"] {
        assert!(help.stdout.contains(option), "{}", help.stdout);
    }
    assert_eq!(installer.run(&["--nosuch"]).code, 2);

    let install = [&HERE[..], &["--binary", env!("CARGO_BIN_EXE_skillbox")]].concat();
    let done = installer.run(&install);
    assert_eq!(done.code, 0, "{}", done.stderr);
    let installed = [
        "bin/skillbox",
        "share/bash-completion/completions/skillbox",
        "share/zsh/site-functions/_skillbox",
        "share/fish/vendor_completions.d/skillbox.fish",
        "share/man/man1/skillbox.1",
        "share/man/man1/skillbox-exec-show.1",
    ];
    for file in installed {
        let file = prefix.join(file);
        assert!(
            file.metadata().is_ok_and(|file| file.len() > 0),
            "{file:?}: {}",
            done.stdout
        );
    }
    let version = Command::new(prefix.join(installed[0])).arg("version").output();
    assert_eq!(command_output(version.unwrap()).code, 0);
    assert_eq!(installer.run(&[&HERE[..], &["--uninstall"]].concat()).code, 0);
    for file in installed {
        assert!(!prefix.join(file).exists(), "{file}");
    }
}

#[test]
fn installer_replaces_its_own_man_pages_only() {
    let installer = Installer::new();
    let prefix = installer.prefix();
    let install = [&HERE[..], &["--binary", env!("CARGO_BIN_EXE_skillbox")]].concat();
    assert_eq!(installer.run(&install).code, 0);
    let pages = man_pages(&prefix);
    assert!(pages.len() > 50, "{pages:?}");

    // A command that a later version no longer has, and another program's page.
    for name in ["skillbox-old.1", "skill.1", "skillboxer.1"] {
        std::fs::write(prefix.join("share/man/man1").join(name), "page").unwrap();
    }
    assert_eq!(installer.run(&install).code, 0);
    let mut expected = [pages, vec!["skill.1".to_owned(), "skillboxer.1".to_owned()]].concat();
    expected.sort();
    assert_eq!(man_pages(&prefix), expected);

    assert_eq!(installer.run(&[&HERE[..], &["--uninstall"]].concat()).code, 0);
    assert_eq!(man_pages(&prefix), ["skill.1", "skillboxer.1"]);
}

/// The folders of systemd are hidden below empty ones, so no unit of this machine is touched.
#[cfg(target_os = "linux")]
#[test]
fn installer_installs_and_removes_the_service_unit() {
    const STEPS: &str = "\
        mkdir -p /run/systemd /etc/systemd/system
        mount -t tmpfs none /run/systemd
        mount -t tmpfs none /etc/systemd/system
        PATH=$PREFIX/programs:$PATH
        bash $SCRIPT --prefix $PREFIX --binary $BINARY --systemd
        grep '^ExecStart=' /etc/systemd/system/skillbox.service
        ls $PREFIX/share/man/man1/skillbox.1
        bash $SCRIPT --prefix $PREFIX-of-another --uninstall
        ls /etc/systemd/system
        bash $SCRIPT --prefix $PREFIX --uninstall
        echo left: $(ls /etc/systemd/system) $(find $PREFIX/bin $PREFIX/share -type f)";
    if !rustix::process::geteuid().is_root() {
        crate::world::missing("linux", "only root installs the service unit");
        return;
    }
    let installer = Installer::new();
    let prefix = installer.prefix();
    // `systemctl` only has to exist: install.sh calls it where systemd runs.
    std::fs::create_dir_all(prefix.join("programs")).unwrap();
    std::os::unix::fs::symlink("/bin/true", prefix.join("programs/systemctl")).unwrap();
    let mut command = Command::new("unshare");
    command
        .args(["--mount", "sh", "-ec", STEPS])
        .env("PREFIX", &prefix)
        .env("SCRIPT", script())
        .env("BINARY", env!("CARGO_BIN_EXE_skillbox"))
        .current_dir(installer.0.path());
    let done = command_output(command.output().unwrap());
    assert_eq!(done.code, 0, "{}{}", done.stdout, done.stderr);
    let start = format!("ExecStart={}/bin/skillbox serve", prefix.display());
    assert!(done.stdout.contains(&start), "{}", done.stdout);
    assert!(done.stdout.contains("\nskillbox.service\n"), "{}", done.stdout);
    assert!(done.stdout.ends_with("left:\n"), "{}", done.stdout);
}
