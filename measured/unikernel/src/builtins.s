# The memory functions that compiled code calls. The macro `named` makes each one's symbol.
#
# In assembly, since the compiler would turn a loop back into a call of the very function it is in.
# Eight bytes at a time where it is easy: an emulator takes as long for a byte as for eight.

.section .text.builtins, "ax"

# rdi: to, rsi: from, rdx: bytes
named memcpy
    mov rax, rdi
    mov rcx, rdx
    shr rcx, 3
    rep movsq
    mov ecx, edx
    and ecx, 7
    rep movsb
    ret

# As memcpy, for ranges that may overlap.
named memmove
    mov rax, rdi
    mov rcx, rdx
    mov rdx, rdi
    sub rdx, rsi
    cmp rdx, rcx            # unsigned: below only if `to` lies inside of `from`
    jb 2f
    rep movsb
    ret
2:  lea rdi, [rdi + rcx - 1]
    lea rsi, [rsi + rcx - 1]
    std
    rep movsb
    cld
    ret

# rdi: to, esi: byte, rdx: bytes
named memset
    mov r8, rdi
    movzx eax, sil
    mov rcx, 0x0101010101010101
    imul rax, rcx
    mov rcx, rdx
    shr rcx, 3
    rep stosq
    mov ecx, edx
    and ecx, 7
    rep stosb
    mov rax, r8
    ret

# rdi, rsi: what to compare, rdx: bytes
named memcmp
named bcmp
    xor eax, eax
    mov rcx, rdx
    cmp ecx, ecx            # equal, in case there are no bytes
    repe cmpsb
    je 2f
    movzx eax, byte ptr [rdi - 1]
    movzx ecx, byte ptr [rsi - 1]
    sub eax, ecx
2:  ret

