/* Shuffles and reductions of a subgroup, which is a warp. */
#include "lower/subgroup.h"

#include "lower/arithmetic.h"

enum { LANES = 32 };

static const char *const reduce_names[HAL_IR_REDUCE_COUNT] = {
    [HAL_IR_REDUCE_ADD] = "add", [HAL_IR_REDUCE_MIN] = "min", [HAL_IR_REDUCE_MAX] = "max"};

/* The value of another lane, word by word. */
static void emit_shuffle(cuda_lowering *l, hal_type type, cuda_operand result, cuda_operand value,
                         const char *mode, cuda_operand from)
{
    const cuda_operand mask = {CUDA_WORD, l->lane_mask}, how = cuda_text(mode);
    if (hal_type_size(type) == 8) {
        const cuda_operand low = cuda_fresh(l, CUDA_WORD), high = cuda_fresh(l, CUDA_WORD);
        cuda_emit(l, "mov.b64 {$, $}, $;", low, high, value);
        cuda_emit(l, "shfl.sync$.b32 $, $, $, 31, $;", how, low, low, from, mask);
        cuda_emit(l, "shfl.sync$.b32 $, $, $, 31, $;", how, high, high, from, mask);
        cuda_emit(l, "mov.b64 $, {$, $};", result, low, high);
    } else {
        cuda_emit(l, "shfl.sync$.b32 $, $, $, 31, $;", how, result, value, from, mask);
    }
}

static void lower_shuffle(cuda_lowering *l, uint32_t index)
{
    const hal_ir_record *r = &l->kernel->records[index];
    const bool by_index = r->opcode == HAL_IR_SHUFFLE;
    const cuda_operand value = cuda_in_register(l, r->a, 0),
                       from =
                           by_index ? cuda_value(l, r->b) : cuda_unsigned((uint32_t)r->imm % LANES);
    emit_shuffle(l, r->type, cuda_define(l, index), value, by_index ? ".idx" : ".bfly", from);
}

static void emit_combine(cuda_lowering *l, const hal_ir_record *r, cuda_operand result,
                         cuda_operand a, cuda_operand b)
{
    const bool is_float = hal_type_is_float(r->type);
    const cuda_operand name = cuda_text(reduce_names[r->aux]), type = cuda_type(r->type);
    if (r->aux == HAL_IR_REDUCE_ADD) {
        cuda_emit(l, is_float ? "add.rn$ $, $, $;" : "add$ $, $, $;", type, result, a, b);
    } else if (is_float) {
        cuda_lower_extreme(l, r->type, r->aux == HAL_IR_REDUCE_MIN, result, a, b);
    } else {
        cuda_emit(l, "$$ $, $, $;", name, type, result, a, b);
    }
}

/* A butterfly over distances 1, 2, 4, ... In a short warp a lane without a partner keeps its value;
 * lane 0 alone has the whole result then, and broadcasts it. */
static void lower_reduce(cuda_lowering *l, uint32_t index)
{
    const hal_ir_record *r = &l->kernel->records[index];
    const cuda_operand mask = {CUDA_WORD, l->lane_mask};
    const cuda_operand value = cuda_in_register(l, r->a, 0), result = cuda_define(l, index);
    if ((l->features & CUDA_FEATURE_WARP_REDUCE) && hal_type_is_integer(r->type) &&
        hal_type_size(r->type) == 4) {
        cuda_emit(l, "redux.sync.$$ $, $, $;", cuda_text(reduce_names[r->aux]), cuda_type(r->type),
                  result, value, mask);
        return;
    }
    const uint32_t items = hal_ir_group_items(l->kernel);
    const uint32_t lanes = items < LANES ? items : LANES;
    cuda_emit(l, "mov$ $, $;", cuda_bits(r->type), result, value);
    for (uint32_t distance = 1; distance < lanes; distance *= 2) {
        const cuda_operand other = cuda_fresh(l, cuda_class(r->type));
        emit_shuffle(l, r->type, other, result, ".bfly", cuda_unsigned(distance));
        if (!l->short_warp) {
            emit_combine(l, r, result, result, other);
            continue;
        }
        const cuda_operand both = cuda_fresh(l, cuda_class(r->type)),
                           lane = cuda_fresh(l, CUDA_WORD), there = cuda_fresh(l, CUDA_PREDICATE);
        emit_combine(l, r, both, result, other);
        cuda_emit(l, "mov.u32 $, %laneid;", lane);
        cuda_emit(l, "xor.b32 $, $, $;", lane, lane, cuda_unsigned(distance));
        cuda_emit(l, "shr.u32 $, $, $;", lane, mask, lane);
        cuda_emit(l, "and.b32 $, $, 1;", lane, lane);
        cuda_emit(l, "setp.ne.u32 $, $, 0;", there, lane);
        cuda_emit(l, "selp$ $, $, $, $;", cuda_bits(r->type), result, both, result, there);
    }
    if (l->short_warp) {
        emit_shuffle(l, r->type, result, result, ".idx", cuda_unsigned(0));
    }
}

/* F64 without the deep instruction: 4 steps of k of rows 0 to 7, of rows 8 to 15, and the same of
 * the other 4 steps. The lane's elements are those of the deep one. */
static void emit_shallow_matrices(cuda_lowering *l, cuda_operand first, const cuda_operand a[4],
                                  const cuda_operand b[2], const cuda_operand c[4])
{
    for (uint32_t i = 0; i < 4; i++) {
        const uint32_t at = i % 2 * 2;
        const cuda_operand low = {first.kind, first.bits + at},
                           high = {first.kind, first.bits + at + 1};
        cuda_emit(l, "mma.sync.aligned.m8n8k4.row.col.f64.f64.f64.f64 {$, $}, {$}, {$}, {$, $};",
                  low, high, a[i], b[i / 2], i < 2 ? c[at] : low, i < 2 ? c[at + 1] : high);
    }
}

/* The IR distributes tiles over lanes as the instruction does. */
static void lower_matrix_multiply(cuda_lowering *l, uint32_t index)
{
    const hal_ir_record *r = &l->kernel->records[index];
    static const char *const shapes[HAL_TYPE_COUNT] = {
        [HAL_TYPE_F16] = "m16n8k16.row.col.f32.f16.f16.f32",
        [HAL_TYPE_BF16] = "m16n8k16.row.col.f32.bf16.bf16.f32",
        [HAL_TYPE_F32] = "m16n8k8.row.col.f32.tf32.tf32.f32",
        [HAL_TYPE_F64] = "m16n8k8.row.col.f64.f64.f64.f64",
    };
    cuda_operand a[4], b[2], c[4];
    for (uint32_t i = 0; i < 4; i++) {
        a[i] = cuda_in_register(l, r->a, i);
        b[i % 2] = cuda_in_register(l, r->b, i % 2);
        c[i] = cuda_in_register(l, r->c, i);
    }
    const cuda_operand first = cuda_define(l, index), second = {first.kind, first.bits + 1},
                       third = {first.kind, first.bits + 2}, fourth = {first.kind, first.bits + 3};
    if (r->aux == HAL_TYPE_F64 && !(l->features & CUDA_FEATURE_DEEP_MATRIX_F64)) {
        emit_shallow_matrices(l, first, a, b, c);
        return;
    }
    cuda_emit(l, "mma.sync.aligned.$ {$, $, $, $}, {$, $, $, $}, {$, $}, {$, $, $, $};",
              cuda_text(shapes[r->aux]), first, second, third, fourth, a[0], a[1], a[2], a[3], b[0],
              b[1], c[0], c[1], c[2], c[3]);
}

void cuda_lower_lane_mask(cuda_lowering *l)
{
    const uint32_t *size = l->kernel->group_size;
    const uint32_t items = hal_ir_group_items(l->kernel), rest = items % LANES;
    const cuda_operand mask = cuda_fresh(l, CUDA_WORD);
    l->lane_mask = (uint32_t)mask.bits;
    l->short_warp = rest != 0;
    if (rest == 0 || items < LANES) {
        cuda_emit(l, "mov.b32 $, $;", mask,
                  cuda_unsigned(rest == 0 ? UINT32_MAX : (UINT32_C(1) << rest) - 1));
        return;
    }
    const cuda_operand x = cuda_fresh(l, CUDA_WORD), y = cuda_fresh(l, CUDA_WORD),
                       z = cuda_fresh(l, CUDA_WORD), last = cuda_fresh(l, CUDA_PREDICATE);
    cuda_emit(l, "mov.u32 $, %tid.x;", x);
    cuda_emit(l, "mov.u32 $, %tid.y;", y);
    cuda_emit(l, "mov.u32 $, %tid.z;", z);
    cuda_emit(l, "mad.lo.u32 $, $, $, $;", y, z, cuda_unsigned(size[1]), y);
    cuda_emit(l, "mad.lo.u32 $, $, $, $;", x, y, cuda_unsigned(size[0]), x);
    cuda_emit(l, "setp.ge.u32 $, $, $;", last, x, cuda_unsigned(items - rest));
    cuda_emit(l, "selp.b32 $, $, $, $;", mask, cuda_unsigned((UINT32_C(1) << rest) - 1),
              cuda_unsigned(UINT32_MAX), last);
}

bool cuda_lower_subgroup(cuda_lowering *l, uint32_t index)
{
    const hal_ir_record *r = &l->kernel->records[index];
    switch (r->opcode) {
    case HAL_IR_LANE_ID:
        cuda_emit(l, "mov.u32 $, %laneid;", cuda_define(l, index));
        return true;
    case HAL_IR_SHUFFLE:
    case HAL_IR_SHUFFLE_XOR:
        lower_shuffle(l, index);
        return true;
    case HAL_IR_SUBGROUP_REDUCE:
        lower_reduce(l, index);
        return true;
    case HAL_IR_MATRIX_MULTIPLY:
        lower_matrix_multiply(l, index);
        return true;
    default:
        return false;
    }
}
