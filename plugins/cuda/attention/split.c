/* PTX of the end of a tile of few rows whose keys several groups share, a cluster: each has the
 * sums of its keys, writes them to its shared memory, and adds those of all groups for its part of
 * the rows, in the order of the keys. */
#include "attention/parts.h"

#include <stddef.h>

static uint32_t items(const cuda_attention_key *key)
{
    return 128u * key->warpgroups;
}

static uint32_t tops(const cuda_attention_key *key)
{
    return cuda_attention_rows(key) * cuda_attention_sums_pitch(key);
}

static uint32_t totals(const cuda_attention_key *key)
{
    return tops(key) + 4 * cuda_attention_rows(key);
}

/* The work-item's two rows, in the place of the tiles, which were read. */
static void write_part(kit_text *t, const cuda_attention_key *key)
{
    kit_text_add(t,
                 "bar.sync 1, %u;\nsub.u32 %%x0, %%own_row, %%row;\nand.b32 %%x1, %%lane, 3;\n"
                 "setp.eq.u32 %%p, %%x1, 0;\nmad.lo.u32 %%place, %%x0, 4, %%base;\n"
                 "mad.lo.u32 %%x0, %%x0, %u, %%base;\nmad.lo.u32 %%x0, %%x1, 8, %%x0;\n",
                 items(key), cuda_attention_sums_pitch(key));
    for (uint32_t r = 0; r < 2; r++) {
        for (uint32_t i = 0; i < key->e / 8u; i++) {
            kit_text_add(t, "st.shared.v2.f32 [%%x0+%u], {%%o%u, %%o%u};\n",
                         8 * r * cuda_attention_sums_pitch(key) + 32 * i, 4 * i + 2 * r,
                         4 * i + 2 * r + 1);
        }
        kit_text_add(t,
                     "@%%p st.shared.f32 [%%place+%u], %%top%u;\n"
                     "@%%p st.shared.f32 [%%place+%u], %%sum%u;\n",
                     tops(key) + 32 * r, r, totals(key) + 32 * r, r);
    }
}

static void write_cluster_barrier(kit_text *t)
{
    kit_text_add(t, "barrier.cluster.arrive;\nbarrier.cluster.wait;\n");
}

/* %g: the factors of the groups' sums of row %index. */
static void write_factors(kit_text *t, const cuda_attention_key *key)
{
    kit_text_add(t, "mad.lo.u32 %%place, %%index, 4, %%base;\nmov.b32 %%top0, 0xff800000;\n"
                    "mov.b32 %%sum0, 0;\n");
    for (uint32_t part = 0; part < key->split; part++) {
        kit_text_add(t,
                     "mapa.shared::cluster.u32 %%x0, %%place, %u;\n"
                     "ld.shared::cluster.f32 %%g%u, [%%x0+%u];\n"
                     "ld.shared::cluster.f32 %%total%u, [%%x0+%u];\n"
                     "max.f32 %%top0, %%top0, %%g%u;\n",
                     part, part, tops(key), part, totals(key), part);
    }
    for (uint32_t part = 0; part < key->split; part++) {
        kit_text_add(t,
                     "sub.rn.f32 %%g%u, %%g%u, %%top0;\nex2.approx.ftz.f32 %%g%u, %%g%u;\n"
                     "fma.rn.f32 %%sum0, %%total%u, %%g%u, %%sum0;\n",
                     part, part, part, part, part, part);
    }
    kit_text_add(t, "rcp.approx.ftz.f32 %%sum0, %%sum0;\n");
}

/* Columns `first` and on of row %index: one for each work-item. */
static void write_columns(kit_text *t, const cuda_attention_key *key, uint32_t first)
{
    kit_text_add(t, "mov.b32 %%a0, 0;\n");
    for (uint32_t part = 0; part < key->split; part++) {
        kit_text_add(t,
                     "mapa.shared::cluster.u32 %%x0, %%place, %u;\n"
                     "@%%p ld.shared::cluster.f32 %%a1, [%%x0+%u];\n"
                     "fma.rn.f32 %%a0, %%a1, %%g%u, %%a0;\n",
                     part, 4 * first, part);
    }
    kit_text_add(t,
                 "mul.rn.f32 %%a0, %%a0, %%sum0;\ncvt.rn.%s.f32 %%h0, %%a0;\n"
                 "@%%p st.global.b16 [%%at+%u], %%h0;\n",
                 key->type == HAL_TYPE_F16 ? "f16" : "bf16", 2 * first);
}

/* Row %index of the tile. */
static void write_row(kit_text *t, const cuda_attention_key *key)
{
    write_factors(t, key);
    kit_text_add(t,
                 "sub.u32 %%x1, %%thread, %u;\nmad.lo.u32 %%place, %%index, %u, %%base;\n"
                 "mad.lo.u32 %%place, %%x1, 4, %%place;\n"
                 "add.u32 %%own_row, %%row, %%index;\n",
                 128, cuda_attention_sums_pitch(key));
    cuda_attention_write_row_address(t);
    kit_text_add(t,
                 "mul.wide.u32 %%e0, %%x1, 2;\nadd.u64 %%at, %%at, %%e0;\n"
                 "ld.param.u32 %%width, [block+%zu];\n"
                 "sub.u32 %%width, %%width, %%x1;\n",
                 offsetof(cuda_attention_block, e));
    for (uint32_t first = 0; first < key->e; first += items(key)) {
        kit_text_add(t, "setp.gt.s32 %%p, %%width, %u;\nmov.b32 %%a1, 0;\n", first);
        write_columns(t, key, first);
    }
}

void cuda_attention_write_split(kit_text *t, const cuda_attention_key *key)
{
    cuda_attention_write_totals(t);
    kit_text_add(t, "{\n.reg .b32 %%place, %%index, %%width;\n.reg .b64 %%at;\n"
                    ".reg .f32 %%g<8>, %%total<8>;\n.reg .b16 %%h0;\n");
    write_part(t, key);
    write_cluster_barrier(t);
    kit_text_add(t,
                 "mov.u32 %%index, %%rank;\n"
                 "MERGE:\nsetp.ge.u32 %%p, %%index, %u;\n@%%p bra.uni MERGED;\n"
                 "add.u32 %%x0, %%row, %%index;\nsetp.ge.u32 %%p, %%x0, %%m;\n"
                 "@%%p bra.uni MERGED;\n",
                 cuda_attention_rows(key));
    write_row(t, key);
    kit_text_add(t, "add.u32 %%index, %%index, %u;\nbra.uni MERGE;\nMERGED:\n", key->split);
    write_cluster_barrier(t);
    kit_text_add(t, "}\n");
}
