//! Linker settings of the released program.

fn main() {
    println!("cargo:rerun-if-changed=build.rs");
    // The program is position-independent and has some ninety thousand relative relocations. Packed (DT_RELR) they take 32 KiB instead
    // of 2.2 MiB, which the dynamic linker would read at every start. Needs glibc 2.36, which Debian 12 has.
    let target = |name: &str| std::env::var(format!("CARGO_CFG_TARGET_{name}")).unwrap_or_default();
    if target("OS") == "linux" && target("ENV") == "gnu" {
        println!("cargo:rustc-link-arg-bins=-Wl,-z,pack-relative-relocs");
    }
}
