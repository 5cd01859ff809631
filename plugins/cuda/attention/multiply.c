/* PTX of the products of a tile: scores, q k^T from shared memory, and the result, weights from
 * registers times v. */
#include "attention/parts.h"

enum { STEP = 16, STEP_UNITS = 2, LINE_STEPS = CUDA_ATTENTION_LINE_LENGTH / STEP };

/* Matrix descriptors: bits 16 to 29 the distance of boxes, 32 to 45 that of groups of eight rows,
 * both in units of 16 bytes; bit 62: the 128-byte swizzle. (PTX ISA, matrix descriptor format.) */
static uint64_t descriptor(uint32_t boxes_apart)
{
    return (uint64_t)boxes_apart << 16 | UINT64_C(64) << 32 | UINT64_C(1) << 62;
}

/* Bytes in the units of descriptors. */
static uint32_t units(uint32_t bytes)
{
    return bytes / 16;
}

/* Of what begins at %x0. In a cluster the address has the group's rank in high bits. */
static void write_descriptor(kit_text *t, const char *name, uint32_t boxes_apart)
{
    kit_text_add(t,
                 "and.b32 %%x0, %%x0, 0x3ffff;\nshr.u32 %%x0, %%x0, 4;\n"
                 "cvt.u64.u32 %s, %%x0;\nor.b64 %s, %s, %llu;\n",
                 name, name, name, (unsigned long long)descriptor(boxes_apart));
}

static void write_registers(kit_text *t, const char *name, uint32_t first, uint32_t count)
{
    for (uint32_t i = 0; i < count; i++) {
        kit_text_add(t, "%s%%%s%u", i == 0 ? "{" : ",", name, first + i);
    }
    kit_text_add(t, "}");
}

static const char *type_name(const cuda_attention_key *key)
{
    return key->type == HAL_TYPE_F16 ? "f16" : "bf16";
}

void cuda_attention_multiply_begin(kit_text *t, const cuda_attention_key *key)
{
    kit_text_add(t,
                 ".reg .b64 %%rows_q, %%e1, %%e2, %%e3;\n.reg .f32 %%s<%u>, %%o<%u>;\n"
                 ".reg .b32 %%p<%u>;\n"
                 "mad.lo.u32 %%x0, %%multiplier, %u, %%base;\n",
                 key->keys / 2u, key->e / 2u, key->keys / 4u,
                 CUDA_ATTENTION_BAND * CUDA_ATTENTION_LINE);
    write_descriptor(t, "%rows_q", 1);
}

/* Of the keys of stage %slot. */
void cuda_attention_write_scores(kit_text *t, const cuda_attention_key *key)
{
    const uint32_t box_q = units(cuda_attention_rows(key) * CUDA_ATTENTION_LINE);
    const uint32_t box_k = units(key->keys * (uint32_t)CUDA_ATTENTION_LINE);
    kit_text_add(t, "mad.lo.u32 %%x0, %%slot, %u, %%base;\nadd.u32 %%x0, %%x0, %u;\n",
                 cuda_attention_tile_bytes(key->keys, key->d), cuda_attention_k(key));
    write_descriptor(t, "%e1", 1);
    kit_text_add(t, "wgmma.fence.sync.aligned;\n");
    for (uint32_t i = 0; i < key->d / STEP; i++) {
        const uint32_t box = i / LINE_STEPS, within = i % LINE_STEPS * STEP_UNITS;
        kit_text_add(t, "add.u64 %%e2, %%rows_q, %u;\nadd.u64 %%e3, %%e1, %u;\n",
                     box * box_q + within, box * box_k + within);
        kit_text_add(t, "wgmma.mma_async.sync.aligned.m64n%uk16.f32.%s.%s ", key->keys,
                     type_name(key), type_name(key));
        write_registers(t, "s", 0, key->keys / 2);
        kit_text_add(t, ", %%e2, %%e3, %s, 1, 1, 0, 0;\n", i == 0 ? "%false" : "%true");
    }
    kit_text_add(t, "wgmma.commit_group.sync.aligned;\n");
}

/* Of the values of stage %v_slot; `adds`: a predicate, to the sums of the tiles before. */
void cuda_attention_write_result(kit_text *t, const cuda_attention_key *key, const char *adds)
{
    const uint32_t box_v = units(key->keys * (uint32_t)CUDA_ATTENTION_LINE);
    kit_text_add(t, "mad.lo.u32 %%x0, %%v_slot, %u, %%base;\nadd.u32 %%x0, %%x0, %u;\n",
                 cuda_attention_tile_bytes(key->keys, key->e), cuda_attention_v(key));
    write_descriptor(t, "%e1", box_v);
    kit_text_add(t, "wgmma.fence.sync.aligned;\n");
    for (uint32_t i = 0; i < key->keys / STEP; i++) {
        kit_text_add(t, "add.u64 %%e2, %%e1, %u;\n", i * units(STEP * CUDA_ATTENTION_LINE));
        kit_text_add(t, "wgmma.mma_async.sync.aligned.m64n%uk16.f32.%s.%s ", key->e, type_name(key),
                     type_name(key));
        write_registers(t, "o", 0, key->e / 2);
        kit_text_add(t, ", ");
        write_registers(t, "p", 4 * i, 4);
        kit_text_add(t, ", %%e2, %s, 1, 1, 1;\n", i == 0 ? adds : "%true");
    }
    kit_text_add(t, "wgmma.commit_group.sync.aligned;\n");
}
