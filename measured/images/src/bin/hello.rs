//! The smallest image: prints a greeting and its command line, and ends.
//!
//! With the word `then=idle` it halts forever instead, so that the cost of an idle guest can be
//! measured; with `then=panic` it panics.
#![cfg_attr(not(test), no_std)]
#![cfg_attr(not(test), no_main)]

use tare_unikernel::boot::Boot;
use tare_unikernel::console::Console;
use tare_unikernel::cpu;
use tare_unikernel::exit::Status;

tare_unikernel::image!(main);

fn main(boot: &'static Boot) -> Status {
    Console.texts(&["hello from tare: ", boot.command_line, "\n"]);
    for word in boot.command_line.split_ascii_whitespace() {
        match word {
            "then=idle" => cpu::idle(),
            "then=panic" => panic!("asked for on the command line"),
            _ => {}
        }
    }
    Status::Done
}
