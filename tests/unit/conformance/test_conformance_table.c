/* Taking away any case of a lowering makes a named case fail: for each opcode x type x kind of
 * memory of hal-conformance's table, a plugin that is wrong in that cell alone fails one of the
 * cases that say they cover it. The plugin is the mock one, whose kernels the kit's interpreter
 * runs; it claims all there is, so that hal rewrites nothing. */
#include "mock_fixture.h"

#include "case/case.h"
#include "case/cases.h"
#include "case/cover.h"

#include <fnmatch.h>

static mock_state *mock;
static case_list cases;

typedef struct fixture {
    size_t cells, uncaught;
    bool is_open;
    case_run run;
} fixture;

/* Commands recorded by a failed case must not reach the next one. */
static void run_case(fixture *f, const case_entry *entry)
{
    case_run *run = &f->run;
    if (!f->is_open) {
        *run = (case_run){.selection = "mock"};
        run->device = mock_open("mock");
        run->queue = mock_queue(run->device);
        assert_int_equal(ops_context_create(run->queue, &run->ops), HAL_OK);
        run->info = hal_device_get_info(run->device);
        f->is_open = true;
    }
    run->name = entry->name;
    run->seed = case_seed_of(entry, cases.seed);
    run->status = CASE_PASSED;
    run->lacking = NULL;
    run->detail[0] = 0;
    case_execute(run, entry->function, entry->parameters);
    case_release(run, 0);
    if (run->status != CASE_PASSED || entry == &cases.entries[cases.count - 1]) {
        ops_context_destroy(run->ops);
        hal_queue_destroy(run->queue);
        hal_device_release(run->device);
        f->is_open = false;
    }
}

TEST(cases_pass_where_nothing_is_wrong)
{
    fixture f = {0};
    mock->spoil.opcode = 0;
    for (size_t i = 0; i < cases.count; i++) {
        const case_entry *entry = &cases.entries[i];
        if (entry->cover_count > 0 && strncmp(entry->covers[0].row, "ops ", 4) != 0) {
            run_case(&f, entry);
            if (f.run.status != CASE_PASSED) {
                fail_msg("%s: %s", entry->name, f.run.detail);
            }
        }
    }
    if (f.is_open) {
        run_case(&f, &cases.entries[cases.count - 1]); /* of leaks, and closes */
    }
    mock_is_clean(mock);
}

static int kind_named(const char *const *names, int count, const char *name)
{
    for (int i = 0; i < count; i++) {
        if (strcmp(names[i], name) == 0) {
            return i;
        }
    }
    return -1;
}

static hal_type type_named(const char *name)
{
    for (hal_type type = HAL_TYPE_BOOL; type < HAL_TYPE_COUNT; type++) {
        if (strcmp(hal_type_name(type), name) == 0) {
            return type;
        }
    }
    return HAL_TYPE_NONE;
}

static uint32_t number_behind(const char *text, const char *head)
{
    return (uint32_t)strtoul(text + strlen(head), NULL, 10);
}

static bool parse_value_row(spoil_cell *cell, const case_cover *cover)
{
    static const char *const reductions[] = {"subgroup add", "subgroup min", "subgroup max"};
    static const struct {
        const char *head;
        uint32_t opcode;
    } heads[] = {{"cast from ", HAL_IR_CAST},
                 {"bitcast from ", HAL_IR_BITCAST},
                 {"pack x", HAL_IR_PACK},
                 {"extract x", HAL_IR_EXTRACT},
                 {"var get set", HAL_IR_GET}};
    const int kind = kind_named(reductions, HAL_IR_REDUCE_COUNT, cover->row);
    if (kind >= 0) {
        cell->opcode = HAL_IR_SUBGROUP_REDUCE;
        cell->kind = (uint32_t)kind;
        return true;
    }
    for (size_t i = 0; i < sizeof heads / sizeof heads[0]; i++) {
        if (strncmp(cover->row, heads[i].head, strlen(heads[i].head)) == 0) {
            cell->opcode = heads[i].opcode;
            cell->from = type_named(cover->row + strlen(heads[i].head));
            cell->width = number_behind(cover->row, heads[i].head);
            return true;
        }
    }
    for (uint32_t opcode = 1; opcode < HAL_IR_OPCODE_COUNT; opcode++) {
        const char *name = hal_ir_opcode_name(opcode);
        if (name && strcmp(cover->row, name) == 0) {
            cell->opcode = opcode;
            return true;
        }
    }
    return false;
}

static bool parse_memory_row(spoil_cell *cell, const case_cover *cover)
{
    static const char *const atomics[HAL_IR_ATOMIC_COUNT] = {
        "atomic add", "atomic min", "atomic max",      "atomic and",
        "atomic or",  "atomic xor", "atomic exchange", "atomic compare"};
    const int kind = kind_named(atomics, HAL_IR_ATOMIC_COUNT, cover->row);
    cell->guarded = strstr(cover->row, " guarded") != NULL;
    if (kind >= 0) {
        cell->opcode = HAL_IR_ATOMIC;
        cell->kind = (uint32_t)kind;
    } else if (strncmp(cover->row, "load x", 6) == 0) {
        cell->opcode = HAL_IR_LOAD;
        cell->width = number_behind(cover->row, "load x");
    } else if (strncmp(cover->row, "store x", 7) == 0) {
        cell->opcode = HAL_IR_STORE;
        cell->width = number_behind(cover->row, "store x");
    } else if (strcmp(cover->row, "barrier") == 0) {
        cell->opcode = HAL_IR_BARRIER;
    } else if (strcmp(cover->row, "async_copy") == 0) {
        cell->opcode = HAL_IR_ASYNC_COPY;
    }
    return cell->opcode != 0;
}

/* Makes the plugin wrong in a cell. False for an unknown row. */
static bool spoil(const case_cover *cover)
{
    spoil_cell cell = {.type = cover->type, .shared = cover->memory == CASE_SHARED};
    const bool known = cover->memory == CASE_VALUES ? parse_value_row(&cell, cover)
                                                    : parse_memory_row(&cell, cover);
    memcpy(&mock->spoil, &cell, sizeof cell);
    return known;
}

static bool covers(const case_entry *entry, const case_cover *cell)
{
    for (size_t i = 0; i < entry->cover_count; i++) {
        const case_cover *cover = &entry->covers[i];
        if (cover->type == cell->type && cover->memory == cell->memory &&
            strcmp(cover->row, cell->row) == 0) {
            return true;
        }
    }
    return false;
}

static void look_at_cell(void *user, const case_cover *cell)
{
    fixture *f = user;
    bool caught = false;
    uint32_t hits = 0;
    if (strncmp(cell->row, "ops ", 4) == 0) {
        return; /* an operator is no lowering */
    }
    f->cells++;
    const bool known = spoil(cell);
    for (size_t i = 0; i < cases.count && known && !caught; i++) {
        if (covers(&cases.entries[i], cell)) {
            atomic_store(&mock->spoil.hits, 0);
            run_case(f, &cases.entries[i]);
            hits += atomic_load(&mock->spoil.hits);
            caught = f->run.status == CASE_FAILED && hits > 0;
        }
    }
    mock->spoil.opcode = 0;
    if (!caught) {
        f->uncaught++;
        print_message("%s of %s in memory kind %d: %s, %u times\n", cell->row,
                      hal_type_name(cell->type), cell->memory,
                      known ? "no case fails" : "not known here", hits);
    }
}

TEST(each_cell_that_is_wrong_fails_a_case)
{
    fixture f = {0};
    cover_each_cell(look_at_cell, &f);
    if (f.is_open) {
        run_case(&f, &cases.entries[cases.count - 1]);
    }
    print_message("%zu cells, %zu of them not caught\n", f.cells, f.uncaught);
    assert_true(f.cells > 500);
    assert_int_equal(f.uncaught, 0);
    mock_is_clean(mock);
}

/* A case of each family is found by its name, with any of its sizes changed. */
TEST(names_of_families_hold_their_sizes)
{
    size_t members = 0;
    for (size_t i = 0; i < cases.count; i++) {
        const case_family *family = cases.entries[i].family;
        if (!family) {
            continue;
        }
        members++;
        assert_true(family->bytes <= CASE_PARAMETER_BYTES);
        for (size_t k = 0; k < family->size_count; k++) {
            const case_size *size = &family->sizes[k];
            uint8_t parameters[CASE_PARAMETER_BYTES];
            char name[CASE_NAME_BYTES];
            case_list alone = {.group = "alone", .level = CASE_LEVEL_CORE, .seed = cases.seed};
            case_add_member(&alone, family, cases.entries[i].parameters);
            memcpy(parameters, cases.entries[i].parameters, family->bytes);
            case_size_set(size, parameters, case_size_get(size, parameters) + 1);
            family->print(parameters, cases.seed, name, sizeof name);
            if (!case_add_by_name(&alone, name)) {
                fail_msg("%s is not made from %s", name, cases.entries[i].name);
            }
            case_list_free(&alone);
        }
    }
    assert_true(members > 900);
}

typedef struct selection {
    const case_entry **entries;
    bool *chosen;
    size_t count; /* of the chosen */
} selection;

static selection select_few(void)
{
    selection s = {.entries = calloc(cases.count, sizeof *s.entries),
                   .chosen = calloc(cases.count, sizeof *s.chosen)};
    assert_true(s.entries && s.chosen != NULL);
    for (size_t i = 0; i < cases.count; i++) {
        s.entries[i] = &cases.entries[i];
    }
    assert_true(cover_select(s.entries, cases.count, s.chosen));
    for (size_t i = 0; i < cases.count; i++) {
        s.count += s.chosen[i];
    }
    return s;
}

static void free_selection(selection *s)
{
    free(s->entries);
    free(s->chosen);
}

/* Whether a chosen case has the cell, in any width; of an operator, in any type. */
static void look_for_chosen(void *user, const case_cover *cell)
{
    const selection *s = user;
    const bool of_ops = strncmp(cell->row, "ops ", 4) == 0;
    const size_t bytes = strcspn(cell->row, "x") + 1;
    const size_t compared = !of_ops && strstr(cell->row, " x") ? bytes : sizeof cell->row;
    for (size_t i = 0; i < cases.count; i++) {
        for (size_t k = 0; s->chosen[i] && k < cases.entries[i].cover_count; k++) {
            const case_cover *cover = &cases.entries[i].covers[k];
            if (strncmp(cover->row, cell->row, compared) == 0 &&
                (of_ops || (cover->type == cell->type && cover->memory == cell->memory))) {
                return;
            }
        }
    }
    fail_msg("%s of %s in memory kind %d is not chosen", cell->row, hal_type_name(cell->type),
             cell->memory);
}

TEST(few_cases_cover_every_cell)
{
    static const char *const parameters[] = {"ir/load(*width=8,*guard=1)",
                                             "ir/store(*width=4,*",
                                             "gemm(*ta=1,*",
                                             "gemm(*tb=1,*",
                                             "gemm(type=f64,*",
                                             "gemm(*epilogue=indices,*",
                                             "gemm(*precision=fast,*",
                                             "gemm(*batch=*",
                                             "ops/softmax(*in_place=1,*",
                                             "ops/cast(from=*,to=bool*",
                                             "ops/sum(*axis=2,*",
                                             "kernel/from_text",
                                             "faults/lost(number=6)",
                                             "hal/queue/leaks"};
    selection s = select_few();
    print_message("%zu of %zu cases\n", s.count, cases.count);
    assert_true(s.count < cases.count / 3);
    cover_each_cell(look_for_chosen, &s);
    for (size_t p = 0; p < sizeof parameters / sizeof *parameters; p++) {
        bool found = false;
        for (size_t i = 0; i < cases.count && !found; i++) {
            found = s.chosen[i] && fnmatch(parameters[p], cases.entries[i].name, 0) == 0;
        }
        if (!found) {
            fail_msg("no case is chosen for %s", parameters[p]);
        }
    }
    free_selection(&s);
}

TEST(the_same_few_each_time)
{
    selection first = select_few(), second = select_few();
    assert_memory_equal(first.chosen, second.chosen, cases.count * sizeof *first.chosen);
    free_selection(&first);
    free_selection(&second);
}

/* The mock plugin claims all there is. */
static int begin(void **state)
{
    mock_begin(state);
    mock = mock_find("mock");
    hal_device_info *info = &mock->infos[0];
    info->subgroup_width = HAL_IR_MATRIX_LANES;
    info->exactness = HAL_EXACT_FMA | HAL_EXACT_DIVIDE | HAL_EXACT_SQRT | HAL_EXACT_DENORMALS;
    info->features = HAL_FEATURE_ASYNC_COPY | HAL_FEATURE_ATOMIC_64;
    info->math_f32 = info->math_f64 = UINT32_MAX;
    info->storage_types = HAL_STORAGE_TYPES;
    info->matrix_types = HAL_TYPES_MATRIX;
    info->max_vector_bytes = 64;
    cases.seed = 1;
    case_list_fill(&cases);
    return cases.out_of_memory;
}

static int end(void **state)
{
    case_list_free(&cases);
    return 0;
}

UNIT_MAIN(begin, end)
