//! Sets the linker arguments that a Node addon needs (napi-rs).
fn main() {
    napi_build::setup();
}
