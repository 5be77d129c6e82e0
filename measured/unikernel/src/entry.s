# From the loader's 32-bit protected mode to Rust in 64-bit mode.
#
# The page tables are final from the first instruction with paging on: no page is ever writable and
# executable, page 0 is not mapped, and neither are the guard pages below the stacks. Addresses are
# physical addresses (identity), for the first 4 GiB.
#
#   0 .. 4 KiB        not mapped: a null pointer faults
#   4 KiB .. 4 MiB    pages of 4 KiB: the image by its segments, the rest read and write
#   4 MiB .. 3.5 GiB  pages of 2 MiB, read and write
#   3.5 .. 4 GiB      the same, uncached: device registers
#
# The last GiB is also mapped at the very top of the address space (PML4[511], PDPT[511]): there an
# instruction reaches the APIC's registers with a 32-bit displacement and without a register, which
# keeps the interrupt handlers short.

.set PRESENT, 1
.set WRITABLE, 2
.set UNCACHED, 0x18
.set LARGE, 0x80
.set NO_EXECUTE, 0x80000000     # upper half of an entry
.set CODE64, 0x08
.set DATA, 0x10
.set CODE32, 0x18

# Xen's note 18 names the 32-bit entry point (PVH boot protocol); QEMU and Firecracker look for it.
.section .note.pvh, "a", @note
.balign 4
    .long 4, 8, 18
    .asciz "Xen"
    .quad pvh_entry

.section .text.entry, "ax"
.code32

# Starts the first CPU. ebx: physical address of hvm_start_info.
.global pvh_entry
pvh_entry:
    cli
    cld
    mov esp, offset {area} + {stack_top}

    xor eax, eax
    mov edi, offset image_zeroed_start
    mov ecx, offset image_zeroed_end
    sub ecx, edi
    shr ecx, 2
    rep stosd

    # What the loader left in page 0 would be out of reach once paging is on: SeaBIOS puts the
    # memory map there. The page behind it comes along, for tables that reach over the border.
    xor esi, esi
    mov edi, offset low_memory
    mov ecx, 0x2000 / 4
    rep movsd

    mov dword ptr [page_map], offset page_pointers + (PRESENT | WRITABLE)
    mov dword ptr [page_map + 511 * 8], offset page_pointers + (PRESENT | WRITABLE)
    mov dword ptr [page_pointers], offset page_directories + (PRESENT | WRITABLE)
    mov dword ptr [page_pointers + 8], offset page_directories + 0x1000 + (PRESENT | WRITABLE)
    mov dword ptr [page_pointers + 16], offset page_directories + 0x2000 + (PRESENT | WRITABLE)
    mov dword ptr [page_pointers + 24], offset page_directories + 0x3000 + (PRESENT | WRITABLE)
    mov dword ptr [page_pointers + 511 * 8], offset page_directories + 0x3000 + (PRESENT | WRITABLE)

    # All 2048 large pages; device registers uncached.
    mov edi, offset page_directories
    mov eax, PRESENT | WRITABLE | LARGE
2:  mov [edi], eax
    mov dword ptr [edi + 4], NO_EXECUTE
    add edi, 8
    add eax, 0x200000
    cmp eax, 0xe0000000
    jb 2b
3:  mov edx, eax
    or edx, UNCACHED
    mov [edi], edx
    mov dword ptr [edi + 4], NO_EXECUTE
    add edi, 8
    add eax, 0x200000
    jnc 3b

    # The first two of them in small pages.
    mov dword ptr [page_directories], offset page_tables + (PRESENT | WRITABLE)
    mov dword ptr [page_directories + 4], 0
    mov dword ptr [page_directories + 8], offset page_tables + 0x1000 + (PRESENT | WRITABLE)
    mov dword ptr [page_directories + 12], 0
    mov esi, offset ranges
4:  mov eax, [esi]                  # first byte
    mov edx, [esi + 4]              # first byte behind
    and eax, -4096
5:  cmp eax, edx
    jae 6f
    mov edi, eax
    shr edi, 9                      # 8 bytes an entry
    mov ecx, [esi + 8]
    test ecx, ecx
    jz 7f
    or ecx, eax
7:  mov [page_tables + edi], ecx
    mov ecx, [esi + 12]
    mov [page_tables + edi + 4], ecx
    add eax, 4096
    jmp 5b
6:  add esi, 16
    cmp esi, offset ranges_end
    jb 4b

    mov ebp, offset start64
    # falls through

# Switches to 64-bit mode and goes on at ebp; keeps ebx.
enter_long_mode:
    mov eax, offset page_map
    mov cr3, eax
    mov eax, cr4
    or eax, (1 << 5) | (1 << 9) | (1 << 10)     # PAE, OSFXSR, OSXMMEXCPT
    mov cr4, eax
    mov ecx, 0xc0000080                         # EFER
    rdmsr
    or eax, (1 << 8) | (1 << 11)                # LME, NXE
    wrmsr
    mov eax, cr0
    and eax, 0x9fffffff & ~((1 << 2) | (1 << 3))            # not EM, TS, CD, NW
    or eax, (1 << 31) | (1 << 16) | (1 << 5) | (1 << 1) | 1 # PG, WP, NE, MP, PE
    mov cr0, eax
    lgdt [boot_gdt_pointer]
    push CODE64
    push ebp
    retf

.code64
start64:
    call common64
    mov edi, ebx
    call {start}
    ud2

# Sets up segments, floating point, and AVX if the CPU has it; keeps rbx.
common64:
    mov eax, DATA
    mov ds, eax
    mov es, eax
    mov ss, eax
    xor eax, eax
    mov fs, eax
    mov gs, eax
    mov rsi, rbx
    mov eax, 1
    cpuid
    mov rbx, rsi
    and ecx, (1 << 26) | (1 << 28)              # XSAVE, AVX
    cmp ecx, (1 << 26) | (1 << 28)
    jne 2f
    mov rax, cr4
    or eax, 1 << 18                             # OSXSAVE
    mov cr4, rax
    xor ecx, ecx
    xor edx, edx
    mov eax, 7                                  # x87, SSE, AVX
    xsetbv
2:  fninit
    push 0x1f80                                 # all vector floating-point exceptions masked
    ldmxcsr [rsp]
    pop rax
    ret

# Starts another CPU, woken by a start-up interrupt. It is copied to a page below 1 MiB and runs
# there in real mode; it leaves that page before paging is on, so the page needs no execute right.
.section .rodata.trampoline, "a"
.code16
.global trampoline_start
trampoline_start:
    cli
    cld
    mov ax, cs
    mov ds, ax
    .byte 0x66                                  # lgdt with a 32-bit base
    lgdt [trampoline_gdt_offset]
    mov eax, cr0
    or al, 1
    mov cr0, eax
    .byte 0x66, 0xea                            # far jump to a 32-bit address
    .long other_entry
    .word CODE32
.balign 4
trampoline_gdt_pointer:
    .word boot_gdt_end - boot_gdt - 1
    .long boot_gdt
.set trampoline_gdt_offset, trampoline_gdt_pointer - trampoline_start
.global trampoline_end
trampoline_end:

.section .text.entry, "ax"
.code32
other_entry:
    mov eax, DATA
    mov ds, eax
    mov es, eax
    mov ss, eax
    # Each CPU takes a number, and with it an area that holds its stack.
    mov ebx, 1
    lock xadd [others_started], ebx
    cmp ebx, [others_end]
    jae 2f
    imul esp, ebx, {area_size}
    add esp, [others_areas]
    add esp, {stack_top}
    mov ebp, offset other64
    jmp enter_long_mode
2:  hlt                                         # more than were asked for
    jmp 2b

.code64
other64:
    call common64
    mov edi, ebx
    call {start_other}
    ud2

# Never written to, so it may lie among the constants: the "accessed" bits are set already.
.section .rodata.boot_gdt, "a"
.balign 8
boot_gdt:
    .quad 0
    .quad 0x00af9b000000ffff                    # CODE64
    .quad 0x00cf93000000ffff                    # DATA
    .quad 0x00cf9b000000ffff                    # CODE32
boot_gdt_end:
boot_gdt_pointer:
    .word boot_gdt_end - boot_gdt - 1
    .long boot_gdt
    .long 0

# First byte, first byte behind, lower and upper half of the entries. Later ones overrule.
.balign 4
ranges:
    .long 0x1000, 0x400000, PRESENT | WRITABLE, NO_EXECUTE
    .long image_constants_start, image_constants_end, PRESENT, NO_EXECUTE
    .long image_code_start, image_code_end, PRESENT, 0
    .long {area} + {guard_0}, {area} + {guard_0} + 0x1000, 0, 0
    .long {area} + {guard_1}, {area} + {guard_1} + 0x1000, 0, 0
    .long {area} + {guard_2}, {area} + {guard_2} + 0x1000, 0, 0
ranges_end:

.section .bss.page_tables, "aw", @nobits
.balign 4096
page_map:
    .skip 0x1000
.global page_pointers
page_pointers:
    .skip 0x1000
.global page_directories
page_directories:
    .skip 0x4000
page_tables:
    .skip 0x2000
.global low_memory
low_memory:
    .skip 0x2000

.section .bss.others, "aw", @nobits
.balign 4
.global others_started
others_started:
    .long 0
.global others_end
others_end:
    .long 0
.global others_areas
others_areas:
    .long 0
.text
