//! The same small skill in each language: read the input, parse it, write the output.

use std::io::{Seek as _, Write as _};
use std::path::{Path, PathBuf};
use std::process::Command;

/// One language: its interpreter on this host, and the skill in it.
pub(crate) struct Spoken {
    pub(crate) name: &'static str,
    pub(crate) interpreter: &'static str,
    pub(crate) file: &'static str,
    pub(crate) program: &'static str,
}

pub(crate) const PYTHON: Spoken = Spoken {
    name: "python",
    interpreter: "/usr/bin/python3",
    file: "main.py",
    program: "import json, os\nvalue = json.load(open(os.environ['SANDBOX_INPUT_FILE']))\njson.dump({'got': value}, open(os.environ['SANDBOX_OUTPUT'], 'w'))\n",
};
pub(crate) const NODE: Spoken = Spoken {
    name: "node",
    interpreter: "/usr/bin/node",
    file: "main.js",
    program: "const fs = require('fs');\nconst value = JSON.parse(fs.readFileSync(process.env.SANDBOX_INPUT_FILE));\nfs.writeFileSync(process.env.SANDBOX_OUTPUT, JSON.stringify({got: value}));\n",
};
pub(crate) const BASH: Spoken = Spoken {
    name: "bash",
    interpreter: "/bin/bash",
    file: "main.sh",
    program: "read -r value <\"$SANDBOX_INPUT_FILE\"\nprintf '{\"got\":%s}' \"$value\" >\"$SANDBOX_OUTPUT\"\n",
};
pub(crate) const ALL: [&Spoken; 3] = [&PYTHON, &NODE, &BASH];

impl Spoken {
    pub(crate) fn skill_md(&self) -> String {
        format!(
            "---\nname: {}\ndescription: Echoes\nversion: 1.0.0\nlang: {}\n---\n",
            self.name, self.name
        )
    }

    pub(crate) fn archive(&self) -> std::fs::File {
        let mut zip = zip::ZipWriter::new(tempfile::tempfile().unwrap());
        for (path, text) in [
            ("SKILL.md", self.skill_md().as_str()),
            (&format!("scripts/{}", self.file), self.program),
        ] {
            zip.start_file(path, zip::write::SimpleFileOptions::default())
                .unwrap();
            zip.write_all(text.as_bytes()).unwrap();
        }
        let mut file = zip.finish().unwrap();
        file.rewind().unwrap();
        file
    }

    /// A folder that anybody may read: the program, an input, and the skill for the command line.
    pub(crate) fn folder(&self) -> tempfile::TempDir {
        use std::os::unix::fs::PermissionsExt as _;
        let folder = tempfile::tempdir().unwrap();
        std::fs::set_permissions(folder.path(), std::fs::Permissions::from_mode(0o755)).unwrap();
        std::fs::write(folder.path().join(self.file), self.program).unwrap();
        std::fs::write(folder.path().join("input.json"), "{\"x\":1}\n").unwrap();
        let skill = folder.path().join(self.name);
        std::fs::create_dir_all(skill.join("scripts")).unwrap();
        std::fs::write(skill.join("SKILL.md"), self.skill_md()).unwrap();
        std::fs::write(skill.join("scripts").join(self.file), self.program).unwrap();
        folder
    }

    /// The program by the bare interpreter, and what its environment is.
    pub(crate) fn bare(&self, folder: &Path) -> (Command, [(&'static str, PathBuf); 2]) {
        let mut command = Command::new(self.interpreter);
        command.arg(folder.join(self.file));
        let env = [
            ("SANDBOX_INPUT_FILE", folder.join("input.json")),
            (
                "SANDBOX_OUTPUT",
                folder.join(format!("output-{:?}.json", std::thread::current().id())),
            ),
        ];
        (command, env)
    }
}
