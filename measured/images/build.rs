//! Makes the linker build images instead of Linux programs.

fn main() {
    let script = concat!(env!("CARGO_MANIFEST_DIR"), "/../unikernel/image.ld");
    println!("cargo:rerun-if-changed={script}");
    for argument in [
        "-nostartfiles",
        "-nostdlib",
        "-static",
        "-no-pie",
        "-Wl,--build-id=none",
        "-Wl,-z,norelro",
        "-Wl,-z,max-page-size=4096",
        "-Wl,--gc-sections",
        "-Wl,--no-eh-frame-hdr",
    ] {
        println!("cargo:rustc-link-arg-bins={argument}");
    }
    println!("cargo:rustc-link-arg-bins=-Wl,-T,{script}");
}
