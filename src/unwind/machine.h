/* SPDX-License-Identifier: GPL-2.0-or-later */
#pragma once

/* Numbers of the machine whose objects have tables: x86-64. On another machine all objects are refused, until
   it has its numbers here, and its registers in bpf/unwind.h. Only files of unwind/ include this header. */

#include <elf.h>

#define CFI_ELF_MACHINE EM_X86_64
#define CFI_STACK_POINTER 7
#define CFI_RETURN_ADDRESS 16 /* the column of rip */
#define CFI_CFA_REGISTERS 16  /* a CFA can depend on the registers 0 to 15 */
/* Offsets from the stack pointer to the registers that a signal has saved: rsp and rip of
   rt_sigframe.uc.uc_mcontext, without the return address of the frame. */
#define CFI_SIGNAL_STACK_POINTER 160
#define CFI_SIGNAL_RETURN_ADDRESS 168
