/* The plot of hal-bench, speed over size as SVG.
 *
 * Every row with a size is a point. Rows whose names differ in the size alone are one line, and so
 * are the results of a peer. Words that all lines share go to the title. */
#include "harness/bench.h"

#include <ctype.h>
#include <errno.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { LEFT = 80, RIGHT = 640, TOP = 70, BOTTOM = 400, WIDTH = 960, LEAST_HEIGHT = 460 };
enum { LEGEND = RIGHT + 24, LEGEND_STEP = 20, LABEL_BYTES = 160, COLOURS = 8 };

/* Told apart by colour-blind readers. Source: M. Okabe, K. Ito, "Color Universal Design", 2008. */
static const char *const colours[COLOURS] = {"#0072b2", "#d55e00", "#009e73", "#cc79a7",
                                             "#e69f00", "#56b4e9", "#000000", "#8f7a00"};
static const char *const dashes[] = {"none", "8 4", "2 3", "8 3 2 3"};

typedef struct plot_point {
    char label[LABEL_BYTES]; /* of its line: words */
    int line;                /* in the order of first points */
    double x, y;
} plot_point;

typedef struct plot {
    const bench_state *bench;
    plot_point *points; /* by lines, then by x */
    int count, lines;
    const char *unit;
    double x_low, x_high, y_step, y_high;
    FILE *file;
} plot;

static double row_size(const bench_row *row)
{
    return (double)(row->n > 0 ? row->n : row->m);
}

static double row_speed(const bench_row *row, const char *unit)
{
    return strcmp(unit, "GFLOP/s") == 0 ? row->gflops
           : strcmp(unit, "GB/s") == 0  ? row->gbps
                                        : row->time.median_us;
}

/* Appends a word after a space. */
static void label_add(char *label, const char *word, size_t length)
{
    const size_t at = strlen(label);
    snprintf(label + at, LABEL_BYTES - at, "%s%.*s", at > 0 ? " " : "", (int)length, word);
}

static const char *word_next(const char *text, size_t *length)
{
    text += strspn(text, " ,");
    *length = strcspn(text, " ,");
    return *length > 0 ? text : NULL;
}

static bool label_has(const char *label, const char *word, size_t length)
{
    size_t own;
    for (const char *at = label; (at = word_next(at, &own)) != NULL; at += own) {
        if (own == length && strncmp(at, word, length) == 0) {
            return true;
        }
    }
    return false;
}

/* Whether all numbers of a word are `size`: H1024, 1024x1024x1024. */
static bool word_is_size(const char *word, size_t length, double size)
{
    bool found = false;
    for (const char *at = word; at < word + length; at++) {
        if (isdigit((unsigned char)*at)) {
            char *end;
            if (strtod(at, &end) != size) {
                return false;
            }
            found = true;
            at = end - 1;
        }
    }
    return found;
}

/* The words of a row's name, up to the comma for a peer, which has no variants, without the last
 * word that is the size; then the type and the one who was measured. */
static void label_make(const bench_row *row, const char *who, bool is_peer, char *label)
{
    const char *size = NULL, *type = row->type == HAL_TYPE_NONE ? "" : hal_type_name(row->type);
    const char *comma = is_peer ? strchr(row->name, ',') : NULL;
    size_t length;
    for (const char *at = row->name; (at = word_next(at, &length)) != NULL; at += length) {
        size = word_is_size(at, length, row_size(row)) ? at : size;
    }
    label[0] = 0;
    for (const char *at = row->name; (at = word_next(at, &length)) != NULL; at += length) {
        if (at != size && (!comma || at < comma)) {
            label_add(label, at, length);
        }
    }
    if (!label_has(label, type, strlen(type))) {
        label_add(label, type, strlen(type));
    }
    label_add(label, who, strlen(who));
}

/* One point for each size of a line: rows of several variants have the same peers. */
static void point_add(plot *p, const bench_row *row, const char *who, bool is_peer, double y)
{
    plot_point *point = &p->points[p->count];
    *point = (plot_point){.line = p->lines, .x = row_size(row), .y = y};
    label_make(row, who, is_peer, point->label);
    for (int i = 0; i < p->count; i++) {
        if (strcmp(p->points[i].label, point->label) == 0) {
            point->line = p->points[i].line;
            if (p->points[i].x == point->x) {
                return;
            }
        }
    }
    p->lines += point->line == p->lines;
    p->count++;
}

static int points_compare(const void *one, const void *other)
{
    const plot_point *a = one, *b = other;
    return a->line != b->line ? (a->line > b->line) - (a->line < b->line)
                              : (a->x > b->x) - (a->x < b->x);
}

static void points_collect(plot *p)
{
    for (int i = 0; i < p->bench->row_count; i++) {
        const bench_row *row = &p->bench->rows[i];
        const double speed = row_speed(row, p->unit);
        if (row_size(row) > 0.0 && speed > 0.0) {
            point_add(p, row, "halyard", false, speed);
            for (int k = 0; k < row->peer_count; k++) {
                const bench_peer *peer = &row->peers[k];
                const double factor = row->time.median_us / peer->time.median_us;
                point_add(p, row, peer->name, true,
                          strcmp(p->unit, "us") == 0 ? speed / factor : speed * factor);
            }
        }
    }
    qsort(p->points, (size_t)p->count, sizeof *p->points, points_compare);
}

/* Steps of 1, 2 or 5 times a power of ten, about six of them. */
static void scales_set(plot *p)
{
    double highest = 0.0;
    p->x_low = p->x_high = p->points[0].x;
    for (int i = 0; i < p->count; i++) {
        p->x_low = fmin(p->x_low, p->points[i].x);
        p->x_high = fmax(p->x_high, p->points[i].x);
        highest = fmax(highest, p->points[i].y);
    }
    const double rough = highest / 6.0, power = pow(10.0, floor(log10(rough)));
    p->y_step = power * (rough <= power       ? 1.0
                         : rough <= 2 * power ? 2.0
                         : rough <= 5 * power ? 5.0
                                              : 10.0);
    p->y_high = p->y_step * ceil(highest / p->y_step);
}

static double x_place(const plot *p, double x)
{
    const double width = log2(p->x_high / p->x_low);
    return width > 0.0 ? LEFT + (RIGHT - LEFT) * log2(x / p->x_low) / width : (LEFT + RIGHT) / 2.0;
}

static double y_place(const plot *p, double y)
{
    return BOTTOM - (BOTTOM - TOP) * y / p->y_high;
}

static void text_escape(FILE *file, const char *text)
{
    for (; *text != 0; text++) {
        switch (*text) {
        case '&':
            fputs("&amp;", file);
            break;
        case '<':
            fputs("&lt;", file);
            break;
        default:
            fputc((unsigned char)*text < 32 ? ' ' : *text, file);
        }
    }
}

static void text_write(const plot *p, double x, double y, const char *attributes, const char *text)
{
    fprintf(p->file, "<text x=\"%.1f\" y=\"%.1f\" %s>", x, y, attributes);
    text_escape(p->file, text);
    fprintf(p->file, "</text>\n");
}

static void grid_line(const plot *p, double x1, double y1, double x2, double y2)
{
    fprintf(p->file, "<path class=\"grid\" d=\"M%.1f %.1fL%.1f %.1f\" stroke=\"#ddd\"/>\n", x1, y1,
            x2, y2);
}

/* A tick at each size that has a point, as far as the numbers have room. */
static void x_axis_write(const plot *p)
{
    double last = -1e9;
    for (double x = p->x_low; x <= p->x_high;) {
        const double at = x_place(p, x);
        double next = INFINITY;
        if (at - last >= 44.0) {
            char number[32];
            snprintf(number, sizeof number, "%.0f", x);
            grid_line(p, at, TOP, at, BOTTOM);
            text_write(p, at, BOTTOM + 18, "class=\"x\" text-anchor=\"middle\"", number);
            last = at;
        }
        for (int i = 0; i < p->count; i++) {
            next = p->points[i].x > x ? fmin(next, p->points[i].x) : next;
        }
        x = next;
    }
    text_write(p, (LEFT + RIGHT) / 2.0, BOTTOM + 42, "class=\"axis\" text-anchor=\"middle\"",
               "size (logarithmic)");
}

static void y_axis_write(const plot *p)
{
    const int steps = (int)round(p->y_high / p->y_step);
    for (int i = 0; i <= steps; i++) {
        const double y = i * p->y_step, at = y_place(p, y);
        char number[32];
        snprintf(number, sizeof number, "%.6g", y);
        grid_line(p, LEFT, at, RIGHT, at);
        text_write(p, LEFT - 8, at + 4, "class=\"y\" text-anchor=\"end\"", number);
    }
    text_write(p, LEFT, TOP - 12, "class=\"axis\" text-anchor=\"middle\"", p->unit);
}

/* The words of `label` that all lines have, or the others. */
static void label_divide(const plot *p, const char *label, bool shared, char *words)
{
    size_t length;
    words[0] = 0;
    for (const char *at = label; (at = word_next(at, &length)) != NULL; at += length) {
        bool in_all = true;
        for (int i = 0; i < p->count; i++) {
            in_all = in_all && label_has(p->points[i].label, at, length);
        }
        if (in_all == shared) {
            label_add(words, at, length);
        }
    }
}

static void titles_write(const plot *p)
{
    const bench_options *options = &p->bench->options;
    char words[LABEL_BYTES], text[512];
    label_divide(p, p->points[0].label, true, words);
    text_write(p, LEFT, 24, "font-size=\"16\" font-weight=\"bold\"", words);
    snprintf(text, sizeof text, "hal-bench %s on %s (%s), %d thread%s", options->suite,
             hal_device_get_plugin_name(p->bench->device), p->bench->info->name, options->threads,
             options->threads == 1 ? "" : "s");
    text_write(p, LEFT, 42, "fill=\"#555\"", text);
}

/* A line with its points, whose tool tips have the numbers, and its legend. */
static void line_write(const plot *p, const plot_point *points, int count)
{
    const int line = points[0].line;
    const char *colour = colours[line % COLOURS], *dash = dashes[line / COLOURS % 4];
    const double legend = TOP + 8 + LEGEND_STEP * line;
    char label[LABEL_BYTES];
    label_divide(p, points[0].label, false, label);
    fprintf(p->file,
            "<g fill=\"%s\">\n<polyline fill=\"none\" stroke=\"%s\" stroke-width=\"2\" "
            "stroke-dasharray=\"%s\" points=\"",
            colour, colour, dash);
    for (int i = 0; i < count; i++) {
        fprintf(p->file, "%s%.1f,%.1f", i == 0 ? "" : " ", x_place(p, points[i].x),
                y_place(p, points[i].y));
    }
    fprintf(p->file, "\"/>\n");
    for (int i = 0; i < count; i++) {
        fprintf(p->file,
                "<circle cx=\"%.1f\" cy=\"%.1f\" r=\"3.5\"><title>%.0f: %.6g %s</title>"
                "</circle>\n",
                x_place(p, points[i].x), y_place(p, points[i].y), points[i].x, points[i].y,
                p->unit);
    }
    fprintf(p->file,
            "<path d=\"M%d %.1fh24\" stroke=\"%s\" stroke-width=\"2\" "
            "stroke-dasharray=\"%s\"/>\n",
            LEGEND, legend, colour, dash);
    text_write(p, LEGEND + 32, legend + 4, "class=\"legend\" fill=\"black\"",
               label[0] != 0 ? label : "halyard");
    fprintf(p->file, "</g>\n");
}

static void plot_write(plot *p)
{
    const int legend = TOP + LEGEND_STEP * (p->lines + 1);
    const int height = legend > LEAST_HEIGHT ? legend : LEAST_HEIGHT;
    fprintf(p->file,
            "<svg xmlns=\"http://www.w3.org/2000/svg\" viewBox=\"0 0 %d %d\" width=\"%d\" "
            "height=\"%d\" font-family=\"sans-serif\" font-size=\"13\">\n"
            "<rect width=\"100%%\" height=\"100%%\" fill=\"white\"/>\n",
            WIDTH, height, WIDTH, height);
    titles_write(p);
    x_axis_write(p);
    y_axis_write(p);
    for (int first = 0, end; first < p->count; first = end) {
        for (end = first; end < p->count && p->points[end].line == p->points[first].line; end++) {
        }
        line_write(p, &p->points[first], end - first);
    }
    fprintf(p->file, "</svg>\n");
}

bool output_svg(bench_state *bench)
{
    const char *path = bench->options.svg;
    plot p = {.bench = bench, .unit = "us"};
    p.points = calloc((size_t)bench->row_count * (BENCH_MAX_PEERS + 1) + 1, sizeof *p.points);
    if (!p.points) {
        return bench_fail(bench, "out of memory");
    }
    if (bench->row_count > 0) {
        p.unit = bench->rows[0].gflops > 0.0 ? "GFLOP/s"
                 : bench->rows[0].gbps > 0.0 ? "GB/s"
                                             : "us";
    }
    points_collect(&p);
    bool well = p.count > 0 || bench_fail(bench, "--svg: expected rows with sizes, got none");
    if (well) {
        scales_set(&p);
        p.file = fopen(path, "w");
        well = p.file || bench_fail(bench, "cannot write %s: %s", path, strerror(errno));
    }
    if (well) {
        plot_write(&p);
        well =
            fclose(p.file) == 0 || bench_fail(bench, "cannot write %s: %s", path, strerror(errno));
    }
    free(p.points);
    return well;
}
