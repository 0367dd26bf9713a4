//! Finds the binary that becomes PID 1 of every container: this binary, if it fits.

use std::fs::File;
use std::io::Read as _;
use std::path::{Path, PathBuf};

use crate::ids::Digest;
use crate::sandbox::Error;
use crate::sandbox::docker::Settings;

/// A static Linux binary for the engine's architecture.
#[derive(Debug, Clone)]
pub(super) struct GuestBinary {
    /// For messages.
    pub(super) path: PathBuf,
    /// Read once for each volume container.
    pub(super) content: PathBuf,
    pub(super) digest: Digest,
    pub(super) loader: Loader,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Loader {
    /// The kernel, which can execute a file that its user may not read, and then makes the process non-dumpable
    /// (P16).
    Kernel,
    /// gVisor, which opens the file as the sandbox's user.
    UserSpace,
}

impl Loader {
    /// The loader of an engine's runtime, by its name.
    pub(super) fn of(runtime: Option<&str>) -> Self {
        match runtime {
            Some(name) if ["runsc", "gvisor"].iter().any(|known| name.contains(known)) => Self::UserSpace,
            Some(_) | None => Self::Kernel,
        }
    }

    /// Maximum tasks on the host for each process or thread inside (P5).
    pub(super) const fn tasks_each(self) -> u32 {
        match self {
            Self::Kernel => 1,
            // A stub, a thread that runs it, and the kernel's own; at the limit the whole sandbox ends.
            Self::UserSpace => 4,
        }
    }

    /// Permissions of the guest's file, owned by root.
    pub(super) const fn mode(self) -> u32 {
        match self {
            Self::Kernel => 0o111,
            Self::UserSpace => 0o555,
        }
    }
}

impl GuestBinary {
    /// The configured binary, or this one, or `skillbox-guest-linux-<arch>` next to it: the first that fits the
    /// engine.
    pub(super) fn find(settings: &Settings, os: &str, architecture: &str) -> Result<Self, Error> {
        let found = Self::search(settings.guest_binary.as_deref(), os, architecture)?;
        let loader = Loader::of(settings.runtime.as_deref());
        Ok(Self { loader, ..found })
    }

    /// Identifies the content.
    pub(super) fn volume_container_name(&self) -> String {
        let kind = match self.loader {
            Loader::Kernel => "guest",
            Loader::UserSpace => "readable-guest",
        };
        format!("skillbox-{kind}-{}", &self.digest.hex()[..32])
    }

    fn search(configured: Option<&Path>, os: &str, architecture: &str) -> Result<Self, Error> {
        if os != "linux" {
            return Err(Error::Unavailable(format!(
                "the container engine runs `{os}` containers; Skillbox needs a Linux engine"
            )));
        }
        let machine = Machine::of(architecture).ok_or_else(|| {
            Error::Unavailable(format!(
                "unsupported architecture of the engine: `{architecture}`"
            ))
        })?;
        if let Some(path) = configured {
            return Self::read(path, path, machine).map_err(|why| {
                Error::Unavailable(format!(
                    "sandbox.guest_binary `{}` cannot be the guest: {why}",
                    path.display()
                ))
            });
        }
        let own = std::env::current_exe()
            .map_err(|error| Error::Unavailable(format!("this binary cannot find itself: {error}")))?;
        let sibling = own.with_file_name(format!("skillbox-guest-linux-{}", machine.name()));
        let why = match Self::read(&own, running(&own), machine) {
            Ok(guest) => return Ok(guest),
            Err(why) => why,
        };
        Self::read(&sibling, &sibling, machine).map_err(|_| {
            Error::Unavailable(format!(
                "this binary cannot be the guest ({why}) and there is no `{}`; put a static Linux build there or set sandbox.guest_binary",
                sibling.display()
            ))
        })
    }

    /// Checks that the file can be the guest.
    fn read(path: &Path, content: &Path, machine: Machine) -> Result<Self, String> {
        let mut bytes = Vec::new();
        let mut file = File::open(content)
            .map_err(|error| error.to_string())?
            .take(GUEST_BYTES_MAX);
        file.read_to_end(&mut bytes).map_err(|error| error.to_string())?;
        check_elf(&bytes, machine)?;
        Ok(Self {
            path: path.to_owned(),
            content: content.to_owned(),
            digest: Digest::of(&bytes),
            loader: Loader::Kernel,
        })
    }
}

/// The running file: an upgrade may replace the file at its path.
fn running(own: &Path) -> &Path {
    if cfg!(target_os = "linux") {
        Path::new("/proc/self/exe")
    } else {
        own
    }
}

/// Larger than any build of ours.
const GUEST_BYTES_MAX: u64 = 1 << 30;

/// Supported architectures.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Machine {
    X86_64,
    Aarch64,
}

impl Machine {
    /// Names used by engines (`amd64`) and kernels (`x86_64`).
    fn of(architecture: &str) -> Option<Self> {
        match architecture {
            "amd64" | "x86_64" => Some(Self::X86_64),
            "arm64" | "aarch64" => Some(Self::Aarch64),
            _ => None,
        }
    }

    const fn name(self) -> &'static str {
        match self {
            Self::X86_64 => "x86_64",
            Self::Aarch64 => "aarch64",
        }
    }

    /// `e_machine` in an ELF header (System V ABI).
    const fn elf(self) -> u16 {
        match self {
            Self::X86_64 => 62,
            Self::Aarch64 => 183,
        }
    }
}

/// Whether this is a static 64-bit little-endian ELF executable for `machine`: an image may lack a loader and
/// libraries.
fn check_elf(bytes: &[u8], machine: Machine) -> Result<(), String> {
    const PT_INTERP: u32 = 3;
    let short = || "it is not a Linux executable".to_owned();
    let half = |at: usize| bytes.get(at..at + 2).map(|b| u16::from_le_bytes([b[0], b[1]]));
    if bytes.get(..6) != Some(b"\x7fELF\x02\x01") {
        return Err(short());
    }
    if half(18).ok_or_else(short)? != machine.elf() {
        return Err(format!("it is not built for {}", machine.name()));
    }
    let table: [u8; 8] = bytes
        .get(32..40)
        .and_then(|b| b.try_into().ok())
        .ok_or_else(short)?;
    let table = usize::try_from(u64::from_le_bytes(table)).map_err(|_| short())?;
    let size = usize::from(half(54).ok_or_else(short)?);
    for index in 0..usize::from(half(56).ok_or_else(short)?) {
        let at = index
            .checked_mul(size)
            .and_then(|offset| table.checked_add(offset))
            .ok_or_else(short)?;
        let kind: [u8; 4] = at
            .checked_add(4)
            .and_then(|end| bytes.get(at..end))
            .and_then(|b| b.try_into().ok())
            .ok_or_else(short)?;
        if u32::from_le_bytes(kind) == PT_INTERP {
            return Err("it is not statically linked".to_owned());
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rejects_incompatible_engine_with_reason() {
        let settings = Settings::default();
        let windows = GuestBinary::find(&settings, "windows", "amd64").unwrap_err();
        assert!(windows.to_string().contains("Linux engine"), "{windows}");
        let riscv = GuestBinary::find(&settings, "linux", "riscv64").unwrap_err();
        assert!(riscv.to_string().contains("riscv64"), "{riscv}");
    }

    /// P16: no program in a sandbox can read the guest, except where the backend needs it readable.
    #[test]
    fn guest_binary_is_readable_on_gvisor_only() {
        for runtime in [
            None,
            Some("runc"),
            Some("kata-runtime"),
            Some("io.containerd.kata.v2"),
        ] {
            assert_eq!(Loader::of(runtime).mode(), 0o111, "{runtime:?}");
        }
        for runtime in ["runsc", "runsc-kvm", "io.containerd.runsc.v1", "gvisor"] {
            assert_eq!(Loader::of(Some(runtime)).mode(), 0o555, "{runtime}");
        }
    }

    /// As on macOS and Windows, where this binary never fits.
    #[test]
    fn names_path_of_missing_guest_binary() {
        let [foreign, name] = if cfg!(target_arch = "x86_64") {
            ["arm64", "skillbox-guest-linux-aarch64"]
        } else {
            ["amd64", "skillbox-guest-linux-x86_64"]
        };
        let missing = GuestBinary::find(&Settings::default(), "linux", foreign).unwrap_err();
        assert!(missing.to_string().contains(name), "{missing}");
        assert_eq!(
            check_elf(b"MZ", Machine::X86_64).unwrap_err(),
            "it is not a Linux executable"
        );
    }

    #[test]
    fn rejects_binary_that_is_not_static() {
        let path = Path::new("/bin/sh");
        if path.exists() {
            assert!(GuestBinary::read(path, path, Machine::X86_64).is_err());
        }
        for bytes in [&b""[..], b"\x7fELF\x02\x01", b"#!/bin/sh\n"] {
            assert!(check_elf(bytes, Machine::X86_64).is_err());
        }
    }

    #[cfg(all(target_os = "linux", target_feature = "crt-static"))]
    #[test]
    fn accepts_the_current_binary() {
        let own = std::env::current_exe().unwrap();
        let machine = Machine::of(std::env::consts::ARCH).unwrap();
        assert!(GuestBinary::read(&own, running(&own), machine).is_ok());
    }
}
