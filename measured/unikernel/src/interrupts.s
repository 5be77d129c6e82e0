# The entries of all vectors.

.section .text.interrupts, "ax"

# Exceptions: 16 bytes each. Those without an error code push a 0 in its place.
.balign 16
exception_stubs:
.set vector, 0
.rept 32
.balign 16
.if ((0x60227d00 >> vector) & 1) == 0
    push 0
.endif
    .byte 0x6a, vector                  # push vector
    jmp exception
.set vector, vector + 1
.endr

exception:
    push rax
    push rcx
    push rdx
    push rbx
    push rbp
    push rsi
    push rdi
    push r8
    push r9
    push r10
    push r11
    push r12
    push r13
    push r14
    push r15
    cld
    mov rdi, rsp
    and rsp, -16
    call {fault}
    ud2

# A page fault where memory is mapped on demand: a page of the region that is not there is cleared, mapped and
# counted. Everything else goes the way of exceptions. The error code lies below what is pushed.
demand_stub:
    push rax
    push rcx
    push rdi
    mov rcx, cr2
    mov rax, rcx
    sub rax, [rip + {demand_start}]
    cmp rax, 2 << 20
    jae 2f
    shr rax, 12
    shl rax, 3
    add rax, [rip + {demand_table}]
    test byte ptr [rax], 1
    jnz 2f
    inc qword ptr [rax]                 # present, which is bit 0
    inc qword ptr [rip + {demand_faults}]
    mov rdi, rcx
    and rdi, -4096
    mov ecx, 512
    xor eax, eax
    cld
    rep stosq
    pop rdi
    pop rcx
    pop rax
    add rsp, 8
    iretq
2:  pop rdi
    pop rcx
    pop rax
    jmp exception_stubs + 14 * 16

# Interrupts that are counted one by one: 16 bytes each.
.balign 16
interrupt_stubs:
.set vector, 0
.rept {counted}
.balign 16
    .byte 0x65, 0x48, 0xff, 0x04, 0x25  # inc qword ptr gs:[8 * vector]
    .long 8 * vector
    jmp acknowledge
.set vector, vector + 1
.endr

# The host asks to end. It comes at any time, and is not acknowledged.
nmi_stub:
    inc qword ptr gs:[{asked}]
    iretq

unexpected_stub:
    inc qword ptr gs:[{unexpected}]
acknowledge:
    mov dword ptr [{end_of_interrupt}], 0
spurious_stub:
    iretq

# The tick by the APIC's own count: a period from now.
one_shot_stub:
    push rax
    mov eax, gs:[{period}]
    mov dword ptr [{initial_count}], eax
    pop rax
    inc qword ptr gs:[0]                # as vector 32
    jmp acknowledge

# The tick in deadline mode. The next one is due a period after this one was, not after this one
# came, so that delays don't add up. If that is over already, it is left out.
deadline_stub:
    push rax
    push rcx
    push rdx
    rdtsc
    shl rdx, 32
    or rax, rdx                         # now
    mov rcx, gs:[{deadline}]
    add rcx, gs:[{period}]
    cmp rcx, rax
    ja 2f
    inc qword ptr gs:[{missed}]
    mov rcx, rax
    add rcx, gs:[{period}]
2:  mov gs:[{deadline}], rcx
    mov rax, rcx
    mov rdx, rcx
    shr rdx, 32
    mov ecx, {tsc_deadline}
    wrmsr
    pop rdx
    pop rcx
    pop rax
    inc qword ptr gs:[0]                # as vector 32
    jmp acknowledge
.text
