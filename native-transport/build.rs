//! What napi-rs asks of a build: linker arguments of a Node addon.
fn main() {
    napi_build::setup();
}
