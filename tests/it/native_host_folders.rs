//! What native sandboxes see of the host's settings: folders of document tools, and folders that the operator names.

use std::os::unix::fs::PermissionsExt as _;
use std::path::Path;

use skillbox::engine::RunSpec;
use skillbox::execution::Status;
use skillbox::sandbox::Sandbox;
use skillbox::sandbox::linux::{HostFolder, Settings};
use skillbox::skill::Language;

use crate::cli_shell::Shell;
use crate::outcomes::{stderr, stdout};
use crate::world::{Backend, World, instance_in, missing, native_settings};

/// Runs a shell program and returns what it printed.
async fn print(world: &World, program: &str) -> String {
    let execution = world.run(Language::Bash, program, RunSpec::default()).await;
    let outcome = execution.outcome.unwrap();
    assert_eq!(outcome.status, Status::Success, "{}", stderr(&outcome));
    stdout(&outcome).to_owned()
}

#[tokio::test]
async fn document_tools_find_their_settings() {
    let Some(world) = World::on(Backend::Native).await else {
        return;
    };
    let folders = [
        "ImageMagick-6",
        "ImageMagick-7",
        "alternatives",
        "asciidoc",
        "fonts",
        "ghostscript",
        "groff",
        "java-17-openjdk",
        "libreoffice",
        "maven/logging",
        "sgml",
        "texmf",
        "xml",
    ];
    let present: Vec<_> = folders
        .iter()
        .map(|name| format!("/etc/{name}"))
        .filter(|path| Path::new(path).is_dir())
        .collect();
    let program = format!(
        "for folder in {}; do ls \"$folder\" > /dev/null && echo $folder; done\n",
        present.join(" ")
    );
    assert_eq!(print(&world, &program).await.lines().collect::<Vec<_>>(), present);
}

/// Java of Debian starts only with the folder in `/etc` that its own folder links to.
#[tokio::test]
async fn java_of_the_host_starts() {
    let Some(world) = World::on(Backend::Native).await else {
        return;
    };
    if !Path::new("/usr/bin/java").exists() {
        return missing("java", "no Java is installed here");
    }
    let text = print(&world, "java -Xmx64m -XshowSettings:properties -version 2>&1\n").await;
    assert!(
        text.contains("java.home") && text.contains("Runtime Environment"),
        "{text}"
    );
}

/// S-40: the file in which Maven's users write passwords.
#[tokio::test]
async fn shows_no_account_key_or_password_of_the_host() {
    let Some(world) = World::on(Backend::Native).await else {
        return;
    };
    let program = "cd /etc; for name in shadow gshadow sudoers machine-id ssh ssl/private skillbox maven/settings.xml pip.conf; do
  if test -e $name; then echo $name; fi
done; grep -v -e ^root: -e ^nobody: passwd || true";
    assert_eq!(print(&world, program).await, "");
}

/// S-40.
#[tokio::test]
async fn shows_folders_of_the_operator_read_only() {
    if World::on(Backend::Native).await.is_none() {
        return;
    }
    let outer = tempfile::tempdir_in("/var/tmp").unwrap();
    let tools = outer.path().join("tools/inner");
    std::fs::create_dir_all(&tools).unwrap();
    std::fs::write(tools.join("settings"), "found\n").unwrap();
    std::fs::write(outer.path().join("beside"), "hidden\n").unwrap();
    for folder in [outer.path(), tools.parent().unwrap(), &tools] {
        std::fs::set_permissions(folder, std::fs::Permissions::from_mode(0o755)).unwrap();
    }
    let parsed = |path: &Path| HostFolder::parse(path.to_str().unwrap()).unwrap();
    let folder = tempfile::tempdir().unwrap();
    let instance = instance_in(folder.path());
    let settings = Settings {
        // One inside the other is visible with it.
        folders: vec![parsed(&tools), parsed(tools.parent().unwrap())],
        ..native_settings()
    };
    let sandbox = Sandbox::native(settings, instance.id());
    let world = World::over(folder, instance, sandbox).await;
    let (outer, tools) = (outer.path().display(), tools.display());
    let program = format!(
        "cat {tools}/settings; ls {outer}; for file in {tools}/settings {tools}/new {outer}/new; do if echo x > $file; then echo written; fi; done 2> /dev/null\n"
    );
    assert_eq!(print(&world, &program).await, "found\ntools\n");
}

/// S-40: before anything is started or created.
#[test]
fn server_rejects_folders_with_its_own_data() {
    let outer = tempfile::tempdir_in("/var/tmp").unwrap();
    let data = outer.path().join("data");
    std::fs::create_dir(&data).unwrap();
    std::fs::set_permissions(outer.path(), std::fs::Permissions::from_mode(0o755)).unwrap();
    std::fs::set_permissions(&data, std::fs::Permissions::from_mode(0o700)).unwrap();
    for (folder, part) in [
        ("/etc", "too much of the host"),
        ("/root/x", "name an existing folder"),
        ("/run/lock", ""),
    ] {
        let shell = Shell::new().with("SKILLBOX_NATIVE_FOLDERS", folder);
        let said = shell.run(&["skill", "list"]);
        assert_eq!(said.code, 78, "{folder}: {}", said.stderr);
        assert!(
            said.stderr.contains("sandbox.native.folders") && said.stderr.contains(part),
            "{}",
            said.stderr
        );
    }
    let shell = Shell::new()
        .with("SKILLBOX_NATIVE_FOLDERS", outer.path().to_str().unwrap())
        .with("SKILLBOX_DATA_DIR", data.to_str().unwrap());
    let said = shell.run(&["skill", "list"]);
    assert_eq!(said.code, 78, "{}", said.stderr);
    assert!(said.stderr.contains("would show the data"), "{}", said.stderr);
}
