/* Rows of results, and helpers of all suites. */
#include "harness/bench.h"

#include <math.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static double unit_random(uint64_t *state)
{
    return (double)(bench_word(state) >> 11) * 0x1p-52 - 1.0;
}

/* For random inputs: absolute values from 2^-14 to 1; smaller ones become 0. */
static uint16_t half_bits(float value)
{
    uint32_t bits;
    memcpy(&bits, &value, sizeof bits);
    const uint32_t sign = bits >> 16 & 0x8000, size = bits & 0x7fffffff;
    return (uint16_t)(size < 0x38800000 ? sign : sign | (size - 0x38000000) >> 13);
}

/* E4M3 of a float below 2^8, cut. */
static uint8_t byte_bits(float value)
{
    uint32_t bits;
    memcpy(&bits, &value, sizeof bits);
    const uint32_t sign = bits >> 24 & 0x80, size = bits & 0x7fffffff;
    return (uint8_t)(size < 0x3c800000 ? sign : sign | (size - 0x3c000000) >> 20);
}

static double byte_value(uint8_t bits)
{
    const int exponent = bits >> 3 & 15, fraction = bits & 7;
    const double size = exponent == 0 ? ldexp(fraction, -9) : ldexp(8 + fraction, exponent - 10);
    return (bits & 0x80) != 0 ? -size : size;
}

static float half_value(uint16_t bits)
{
    const int exponent = bits >> 10 & 31, fraction = bits & 1023;
    float size;
    if (exponent == 0) {
        size = (float)fraction * 0x1p-24f;
    } else if (exponent == 31) {
        const uint32_t wide = 0x7f800000u | (uint32_t)fraction << 13;
        memcpy(&size, &wide, sizeof size);
    } else {
        const uint32_t wide = (uint32_t)(exponent + 112) << 23 | (uint32_t)fraction << 13;
        memcpy(&size, &wide, sizeof size);
    }
    return (bits & 0x8000) != 0 ? -size : size;
}

bool bench_fail(bench_state *bench, const char *format, ...)
{
    va_list arguments;
    va_start(arguments, format);
    fprintf(stderr, "hal-bench: ");
    vfprintf(stderr, format, arguments);
    fputc('\n', stderr);
    va_end(arguments);
    bench->failed = true;
    return false;
}

bool bench_ok(bench_state *bench, hal_status status, const char *what)
{
    return status == HAL_OK ||
           bench_fail(bench, "%s: %s: %s", what, hal_status_name(status), hal_status_message());
}

bench_row *bench_add(bench_state *bench, const char *name, hal_type type)
{
    if (bench->as_they_come && bench->row_count > 0) {
        output_rows(bench); /* a run that is ended early leaves what it has measured */
    }
    bench_row *rows = realloc(bench->rows, (size_t)(bench->row_count + 1) * sizeof *bench->rows);
    if (!rows) {
        bench_fail(bench, "out of memory");
        return NULL;
    }
    bench->rows = rows;
    bench_row *row = &rows[bench->row_count++];
    *row = (bench_row){.type = type};
    snprintf(row->name, sizeof row->name, "%s", name);
    return row;
}

bench_peer *bench_add_peer(bench_row *row, const char *name, const measurement *time)
{
    bench_peer *peer = &row->peers[row->peer_count++];
    *peer = (bench_peer){.time = *time};
    snprintf(peer->name, sizeof peer->name, "%s", name);
    return peer;
}

void bench_note(bench_state *bench, const char *format, ...)
{
    char text[256];
    va_list arguments;
    va_start(arguments, format);
    vsnprintf(text, sizeof text, format, arguments);
    va_end(arguments);
    char **notes = realloc(bench->notes, (size_t)(bench->note_count + 1) * sizeof *notes);
    if (notes) {
        bench->notes = notes;
        notes[bench->note_count] = strdup(text);
        bench->note_count += notes[bench->note_count] != NULL;
    }
}

void bench_rate(bench_row *row, double flops, double bytes)
{
    row->gflops = flops / row->time.median_us * 1e-3;
    row->gbps = bytes / row->time.median_us * 1e-3;
    for (int i = 0; i < row->peer_count; i++) {
        bench_peer *peer = &row->peers[i];
        if (peer->gbps == 0.0) {
            peer->gflops = flops / peer->time.median_us * 1e-3;
            peer->gbps = bytes / peer->time.median_us * 1e-3;
        }
        peer->ratio = flops > 0.0 && peer->gflops > 0.0 ? row->gflops / peer->gflops
                      : peer->gbps > 0.0                ? row->gbps / peer->gbps
                                         : peer->time.median_us / row->time.median_us;
    }
}

bool bench_wants(const bench_state *bench, hal_type type, bool by_default)
{
    const char *types = bench->options.types;
    return !types ? by_default : bench_lists(types, hal_type_name(type));
}

bool bench_select_precision(bench_options *options, int index)
{
    if (index < options->precision_count) {
        options->precision = options->precisions[index];
        options->levels = options->levels_of[index];
    }
    return index == 0 || index < options->precision_count;
}

const char *bench_precision_name(hal_gemm_precision precision)
{
    static const char *const names[] = {"strict", "accurate", "fast", "normwise", "exact"};
    return names[precision];
}

void bench_random(hal_type type, void *elements, size_t count, uint64_t seed)
{
    uint64_t state = bench_seed(seed);
    for (size_t i = 0; i < count; i++) {
        const double value = unit_random(&state);
        const float single = (float)value;
        uint32_t bits;
        memcpy(&bits, &single, sizeof bits);
        switch (type) {
        case HAL_TYPE_F64:
            ((double *)elements)[i] = value;
            break;
        case HAL_TYPE_F16:
            ((uint16_t *)elements)[i] = half_bits(single);
            break;
        case HAL_TYPE_BF16:
            ((uint16_t *)elements)[i] = (uint16_t)(bits >> 16);
            break;
        case HAL_TYPE_I8:
        case HAL_TYPE_U8:
            ((uint8_t *)elements)[i] = (uint8_t)(int32_t)(256 * value);
            break;
        case HAL_TYPE_F8_E4M3:
            ((uint8_t *)elements)[i] = byte_bits(single);
            break;
        default:
            ((float *)elements)[i] = single;
        }
    }
}

double bench_value(hal_type type, const void *elements, size_t index)
{
    switch (type) {
    case HAL_TYPE_F64:
        return ((const double *)elements)[index];
    case HAL_TYPE_F16:
        return (double)half_value(((const uint16_t *)elements)[index]);
    case HAL_TYPE_BF16: {
        const uint32_t bits = (uint32_t)((const uint16_t *)elements)[index] << 16;
        float value;
        memcpy(&value, &bits, sizeof value);
        return (double)value;
    }
    case HAL_TYPE_F8_E4M3:
        return byte_value(((const uint8_t *)elements)[index]);
    case HAL_TYPE_I8:
        return ((const int8_t *)elements)[index];
    case HAL_TYPE_U8:
        return ((const uint8_t *)elements)[index];
    case HAL_TYPE_I32:
        return ((const int32_t *)elements)[index];
    case HAL_TYPE_U32:
        return ((const uint32_t *)elements)[index];
    default:
        return (double)((const float *)elements)[index];
    }
}

uint64_t bench_seed_of(const bench_options *options)
{
    return options->seed != 0 ? options->seed : (uint64_t)(measure_now() * 1e6) % 1000000 + 1;
}
