/* Encodes the x86-64 instructions that compiled kernels consist of: AVX-512 (EVEX), masks, AVX2
 * (VEX), and some of the general-purpose ones.  test_cpu_x86.c compares every form
 * with an assembler. */
#ifndef PLUGINS_CPU_JIT_ENCODER_X86_ENCODER_H
#define PLUGINS_CPU_JIT_ENCODER_X86_ENCODER_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum {
    X86_RAX,
    X86_RCX,
    X86_RDX,
    X86_RBX,
    X86_RSP,
    X86_RBP,
    X86_RSI,
    X86_RDI,
    X86_R8,
    X86_R9,
    X86_R10,
    X86_R11,
    X86_R12,
    X86_R13,
    X86_R14,
    X86_R15,
    X86_NO_REGISTER = 254,
    X86_POOL = 255 /* base of an operand in the pool of constants, `disp` bytes into it */
};

/* Conditions of jumps. */
enum {
    X86_OVERFLOW = 0, /* never after a test or a logical operation */
    X86_BELOW = 2,
    X86_ABOVE_EQUAL = 3,
    X86_EQUAL = 4,
    X86_NOT_EQUAL = 5,
    X86_BELOW_EQUAL = 6,
    X86_ABOVE = 7,
    X86_LESS = 12,
    X86_GREATER_EQUAL = 13,
    X86_LESS_EQUAL = 14,
    X86_GREATER = 15
};

/* How the displacement of a memory operand is scaled when it takes one byte: by the bytes that the
 * instruction accesses. FULL: the vector, or one element that is broadcast. */
enum {
    X86_TUPLE_FULL,
    X86_TUPLE_MEMORY,
    X86_TUPLE_HALF,
    X86_TUPLE_QUARTER,
    X86_TUPLE_SCALAR,
    X86_TUPLE_WORD,
    X86_TUPLE_HALF_FULL /* half of a vector, or one element of half the size that is broadcast */
};

/* Whether an instruction has an encoding with VEX, and its bit W there; V: it has no other one. */
enum { X86_VEX_NO, X86_VEX_W0, X86_VEX_W1, X86_VEX_V0 };

/* X(NAME, map, prefix, w, opcode, extension, tuple, immediate, vex): `map` 1 to 3 are 0F, 0F38,
 * 0F3A; `prefix` 0 to 3 are none, 66, F3, F2; `w` is for EVEX; `extension` is the opcode's part in
 * the register field, or -1; `immediate` 2 is a register in the immediate's high half. The mnemonic
 * is the name in small letters with a v before it; AVX2 has MOVDQU for MOVDQU32, PAND for PANDD,
 * ROUNDPS for RNDSCALEPS. */
#define X86_VECTOR_TABLE(X)                             \
    X(MOVDQU32, 1, 2, 0, 0x6f, -1, MEMORY, 0, W0)       \
    X(MOVDQU64, 1, 2, 1, 0x6f, -1, MEMORY, 0, NO)       \
    X(MOVDQU8, 1, 3, 0, 0x6f, -1, MEMORY, 0, NO)        \
    X(MOVDQU32_STORE, 1, 2, 0, 0x7f, -1, MEMORY, 0, W0) \
    X(MOVDQU64_STORE, 1, 2, 1, 0x7f, -1, MEMORY, 0, NO) \
    X(MOVDQU8_STORE, 1, 3, 0, 0x7f, -1, MEMORY, 0, NO)  \
    X(MOVUPS_STORE, 1, 0, 0, 0x11, -1, MEMORY, 0, W0)   \
    X(MOVQ, 1, 1, 1, 0x6e, -1, SCALAR, 0, NO)           \
    X(MOVQ_STORE, 1, 1, 1, 0x7e, -1, SCALAR, 0, NO)     \
    X(PBROADCASTD, 2, 1, 0, 0x58, -1, SCALAR, 0, W0)    \
    X(PBROADCASTQ, 2, 1, 1, 0x59, -1, SCALAR, 0, W0)    \
    X(PBROADCASTW, 2, 1, 0, 0x79, -1, WORD, 0, W0)      \
    X(PBROADCASTD_R, 2, 1, 0, 0x7c, -1, SCALAR, 0, NO)  \
    X(ADDPS, 1, 0, 0, 0x58, -1, FULL, 0, W0)            \
    X(ADDPD, 1, 1, 1, 0x58, -1, FULL, 0, W0)            \
    X(MULPS, 1, 0, 0, 0x59, -1, FULL, 0, W0)            \
    X(MULPD, 1, 1, 1, 0x59, -1, FULL, 0, W0)            \
    X(SUBPS, 1, 0, 0, 0x5c, -1, FULL, 0, W0)            \
    X(SUBPD, 1, 1, 1, 0x5c, -1, FULL, 0, W0)            \
    X(MINPS, 1, 0, 0, 0x5d, -1, FULL, 0, W0)            \
    X(MINPD, 1, 1, 1, 0x5d, -1, FULL, 0, W0)            \
    X(DIVPS, 1, 0, 0, 0x5e, -1, FULL, 0, W0)            \
    X(DIVPD, 1, 1, 1, 0x5e, -1, FULL, 0, W0)            \
    X(MAXPS, 1, 0, 0, 0x5f, -1, FULL, 0, W0)            \
    X(MAXPD, 1, 1, 1, 0x5f, -1, FULL, 0, W0)            \
    X(SQRTPS, 1, 0, 0, 0x51, -1, FULL, 0, W0)           \
    X(SQRTPD, 1, 1, 1, 0x51, -1, FULL, 0, W0)           \
    X(FMADD213PS, 2, 1, 0, 0xa8, -1, FULL, 0, W0)       \
    X(FMADD213PD, 2, 1, 1, 0xa8, -1, FULL, 0, W1)       \
    X(FMADD231PS, 2, 1, 0, 0xb8, -1, FULL, 0, W0)       \
    X(FMADD231PD, 2, 1, 1, 0xb8, -1, FULL, 0, W1)       \
    X(CMPPS, 1, 0, 0, 0xc2, -1, FULL, 1, W0)            \
    X(CMPPD, 1, 1, 1, 0xc2, -1, FULL, 1, W0)            \
    X(RNDSCALEPS, 3, 1, 0, 0x08, -1, FULL, 1, W0)       \
    X(RNDSCALEPD, 3, 1, 1, 0x09, -1, FULL, 1, W0)       \
    X(PADDD, 1, 1, 0, 0xfe, -1, FULL, 0, W0)            \
    X(PADDQ, 1, 1, 1, 0xd4, -1, FULL, 0, W0)            \
    X(PSUBD, 1, 1, 0, 0xfa, -1, FULL, 0, W0)            \
    X(PSUBQ, 1, 1, 1, 0xfb, -1, FULL, 0, W0)            \
    X(PMULLD, 2, 1, 0, 0x40, -1, FULL, 0, W0)           \
    X(PMULLQ, 2, 1, 1, 0x40, -1, FULL, 0, NO)           \
    X(PMULUDQ, 1, 1, 1, 0xf4, -1, FULL, 0, W0)          \
    X(PMULDQ, 2, 1, 1, 0x28, -1, FULL, 0, W0)           \
    X(PANDD, 1, 1, 0, 0xdb, -1, FULL, 0, W0)            \
    X(PANDQ, 1, 1, 1, 0xdb, -1, FULL, 0, W0)            \
    X(PORD, 1, 1, 0, 0xeb, -1, FULL, 0, W0)             \
    X(PORQ, 1, 1, 1, 0xeb, -1, FULL, 0, W0)             \
    X(PXORD, 1, 1, 0, 0xef, -1, FULL, 0, W0)            \
    X(PXORQ, 1, 1, 1, 0xef, -1, FULL, 0, W0)            \
    X(PTERNLOGD, 3, 1, 0, 0x25, -1, FULL, 1, NO)        \
    X(PMINSD, 2, 1, 0, 0x39, -1, FULL, 0, W0)           \
    X(PMINSQ, 2, 1, 1, 0x39, -1, FULL, 0, NO)           \
    X(PMINUD, 2, 1, 0, 0x3b, -1, FULL, 0, W0)           \
    X(PMINUQ, 2, 1, 1, 0x3b, -1, FULL, 0, NO)           \
    X(PMAXSD, 2, 1, 0, 0x3d, -1, FULL, 0, W0)           \
    X(PMAXSQ, 2, 1, 1, 0x3d, -1, FULL, 0, NO)           \
    X(PMAXUD, 2, 1, 0, 0x3f, -1, FULL, 0, W0)           \
    X(PMAXUQ, 2, 1, 1, 0x3f, -1, FULL, 0, NO)           \
    X(PABSD, 2, 1, 0, 0x1e, -1, FULL, 0, W0)            \
    X(PABSQ, 2, 1, 1, 0x1f, -1, FULL, 0, NO)            \
    X(PSLLD, 1, 1, 0, 0x72, 6, FULL, 1, W0)             \
    X(PSLLQ, 1, 1, 1, 0x73, 6, FULL, 1, W0)             \
    X(PSRLD, 1, 1, 0, 0x72, 2, FULL, 1, W0)             \
    X(PSRLQ, 1, 1, 1, 0x73, 2, FULL, 1, W0)             \
    X(PSRAD, 1, 1, 0, 0x72, 4, FULL, 1, W0)             \
    X(PSRAQ, 1, 1, 1, 0x72, 4, FULL, 1, NO)             \
    X(PSLLVD, 2, 1, 0, 0x47, -1, FULL, 0, W0)           \
    X(PSLLVQ, 2, 1, 1, 0x47, -1, FULL, 0, W1)           \
    X(PSRLVD, 2, 1, 0, 0x45, -1, FULL, 0, W0)           \
    X(PSRLVQ, 2, 1, 1, 0x45, -1, FULL, 0, W1)           \
    X(PSRAVD, 2, 1, 0, 0x46, -1, FULL, 0, W0)           \
    X(PSRAVQ, 2, 1, 1, 0x46, -1, FULL, 0, NO)           \
    X(PCMPD, 3, 1, 0, 0x1f, -1, FULL, 1, NO)            \
    X(PCMPQ, 3, 1, 1, 0x1f, -1, FULL, 1, NO)            \
    X(PCMPUD, 3, 1, 0, 0x1e, -1, FULL, 1, NO)           \
    X(PCMPUQ, 3, 1, 1, 0x1e, -1, FULL, 1, NO)           \
    X(PTESTMB, 2, 1, 0, 0x26, -1, MEMORY, 0, NO)        \
    X(PTESTMD, 2, 1, 0, 0x27, -1, FULL, 0, NO)          \
    X(PTESTMQ, 2, 1, 1, 0x27, -1, FULL, 0, NO)          \
    X(PBLENDMD, 2, 1, 0, 0x64, -1, FULL, 0, NO)         \
    X(PBLENDMQ, 2, 1, 1, 0x64, -1, FULL, 0, NO)         \
    X(CVTDQ2PS, 1, 0, 0, 0x5b, -1, FULL, 0, W0)         \
    X(CVTUDQ2PS, 1, 3, 0, 0x7a, -1, FULL, 0, NO)        \
    X(CVTTPS2DQ, 1, 2, 0, 0x5b, -1, FULL, 0, W0)        \
    X(CVTTPS2UDQ, 1, 0, 0, 0x78, -1, FULL, 0, NO)       \
    X(CVTPS2PD, 1, 0, 0, 0x5a, -1, HALF_FULL, 0, W0)    \
    X(CVTPD2PS, 1, 1, 1, 0x5a, -1, FULL, 0, W0)         \
    X(CVTDQ2PD, 1, 2, 0, 0xe6, -1, HALF_FULL, 0, W0)    \
    X(CVTUDQ2PD, 1, 2, 0, 0x7a, -1, HALF_FULL, 0, NO)   \
    X(CVTQQ2PD, 1, 2, 1, 0xe6, -1, FULL, 0, NO)         \
    X(CVTUQQ2PD, 1, 2, 1, 0x7a, -1, FULL, 0, NO)        \
    X(CVTQQ2PS, 1, 0, 1, 0x5b, -1, FULL, 0, NO)         \
    X(CVTUQQ2PS, 1, 3, 1, 0x7a, -1, FULL, 0, NO)        \
    X(CVTTPD2DQ, 1, 1, 1, 0xe6, -1, FULL, 0, W0)        \
    X(CVTTPD2UDQ, 1, 0, 1, 0x78, -1, FULL, 0, NO)       \
    X(CVTTPD2QQ, 1, 1, 1, 0x7a, -1, FULL, 0, NO)        \
    X(CVTTPD2UQQ, 1, 1, 1, 0x78, -1, FULL, 0, NO)       \
    X(CVTTPS2QQ, 1, 1, 0, 0x7a, -1, HALF_FULL, 0, NO)   \
    X(CVTTPS2UQQ, 1, 1, 0, 0x78, -1, HALF_FULL, 0, NO)  \
    X(PSHUFD, 1, 1, 0, 0x70, -1, FULL, 1, W0)           \
    X(PERMQ, 3, 1, 1, 0x00, -1, FULL, 1, W1)            \
    X(SHUFI64X2, 3, 1, 1, 0x43, -1, FULL, 1, NO)        \
    X(PERMI2D, 2, 1, 0, 0x76, -1, FULL, 0, NO)          \
    X(PMOVSXDQ, 2, 1, 0, 0x25, -1, HALF, 0, W0)         \
    X(PMOVZXDQ, 2, 1, 0, 0x35, -1, HALF, 0, W0)         \
    X(PMOVQD, 2, 2, 0, 0x35, -1, HALF, 0, NO)           \
    X(PMOVSXBD, 2, 1, 0, 0x21, -1, QUARTER, 0, W0)      \
    X(PMOVZXBD, 2, 1, 0, 0x31, -1, QUARTER, 0, W0)      \
    X(PMOVSXWD, 2, 1, 0, 0x23, -1, HALF, 0, W0)         \
    X(PMOVZXWD, 2, 1, 0, 0x33, -1, HALF, 0, W0)         \
    X(PMOVDB, 2, 2, 0, 0x31, -1, QUARTER, 0, NO)        \
    X(PMOVDW, 2, 2, 0, 0x33, -1, HALF, 0, NO)           \
    X(CVTPH2PS, 2, 1, 0, 0x13, -1, HALF, 0, W0)         \
    X(CVTPS2PH, 3, 1, 0, 0x1d, -1, HALF, 1, W0)         \
    X(PCMPEQD, 1, 1, 0, 0x76, -1, FULL, 0, V0)          \
    X(PCMPEQQ, 2, 1, 0, 0x29, -1, FULL, 0, V0)          \
    X(PCMPGTD, 1, 1, 0, 0x66, -1, FULL, 0, V0)          \
    X(PCMPGTQ, 2, 1, 0, 0x37, -1, FULL, 0, V0)          \
    X(BLENDVPS, 3, 1, 0, 0x4a, -1, FULL, 2, V0)         \
    X(BLENDVPD, 3, 1, 0, 0x4b, -1, FULL, 2, V0)         \
    X(PTEST, 2, 1, 0, 0x17, -1, FULL, 0, V0)            \
    X(EXTRACTI128, 3, 1, 0, 0x39, -1, HALF, 1, V0)      \
    X(SHUFPS, 1, 0, 0, 0xc6, -1, FULL, 1, V0)           \
    X(PACKSSDW, 1, 1, 0, 0x6b, -1, FULL, 0, V0)         \
    X(PACKSSWB, 1, 1, 0, 0x63, -1, FULL, 0, V0)         \
    X(PACKUSDW, 2, 1, 0, 0x2b, -1, FULL, 0, V0)         \
    X(PACKUSWB, 1, 1, 0, 0x67, -1, FULL, 0, V0)         \
    X(PABSB, 2, 1, 0, 0x1c, -1, FULL, 0, V0)            \
    X(MOVLPS_STORE, 1, 0, 0, 0x13, -1, SCALAR, 0, V0)   \
    X(MOVD_STORE, 1, 1, 0, 0x7e, -1, SCALAR, 0, V0)     \
    X(MASKMOVPS, 2, 1, 0, 0x2c, -1, FULL, 0, V0)        \
    X(MASKMOVPD, 2, 1, 0, 0x2d, -1, FULL, 0, V0)        \
    X(MASKMOVPS_STORE, 2, 1, 0, 0x2e, -1, FULL, 0, V0)  \
    X(MASKMOVPD_STORE, 2, 1, 0, 0x2f, -1, FULL, 0, V0)  \
    X(MOVD_R, 1, 1, 0, 0x6e, -1, SCALAR, 0, V0)         \
    X(MOVMSKPS, 1, 0, 0, 0x50, -1, FULL, 0, V0)         \
    X(PINSRW, 1, 1, 0, 0xc4, -1, WORD, 1, V0)           \
    X(PEXTRW, 3, 1, 0, 0x15, -1, WORD, 1, V0)           \
    X(PGATHERDD, 2, 1, 0, 0x90, -1, SCALAR, 0, W0)      \
    X(PGATHERDQ, 2, 1, 1, 0x90, -1, SCALAR, 0, W1)      \
    X(PSCATTERDD, 2, 1, 0, 0xa0, -1, SCALAR, 0, NO)     \
    X(PSCATTERDQ, 2, 1, 1, 0xa0, -1, SCALAR, 0, NO)

#define X86_VECTOR_NAME_(NAME, ...) X86_##NAME,
enum { X86_VECTOR_TABLE(X86_VECTOR_NAME_) X86_VECTOR_COUNT };

/* Operations on masks, with their opcodes. */
enum {
    X86_KAND = 0x41,
    X86_KANDN = 0x42, /* not a, and b */
    X86_KOR = 0x45,
    X86_KXNOR = 0x46,
    X86_KXOR = 0x47
};

/* Two-operand instructions, with their opcodes: register, register or memory. */
enum {
    X86_ADD = 0x03,
    X86_SUB = 0x2b,
    X86_XOR = 0x33,
    X86_CMP = 0x3b,
    X86_LOAD = 0x8b,
    X86_LEA = 0x8d,
    X86_SIGN_EXTEND = 0x63,
    X86_STORE = 0x89,
    X86_TEST = 0x85
};

/* A register, or memory at base + index * scale + disp. */
typedef struct x86_operand {
    bool is_memory;
    bool broadcast; /* one element for all */
    uint8_t reg;    /* of a vector or the general-purpose registers */
    uint8_t base, index, scale;
    int32_t disp;
} x86_operand;

/* Bytes of a vector. */
enum { X86_XMM = 0, X86_YMM = 1, X86_ZMM = 2 };

/* Further parts of a vector instruction; zero where it has none. */
typedef struct x86_form {
    uint8_t length; /* X86_XMM.. */
    uint8_t mask;   /* k1 to k7; 0: all elements */
    bool zeroing;   /* elements without mask become 0 */
    uint8_t immediate;
} x86_form;

typedef struct x86_fixup {
    uint32_t at;     /* of the 4 bytes */
    uint32_t target; /* label, or offset in the pool */
    bool pool;
} x86_fixup;

enum { X86_POOL_HEADS = 1024 }; /* as many as ten bits count */

/* Code under construction. After a failure (no memory) everything else has no effect. */
typedef struct x86_code {
    uint8_t *bytes;
    uint32_t count, capacity;
    uint32_t *labels; /* places; UINT32_MAX: not yet known */
    uint32_t label_count, label_capacity;
    x86_fixup *fixups;
    uint32_t fixup_count, fixup_capacity;
    uint32_t *pool; /* constants, 4 bytes each */
    uint32_t pool_count, pool_capacity;
    uint32_t *pool_next; /* by the first word of a constant: one more than that of another one */
    uint32_t pool_next_capacity;
    uint32_t pool_heads[X86_POOL_HEADS]; /* by hash: the first one, likewise */
    bool vex; /* AVX2: vector instructions have VEX, and constants are whole vectors */
    bool failed;
} x86_code;

void x86_code_release(x86_code *code);

/* The offset of the opcode in a vector instruction that starts at `start`, and the opcodes of
 * MOVUPS_STORE and of the same store past the caches, to a multiple of the vector's bytes. */
static inline uint32_t x86_opcode_at(const x86_code *code, uint32_t start)
{
    return start + (code->vex ? 3 : 4);
}
enum { X86_STORE_OPCODE = 0x11, X86_STREAM_OPCODE = 0x2b };

static inline x86_operand x86_register(uint32_t reg)
{
    return (x86_operand){.reg = (uint8_t)reg};
}

static inline x86_operand x86_memory(uint32_t base, int32_t disp)
{
    return (x86_operand){.is_memory = true,
                         .base = (uint8_t)base,
                         .index = X86_NO_REGISTER,
                         .scale = 1,
                         .disp = disp};
}

/* Words of 4 bytes in the pool, such as a vector. */
x86_operand x86_words(x86_code *code, const uint32_t *value, uint32_t words);
/* A constant in the pool, of 4 or 8 bytes: an element that is broadcast, or with VEX a vector of
 * equal elements. Equal ones share a place. */
x86_operand x86_constant(x86_code *code, uint64_t bits, uint32_t bytes);

/* A vector instruction: `reg` is the destination, or the source of a store or the extension's
 * place; `second` the operand in between, 0 where there is none. With VEX there are 16 registers,
 * no masks and no 64-byte vectors; an instruction without such an encoding is a failure. */
void x86_vector(x86_code *code, uint32_t name, x86_form form, uint32_t reg, uint32_t second,
                x86_operand operand);
/* A gather or scatter: the operand's index is a vector register. Becomes 0: the mask, form.mask or
 * with VEX the vector register `mask`. */
void x86_vector_indexed(x86_code *code, uint32_t name, x86_form form, uint32_t reg, uint32_t mask,
                        x86_operand operand);
/* d = a op b for masks, of 16 bits; d = not a; d = a. */
void x86_mask_binary(x86_code *code, uint32_t opcode, uint32_t d, uint32_t a, uint32_t b);
void x86_mask_not(x86_code *code, uint32_t d, uint32_t a);
void x86_mask_move(x86_code *code, uint32_t d, x86_operand a);
void x86_mask_store(x86_code *code, x86_operand to, uint32_t a);
/* Sets the flag EQUAL if the low 8 (bytes: 1) or 16 bits are 0. */
void x86_mask_test(x86_code *code, uint32_t a, uint32_t bytes);
void x86_zero_upper(x86_code *code);

/* An instruction of two operands; `wide`: 64 bits, else 32. */
void x86_general(x86_code *code, uint32_t opcode, bool wide, uint32_t reg, x86_operand operand);
/* Asks for the line of an address in all caches; the address may be invalid. */
void x86_prefetch(x86_code *code, x86_operand from);
/* The low 2, 4 or 8 bytes of a register. */
void x86_store_bytes(x86_code *code, uint32_t bytes, uint32_t reg, x86_operand to);
void x86_add_immediate(x86_code *code, uint32_t reg, int32_t value);
void x86_compare_immediate(x86_code *code, uint32_t reg, int32_t value);
void x86_multiply_immediate(x86_code *code, uint32_t reg, int32_t value);
void x86_shift_left(x86_code *code, uint32_t reg, uint32_t count);
void x86_load_immediate(x86_code *code, uint32_t reg, uint64_t value);
void x86_call(x86_code *code, uint32_t reg);
void x86_push(x86_code *code, uint32_t reg);
void x86_pop(x86_code *code, uint32_t reg);
void x86_and_immediate(x86_code *code, uint32_t reg, int32_t value);
void x86_test_immediate(x86_code *code, uint32_t reg, int32_t value);
void x86_return(x86_code *code);

uint32_t x86_label(x86_code *code);
void x86_bind(x86_code *code, uint32_t label);
void x86_jump(x86_code *code, uint32_t label);
void x86_jump_if(x86_code *code, uint32_t condition, uint32_t label);
void x86_call_label(x86_code *code, uint32_t label);
/* Appends the pool and fills in jumps. False after a failure. */
bool x86_finish(x86_code *code);

#endif
