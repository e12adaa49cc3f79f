//! Prints the path of a `protoc` that came as a package, for the judges that cannot be built without one.

fn main() -> Result<(), Box<dyn std::error::Error>> {
    println!("{}", protoc_bin_vendored::protoc_bin_path()?.display());
    Ok(())
}
