/* PTX of the producer without tensor maps, see gemm/producer/direct.h.
 *
 * A line of a stage is 128 bytes along k, of one row of A or column of B, or of a line across k.
 * Lines are taken in groups of eight, as the swizzle repeats: group g of an operand is at g KiB of
 * its tile in either layout, and warp w has groups w, w + 4, .... Tiles begin at multiples of 16
 * lines and columns, so line j of every group of a warp begins alike: at (start + j x distance of
 * lines) mod 16 bytes of a piece of memory, where the start of 16-bit types is that of the tile.
 *
 * Copies: a work-item has a piece of line lane / 8 and of the line 4 after it, and the first
 * eight the ninth piece of a line each, which lines that begin inside a piece need. Beyond the
 * end of a line and after the last line the copy fills with zeros and reads nothing. Stores: a
 * warp writes a line, each work-item one word, from two words of the copy that are shifted by up to
 * three bytes. */
#include "gemm/producer/direct.h"

#include "gemm/tile/ring.h"

#include <stddef.h>

enum {
    WARPS = 4,
    GROUP_LINES = 8,
    PIECE = 16, /* bytes */
    RAW_GROUP = GROUP_LINES * CUDA_GEMM_RAW_LINE,
    MAX_LOADS = 12 /* lines that a warp stores at once: of 128 rows and 256 columns */
};

bool cuda_gemm_direct_is_supported(const cuda_gemm_key *key)
{
    return hal_type_size(key->type) <= 2 && !cuda_gemm_converts(key) &&
           key->shared == CUDA_GEMM_SHARES_NONE;
}

/* A or B of the kernel. */
typedef struct source {
    const char *name, *first, *end; /* registers: a suffix, of the tile and of the matrix */
    bool along_k;
    uint32_t groups;     /* of eight lines */
    uint32_t size;       /* bytes of an element */
    uint32_t raw, bytes; /* offsets in a raw stage and in a stage */
    uint32_t at;         /* offset in the parameter block */
} source;

static source source_of(const cuda_gemm_key *key, uint32_t number)
{
    const uint32_t groups_a = CUDA_GEMM_ROWS / GROUP_LINES, size = hal_type_size(key->type);
    const size_t at = offsetof(cuda_gemm_block, maps) + number * CUDA_GEMM_MAP_BYTES;
    if (number == 0) {
        return (source){"a", "%row", "%m", !key->transpose_a, groups_a, size, 0, 0, (uint32_t)at};
    }
    return (source){"b",
                    "%column",
                    "%n",
                    key->transpose_b != 0,
                    cuda_gemm_tile_b_bytes(key) / CUDA_GEMM_LINE / GROUP_LINES,
                    size,
                    groups_a * RAW_GROUP,
                    cuda_gemm_tile_a_bytes(key),
                    (uint32_t)at};
}

/* Groups of each warp; of the last turn only the first warps may have one. */
static uint32_t turns(const source *s)
{
    return (s->groups + WARPS - 1) / WARPS;
}

static bool is_partial(const source *s, uint32_t turn)
{
    return (turn + 1) * WARPS > s->groups;
}

static void write_source_begin(kit_text *t, const source *s)
{
    kit_text_add(t,
                 ".reg .b64 %%source_%s, %%line_%s, %%batch_stride_%s;\n"
                 ".reg .b32 %%start_%s, %%apart_%s, %%shift_%s;\n.reg .pred %%partial_%s;\n"
                 "ld.param.u64 %%source_%s, [block+%u];\n"
                 "cvta.to.global.u64 %%source_%s, %%source_%s;\n"
                 "ld.param.u64 %%line_%s, [block+%zu];\n"
                 "ld.param.u64 %%batch_stride_%s, [block+%zu];\n"
                 "cvt.u32.u64 %%apart_%s, %%line_%s;\n"
                 "setp.lt.u32 %%partial_%s, %%warp, %u;\n",
                 s->name, s->name, s->name, s->name, s->name, s->name, s->name, s->name, s->at,
                 s->name, s->name, s->name, s->at + offsetof(cuda_gemm_source, line), s->name,
                 s->at + offsetof(cuda_gemm_source, batch), s->name, s->name, s->name,
                 s->groups % WARPS);
}

void cuda_gemm_direct_begin(kit_text *t, const cuda_gemm_key *key)
{
    kit_text_add(
        t,
        ".reg .b32 %%k, %%chunk, %%of_four, %%raw, %%raw_in, %%raw_out, %%prime, %%ended;\n"
        ".reg .b32 %%lines, %%rest, %%left, %%valid, %%to, %%to_ninth, %%in_tile;\n"
        ".reg .b32 %%swizzled<%u>, %%low<%u>, %%high<%u>, %%place;\n"
        ".reg .b64 %%even, %%odd;\n.reg .pred %%ninth, %%ninth_of_some;\n"
        "ld.param.u32 %%k, [block+%zu];\n"
        ".reg .b32 %%begins, %%all_begins;\nmov.u32 %%begins, 0;\nmov.u32 %%all_begins, 0;\n"
        "and.b32 %%chunk, %%lane, 7;\nshr.u32 %%of_four, %%lane, 3;\n"
        "setp.lt.u32 %%ninth, %%lane, %u;\n"
        "add.u32 %%raw, %%base, %u;\nmad.lo.u32 %%raw, %%warp, %u, %%raw;\n"
        "mov.u32 %%raw_in, %%raw;\nmov.u32 %%raw_out, %%raw;\n"
        "mov.u32 %%prime, %u;\nmov.u32 %%in_tile, 0;\n",
        GROUP_LINES, MAX_LOADS, MAX_LOADS,
        offsetof(cuda_gemm_block, maps) + offsetof(cuda_gemm_source, k), GROUP_LINES,
        cuda_gemm_raw_offset(key), RAW_GROUP, cuda_gemm_raw_stages(key) - 1);
    kit_text_add(t, "shr.u32 %%x0, %%lane, 2;\nand.b32 %%x1, %%lane, 3;\nshl.b32 %%x1, %%x1, 2;\n"
                    "mad.lo.u32 %%x1, %%warp, 1024, %%x1;\n");
    for (uint32_t j = 0; j < GROUP_LINES; j++) {
        kit_text_add(t,
                     "xor.b32 %%x2, %%x0, %u;\nshl.b32 %%x2, %%x2, 4;\n"
                     "add.u32 %%swizzled%u, %%x2, %%x1;\nadd.u32 %%swizzled%u, %%swizzled%u, %u;\n",
                     j, j, j, j, j * CUDA_GEMM_LINE);
    }
    for (uint32_t i = 0; i < 2; i++) {
        const source s = source_of(key, i);
        write_source_begin(t, &s);
    }
    kit_text_add(t, "and.pred %%ninth_of_some, %%ninth, %%partial_b;\n");
}

/* Lines and pieces from this work-item's first ones, and bytes of the line from there. `lane`: its
 * line of a group; `bytes`: where its piece begins, a register or a number. */
static void write_place(kit_text *t, const source *s, const char *lane, const char *bytes)
{
    const char *line = s->along_k ? s->first : "%depth",
               *position = s->along_k ? "%depth" : s->first;
    kit_text_add(t,
                 "mad.lo.u32 %%x1, %%warp, %u, %s;\nadd.u32 %%x1, %%x1, %s;\n"
                 "sub.s32 %%lines, %s, %%x1;\n"
                 "cvt.u64.u32 %%e2, %%x1;\nmad.lo.u64 %%e1, %%e2, %%line_%s, %%e0;\n"
                 "mul.wide.u32 %%e2, %s, %u;\nadd.u64 %%e1, %%e1, %%e2;\n"
                 "mov.u32 %%x1, %s;\ncvt.u64.u32 %%e2, %%x1;\nadd.u64 %%e1, %%e1, %%e2;\n"
                 "sub.s32 %%rest, %s, %s;\nmin.s32 %%rest, %%rest, 4096;\n"
                 "mul.lo.s32 %%rest, %%rest, %u;\n"
                 "sub.s32 %%rest, %%rest, %%x1;\n",
                 GROUP_LINES, line, lane, s->along_k ? s->end : "%k", s->name, position, s->size,
                 bytes, s->along_k ? "%k" : s->end, position, s->size);
}

/* Groups of a block of 128 bytes across k, which has as many lines as a stage has elements of k. */
static uint32_t block_groups(const source *s)
{
    return CUDA_GEMM_LINE / s->size / GROUP_LINES;
}

/* Group `turn` of this warp: its lines from the first group's, and bytes along the line. */
static void group_place(const source *s, uint32_t turn, uint32_t *line, uint32_t *bytes)
{
    const uint32_t group = turn * WARPS, of_block = block_groups(s);
    *line = (s->along_k ? group : group % of_block) * GROUP_LINES;
    *bytes = (s->along_k ? 0 : group / of_block) * CUDA_GEMM_LINE;
}

/* The work-item's bytes of its piece `bytes` further along the line. */
static void write_valid(kit_text *t, uint32_t bytes)
{
    kit_text_add(t,
                 "sub.s32 %%valid, %%left, %u;\nmax.s32 %%valid, %%valid, 0;\n"
                 "min.s32 %%valid, %%valid, %u;\n",
                 bytes, PIECE);
}

/* The work-item's pieces of the groups of all turns, from its line `down` of the first group on.
 * Lines of a work-item are multiples of eight apart, so that its pieces begin alike. Even and odd
 * turns have an address each: across k, of 16-bit types, the two halves of a block. A block of
 * bytes across k is all of A. */
static void write_pieces(kit_text *t, const source *s, uint32_t down, const char *guard,
                         const char *guard_of_some, const char *to)
{
    kit_text_add(t,
                 "mad.lo.u64 %%even, %%line_%s, %u, %%e1;\n"
                 "cvt.u32.u64 %%x0, %%even;\nand.b32 %%x0, %%x0, %u;\n"
                 "add.s32 %%left, %%rest, %%x0;\nand.b64 %%even, %%even, %lld;\n"
                 "mad.lo.u64 %%odd, %%line_%s, %u, %%even;\n",
                 s->name, down, PIECE - 1, (long long)-PIECE, s->name, WARPS * GROUP_LINES);
    for (uint32_t turn = 0; turn < turns(s); turn++) {
        uint32_t line, bytes;
        group_place(s, turn, &line, &bytes);
        if (turn == 0 || (!s->along_k && turn % 2 == 0)) {
            write_valid(t, bytes);
        }
        kit_text_add(t,
                     "setp.gt.s32 %%p, %%lines, %u;\nselp.u32 %%x0, %%valid, 0, %%p;\n"
                     "%scp.async.cg.shared.global [%s+%u], [%%%s+%u], %u, %%x0;\n",
                     line + down, is_partial(s, turn) ? guard_of_some : guard, to,
                     s->raw + turn * WARPS * RAW_GROUP + down * CUDA_GEMM_RAW_LINE,
                     turn % 2 == 0 ? "even" : "odd", bytes, PIECE);
        if ((s->along_k || s->size == 1) && turn + 2 < turns(s)) {
            const char *name = turn % 2 == 0 ? "even" : "odd";
            kit_text_add(t, "mad.lo.u64 %%%s, %%line_%s, %u, %%%s;\n", name, s->name,
                         2 * WARPS * GROUP_LINES, name);
        }
    }
}

void cuda_gemm_direct_load(kit_text *t, const cuda_gemm_key *key)
{
    kit_text_add(
        t,
        "mad.lo.u32 %%to, %%of_four, %u, %%raw_in;\nmad.lo.u32 %%to, %%chunk, %u, %%to;\n"
        "mad.lo.u32 %%to_ninth, %%lane, %u, %%raw_in;\nadd.u32 %%to_ninth, %%to_ninth, %u;\n",
        CUDA_GEMM_RAW_LINE, PIECE, CUDA_GEMM_RAW_LINE, CUDA_GEMM_LINE);
    for (uint32_t i = 0; i < 2; i++) {
        const source s = source_of(key, i);
        kit_text_add(t,
                     "cvt.u64.u32 %%e0, %%batch;\n"
                     "mad.lo.u64 %%e0, %%e0, %%batch_stride_%s, %%source_%s;\n"
                     "cvt.u32.u64 %%x0, %%e0;\nand.b32 %%x0, %%x0, %u;\n"
                     "shl.b32 %%begins, %%begins, 4;\nor.b32 %%begins, %%begins, %%x0;\n"
                     "shl.b32 %%x2, %%chunk, 4;\n",
                     s.name, s.name, PIECE - 1);
        write_place(t, &s, "%of_four", "%x2");
        write_pieces(t, &s, 0, "", "@%partial_b ", "%to");
        write_pieces(t, &s, GROUP_LINES / 2, "", "@%partial_b ", "%to");
        write_place(t, &s, "%lane", "128");
        write_pieces(t, &s, 0, "@%ninth ", "@%ninth_of_some ", "%to_ninth");
    }
}

/* The next raw stage of a warp. */
static void write_next_raw(kit_text *t, const cuda_gemm_key *key, const char *name)
{
    const uint32_t bytes = cuda_gemm_raw_bytes(key);
    kit_text_add(t,
                 "add.u32 %s, %s, %u;\nadd.u32 %%x0, %%raw, %u;\n"
                 "setp.eq.u32 %%p, %s, %%x0;\nselp.u32 %s, %%raw, %s, %%p;\n",
                 name, name, bytes, bytes * cuda_gemm_raw_stages(key), name, name, name);
}

/* Of bytes, the line with which a warp begins need not begin as that of the tile does. */
static void write_first_line(kit_text *t, const source *s)
{
    kit_text_add(
        t, "mul.lo.u32 %%x0, %%warp, %u;\nmad.lo.u32 %%start_%s, %%x0, %%apart_%s, %%start_%s;\n",
        GROUP_LINES, s->name, s->name, s->name);
}

/* Line `line` of all groups of a warp: two words of the copy in registers `first` and on. */
static void write_line_loads(kit_text *t, const source *s, uint32_t line, uint32_t first)
{
    kit_text_add(t,
                 "mad.lo.u32 %%shift_%s, %%apart_%s, %u, %%start_%s;\n"
                 "and.b32 %%x0, %%shift_%s, 12;\nshl.b32 %%shift_%s, %%shift_%s, 3;\n"
                 "add.u32 %%x0, %%x0, %%to;\n",
                 s->name, s->name, line, s->name, s->name, s->name, s->name);
    for (uint32_t turn = 0; turn < turns(s); turn++) {
        const uint32_t offset = s->raw + turn * WARPS * RAW_GROUP + line * CUDA_GEMM_RAW_LINE;
        const char *guard = is_partial(s, turn) ? "@%partial_b " : "";
        kit_text_add(t,
                     "%sld.shared.b32 %%low%u, [%%x0+%u];\n%sld.shared.b32 %%high%u, [%%x0+%u];\n",
                     guard, first + turn, offset, guard, first + turn, offset + 4);
    }
}

static void write_line_stores(kit_text *t, const source *s, uint32_t first)
{
    for (uint32_t turn = 0; turn < turns(s); turn++) {
        kit_text_add(t,
                     "shf.r.wrap.b32 %%low%u, %%low%u, %%high%u, %%shift_%s;\n"
                     "%sst.shared.b32 [%%place+%u], %%low%u;\n",
                     first + turn, first + turn, first + turn, s->name,
                     is_partial(s, turn) ? "@%partial_b " : "",
                     s->bytes + turn * WARPS * GROUP_LINES * CUDA_GEMM_LINE, first + turn);
    }
}

void cuda_gemm_direct_store(kit_text *t, const cuda_gemm_key *key, const char *load)
{
    kit_text_add(t, "cp.async.commit_group;\nand.b32 %%begins, %%begins, 255;\n"
                    "shl.b32 %%all_begins, %%all_begins, 8;\n"
                    "or.b32 %%all_begins, %%all_begins, %%begins;\n");
    write_next_raw(t, key, "%raw_in");
    kit_text_add(t,
                 "setp.ne.u32 %%p, %%prime, 0;\n@%%p sub.u32 %%prime, %%prime, 1;\n@%%p bra %s;\n"
                 "cp.async.wait_group %u;\nbar.warp.sync 0xffffffff;\n",
                 load, cuda_gemm_raw_stages(key) - 1);
    if (key->staged) {
        kit_text_add(t, "setp.ne.u32 %%p, %%in_tile, 0;\n@%%p bra RING_DRAINED;\n");
        cuda_gemm_write_wait_drained(t, key);
        kit_text_add(t, "RING_DRAINED:\nadd.u32 %%in_tile, %%in_tile, 1;\n"
                        "setp.eq.u32 %%p, %%in_tile, %%count;\n"
                        "selp.u32 %%in_tile, 0, %%in_tile, %%p;\n");
    }
    kit_text_add(t,
                 "shl.b32 %%x0, %%slot, 3;\nadd.u32 %%barrier, %%barriers, %%x0;\n"
                 "add.u32 %%x1, %%barrier, %u;\n",
                 cuda_gemm_empty_barrier(key));
    cuda_gemm_write_wait(t, key, "WAIT_EMPTY", "%x1", "%parity", false);
    kit_text_add(t,
                 "mad.lo.u32 %%stage, %%slot, %u, %%base;\nshl.b32 %%to, %%lane, 2;\n"
                 "add.u32 %%to, %%to, %%raw_out;\n"
                 "shr.u32 %%start_b, %%all_begins, %u;\nshr.u32 %%start_a, %%start_b, 4;\n"
                 "and.b32 %%start_a, %%start_a, 15;\nand.b32 %%start_b, %%start_b, 15;\n",
                 cuda_gemm_stage_bytes(key), 8 * (cuda_gemm_raw_stages(key) - 1));
    const source a = source_of(key, 0), b = source_of(key, 1);
    if (a.size == 1) {
        write_first_line(t, &a);
        write_first_line(t, &b);
    }
    for (uint32_t line = 0; line < GROUP_LINES; line++) {
        kit_text_add(t, "add.u32 %%place, %%swizzled%u, %%stage;\n", line);
        write_line_loads(t, &a, line, 0);
        write_line_loads(t, &b, line, turns(&a));
        write_line_stores(t, &a, 0);
        write_line_stores(t, &b, turns(&a));
    }
    write_next_raw(t, key, "%raw_out");
    kit_text_add(t, "fence.proxy.async.shared::cta;\nbar.warp.sync 0xffffffff;\n"
                    "setp.eq.u32 %%p, %%lane, 0;\n"
                    "@%%p mbarrier.arrive.shared::cta.b64 _, [%%barrier];\n");
    cuda_gemm_write_next_slot(t, key);
}
