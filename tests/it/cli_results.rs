//! Results of code that are no JSON: printed for a person, and saved as files.

use std::fs;

use crate::cli_shell::Shell;
use crate::terminal::TERMINAL;
use crate::terminal_views::{PLAIN, check, person};

const SHOWS: &str = "from IPython.display import HTML, Markdown, SVG\n\
                     display(Markdown('# Title'))\n\
                     display(HTML('<b>bold</b>'))\n\
                     display(SVG('<svg xmlns=\"http://www.w3.org/2000/svg\"/>'))\n\
                     {1}\n";

fn shell() -> Option<Shell> {
    let shell = person()?;
    fs::write(shell.folder().join("shows.py"), SHOWS).unwrap();
    fs::write(shell.folder().join("prints.py"), "print('only this')\n").unwrap();
    Some(shell)
}

#[test]
fn terminal_shows_text_of_each_result_and_counts_others() {
    let Some(shell) = shell() else { return };
    check("results_80", &TERMINAL.run(&shell, &["run", "shows.py"]));
    check("results_120_plain", &PLAIN.run(&shell, &["run", "shows.py"]));
    check("results_of_show", &TERMINAL.run(&shell, &["exec", "show"]));
    let value = shell.run(&["run", "shows.py", "--format", "value"]);
    assert_eq!(value.stdout, "{1}\n", "{}", value.stderr);
}

#[test]
fn out_saves_charts_beside_files_of_the_program() {
    let Some(shell) = shell() else { return };
    let program = format!("open('result-3.svg', 'w').write('mine')\n{SHOWS}");
    fs::write(shell.folder().join("both.py"), program).unwrap();
    let saved = shell.run(&["run", "both.py", "--out", "saved"]);
    assert!(
        saved.stderr.contains("saved 3 files to saved"),
        "{}",
        saved.stderr
    );
    let read = |name: &str| fs::read_to_string(shell.folder().join(name)).unwrap();
    assert_eq!(read("saved/result-3.svg"), "mine");
    assert!(read("saved/result-3-2.svg").starts_with("<svg "));
    assert_eq!(read("saved/result-2.html"), "<b>bold</b>");
    let later = shell.run(&["exec", "files", "--out", "later"]);
    assert_eq!(later.code, 0, "{}", later.stderr);
    assert_eq!(read("later/result-2.html"), "<b>bold</b>");
    let one = shell.run(&[
        "exec",
        "files",
        "--out",
        "one",
        &id_of_newest(&shell),
        "result-3.svg",
    ]);
    assert!(one.stderr.contains("saved 1 file to one"), "{}", one.stderr);
}

fn id_of_newest(shell: &Shell) -> String {
    shell.json(&["exec", "show"])["execution_id"]
        .as_str()
        .unwrap()
        .to_owned()
}

#[test]
fn out_without_files_makes_no_folder() {
    let Some(shell) = shell() else { return };
    let ran = shell.run(&["run", "prints.py", "--out", "empty"]);
    assert_eq!(ran.code, 0, "{}", ran.stderr);
    assert!(ran.stderr.contains("nothing to save in empty"), "{}", ran.stderr);
    assert!(!shell.folder().join("empty").exists());
    let refused = shell.run(&["run", "prints.py", "--out", "prints.py/below"]);
    assert_eq!(refused.code, 3, "{}", refused.stderr);
    assert!(
        refused.stderr.contains("`prints.py` is not a folder"),
        "{}",
        refused.stderr
    );
    assert_eq!(shell.json(&["exec", "list"]).as_array().unwrap().len(), 1);
}
