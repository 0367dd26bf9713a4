//! The part of the host that native sandboxes see: programs, libraries and the settings of document tools.

/// The visible part of the host's root, read once.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub(super) struct HostRoot {
    /// `/usr`, `/bin`, `/lib` etc.: folders, or links that are recreated.
    pub(super) entries: Vec<HostEntry>,
    /// Existing ones of [`ETC_FILES`] and [`ETC_FOLDERS`], and folders of the operator.
    pub(super) further: Vec<HostEntry>,
    /// Existing ones of [`DEVICES`].
    pub(super) devices: Vec<String>,
}

/// A name in the host's root.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum HostEntry {
    Folder(String),
    File(String),
    Link(String, String),
}

/// Programs and libraries.
pub(super) const PROGRAMS: &[&str] = &["/usr", "/bin", "/sbin", "/lib", "/lib32", "/lib64", "/libx32"];
/// Needed to find libraries, and by document tools. Maven's `settings.xml` may contain passwords, so its folder is left out.
pub(super) const ETC_FILES: &[&str] = &[
    "/etc/ld.so.cache",
    "/etc/maven/m2.conf",
    "/etc/papersize",
    "/etc/paperspecs",
];
/// Needed by links between programs, and by document tools of Debian: none runs without its folder, none has secrets in it.
pub(super) const ETC_FOLDERS: &[&str] = &[
    "/etc/ImageMagick-6",
    "/etc/ImageMagick-7",
    "/etc/alternatives",
    "/etc/asciidoc",
    "/etc/fonts",
    "/etc/ghostscript",
    "/etc/groff",
    "/etc/java-11-openjdk",
    "/etc/java-17-openjdk",
    "/etc/java-21-openjdk",
    "/etc/java-25-openjdk",
    "/etc/java-8-openjdk",
    "/etc/libreoffice",
    "/etc/maven/logging",
    "/etc/sgml",
    "/etc/texmf",
    "/etc/xml",
];
/// S-20.
pub(super) const DEVICES: &[&str] = &["null", "zero", "full", "random", "urandom"];
