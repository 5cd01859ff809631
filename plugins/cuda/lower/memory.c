/* Memory: addresses, loads, stores, atomics and asynchronous copies.
 *
 * The address of an element is a register and a constant offset. Elements of one or two bytes are
 * loaded and stored as words of 32 bits, which are unpacked and packed in registers. */
#include "lower/memory.h"

#include "lower/convert.h"

/* The address of the first element of an access. */
typedef struct ptx_place {
    cuda_operand base;
    cuda_operand offset; /* bytes */
    const char *space;   /* .shared, .global */
} ptx_place;

/* The constant that is the second operand of an operation on words; false: it is another one. */
static bool second_constant(const cuda_lowering *l, hal_ir_value value, uint32_t opcode,
                            uint32_t *constant)
{
    const hal_ir_record *r = &l->kernel->records[value];
    if (r->opcode != opcode || r->type != HAL_TYPE_U32 ||
        l->kernel->records[r->b].opcode != HAL_IR_CONSTANT) {
        return false;
    }
    *constant = (uint32_t)l->kernel->constants[l->kernel->records[r->b].aux];
    return true;
}

/* The address of the entry of a table in shared memory that a byte of a word x chooses, with index
 * (x >> c & 255 << k) + y or a shift to the left: one operation takes the byte and one multiplies
 * and adds, where y times 4 may be computed once for many. False: the index is another. */
static bool emit_table_address(cuda_lowering *l, hal_ir_value index, uint32_t size,
                               cuda_operand address)
{
    const hal_ir_record *r = &l->kernel->records[index];
    uint32_t mask, shift;
    if (size != 4 || r->opcode != HAL_IR_ADD || r->type != HAL_TYPE_U32 ||
        !second_constant(l, r->a, HAL_IR_AND, &mask) || mask == 0) {
        return false;
    }
    const hal_ir_value shifted = l->kernel->records[r->a].a;
    const uint32_t up = (uint32_t)__builtin_ctz(mask);
    uint32_t bit = up;
    if (second_constant(l, shifted, HAL_IR_SHR, &shift)) {
        bit += shift % 32;
    } else if (second_constant(l, shifted, HAL_IR_SHL, &shift) && shift % 32 <= up) {
        bit -= shift % 32;
    } else {
        return false;
    }
    if (mask >> up != 255 || up > 22 || bit % 8 != 0 || bit > 24) {
        return false;
    }
    const cuda_operand word = cuda_in_register(l, l->kernel->records[shifted].a, 0);
    const cuda_operand rest = cuda_fresh(l, CUDA_WORD), byte = cuda_fresh(l, CUDA_WORD);
    cuda_emit(l, "prmt.b32 $, $, 0, $;", byte, word, cuda_unsigned(0x4440 + bit / 8));
    cuda_emit(l, "mad.lo.u32 $, $, 4, $;", rest, cuda_in_register(l, r->b, 0),
              (cuda_operand){CUDA_WORD, l->shared_base});
    cuda_emit(l, "mad.lo.u32 $, $, $, $;", address, byte, cuda_unsigned(4u << up), rest);
    return true;
}

static cuda_operand emit_address(cuda_lowering *l, uint32_t memory, hal_ir_value index)
{
    const hal_type type = l->kernel->records[index].type;
    const uint32_t size = hal_type_size(l->kernel->memories[memory].type);
    const cuda_operand number = cuda_in_register(l, index, 0);
    if (hal_ir_is_shared(l->kernel, memory)) {
        const cuda_operand made = cuda_fresh(l, CUDA_WORD);
        if (emit_table_address(l, index, size, made)) {
            return made;
        }
        cuda_operand low = number;
        if (number.kind == CUDA_LONG) {
            low = cuda_fresh(l, CUDA_WORD);
            cuda_emit(l, "cvt.u32.u64 $, $;", low, number);
        }
        cuda_emit(l, "mad.lo.u32 $, $, $, $;", made, low, cuda_unsigned(size),
                  (cuda_operand){CUDA_WORD, l->shared_base});
        return made;
    }
    const cuda_operand made = cuda_fresh(l, CUDA_LONG), base = {CUDA_LONG, l->base[memory]};
    if (number.kind == CUDA_LONG) {
        cuda_emit(l, "mad.lo.s64 $, $, $, $;", made, number, cuda_unsigned(size), base);
    } else {
        cuda_emit(l, type == HAL_TYPE_I32 ? "mad.wide.s32 $, $, $, $;" : "mad.wide.u32 $, $, $, $;",
                  made, number, cuda_unsigned(size), base);
    }
    return made;
}

/* The register with the address of element `index`. It is computed once in a block of the control
 * flow and those inside. */
static cuda_operand address_of(cuda_lowering *l, uint32_t memory, hal_ir_value index)
{
    const bool shared = hal_ir_is_shared(l->kernel, memory);
    cuda_known_address *known = &l->addresses[index];
    /* Shared arrays of one element size have the same base, and so the same addresses. */
    const uint32_t key =
        shared ? l->kernel->binding_count + hal_type_size(l->kernel->memories[memory].type)
               : memory;
    if (known->block != 0 && known->memory == key && known->depth <= l->depth &&
        l->blocks[known->depth].serial == known->block) {
        return (cuda_operand){shared ? CUDA_WORD : CUDA_LONG, known->number};
    }
    const cuda_operand made = emit_address(l, memory, index);
    *known = (cuda_known_address){key, l->blocks[l->depth].serial, l->depth, (uint32_t)made.bits};
    return made;
}

static ptx_place place_of(cuda_lowering *l, uint32_t memory, hal_ir_value index, int32_t elements)
{
    const bool shared = hal_ir_is_shared(l->kernel, memory);
    const int64_t size = hal_type_size(l->kernel->memories[memory].type);
    const hal_ir_record *r = &l->kernel->records[index];
    ptx_place p = {.space = shared ? ".shared" : ".global"};
    int64_t offset = elements * size;
    if (shared) {
        offset += l->shared_offsets[memory - l->kernel->binding_count];
    }
    if (r->opcode == HAL_IR_CONSTANT) {
        const uint64_t bits = l->kernel->constants[r->aux];
        const int64_t number = r->type == HAL_TYPE_I32 ? (int32_t)(uint32_t)bits : (int64_t)bits;
        if (number > -(INT64_C(1) << 40) && number < INT64_C(1) << 40) {
            offset += number * size;
            p.base = shared ? (cuda_operand){CUDA_WORD, l->shared_base}
                            : (cuda_operand){CUDA_LONG, l->base[memory]};
        }
    }
    if (p.base.kind == CUDA_PREDICATE) {
        p.base = address_of(l, memory, index);
    }
    if (offset != (int32_t)offset) { /* an offset has 32 bits */
        const cuda_operand far = cuda_fresh(l, CUDA_LONG);
        cuda_emit(l, "add.s64 $, $, $;", far, p.base, cuda_integer(offset));
        p.base = far;
        offset = 0;
    }
    p.offset = cuda_integer(offset);
    return p;
}

static void emit_guard(cuda_lowering *l, hal_ir_value guard)
{
    if (guard != HAL_IR_NONE) {
        cuda_emit_guard(l, cuda_value(l, guard));
    }
}

/* One ld or st of one, two or four registers, under its guard. What is not loaded is 0. */
static void emit_access(cuda_lowering *l, const char *operation, const char *type,
                        hal_ir_value guard, const ptx_place *p, const cuda_operand *registers,
                        uint32_t count, bool is_load)
{
    static const char *const vectors[5] = {"", "", ".v2", "", ".v4"};
    if (is_load && guard != HAL_IR_NONE) {
        for (uint32_t i = 0; i < count; i++) {
            const uint32_t kind = registers[i].kind;
            cuda_emit(l, "mov$ $, $;",
                      cuda_text(kind == CUDA_LONG || kind == CUDA_DOUBLE ? ".b64" : ".b32"),
                      registers[i],
                      kind == CUDA_FLOAT    ? (cuda_operand){CUDA_FLOAT_BITS, 0}
                      : kind == CUDA_DOUBLE ? (cuda_operand){CUDA_DOUBLE_BITS, 0}
                                            : cuda_integer(0));
        }
    }
    emit_guard(l, guard);
    const cuda_operand name = cuda_text(operation), vector = cuda_text(vectors[count]),
                       kind = cuda_text(type);
    if (is_load && count == 1) {
        cuda_emit(l, "$$ $, [$+$];", name, kind, registers[0], p->base, p->offset);
    } else if (count == 1) {
        cuda_emit(l, "$$ [$+$], $;", name, kind, p->base, p->offset, registers[0]);
    } else if (is_load && count == 2) {
        cuda_emit(l, "$$$ {$, $}, [$+$];", name, vector, kind, registers[0], registers[1], p->base,
                  p->offset);
    } else if (count == 2) {
        cuda_emit(l, "$$$ [$+$], {$, $};", name, vector, kind, p->base, p->offset, registers[0],
                  registers[1]);
    } else if (is_load) {
        cuda_emit(l, "$$$ {$, $, $, $}, [$+$];", name, vector, kind, registers[0], registers[1],
                  registers[2], registers[3], p->base, p->offset);
    } else {
        cuda_emit(l, "$$$ [$+$], {$, $, $, $};", name, vector, kind, p->base, p->offset,
                  registers[0], registers[1], registers[2], registers[3]);
    }
}

/* ld.global.nc requires memory that stays constant while the kernel is there. A kernel that starts
 * early is there before its inputs are written. */
static const char *load_name(const cuda_lowering *l, uint32_t memory)
{
    if (hal_ir_is_shared(l->kernel, memory)) {
        return "ld.shared";
    }
    return l->kernel->memories[memory].access == HAL_ACCESS_READ &&
                   !(l->features & CUDA_FEATURE_EARLY_START)
               ? "ld.global.nc"
               : "ld.global";
}

static void emit_unpack(cuda_lowering *l, hal_type type, cuda_operand result, cuda_operand word,
                        uint32_t element)
{
    const uint32_t bits = 8 * hal_type_size(type);
    const cuda_operand at = cuda_unsigned(element * bits);
    switch (type) {
    case HAL_TYPE_F16:
    case HAL_TYPE_BF16:
        cuda_unpack_half(l, type, result, word, element);
        break;
    case HAL_TYPE_BOOL: {
        const cuda_operand byte = cuda_fresh(l, CUDA_WORD);
        cuda_emit(l, "bfe.u32 $, $, $, 8;", byte, word, at);
        cuda_emit(l, "setp.ne.u32 $, $, 0;", result, byte);
        break;
    }
    default:
        cuda_emit(l, hal_type_is_signed(type) ? "bfe.s32 $, $, $, $;" : "bfe.u32 $, $, $, $;",
                  result, word, at, cuda_unsigned(bits));
        break;
    }
}

/* Elements of one or two bytes, in whole words where there are four bytes or more. */
static void lower_load_words(cuda_lowering *l, uint32_t index, const ptx_place *p)
{
    const hal_ir_record *r = &l->kernel->records[index];
    const hal_ir_memory *memory = &l->kernel->memories[r->aux];
    const uint32_t size = hal_type_size(memory->type), bytes = size * r->width;
    const uint32_t words = bytes <= 4 ? 1 : bytes / 4;
    const cuda_operand first = cuda_define(l, index);
    const bool is_raw = r->width == 1 && hal_type_is_integer(memory->type);
    cuda_operand registers[4];
    for (uint32_t i = 0; i < words; i++) {
        registers[i] = is_raw ? first : cuda_fresh(l, CUDA_WORD);
    }
    const char *type = bytes == 1   ? memory->type == HAL_TYPE_I8 ? ".s8" : ".u8"
                       : bytes == 2 ? is_raw && memory->type == HAL_TYPE_I16 ? ".s16" : ".u16"
                                    : ".b32";
    emit_access(l, load_name(l, r->aux), type, r->b, p, registers, words, true);
    for (uint32_t i = 0; i < r->width && !is_raw; i++) {
        emit_unpack(l, memory->type, (cuda_operand){first.kind, first.bits + i},
                    registers[i * size / 4], i * size % 4 / size);
    }
}

static const char *access_type(hal_type type)
{
    return type == HAL_TYPE_F32       ? ".f32"
           : type == HAL_TYPE_F64     ? ".f64"
           : hal_type_size(type) == 8 ? ".b64"
                                      : ".b32";
}

static void lower_load(cuda_lowering *l, uint32_t index)
{
    const hal_ir_record *r = &l->kernel->records[index];
    const hal_ir_memory *memory = &l->kernel->memories[r->aux];
    const ptx_place p = place_of(l, r->aux, r->a, r->imm);
    if (hal_type_size(memory->type) < 4) {
        lower_load_words(l, index, &p);
        return;
    }
    cuda_operand registers[4];
    registers[0] = cuda_define(l, index);
    for (uint32_t i = 1; i < r->width; i++) {
        registers[i] = (cuda_operand){registers[0].kind, registers[0].bits + i};
    }
    emit_access(l, load_name(l, r->aux), access_type(memory->type), r->b, &p, registers, r->width,
                true);
}

static cuda_operand emit_pack_bytes(cuda_lowering *l, hal_type type, hal_ir_value value,
                                    uint32_t first, uint32_t count)
{
    const uint32_t bits = 8 * hal_type_size(type);
    cuda_operand word = {CUDA_TEXT, 0};
    for (uint32_t i = 0; i < count; i++) {
        cuda_operand part = cuda_in_register(l, value, first + i);
        if (type == HAL_TYPE_BOOL) {
            const cuda_operand number = cuda_fresh(l, CUDA_WORD);
            cuda_emit(l, "selp.b32 $, 1, 0, $;", number, part);
            part = number;
        }
        if (i == 0) {
            word = part; /* its upper bits are replaced below, or not stored */
            continue;
        }
        const cuda_operand more = cuda_fresh(l, CUDA_WORD);
        cuda_emit(l, "bfi.b32 $, $, $, $, $;", more, part, word, cuda_unsigned(i * bits),
                  cuda_unsigned(bits));
        word = more;
    }
    return word;
}

/* The register of an element before NARROW rounded it to `type`, if that was its last operation:
 * packing rounds in the same way. */
static cuda_operand emit_unrounded(cuda_lowering *l, hal_type type, hal_ir_value value,
                                   uint32_t element)
{
    const hal_ir_record *r = &l->kernel->records[value];
    while (r->opcode == HAL_IR_PACK) {
        const hal_ir_value parts[4] = {r->a, r->b, r->c, r->d};
        const uint32_t each = l->kernel->records[r->a].width;
        value = parts[element / each];
        element %= each;
        r = &l->kernel->records[value];
    }
    const bool is_rounded = r->opcode == HAL_IR_NARROW && r->aux == (uint32_t)type;
    return cuda_in_register(l, is_rounded ? r->a : value, element);
}

/* Packs up to four bytes of elements into a word. */
static cuda_operand emit_pack(cuda_lowering *l, hal_type type, hal_ir_value value, uint32_t first,
                              uint32_t count)
{
    if (type != HAL_TYPE_F16 && type != HAL_TYPE_BF16) {
        return emit_pack_bytes(l, type, value, first, count);
    }
    const cuda_operand low = emit_unrounded(l, type, value, first),
                       high =
                           count == 2 ? emit_unrounded(l, type, value, first + 1) : cuda_text("");
    const cuda_operand word = cuda_fresh(l, CUDA_WORD);
    cuda_pack_halves(l, type, word, low, high);
    return word;
}

static void lower_store_words(cuda_lowering *l, uint32_t index, const ptx_place *p)
{
    const hal_ir_record *r = &l->kernel->records[index];
    const hal_type type = l->kernel->memories[r->aux].type;
    const uint32_t size = hal_type_size(type), bytes = size * r->width;
    const uint32_t words = bytes <= 4 ? 1 : bytes / 4, each = r->width / words;
    cuda_operand registers[4];
    for (uint32_t i = 0; i < words; i++) {
        registers[i] = emit_pack(l, type, r->c, i * each, each);
    }
    emit_access(l, p->space[1] == 's' ? "st.shared" : "st.global",
                bytes == 1   ? ".u8"
                : bytes == 2 ? ".u16"
                             : ".b32",
                r->b, p, registers, words, false);
}

static void lower_store(cuda_lowering *l, uint32_t index)
{
    const hal_ir_record *r = &l->kernel->records[index];
    const hal_ir_memory *memory = &l->kernel->memories[r->aux];
    const ptx_place p = place_of(l, r->aux, r->a, r->imm);
    if (hal_type_size(memory->type) < 4) {
        lower_store_words(l, index, &p);
        return;
    }
    cuda_operand registers[4];
    for (uint32_t i = 0; i < r->width; i++) {
        registers[i] = cuda_in_register(l, r->c, i);
    }
    emit_access(l, p.space[1] == 's' ? "st.shared" : "st.global", access_type(memory->type), r->b,
                &p, registers, r->width, false);
}

static void lower_atomic(cuda_lowering *l, uint32_t index)
{
    static const char *const names[HAL_IR_ATOMIC_COUNT] = {
        [HAL_IR_ATOMIC_ADD] = ".add",       [HAL_IR_ATOMIC_MIN] = ".min",
        [HAL_IR_ATOMIC_MAX] = ".max",       [HAL_IR_ATOMIC_AND] = ".and",
        [HAL_IR_ATOMIC_OR] = ".or",         [HAL_IR_ATOMIC_XOR] = ".xor",
        [HAL_IR_ATOMIC_EXCHANGE] = ".exch", [HAL_IR_ATOMIC_COMPARE_EXCHANGE] = ".cas",
    };
    const hal_ir_record *r = &l->kernel->records[index];
    const ptx_place p = place_of(l, r->aux, r->a, r->imm);
    const cuda_operand operand = cuda_in_register(l, r->c, 0),
                       comparand = r->d == HAL_IR_NONE ? operand : cuda_in_register(l, r->d, 0);
    const cuda_operand result = cuda_define(l, index);
    const bool is_long = hal_type_size(r->type) == 8;
    const cuda_operand type = r->flags == HAL_IR_ATOMIC_ADD   ? cuda_text(is_long ? ".u64" : ".u32")
                              : r->flags <= HAL_IR_ATOMIC_MAX ? cuda_type(r->type)
                                                              : cuda_bits(r->type);
    if (r->b != HAL_IR_NONE) {
        cuda_emit(l, "mov$ $, 0;", cuda_bits(r->type), result);
    }
    emit_guard(l, r->b);
    if (r->flags == HAL_IR_ATOMIC_COMPARE_EXCHANGE) {
        cuda_emit(l, "atom$$$ $, [$+$], $, $;", cuda_text(p.space), cuda_text(names[r->flags]),
                  type, result, p.base, p.offset, comparand, operand);
    } else {
        cuda_emit(l, "atom$$$ $, [$+$], $;", cuda_text(p.space), cuda_text(names[r->flags]), type,
                  result, p.base, p.offset, operand);
    }
}

/* For devices without asynchronous copies, and for copies of one or two bytes. */
static void lower_copy_at_once(cuda_lowering *l, const hal_ir_record *r, const ptx_place *to,
                               const ptx_place *from, uint32_t bytes)
{
    const uint32_t words = bytes <= 4 ? 1 : bytes / 4;
    const char *type = bytes == 1 ? ".u8" : bytes == 2 ? ".u16" : ".b32";
    cuda_operand registers[4];
    for (uint32_t i = 0; i < words; i++) {
        registers[i] = cuda_fresh(l, CUDA_WORD);
    }
    emit_access(l, "ld.global", type, r->b, from, registers, words, true);
    emit_access(l, "st.shared", type, HAL_IR_NONE, to, registers, words, false);
}

static void lower_copy(cuda_lowering *l, uint32_t index)
{
    const hal_ir_record *r = &l->kernel->records[index];
    const uint32_t bytes = r->width * hal_type_size(l->kernel->memories[r->aux].type);
    const ptx_place to = place_of(l, r->aux, r->a, 0),
                    from = place_of(l, (uint32_t)r->imm, r->d, 0);
    if (!(l->features & CUDA_FEATURE_ASYNC_COPY) || bytes < 4) {
        lower_copy_at_once(l, r, &to, &from, bytes);
        return;
    }
    const cuda_operand size = cuda_unsigned(bytes);
    cuda_operand read = size;
    if (r->b != HAL_IR_NONE) { /* the rest is filled with 0 */
        read = cuda_fresh(l, CUDA_WORD);
        cuda_emit(l, "selp.b32 $, $, 0, $;", read, size, cuda_value(l, r->b));
    }
    const cuda_operand level = cuda_text(bytes == 16 ? ".cg" : ".ca");
    if (r->b != HAL_IR_NONE) {
        cuda_emit(l, "cp.async$.shared.global [$+$], [$+$], $, $;", level, to.base, to.offset,
                  from.base, from.offset, size, read);
    } else {
        cuda_emit(l, "cp.async$.shared.global [$+$], [$+$], $;", level, to.base, to.offset,
                  from.base, from.offset, size);
    }
}

bool cuda_lower_memory(cuda_lowering *l, uint32_t index)
{
    const hal_ir_record *r = &l->kernel->records[index];
    switch (r->opcode) {
    case HAL_IR_LOAD:
        lower_load(l, index);
        return true;
    case HAL_IR_STORE:
        lower_store(l, index);
        return true;
    case HAL_IR_ATOMIC:
        lower_atomic(l, index);
        return true;
    case HAL_IR_ASYNC_COPY:
        lower_copy(l, index);
        return true;
    case HAL_IR_ASYNC_COMMIT:
        if (l->features & CUDA_FEATURE_ASYNC_COPY) {
            cuda_emit(l, "cp.async.commit_group;");
        }
        return true;
    case HAL_IR_ASYNC_WAIT:
        if (l->features & CUDA_FEATURE_ASYNC_COPY) {
            cuda_emit(l, "cp.async.wait_group $;", cuda_integer(r->imm));
        }
        return true;
    default:
        return false;
    }
}
