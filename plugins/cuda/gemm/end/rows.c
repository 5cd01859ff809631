/* PTX of boxes that are stored by rows, see gemm/end/rows.h.
 *
 * A warp stores a line at once, each work-item a word of it, from the last sector of memory (32
 * bytes) that begins before the line on: sectors that two stores write in part take about twice the
 * time. So the line's words begin in the box before, and its last ones are left to the box after.
 * An element is on the left of where a work-item of a first box begins, or after the end, where the
 * other half of the word is stored alone.
 *
 * Rows that are 16 apart begin alike, so a warp takes its lines in four classes, w, w + 4, ... + 16
 * i. The box is in the 128-byte swizzle: bits 4 to 6 of an address are exclusive-or'ed with the
 * line, of which a class has one value of three bits. */
#include "gemm/end/rows.h"

#include <stddef.h>

enum {
    WARPS = 4,
    CLASS_STEP = 16, /* rows */
    CLASSES = CLASS_STEP / WARPS,
    MAX_LINES = 64 / CLASS_STEP, /* of a class */
    SECTOR = 32                  /* bytes */
};

static bool has_halves(const cuda_gemm_key *key)
{
    return hal_type_size(key->type_c) == 2;
}

void cuda_gemm_rows_begin(kit_text *t, const cuda_gemm_key *key)
{
    const uint32_t size = hal_type_size(key->type_c);
    kit_text_add(t,
                 ".reg .pred %%whole, %%low, %%high, %%ends, %%low_ends, %%before;\n"
                 ".reg .b16 %%halves<%u>;\n.reg .b32 %%words<%u>;\n"
                 ".reg .b32 %%rows_left, %%columns_left, %%first, %%second, %%left_of;\n"
                 ".reg .b32 %%from_low, %%from_high, %%from_end, %%from_end_high;\n"
                 ".reg .b64 %%class_at, %%store_at, %%class_step, %%store_step;\n"
                 "mul.lo.u64 %%class_step, %%ldc, %u;\nmul.lo.u64 %%store_step, %%ldc, %u;\n",
                 2 * MAX_LINES, MAX_LINES, WARPS * size, CLASS_STEP * size);
}

/* Writes: %class_at is the address of the box's first element in the warp's first row. */
static void write_origin(kit_text *t, const cuda_gemm_key *key, const cuda_gemm_box *box)
{
    kit_text_add(t,
                 "and.b32 %%x0, %%warp, 3;\nadd.u32 %%x1, %s, %%x0;\n"
                 "sub.s32 %%rows_left, %s, %%x1;\nsub.s32 %%columns_left, %s, %s;\n"
                 "min.s32 %%columns_left, %%columns_left, %u;\n"
                 "cvt.u64.u32 %%wide, %%x1;\nmad.lo.u64 %%class_at, %%wide, %%ldc, %%origin;\n"
                 "cvt.u64.u32 %%wide, %s;\nadd.u64 %%class_at, %%class_at, %%wide;\n"
                 "mad.lo.u64 %%class_at, %%class_at, %u, %%c;\n",
                 box->row, box->rows, box->columns, box->column, cuda_gemm_line(key->type_c),
                 box->column, hal_type_size(key->type_c));
}

/* Where element `element` of the warp's first line of a class is, in this box or the one before. */
static void write_place(kit_text *t, const cuda_gemm_key *key, const cuda_gemm_box *box,
                        const char *element, const char *place)
{
    const uint32_t size = hal_type_size(key->type_c);
    kit_text_add(t,
                 "and.b32 %%x2, %s, %u;\nmul.lo.u32 %%x2, %%x2, %u;\n"
                 "xor.b32 %%x2, %%x2, %%x3;\nadd.u32 %%x2, %%x2, %%x1;\nadd.u32 %s, %%x2, %s;\n",
                 element, cuda_gemm_line(key->type_c) - 1, size, place, box->at);
    if (box->previous) {
        kit_text_add(t,
                     "setp.lt.s32 %%before, %s, 0;\n"
                     "@%%before add.u32 %s, %%x2, %s;\n",
                     element, place, box->previous);
    }
}

/* The work-item's word of the lines of a class: elements %first and, of 16 bits, %second. Where the
 * last box of a row ends, the first work-items store what is left of it as well. */
static void write_class(kit_text *t, const cuda_gemm_key *key, const cuda_gemm_box *box,
                        uint32_t number)
{
    const uint32_t size = hal_type_size(key->type_c), word = 4 / size;
    kit_text_add(t,
                 "cvt.u32.u64 %%left_of, %%class_at;\nand.b32 %%left_of, %%left_of, %u;\n"
                 "shr.u32 %%left_of, %%left_of, %u;\n"
                 "mul.lo.u32 %%first, %%lane, %u;\nsub.s32 %%first, %%first, %%left_of;\n"
                 "add.s32 %%second, %%first, %u;\n"
                 "mul.wide.s32 %%store_at, %%first, %u;\n"
                 "add.u64 %%store_at, %%store_at, %%class_at;\n"
                 "setp.lt.s32 %%whole, %%second, %%columns_left;\n",
                 SECTOR - 1, size / 2, word, word - 1, size);
    if (!box->previous) {
        kit_text_add(t, "setp.ge.and.s32 %%whole, %%first, 0, %%whole;\n"
                        "setp.eq.s32 %%high, %%first, -1;\n");
    }
    kit_text_add(t,
                 "setp.eq.s32 %%low, %%second, %%columns_left;\n"
                 "add.u32 %%x1, %%x0, %u;\nand.b32 %%x3, %%x1, 7;\nshl.b32 %%x3, %%x3, 4;\n"
                 "mul.lo.u32 %%x1, %%x1, %u;\n",
                 number * WARPS, CUDA_GEMM_LINE);
    write_place(t, key, box, "%first", "%from_low");
    if (box->is_last) {
        kit_text_add(t,
                     "add.u32 %%from_end, %%x2, %s;\nsetp.lt.s32 %%before, %%first, 0;\n"
                     "add.s32 %%x2, %%second, %u;\n"
                     "setp.lt.and.s32 %%ends, %%x2, %%columns_left, %%before;\n"
                     "setp.eq.and.s32 %%low_ends, %%x2, %%columns_left, %%before;\n",
                     box->at, cuda_gemm_line(key->type_c));
    }
    if (has_halves(key)) {
        write_place(t, key, box, "%second", "%from_high");
        kit_text_add(t, "add.u32 %%from_end_high, %%x2, %s;\n", box->at);
    }
}

static void write_load(kit_text *t, const cuda_gemm_key *key, const char *low, const char *high,
                       uint32_t i)
{
    const uint32_t offset = i * CLASS_STEP * CUDA_GEMM_LINE;
    if (has_halves(key)) {
        kit_text_add(t,
                     "ld.shared.b16 %%halves%u, [%s+%u];\nld.shared.b16 %%halves%u, [%s+%u];\n"
                     "mov.b32 %%words%u, {%%halves%u, %%halves%u};\n",
                     2 * i, low, offset, 2 * i + 1, high, offset, i, 2 * i, 2 * i + 1);
    } else {
        kit_text_add(t, "ld.shared.b32 %%words%u, [%s+%u];\n", i, low, offset);
    }
}

/* Stores word `i`, or its lower half. */
static void write_word(kit_text *t, const cuda_gemm_key *key, const char *whole, const char *low,
                       uint32_t offset, uint32_t i)
{
    kit_text_add(t, "@%s st.global.b32 [%%store_at+%u], %%words%u;\n", whole, offset, i);
    if (has_halves(key)) {
        kit_text_add(t, "@%s st.global.b16 [%%store_at+%u], %%halves%u;\n", low, offset, 2 * i);
    }
}

/* Goes on to the next line of a class, unless it is below C. */
static void write_row_guard(kit_text *t, uint32_t row, const cuda_gemm_box *box, const char *label,
                            uint32_t number)
{
    kit_text_add(t, "setp.le.s32 %%p, %%rows_left, %u;\n@%%p bra %s%u_%u;\n", row, label,
                 box->number, number);
}

static void write_lines(kit_text *t, const cuda_gemm_key *key, const cuda_gemm_box *box,
                        uint32_t number)
{
    const uint32_t lines = box->lines / CLASS_STEP;
    for (uint32_t i = 0; i < lines; i++) {
        write_load(t, key, "%from_low", "%from_high", i);
    }
    for (uint32_t i = 0; i < lines; i++) {
        write_row_guard(t, number * WARPS + i * CLASS_STEP, box, "CLASS_STORED", number);
        write_word(t, key, "%whole", "%low", 0, i);
        if (!box->previous && has_halves(key)) {
            kit_text_add(t, "@%%high st.global.b16 [%%store_at+2], %%halves%u;\n", 2 * i + 1);
        }
        kit_text_add(t, "add.u64 %%store_at, %%store_at, %%store_step;\n");
    }
}

/* What a last box has left: less than a sector of each line. */
static void write_line_ends(kit_text *t, const cuda_gemm_key *key, const cuda_gemm_box *box,
                            uint32_t number)
{
    const uint32_t lines = box->lines / CLASS_STEP;
    kit_text_add(t,
                 "setp.eq.s32 %%p, %%left_of, 0;\n@%%p bra CLASS_ENDED%u_%u;\n"
                 "mul.wide.s32 %%store_at, %%first, %u;\n"
                 "add.u64 %%store_at, %%store_at, %%class_at;\n",
                 box->number, number, hal_type_size(key->type_c));
    for (uint32_t i = 0; i < lines; i++) {
        write_load(t, key, "%from_end", "%from_end_high", i);
    }
    for (uint32_t i = 0; i < lines; i++) {
        write_row_guard(t, number * WARPS + i * CLASS_STEP, box, "CLASS_ENDED", number);
        write_word(t, key, "%ends", "%low_ends", CUDA_GEMM_LINE, i);
        kit_text_add(t, "add.u64 %%store_at, %%store_at, %%store_step;\n");
    }
}

void cuda_gemm_rows_store(kit_text *t, const cuda_gemm_key *key, const cuda_gemm_box *box)
{
    const int least = !box->previous ? 0 : -SECTOR / (int)hal_type_size(key->type_c);
    write_origin(t, key, box);
    kit_text_add(t, "setp.le.s32 %%p, %%columns_left, %d;\n@%%p bra BOX_STORED%u;\n", least,
                 box->number);
    for (uint32_t i = 0; i < CLASSES; i++) {
        write_class(t, key, box, i);
        write_lines(t, key, box, i);
        kit_text_add(t, "CLASS_STORED%u_%u:\n", box->number, i);
        if (box->is_last) {
            write_line_ends(t, key, box, i);
            kit_text_add(t, "CLASS_ENDED%u_%u:\n", box->number, i);
        }
        if (i + 1 < CLASSES) {
            kit_text_add(t, "add.u64 %%class_at, %%class_at, %%class_step;\n");
        }
    }
    kit_text_add(t, "BOX_STORED%u:\n", box->number);
}
