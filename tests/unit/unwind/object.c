// SPDX-License-Identifier: GPL-2.0-or-later

/* An object for test-table.c. Its functions save registers and need the stack, and it has cases that no
   compiler makes. */

int other(int *values, int n);
int leaf(int a);
int calls(int a, int b, int c);
long aligns(int n);

int leaf(int a)
{
	return a * 3;
}

int calls(int a, int b, int c)
{
	int values[16] = {a, b, c};
	int sum = 0;

	for (int i = 0; i < a; i++)
		sum += other(values, i) + other(values, b) * other(values, c);
	return sum + a + b + c;
}

/* GCC keeps the CFA of this function on the stack: it aligns the stack, whose size is not known. */
long aligns(int n)
{
	__attribute__((aligned(64))) int aligned[16];
	int variable[n];

	return other(aligned, n) + other(variable, n);
}

#ifndef BARE
/* Each function is 4 bytes long. */
__asm__(".pushsection .text\n"
	".macro function name\n"
	".globl \\name\n.type \\name, @function\n.balign 16\n\\name:\n.cfi_startproc\n"
	".endm\n"
	".macro end_function\n"
	"nop\n.cfi_endproc\n"
	".endm\n"

	"function ends\n.cfi_undefined rip\nnop\nnop\nnop\nend_function\n"

	"function registers\n"
	"nop\n.cfi_register rbx, r8\n.cfi_undefined rbp\n.cfi_offset r12, -24\n.cfi_same_value r13\n"
	"nop\n.cfi_offset r14, -40000\n.cfi_offset r15, 0\n"
	"nop\n.cfi_restore rbx\n.cfi_restore rbp\n.cfi_remember_state\n.cfi_def_cfa r10, 24\n"
	"end_function\n"

	"function values\n"
	/* CFA = *(rsp + 40) + 8 */
	".cfi_escape 0x0f, 5, 0x77, 40, 0x06, 0x23, 8\nnop\n"
	/* CFA = *(rbp - 8) */
	".cfi_escape 0x0f, 3, 0x76, 0x78, 0x06\nnop\n"
	/* CFA = *(r11 + 200) - 16 */
	".cfi_escape 0x0f, 7, 0x7b, 0xc8, 0x01, 0x06, 0x09, 0xf0, 0x22\nnop\n"
	/* CFA = **(rsp + 8): not supported */
	".cfi_escape 0x0f, 4, 0x77, 8, 0x06, 0x06\nend_function\n"

	"function elsewhere\n"
	/* the stack pointer is not the CFA */
	".cfi_escape 0x10, 7, 2, 0x77, 16\nnop\n.cfi_restore rsp\nnop\n"
	/* the return address is in a register */
	".cfi_register rip, rcx\nnop\nend_function\n"

	"function relative\n"
	/* rbx is saved at rsp + 16, r12 at r9 + 16, r13 at *(rsp + 16) */
	".cfi_escape 0x10, 3, 2, 0x77, 16, 0x10, 12, 2, 0x79, 16, 0x10, 13, 3, 0x77, 16, 0x06\n"
	".cfi_def_cfa_offset 64\nnop\nnop\n"
	".cfi_def_cfa_offset 32\nnop\n.cfi_restore rbx\n.cfi_restore r12\n.cfi_restore r13\nend_function\n"

	"function realigned\n"
	/* CFA = *(rbp - 8), rbp is saved at rbp, rbx at rbp - 24, r12 at CFA - 32, r13 at rbp + 32767 */
	".cfi_escape 0x0f, 3, 0x76, 0x78, 0x06, 0x10, 6, 2, 0x76, 0, 0x10, 3, 2, 0x76, 0x68\n"
	".cfi_offset r12, -32\n.cfi_escape 0x10, 13, 4, 0x76, 0xff, 0xff, 1\nnop\n"
	/* no register is saved relative to rbp any more */
	".cfi_restore rbp\n.cfi_restore rbx\n.cfi_restore r13\nnop\nnop\nend_function\n"

	"function after_gap\nnop\nnop\nnop\nend_function\n"
	".popsection\n");
#endif

#ifdef FAR
/* 16 GiB away from the other functions. */
__attribute__((section(".far"))) int far_away(int a);
int far_away(int a)
{
	return a + 1;
}
#endif

#ifdef OVERLAP
/* Two FDEs with the same code, which no assembler makes: bytes 0 to 15 with CFA = rsp + 16, and bytes 4 to 7
   with CFA = rsp + 24. */
__asm__(".pushsection .text\n.balign 16\noverlaps:\n.fill 16, 1, 0x90\n.popsection\n"
	".pushsection .eh_frame, \"a\", @progbits\n"
	".balign 8\n"
	"1: .long 3f - 2f\n2: .long 0\n.byte 1\n.string \"zR\"\n.byte 1, 0x78, 16, 1, 0x1b\n"
	".byte 0x0c, 7, 8, 0x90, 1\n.balign 4\n3:\n"
	".long 5f - 4f\n4: .long . - 1b\n.long overlaps - .\n.long 16\n.byte 0, 0x0e, 16\n.balign 4\n5:\n"
	".long 7f - 6f\n6: .long . - 1b\n.long overlaps + 4 - .\n.long 4\n.byte 0, 0x0e, 24\n.balign 4\n7:\n"
	".popsection\n");
#endif
