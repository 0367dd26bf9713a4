use skillbox::bundle::ArtifactTar;
use skillbox::execution::*;
use skillbox::ids::*;
use skillbox::sandbox::*;
use skillbox::skill::*;

#[tokio::test(flavor = "multi_thread")]
async fn smoke() {
    let sandbox = Sandbox::docker(
        docker::Settings {
            host: std::env::var("DOCKER_HOST").ok(),
            guest_binary: Some(env!("CARGO_BIN_EXE_skillbox").into()),
            ..Default::default()
        },
        InstanceId::generate(),
    );
    let image = ImageAllowlist::new(["python:3.11-slim".to_owned()])
        .approve("python:3.11-slim")
        .unwrap();
    let dir = tempfile::tempdir().unwrap();
    std::fs::create_dir(dir.path().join("scripts")).unwrap();
    std::fs::write(dir.path().join("scripts/main.py"), std::env::var("PROBE").unwrap_or("print('hi')\nimport os,sys\nprint(dict(os.environ), sys.stdin.read(), os.getuid(), os.listdir('/sandbox'))\nopen('/sandbox/out/output.json','w').write('{\"a\":1}')\nprint(open('/proc/self/status').read())\ntry:\n  print(os.listdir('/proc/1/fd'))\nexcept Exception as e: print(e)".to_owned())).unwrap();
    use std::os::unix::fs::PermissionsExt;
    std::fs::set_permissions(dir.path(), std::fs::Permissions::from_mode(0o755)).unwrap();
    for _ in 0..5 {
        let job = Job {
            execution: ExecutionId::generate(),
            image: image.clone(),
            skill: Some(SkillFiles {
                name: "smoke".parse().unwrap(),
                digest: Digest::of(b"smoke6"),
                folder: dir.path().to_owned(),
            }),
            argv: vec!["python3".into(), "/skills/smoke/scripts/main.py".into()],
            env: vec![
                ("PATH".into(), "/usr/local/bin:/usr/bin:/bin".into()),
                ("HOME".into(), "/workspace".into()),
            ],
            input: JsonText::parse(b"{\"x\": 1.10}").unwrap(),
            files: vec![],
            limits: ResourceLimits::clamp(&Resources::default(), None, None, &Maxima::default()),
        };
        let mut artifacts = ArtifactTar;
        let t = std::time::Instant::now();
        let report = sandbox
            .run(
                &job,
                Run {
                    artifacts: &mut artifacts,
                    cancel: Default::default(),
                    progress: None,
                },
            )
            .await;
        println!("{:?} total", t.elapsed());
        match report {
            Ok(r) => {
                println!(
                    "{:?} {:?} {:?} {} {} {}\n{}\n{}",
                    r.end,
                    r.output,
                    r.usage,
                    r.sandbox_ms,
                    r.run_ms,
                    r.collect_ms,
                    String::from_utf8_lossy(&r.logs.stdout),
                    String::from_utf8_lossy(&r.logs.stderr)
                );
            }
            Err(e) => println!("ERR {e} {:?}", e),
        }
    }
    sandbox.settle().await;
    println!("removed {:?}", sandbox.reconcile(&[]).await);
}
