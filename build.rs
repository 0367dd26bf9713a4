//! Tells the linker where the program may begin in memory.

/// Bytes of a huge page of x86-64, and of AArch64 with small pages of 4 KiB.
const HUGE_PAGE: usize = 2 * 1024 * 1024;

fn main() {
    println!("cargo::rerun-if-changed=build.rs");
    let is_linux = std::env::var("CARGO_CFG_TARGET_OS").is_ok_and(|os| os == "linux");
    if is_linux {
        // The kernel maps a huge page of a file only where address and place in the file are equal within it; see `sys::gather`.
        println!("cargo::rustc-link-arg-bins=-Wl,-z,max-page-size={HUGE_PAGE}");
    }
}
