#![no_std]
#![no_main]
//! x
use tare_unikernel::{boot::Boot, exit::Status};
tare_unikernel::image!(main);
fn main(_: &'static Boot) -> Status { Status::Done }
