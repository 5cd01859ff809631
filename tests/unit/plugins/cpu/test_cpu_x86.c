/* The encoder of the cpu plugin next to the GNU assembler: the same bytes for every form of every
 * instruction. */
#include "unit.h"
#include "jit/encoder/x86_encoder.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum { ROUNDS = 60, MOST_BYTES = 1 << 22 };

/* One letter each for the register, the second and the last operand: v a vector, h, q half and a
 * quarter of it, w at least 32 bytes, y 32, x 16, k a mask, m memory, r a general-purpose register
 * of 32 bits, - none. A row with ! has its register last: it is the source. Else three vectors. */
static const char *const signatures[X86_VECTOR_COUNT] = {
    [X86_MOVDQU32] = "v-v",        [X86_MOVDQU64] = "v-v",
    [X86_MOVDQU8] = "v-v",         [X86_MOVDQU32_STORE] = "v-v!",
    [X86_MOVDQU64_STORE] = "v-v!", [X86_MOVDQU8_STORE] = "v-v!",
    [X86_MOVUPS_STORE] = "v-v!",   [X86_MOVQ] = "x-x",
    [X86_MOVQ_STORE] = "x-x!",     [X86_PBROADCASTD] = "v-x",
    [X86_PBROADCASTQ] = "v-x",     [X86_PBROADCASTW] = "v-x",
    [X86_PBROADCASTD_R] = "v-r",   [X86_SQRTPS] = "v-v",
    [X86_SQRTPD] = "v-v",          [X86_RNDSCALEPS] = "v-v",
    [X86_RNDSCALEPD] = "v-v",      [X86_PABSD] = "v-v",
    [X86_PABSQ] = "v-v",           [X86_PSLLD] = "v-v",
    [X86_PSLLQ] = "v-v",           [X86_PSRLD] = "v-v",
    [X86_PSRLQ] = "v-v",           [X86_PSRAD] = "v-v",
    [X86_PSRAQ] = "v-v",           [X86_CMPPS] = "kvv",
    [X86_CMPPD] = "kvv",           [X86_PCMPD] = "kvv",
    [X86_PCMPQ] = "kvv",           [X86_PCMPUD] = "kvv",
    [X86_PCMPUQ] = "kvv",          [X86_PTESTMB] = "kvv",
    [X86_PTESTMD] = "kvv",         [X86_PTESTMQ] = "kvv",
    [X86_CVTDQ2PS] = "v-v",        [X86_CVTUDQ2PS] = "v-v",
    [X86_CVTTPS2DQ] = "v-v",       [X86_CVTTPS2UDQ] = "v-v",
    [X86_CVTPS2PD] = "v-h",        [X86_CVTPD2PS] = "h-v",
    [X86_CVTDQ2PD] = "v-h",        [X86_CVTUDQ2PD] = "v-h",
    [X86_CVTQQ2PD] = "v-v",        [X86_CVTUQQ2PD] = "v-v",
    [X86_CVTQQ2PS] = "h-v",        [X86_CVTUQQ2PS] = "h-v",
    [X86_CVTTPD2DQ] = "h-v",       [X86_CVTTPD2UDQ] = "h-v",
    [X86_CVTTPD2QQ] = "v-v",       [X86_CVTTPD2UQQ] = "v-v",
    [X86_CVTTPS2QQ] = "v-h",       [X86_CVTTPS2UQQ] = "v-h",
    [X86_PSHUFD] = "v-v",          [X86_PERMQ] = "w-w",
    [X86_SHUFI64X2] = "www",       [X86_PMOVSXDQ] = "v-h",
    [X86_PMOVZXDQ] = "v-h",        [X86_PMOVQD] = "v-h!",
    [X86_PMOVSXBD] = "v-q",        [X86_PMOVZXBD] = "v-q",
    [X86_PMOVSXWD] = "v-h",        [X86_PMOVZXWD] = "v-h",
    [X86_PMOVDB] = "v-q!",         [X86_PMOVDW] = "v-h!",
    [X86_CVTPH2PS] = "v-h",        [X86_CVTPS2PH] = "v-h!",
    [X86_PTEST] = "v-v",           [X86_EXTRACTI128] = "y-x!",
    [X86_PABSB] = "v-v",           [X86_MOVLPS_STORE] = "x-x!",
    [X86_MOVD_STORE] = "x-x!",     [X86_MOVD_R] = "x-r",
    [X86_MOVMSKPS] = "r-v",        [X86_PINSRW] = "xxm",
    [X86_PEXTRW] = "x-m!",         [X86_MASKMOVPS] = "vvm",
    [X86_MASKMOVPD] = "vvm",       [X86_MASKMOVPS_STORE] = "vvm!",
    [X86_MASKMOVPD_STORE] = "vvm!"};

static const char *signature_of(uint32_t name)
{
    return signatures[name] ? signatures[name] : "vvv";
}

#define ROW_NAME(NAME, ...) [X86_##NAME] = #NAME,
static const char *const names[X86_VECTOR_COUNT] = {X86_VECTOR_TABLE(ROW_NAME)};
#define ROW_IMMEDIATE(NAME, map, prefix, w, opcode, extension, tuple, immediate, vex) \
    [X86_##NAME] = immediate,
static const uint8_t immediates[X86_VECTOR_COUNT] = {X86_VECTOR_TABLE(ROW_IMMEDIATE)};
#define ROW_WIDE(NAME, map, prefix, w, ...) [X86_##NAME] = w,
static const uint8_t wides[X86_VECTOR_COUNT] = {X86_VECTOR_TABLE(ROW_WIDE)};
#define ROW_TUPLE(NAME, map, prefix, w, opcode, extension, tuple, immediate, vex) \
    [X86_##NAME] = X86_TUPLE_##tuple,
static const uint8_t tuples[X86_VECTOR_COUNT] = {X86_VECTOR_TABLE(ROW_TUPLE)};
#define ROW_VEX(NAME, map, prefix, w, opcode, extension, tuple, immediate, vex) \
    [X86_##NAME] = X86_VEX_##vex,
static const uint8_t vexes[X86_VECTOR_COUNT] = {X86_VECTOR_TABLE(ROW_VEX)};

static const char *const general[16] = {"rax", "rcx", "rdx", "rbx", "rsp", "rbp", "rsi", "rdi",
                                        "r8",  "r9",  "r10", "r11", "r12", "r13", "r14", "r15"};
static const char *const general_16[16] = {"ax",   "cx",   "dx",   "bx",  "sp",   "bp",
                                           "si",   "di",   "r8w",  "r9w", "r10w", "r11w",
                                           "r12w", "r13w", "r14w", "r15w"};
static const char *const general_32[16] = {"eax",  "ecx",  "edx",  "ebx", "esp",  "ebp",
                                           "esi",  "edi",  "r8d",  "r9d", "r10d", "r11d",
                                           "r12d", "r13d", "r14d", "r15d"};

static uint64_t random_state = 5;
static uint32_t any(uint32_t count)
{
    random_state = random_state * UINT64_C(6364136223846793005) + UINT64_C(1442695040888963407);
    return (uint32_t)(random_state >> 33) % count;
}

static x86_operand any_memory(void)
{
    static const int32_t disps[] = {0, 4, 8, 16, 32, 64, -64, 128, 256, 1000, 8128, 8192, -8200};
    x86_operand operand = x86_memory(any(16), disps[any(13)]);
    const uint32_t index = any(16);
    if (any(2) && index != X86_RSP) {
        operand.index = (uint8_t)index;
        operand.scale = (uint8_t)(1u << any(4));
    }
    return operand;
}

/* In the syntax of AT&T, which names no sizes of memory. */
static void write_memory(char *text, size_t size, const x86_operand *operand)
{
    char disp[16] = "", index[32] = "";
    if (operand->disp != 0) {
        snprintf(disp, sizeof(disp), "%d", operand->disp);
    }
    if (operand->index != X86_NO_REGISTER) {
        snprintf(index, sizeof(index), ",%%%s,%u", general[operand->index],
                 (unsigned)operand->scale);
    }
    snprintf(text, size, "%s(%%%s%s)", disp, general[operand->base], index);
}

static void write_register(char *text, size_t size, char class, uint32_t reg, uint32_t length)
{
    static const char letters[] = "xyz";
    if (class == 'k') {
        snprintf(text, size, "%%k%u", reg);
        return;
    }
    if (class == 'r') {
        snprintf(text, size, "%%%s", general_32[reg]);
        return;
    }
    const uint32_t less = class == 'h' ? 1 : class == 'q' ? 2 : class == 'x' ? 9 : 0;
    snprintf(text, size, "%%%cmm%u", letters[length > less ? length - less : 0], reg);
}

/* Memory whose size the mnemonic would have to say is left out. */
static bool takes_memory(uint32_t name)
{
    const char *signature = signature_of(name);
    const bool shifts = name >= X86_PSLLD && name <= X86_PSRAQ;
    return signature[2] != 'r' && !strchr("hr", signature[0]) && !shifts;
}

/* The mnemonic of a row; the names of AVX2 where they are others. */
static void write_mnemonic(char *text, size_t size, uint32_t name, bool vex)
{
    static const char *const others[X86_VECTOR_COUNT] = {
        [X86_MOVDQU32] = "vmovdqu",    [X86_MOVDQU32_STORE] = "vmovdqu",
        [X86_PANDD] = "vpand",         [X86_PANDQ] = "vpand",
        [X86_PORD] = "vpor",           [X86_PORQ] = "vpor",
        [X86_PXORD] = "vpxor",         [X86_PXORQ] = "vpxor",
        [X86_RNDSCALEPS] = "vroundps", [X86_RNDSCALEPD] = "vroundpd"};
    if (vex && others[name]) {
        snprintf(text, size, "%s", others[name]);
        return;
    }
    snprintf(text, size, "v%s", names[name]);
    text[strcspn(text, "_")] = '\0';
    for (char *c = text; *c != '\0'; c++) {
        *c = (char)(*c >= 'A' && *c <= 'Z' ? *c + 32 : *c);
    }
}

static uint32_t any_length(char class, bool vex)
{
    return class == 'x'   ? (uint32_t)X86_XMM
           : class == 'y' ? (uint32_t)X86_YMM
           : class == 'w' ? X86_YMM + any(vex ? 1 : 2)
                          : any(vex ? 2 : 3);
}

/* A memory operand, and its text. */
static x86_operand add_memory(char *text, size_t size, uint32_t name, uint32_t length, bool vex)
{
    x86_operand operand = any_memory();
    const bool full = tuples[name] == X86_TUPLE_FULL || tuples[name] == X86_TUPLE_HALF_FULL;
    operand.broadcast = !vex && full && any(2);
    write_memory(text, size, &operand);
    if (operand.broadcast) {
        const uint32_t bytes = (16u << length) >> (tuples[name] == X86_TUPLE_HALF_FULL);
        snprintf(text + strlen(text), size - strlen(text), "{1to%u}",
                 (unsigned)(bytes / (wides[name] ? 8 : 4)));
    }
    return operand;
}

static void vector_add(x86_code *code, FILE *file, uint32_t name)
{
    const bool vex = code->vex;
    const char *signature = vex && signature_of(name)[0] == 'k' ? "vvv" : signature_of(name);
    const uint32_t vectors = vex ? 16 : 32;
    char mnemonic[32], first[64], second[64], last[64], mask[16] = "", immediate[16] = "";
    write_mnemonic(mnemonic, sizeof(mnemonic), name, vex);
    x86_form form = {.length = (uint8_t)any_length(signature[0], vex)};
    const bool stores = signature[3] == '!', is_mask = signature[0] == 'k';
    const uint32_t reg = any(is_mask ? 8 : vectors), middle = any(vectors);
    x86_operand operand = x86_register(any(signature[2] == 'r' ? 16 : vectors));
    /* Between registers the assembler prefers other forms. */
    const bool moves =
        name == X86_MOVQ || signature[2] == 'm' || (stores && signature[2] == signature[0]);
    const bool memory = takes_memory(name) && (moves || any(2));
    if (memory) {
        operand = add_memory(last, sizeof(last), name, form.length, vex);
    } else {
        write_register(last, sizeof(last), signature[2], operand.reg, form.length);
    }
    if (!vex && signature[0] != 'x' && any(2)) {
        form.mask = (uint8_t)(1 + any(7));
        form.zeroing = !is_mask && !(stores && memory) && any(2);
        snprintf(mask, sizeof(mask), "{%%k%u}%s", (unsigned)form.mask, form.zeroing ? "{z}" : "");
    }
    if (immediates[name] == 2) {
        form.immediate = (uint8_t)(any(16) << 4);
        write_register(immediate, sizeof(immediate), 'v', form.immediate >> 4, form.length);
        strcat(immediate, ", ");
    } else if (immediates[name]) {
        form.immediate = (uint8_t)(any(4) + 1);
        snprintf(immediate, sizeof(immediate), "$%u, ", (unsigned)form.immediate);
    }
    x86_vector(code, name, form, reg, signature[1] == '-' ? 0 : middle, operand);

    write_register(first, sizeof(first), signature[0], reg, form.length);
    write_register(second, sizeof(second), signature[1], middle, form.length);
    fprintf(file, "%s %s %s", vex ? "{vex3}" : "{evex}", mnemonic, immediate);
    if (stores && signature[1] != '-') {
        fprintf(file, "%s, %s, %s\n", first, second, last);
    } else if (stores) {
        fprintf(file, "%s, %s%s\n", first, last, mask);
    } else if (signature[1] == '-') {
        fprintf(file, "%s, %s%s\n", last, first, mask);
    } else {
        fprintf(file, "%s, %s, %s%s\n", last, second, first, mask);
    }
}

static bool is_indexed(uint32_t name)
{
    return name >= X86_PGATHERDD && name <= X86_PSCATTERDQ;
}

/* The element of each lane; indices of 32 bits are half a vector next to elements of 64. */
static void indexed_add(x86_code *code, FILE *file, uint32_t name)
{
    const bool vex = code->vex;
    const uint32_t vectors = vex ? 16 : 32, reg = any(vectors);
    const uint32_t index = (reg + 1 + any(vectors - 2)) % vectors; /* all have to differ */
    uint32_t mask = 1 + any(7);
    while (vex && (mask == reg || mask == index)) {
        mask = (mask + 1) % vectors;
    }
    const x86_form form = {.length = (uint8_t)any_length('v', vex),
                           .mask = (uint8_t)(vex ? 0 : mask)};
    static const int32_t disps[] = {0, 4, -8, 64, 508, 1016, 1024, -70000};
    x86_operand operand = x86_memory(any(16), disps[any(8)]);
    operand.index = (uint8_t)index;
    operand.scale = (uint8_t)(1u << any(4));
    char mnemonic[32], first[64], masks[64], indices[64], memory[160], disp[16] = "";
    write_mnemonic(mnemonic, sizeof(mnemonic), name, vex);
    write_register(first, sizeof(first), 'v', reg, form.length);
    write_register(indices, sizeof(indices), wides[name] ? 'h' : 'v', index, form.length);
    if (operand.disp != 0) {
        snprintf(disp, sizeof(disp), "%d", operand.disp);
    }
    snprintf(memory, sizeof(memory), "%s(%%%s,%s,%u)", disp, general[operand.base], indices,
             (unsigned)operand.scale);
    x86_vector_indexed(code, name, form, reg, mask, operand);
    if (vex) {
        write_register(masks, sizeof(masks), 'v', mask, form.length);
        fprintf(file, "{vex3} %s %s, %s, %s\n", mnemonic, masks, memory, first);
    } else if (name >= X86_PSCATTERDD) {
        fprintf(file, "{evex} %s %s, %s{%%k%u}\n", mnemonic, first, memory, (unsigned)mask);
    } else {
        fprintf(file, "{evex} %s %s, %s{%%k%u}\n", mnemonic, memory, first, (unsigned)mask);
    }
}

static void mask_add(x86_code *code, FILE *file)
{
    static const char *const binary[] = {"kandw", "kandnw", "korw", "kxnorw", "kxorw"};
    static const uint8_t opcodes[] = {X86_KAND, X86_KANDN, X86_KOR, X86_KXNOR, X86_KXOR};
    const uint32_t which = any(5), d = any(8), a = any(8), b = any(8);
    char memory[64];
    x86_mask_binary(code, opcodes[which], d, a, b);
    fprintf(file, "{vex3} %s %%k%u, %%k%u, %%k%u\n", binary[which], b, a, d);
    x86_mask_not(code, d, a);
    fprintf(file, "{vex3} knotw %%k%u, %%k%u\n", a, d);
    x86_mask_move(code, d, x86_register(a));
    fprintf(file, "{vex3} kmovw %%k%u, %%k%u\n", a, d);
    const x86_operand from = any_memory(), to = any_memory();
    x86_mask_move(code, d, from);
    write_memory(memory, sizeof(memory), &from);
    fprintf(file, "{vex3} kmovw %s, %%k%u\n", memory, d);
    x86_mask_store(code, to, a);
    write_memory(memory, sizeof(memory), &to);
    fprintf(file, "{vex3} kmovw %%k%u, %s\n", a, memory);
    x86_mask_test(code, a, 1);
    x86_mask_test(code, b, 2);
    fprintf(file, "{vex3} kortestb %%k%u, %%k%u\n{vex3} kortestw %%k%u, %%k%u\n", a, a, b, b);
    x86_zero_upper(code);
    fprintf(file, "vzeroupper\n");
}

static void general_add(x86_code *code, FILE *file)
{
    const uint32_t reg = any(16), other = any(16);
    const x86_operand memory = any_memory();
    char text[64];
    write_memory(text, sizeof(text), &memory);
    x86_general(code, X86_LOAD, true, reg, memory);
    fprintf(file, "movq %s, %%%s\n", text, general[reg]);
    x86_general(code, X86_LOAD, false, reg, memory);
    fprintf(file, "movl %s, %%%s\n", text, general_32[reg]);
    x86_general(code, X86_STORE, true, reg, memory);
    fprintf(file, "movq %%%s, %s\n", general[reg], text);
    x86_store_bytes(code, 2, reg, memory);
    fprintf(file, "movw %%%s, %s\n", general_16[reg], text);
    x86_store_bytes(code, 4, reg, memory);
    fprintf(file, "movl %%%s, %s\n", general_32[reg], text);
    x86_store_bytes(code, 8, reg, memory);
    fprintf(file, "movq %%%s, %s\n", general[reg], text);
    x86_general(code, X86_STORE, true, reg, x86_register(other));
    fprintf(file, "movq %%%s, %%%s\n", general[reg], general[other]);
    x86_general(code, X86_LEA, true, reg, memory);
    fprintf(file, "leaq %s, %%%s\n", text, general[reg]);
    x86_prefetch(code, memory);
    fprintf(file, "prefetcht0 %s\n", text);
    x86_general(code, X86_SIGN_EXTEND, true, reg, memory);
    fprintf(file, "movslq %s, %%%s\n", text, general[reg]);
    x86_general(code, X86_ADD, true, reg, memory);
    fprintf(file, "addq %s, %%%s\n", text, general[reg]);
    x86_general(code, X86_XOR, true, reg, memory);
    fprintf(file, "xorq %s, %%%s\n", text, general[reg]);
    x86_general(code, X86_CMP, true, reg, memory);
    fprintf(file, "cmpq %s, %%%s\n", text, general[reg]);
    x86_general(code, X86_TEST, true, reg, x86_register(other));
    fprintf(file, "testq %%%s, %%%s\n", general[reg], general[other]);
    x86_shift_left(code, reg, 3);
    fprintf(file, "shlq $3, %%%s\n", general[reg]);
    x86_load_immediate(code, reg, UINT64_C(0x123456789abcdef));
    fprintf(file, "movabsq $0x123456789abcdef, %%%s\n", general[reg]);
    x86_load_immediate(code, reg, 0x80000000);
    fprintf(file, "movl $0x80000000, %%%s\n", general_32[reg]);
    x86_call(code, reg);
    fprintf(file, "call *%%%s\n", general[reg]);
    x86_push(code, reg);
    x86_pop(code, other);
    fprintf(file, "push %%%s\npop %%%s\nret\n", general[reg], general[other]);
    x86_return(code);
    if (reg != X86_RAX) { /* which has shorter forms */
        x86_add_immediate(code, reg, 0x1234);
        x86_and_immediate(code, reg, -4096);
        x86_compare_immediate(code, reg, 70000);
        fprintf(file, "addq $0x1234, %%%s\nandq $-4096, %%%s\ncmpq $70000, %%%s\n", general[reg],
                general[reg], general[reg]);
        x86_multiply_immediate(code, reg, 777);
        fprintf(file, "imulq $777, %%%s, %%%s\n", general[reg], general[reg]);
        x86_test_immediate(code, reg, 63);
        fprintf(file, "testq $63, %%%s\n", general[reg]);
    }
}

/* Assembles the file. Returns the bytes of its section of code; 0 if there is no assembler. */
static size_t assemble(const char *source, uint8_t *bytes)
{
    char command[512];
    snprintf(command, sizeof(command),
             "as --64 -o %s.o %s && objcopy -O binary -j .text %s.o %s.bin", source, source, source,
             source);
    if (system("as --version >/dev/null 2>&1 && objcopy --version >/dev/null 2>&1") != 0) {
        return 0;
    }
    assert_int_equal(system(command), 0);
    snprintf(command, sizeof(command), "%s.bin", source);
    FILE *file = fopen(command, "rb");
    assert_non_null(file);
    const size_t count = fread(bytes, 1, MOST_BYTES, file);
    fclose(file);
    unlink(command);
    snprintf(command, sizeof(command), "%s.o", source);
    unlink(command);
    return count;
}

/* What `add` adds is assembled the same. */
static void check_against_assembler(void (*add)(x86_code *code, FILE *file, uint32_t round),
                                    uint32_t rounds)
{
    char path[] = "/tmp/halyard-x86-XXXXXX";
    const int descriptor = mkstemp(path);
    assert_true(descriptor >= 0);
    FILE *file = fdopen(descriptor, "w");
    x86_code code = {0};
    uint32_t *starts = calloc(rounds + 1, sizeof(uint32_t));
    for (uint32_t i = 0; i < rounds; i++) {
        starts[i] = code.count;
        add(&code, file, i);
    }
    starts[rounds] = code.count;
    fclose(file);
    assert_false(code.failed);
    uint8_t *bytes = malloc(MOST_BYTES);
    const size_t count = assemble(path, bytes);
    for (uint32_t i = 0; i < rounds && count > 0; i++) {
        for (uint32_t k = starts[i]; k < starts[i + 1]; k++) {
            if (k >= count || bytes[k] != code.bytes[k]) {
                fail_msg("group %u (line %u of %s if groups are lines): byte %u is %02x, expected "
                         "%02x",
                         i, i + 1, path, k - starts[i], (unsigned)code.bytes[k],
                         k < count ? (unsigned)bytes[k] : 0);
            }
        }
    }
    if (count > 0) {
        assert_int_equal(count, code.count);
    }
    unlink(path);
    free(bytes);
    free(starts);
    x86_code_release(&code);
}

/* Rows that have no such encoding are left out. */
static void add_vector(x86_code *code, FILE *file, uint32_t round)
{
    const uint32_t name = round % X86_VECTOR_COUNT;
    code->vex = false;
    if (is_indexed(name)) {
        indexed_add(code, file, name);
    } else if (vexes[name] != X86_VEX_V0) {
        vector_add(code, file, name);
    }
}

static void add_vector_vex(x86_code *code, FILE *file, uint32_t round)
{
    const uint32_t name = round % X86_VECTOR_COUNT;
    code->vex = true;
    if (is_indexed(name) && vexes[name] != X86_VEX_NO) {
        indexed_add(code, file, name);
    } else if (vexes[name] != X86_VEX_NO) {
        vector_add(code, file, name);
    }
}

static void add_mask(x86_code *code, FILE *file, uint32_t round)
{
    mask_add(code, file);
}

/* A store whose opcode is changed afterwards is a whole other instruction. */
static void add_stream(x86_code *code, FILE *file, uint32_t round)
{
    char memory[64], vector[64];
    code->vex = round % 2;
    const x86_form form = {.length = (uint8_t)any_length('v', code->vex)};
    const uint32_t start = code->count, reg = any(code->vex ? 16 : 32);
    const x86_operand to = any_memory();
    x86_vector(code, X86_MOVUPS_STORE, form, reg, 0, to);
    assert_int_equal(code->bytes[x86_opcode_at(code, start)], X86_STORE_OPCODE);
    code->bytes[x86_opcode_at(code, start)] = X86_STREAM_OPCODE;
    write_memory(memory, sizeof(memory), &to);
    write_register(vector, sizeof(vector), 'v', reg, form.length);
    fprintf(file, "%s vmovntps %s, %s\n", code->vex ? "{vex3}" : "{evex}", vector, memory);
}

static void add_general(x86_code *code, FILE *file, uint32_t round)
{
    general_add(code, file);
}

TEST(vector_instructions)
{
    check_against_assembler(add_vector, X86_VECTOR_COUNT * ROUNDS);
}

TEST(vector_instructions_of_avx2)
{
    check_against_assembler(add_vector_vex, X86_VECTOR_COUNT * ROUNDS);
}

/* What AVX2 has not got is a failure. */
TEST(instructions_that_avx2_lacks)
{
    const x86_form ymm = {.length = X86_YMM}, zmm = {.length = X86_ZMM};
    const x86_form masked = {.length = X86_YMM, .mask = 1};
    const struct {
        uint32_t name, reg;
        x86_form form;
    } wrong[] = {
        {X86_PMULLQ, 1, ymm}, {X86_ADDPS, 16, ymm}, {X86_ADDPS, 1, zmm}, {X86_ADDPS, 1, masked}};
    for (size_t i = 0; i < sizeof(wrong) / sizeof(wrong[0]); i++) {
        x86_code code = {.vex = true};
        x86_vector(&code, X86_ADDPS, ymm, 1, 2, x86_register(3));
        assert_false(code.failed);
        x86_vector(&code, wrong[i].name, wrong[i].form, wrong[i].reg, 2, x86_register(3));
        assert_true(code.failed);
        x86_code_release(&code);
    }
    x86_code code = {0};
    x86_vector(&code, X86_PTEST, ymm, 1, 0, x86_register(3));
    assert_true(code.failed);
    x86_code_release(&code);
}

TEST(streaming_stores)
{
    check_against_assembler(add_stream, ROUNDS);
}

TEST(mask_instructions)
{
    check_against_assembler(add_mask, ROUNDS);
}

TEST(general_instructions)
{
    check_against_assembler(add_general, ROUNDS);
}

/* Jumps and constants are relative to the end of their instructions. */
TEST(jumps_and_constants)
{
    x86_code code = {0};
    const uint32_t back = x86_label(&code), ahead = x86_label(&code);
    x86_bind(&code, back);
    x86_jump(&code, ahead);              /* 0: 5 bytes */
    x86_jump_if(&code, X86_BELOW, back); /* 5: 6 bytes */
    x86_bind(&code, ahead);
    x86_vector(&code, X86_CMPPS, (x86_form){.length = X86_ZMM, .immediate = 3}, 1, 2,
               x86_constant(&code, 0x3f800000, 4)); /* 11: 11 bytes */
    x86_vector(&code, X86_ADDPD, (x86_form){.length = X86_ZMM}, 1, 2,
               x86_constant(&code, UINT64_C(0x4000000000000000), 8)); /* 22: 10 bytes */
    x86_constant(&code, 0x3f800000, 4);
    assert_true(x86_finish(&code));
    int32_t distances[4];
    memcpy(&distances[0], code.bytes + 1, 4);
    memcpy(&distances[1], code.bytes + 7, 4);
    memcpy(&distances[2], code.bytes + 17, 4);
    memcpy(&distances[3], code.bytes + 28, 4);
    assert_int_equal(distances[0], 6);
    assert_int_equal(distances[1], -11);
    assert_int_equal(distances[2], 32 - 22);
    assert_int_equal(distances[3], 36 - 32);
    uint32_t words[3];
    assert_int_equal(code.count, 44);
    memcpy(words, code.bytes + 32, sizeof(words));
    assert_int_equal(words[0], 0x3f800000);
    assert_int_equal(words[1], 0);
    assert_int_equal(words[2], 0x40000000);
    x86_code_release(&code);
}

/* Constants of AVX2 are whole vectors, in one line of the cache. */
TEST(constants_of_avx2)
{
    x86_code code = {.vex = true};
    const x86_form form = {.length = X86_YMM};
    x86_vector(&code, X86_ADDPS, form, 1, 2, x86_constant(&code, 7, 4));
    x86_vector(&code, X86_ADDPD, form, 1, 2, x86_constant(&code, UINT64_C(0x500000004), 8));
    x86_vector(&code, X86_ADDPS, form, 1, 2, x86_constant(&code, 7, 4));
    assert_true(x86_finish(&code));
    assert_int_equal(code.count, 96);
    for (uint32_t k = 0; k < 16; k++) {
        uint32_t word;
        memcpy(&word, code.bytes + 32 + 4 * k, 4);
        assert_int_equal(word, k < 8 ? 7 : 4 + k % 2);
    }
    x86_code_release(&code);
}

/* Places of constants of 4 and of 8 bytes; the values differ in the high bits only. */
static void constants_put(x86_code *code, uint32_t count)
{
    for (uint32_t k = 0; k < count; k++) {
        const uint64_t wide = UINT64_C(0x3ff) << 52 | (uint64_t)k << 32;
        const uint32_t narrow = k << 18;
        const int32_t places[2] = {x86_constant(code, narrow, 4).disp,
                                   x86_constant(code, wide, 8).disp};
        assert_memory_equal(&code->pool[places[0] / 4], &narrow, 4);
        assert_memory_equal(&code->pool[places[1] / 4], &wide, 8);
    }
}

static void constants_share(bool vex)
{
    enum { COUNT = 5000 };
    x86_code code = {.vex = vex};
    constants_put(&code, COUNT);
    const uint32_t count = code.pool_count;
    assert_in_range(count, COUNT * (vex ? 16 : 3) - 1, COUNT * (vex ? 16 : 3));
    constants_put(&code, COUNT);
    assert_int_equal(code.pool_count, count);
    /* No hash has many of them, or the pool of a large kernel would be searched from end to end. */
    for (uint32_t h = 0; h < X86_POOL_HEADS; h++) {
        uint32_t length = 0;
        for (uint32_t i = code.pool_heads[h]; i != 0; i = code.pool_next[i - 1]) {
            length++;
        }
        assert_true(length < 100);
    }
    x86_code_release(&code);
}

TEST(thousands_of_constants_share_places)
{
    constants_share(false);
    constants_share(true);
}

UNIT_MAIN(NULL, NULL)
