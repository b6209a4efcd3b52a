/* The packed image: unpacks itself to 2 MiB, clears what is behind it, and goes on at its entry. It is started as the image would be (PVH:
   32-bit code, no paging, EBX the start info, which stays), and needs no stack. The block is of LZ4: a token, literals, and a copy of what
   has been written, until the input ends behind literals. */
    .intel_syntax noprefix
    .section .note.Xen, "a", @note
    .align 4
    .long 4, 4, 18
    .asciz "Xen"
    .long start

    .text
    .code32
    .globl start
start:
    cld
    mov esi, offset packed
    mov edi, IMAGE
token:
    movzx eax, byte ptr [esi]
    inc esi
    mov ecx, eax
    shr ecx, 4
    cmp ecx, 15
    jne literals
1:  movzx edx, byte ptr [esi]
    inc esi
    add ecx, edx
    cmp dl, 255
    je 1b
literals:
    rep movsb
    cmp esi, offset packed_end
    jae clear
    movzx edx, word ptr [esi]
    add esi, 2
    mov ecx, eax
    and ecx, 15
    cmp ecx, 15
    jne copy
2:  movzx eax, byte ptr [esi]
    inc esi
    add ecx, eax
    cmp al, 255
    je 2b
copy:
    add ecx, 4
    mov eax, esi
    mov esi, edi
    sub esi, edx
    rep movsb
    mov esi, eax
    jmp token
clear:
    mov ecx, IMAGE_END
    sub ecx, edi
    xor eax, eax
    rep stosb
    mov eax, ENTRY
    jmp eax
packed:
    .incbin PACKED
packed_end:
    .section .note.GNU-stack, "", @progbits
