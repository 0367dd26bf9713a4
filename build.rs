//! Compiles again when a file of the dashboard is added or removed: the derive macro sees only changed files.

fn main() {
    println!("cargo::rerun-if-changed=web/dashboard");
    println!("cargo::rerun-if-changed=web/vendor");
}
