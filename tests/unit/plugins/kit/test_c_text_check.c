/* Dialects that are wrong or incomplete: kit_c_lower refuses them with the field's name. */
#include "../plugin_host.h"

#include <kit/c_text.h>

static const char kernel_text[] =
    "kernel k\ngroup 64 1 1\nbinding x u32 read_write\nshared s u32 16\n"
    "%z = constant u32 0\n%v = load u32 x[%z]\n%w = atomic add u32 x[%z], %v\nbarrier\n"
    "store s[%z], %w\n";

static const kit_c_dialect whole = {
    .value_types = {[HAL_TYPE_U32] = "uint", [HAL_TYPE_BOOL] = "bool"},
    .memory_types = {[HAL_TYPE_U32] = "uint"},
    .global = "",
    .shared = "",
    .bit_cast = {"as_", "("},
    .shared_array = {"", ""},
    .barrier = {"barrier();", "barrier();"},
    .atomic = {"atomic_@o((@T *)(@P), @c)"},
    .atomic_names = {"add"},
};

static void expect_lowered(const kit_c_dialect *dialect, hal_status wanted, const char *words)
{
    hal_ir_kernel *kernel = ir_parse(kernel_text);
    kit_text text = {.host = plugin_host()};
    message[0] = 0;
    const hal_status status = kit_c_lower(plugin_host(), dialect, kernel, &text);
    if (status != wanted || !strstr(message, words)) {
        fail_msg("%s: \"%s\" lacks \"%s\"", hal_status_name(status), message, words);
    }
    kit_text_release(&text);
    hal_ir_kernel_destroy(kernel);
}

#define REFUSED(field, value, words)                          \
    do {                                                      \
        kit_c_dialect wrong = whole;                          \
        wrong.field = (value);                                \
        expect_lowered(&wrong, HAL_ERROR_UNSUPPORTED, words); \
    } while (0)

TEST(a_whole_dialect_is_accepted)
{
    expect_lowered(&whole, HAL_OK, "");
}

TEST(wrong_letters_name_their_field)
{
    REFUSED(atomic[0], "atomic(@P, @X)", "kernel k: dialect.atomic[0]: expected @ with one of");
    REFUSED(atomic[0], "atomic(@P, @X)", "got @X");
    REFUSED(fma, "fma(@a, @b, @P)", "dialect.fma: ");
    REFUSED(scalar, "s@", "dialect.scalar: ");
    REFUSED(shuffle_xor, "from(@a, @b)", "dialect.shuffle_xor: ");
    REFUSED(async_wait, "wait(@a)", "dialect.async_wait: ");
    REFUSED(fast_math[2], "quick(@i)", "dialect.fast_math[2]: ");
}

TEST(missing_words_name_their_field)
{
    REFUSED(value_types[HAL_TYPE_U32], NULL, "dialect.value_types[7]: expected a word");
    REFUSED(memory_types[HAL_TYPE_U32], NULL, "dialect.memory_types[7]: ");
    REFUSED(global, NULL, "dialect.global: ");
    REFUSED(shared, NULL, "dialect.shared: ");
    REFUSED(shared_array[1], NULL, "dialect.shared_array[1]: ");
    REFUSED(bit_cast[0], NULL, "dialect.bit_cast[0]: ");
    REFUSED(barrier[1], NULL, "dialect.barrier[1]: ");
    REFUSED(atomic_names[0], NULL, "dialect.atomic_names[0]: ");
}

UNIT_MAIN(NULL, NULL)
