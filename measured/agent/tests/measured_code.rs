//! Properties of the linked agent, however it was built: static, and with self-contained measured
//! symbols.

use std::fs;

use iced_x86::{Decoder, DecoderOptions, FlowControl, Instruction, OpKind};
use object::{Object, ObjectSection, ObjectSymbol};

/// A measured symbol in the linked program.
struct Symbol {
    name: &'static str,
    address: u64,
    bytes: Vec<u8>,
}

#[test]
fn the_agent_needs_no_interpreter_and_no_libraries() {
    let bytes = agent();
    let file = object::read::elf::ElfFile64::<object::Endianness>::parse(&*bytes).unwrap();
    use object::read::elf::ProgramHeader;
    let endian = file.endian();
    let interpreter = file
        .elf_program_headers()
        .iter()
        .any(|header| header.p_type(endian) == object::elf::PT_INTERP);
    assert!(
        !interpreter,
        "the agent is dynamic: is RUSTFLAGS set, or was it built outside of measured/?"
    );
    assert_eq!(file.imports().unwrap().count(), 0);
}

#[test]
fn every_measured_symbol_is_in_the_agent() {
    assert_eq!(symbols().len(), tare_workloads::symbols().count());
}

#[test]
fn measured_symbols_hold_no_call_and_no_jump_out_of_them() {
    for symbol in symbols() {
        let inside = symbol.address..symbol.address + symbol.bytes.len() as u64;
        for instruction in instructions(&symbol) {
            let at = format!("{} at {:#x}: {instruction}", symbol.name, instruction.ip());
            match instruction.flow_control() {
                FlowControl::Next | FlowControl::Return => {}
                FlowControl::UnconditionalBranch
                | FlowControl::ConditionalBranch
                | FlowControl::Call => {
                    assert!(inside.contains(&instruction.near_branch_target()), "{at}");
                }
                _ => panic!("{at}"),
            }
        }
    }
}

#[test]
fn measured_symbols_refer_to_nothing_by_address() {
    let bytes = agent();
    let file = object::File::parse(&*bytes).unwrap();
    let relocated: Vec<u64> = file
        .dynamic_relocations()
        .into_iter()
        .flatten()
        .map(|(address, _)| address)
        .collect();
    for symbol in symbols() {
        let inside = symbol.address..symbol.address + symbol.bytes.len() as u64;
        assert!(
            !relocated.iter().any(|address| inside.contains(address)),
            "{} is relocated",
            symbol.name
        );
        for instruction in instructions(&symbol) {
            let absolute = (0..instruction.op_count())
                .any(|operand| instruction.op_kind(operand) == OpKind::Memory)
                && instruction.memory_base() == iced_x86::Register::None
                && instruction.memory_index() == iced_x86::Register::None;
            assert!(
                !instruction.is_ip_rel_memory_operand() && !absolute,
                "{}: {instruction}",
                symbol.name
            );
        }
    }
}

fn agent() -> Vec<u8> {
    fs::read(env!("CARGO_BIN_EXE_tare-agent")).unwrap()
}

fn symbols() -> Vec<Symbol> {
    let bytes = agent();
    let file = object::File::parse(&*bytes).unwrap();
    let found = |name: &'static str| {
        let symbol = file.symbols().find(|s| s.name() == Ok(name))?;
        let section = file.section_by_index(symbol.section_index()?).ok()?;
        let bytes = section.data_range(symbol.address(), symbol.size()).ok()??;
        (!bytes.is_empty()).then(|| Symbol {
            name,
            address: symbol.address(),
            bytes: bytes.to_vec(),
        })
    };
    tare_workloads::symbols().filter_map(found).collect()
}

fn instructions(symbol: &Symbol) -> Vec<Instruction> {
    let decoder = Decoder::with_ip(64, &symbol.bytes, symbol.address, DecoderOptions::NONE);
    let all: Vec<Instruction> = decoder.into_iter().collect();
    assert!(!all.iter().any(Instruction::is_invalid), "{}", symbol.name);
    all
}
